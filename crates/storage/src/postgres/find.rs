//! Finding the rows of a list.

use futures::TryStreamExt;
use sqlx::{
    Connection,
    postgres::{PgConnection, PgRow},
};

use super::{SNAPSHOT, driver, errors::classify};
use crate::{
    Error, ListQuery,
    promoted::is_asked,
    sql::{
        dialect::Dialect,
        labels,
        lead::{self, Lead},
        list, promoted,
        read::{Cells as _, Weigh},
        statement::Statement,
        stretch::Stretch,
        way::{self, Way},
    },
};
use hindsight_filter::model::Resource;
use hindsight_filter::{condition::Condition, order::KeyValue};

/// Adds rows of one part until the page is full.
pub(super) async fn fetch<T: Weigh>(
    connection: &mut PgConnection,
    resource: Resource,
    query: &ListQuery,
    part: list::Part,
    read: &(impl Fn(&PgRow) -> Result<T, Error> + Sync),
    page: &mut Vec<T>,
) -> Result<(), Error> {
    let taken = i64::try_from(page.len()).expect("a page is smaller than an i64");
    let limit = i64::from(query.limit.get()) - taken;
    let Ok(wanted @ 1..) = usize::try_from(limit) else {
        return Ok(());
    };
    let list = |way| list::list(Dialect::Postgres, resource, query, part, way, limit);
    if let Some(way) = way::near(Dialect::Postgres, resource, query) {
        let near = list(way)?;
        let found = rows(connection, query, &near, read).await?;
        let bytes: usize = found.iter().map(Weigh::bytes).sum();
        if found.len() >= wanted || query.max_bytes.is_some_and(|most| bytes >= most) {
            page.extend(found);
            return Ok(());
        }
        let beyond = list::beyond_near(Dialect::Postgres, resource, query, part, way);
        let all = match is_asked(&query.condition) {
            // All is read as of one moment already.
            true => match exists(connection, &beyond).await? {
                true => None,
                false => Some(found),
            },
            false => all_near(connection, query, &near, &beyond, read).await?,
        };
        if let Some(all) = all {
            page.extend(all);
            return Ok(());
        }
    }
    let way = way(connection, resource, query).await?;
    if let (Way::Labels(None), Some(descending)) = (way, way::by_time(query)) {
        return stretch_by_stretch(connection, query, descending, read, page).await;
    }
    page.extend(rows(connection, query, &list(way)?, read).await?);
    Ok(())
}

/// Adds rows with labels until the page is full, those of one stretch of time after the other.
async fn stretch_by_stretch<T: Weigh>(
    connection: &mut PgConnection,
    query: &ListQuery,
    descending: bool,
    read: &(impl Fn(&PgRow) -> Result<T, Error> + Sync),
    page: &mut Vec<T>,
) -> Result<(), Error> {
    let span = driver::planned(&labels::span(query))
        .fetch_one(&mut *connection)
        .await;
    let span = span.map_err(|e| classify("asking when rows were stored", e))?;
    let (Some(mut first), Some(mut last)) = (span.int(0)?, span.int(1)?) else {
        return Ok(());
    };
    if let Some(KeyValue::Int(after)) = query
        .after
        .as_ref()
        .and_then(|row| row.keys.first()?.as_ref())
    {
        match descending {
            true => last = last.min(*after),
            false => first = first.max(*after),
        }
    }
    for part in (Stretch { first, last }).parts(descending) {
        let taken = i64::try_from(page.len()).expect("a page is smaller than an i64");
        let limit = i64::from(query.limit.get()) - taken;
        let bytes = page.iter().map(Weigh::bytes).sum();
        let Some(rest) = list::rest(query, bytes).filter(|_| limit > 0) else {
            break;
        };
        let way = Way::Labels(Some(part));
        let with = list::Part::With;
        let statement = list::list(
            Dialect::Postgres,
            Resource::Records,
            &rest,
            with,
            way,
            limit,
        )?;
        page.extend(rows(connection, query, &statement, read).await?);
    }
    Ok(())
}

/// The way to rows that are not near. PostgreSQL knows how many rows have a value and chooses
/// among indexes; but it guesses how many have a label, of which the index is asked in its own
/// way.
pub(super) async fn way<'q>(
    connection: &mut PgConnection,
    resource: Resource,
    query: &'q ListQuery,
) -> Result<Way<'q>, Error> {
    let mut leads = way::indexes(resource, query);
    leads.retain(|lead| !matches!(lead, Lead::Parent(_)));
    let (mut promoted, leads): (Vec<Lead<'_>>, Vec<Lead<'_>>) = leads
        .into_iter()
        .partition(|lead| matches!(lead, Lead::Promoted { .. }));
    if !promoted.is_empty() {
        learn(connection, &mut promoted).await?;
        let counted = counted(connection, resource, &promoted).await?;
        match lead::best(&promoted, &counted) {
            Some((lead, rows)) if lead.is_surely_few(rows) || leads.is_empty() => {
                return Ok(Way::By(lead));
            }
            _ => {}
        }
    }
    let (labels, columns): (Vec<Lead<'_>>, Vec<Lead<'_>>) = leads
        .into_iter()
        .partition(|lead| matches!(lead, Lead::Label(..)));
    let in_order = columns.iter().any(Lead::is_in_order);
    if labels.is_empty() {
        return Ok(match in_order {
            true => Way::Any,
            false => way::unled(Dialect::Postgres, resource, query),
        });
    }
    if in_order {
        let counted = counted(connection, resource, &columns).await?;
        if let Some((lead, rows)) = lead::best(&columns, &counted)
            && lead.is_surely_few(rows)
        {
            return Ok(Way::By(lead));
        }
    }
    if let Some(count) = labels::count_searched(query) {
        let row = driver::planned(&count).fetch_one(connection).await;
        let row = row.map_err(|e| classify("counting labels", e))?;
        if row.int(0)?.is_some_and(labels::is_many) {
            return Ok(Way::Sorted);
        }
    }
    Ok(Way::Labels(None))
}

/// How many rows each lead has, up to some.
async fn counted(
    connection: &mut PgConnection,
    resource: Resource,
    leads: &[Lead<'_>],
) -> Result<Vec<i64>, Error> {
    let count = lead::count(Dialect::Postgres, resource, leads);
    let row = driver::planned(&count).fetch_one(connection).await;
    let row = row.map_err(|e| classify("counting matches", e))?;
    let counted = (0..leads.len()).map(|at| Ok(row.int(at)?.unwrap_or(i64::MAX)));
    counted.collect()
}

/// Finds out whether promoted fields are whole.
async fn learn(connection: &mut PgConnection, leads: &mut [Lead<'_>]) -> Result<(), Error> {
    let fields = lead::fields(leads);
    let unknown = promoted::unknown(&fields);
    let row = driver::query(&unknown).fetch_one(connection).await;
    let row = row.map_err(|e| classify("asking what is promoted", e))?;
    let unknown = (0..fields.len()).map(|at| Ok(row.int(at)?.is_some()));
    lead::learn(leads, &unknown.collect::<Result<Vec<_>, Error>>()?);
    Ok(())
}

/// The rows of a statement if none are beyond; as of one moment, because rows that go
/// meanwhile would bring others near that were not looked at. Only lists of one part have near
/// rows, so no transaction is under way.
async fn all_near<T>(
    connection: &mut PgConnection,
    query: &ListQuery,
    near: &Statement,
    beyond: &Statement,
    read: &(impl Fn(&PgRow) -> Result<T, Error> + Sync),
) -> Result<Option<Vec<T>>, Error> {
    if exists(connection, beyond).await? {
        return Ok(None);
    }
    let begun = connection.begin_with(SNAPSHOT).await;
    let mut tx = begun.map_err(|e| classify("beginning to list", e))?;
    let all = match exists(&mut tx, beyond).await? {
        true => None,
        false => Some(rows(&mut tx, query, near, read).await?),
    };
    let ended = tx.rollback().await;
    ended.map_err(|e| classify("ending a list", e))?;
    Ok(all)
}

/// Whether a statement gives a row.
async fn exists(connection: &mut PgConnection, statement: &Statement) -> Result<bool, Error> {
    let row = driver::query(statement).fetch_optional(connection).await;
    row.map(|row| row.is_some())
        .map_err(|e| classify("listing", e))
}

/// The rows of a list.
async fn rows<T>(
    connection: &mut PgConnection,
    query: &ListQuery,
    statement: &Statement,
    read: &(impl Fn(&PgRow) -> Result<T, Error> + Sync),
) -> Result<Vec<T>, Error> {
    let mut page = Vec::new();
    let asked = match query.condition {
        Condition::All => driver::query(statement),
        _ => driver::planned(statement),
    };
    let mut rows = asked.fetch(connection);
    while let Some(row) = rows.try_next().await.map_err(|e| classify("listing", e))? {
        page.push(read(&row)?);
    }
    Ok(page)
}
