//! Finding the rows of a list.

use futures::TryStreamExt;
use sqlx::{
    Connection,
    sqlite::{SqliteConnection, SqliteRow},
};

use super::{driver, errors::classify};
use crate::{
    Error, ListQuery,
    sql::{
        dialect::Dialect,
        lead, list, promoted,
        read::{Cells as _, Weigh},
        statement::Statement,
        way::{self, Way},
    },
};
use hindsight_filter::model::Resource;

/// Adds rows of one part until the page is full.
pub(super) async fn fetch<T: Weigh>(
    connection: &mut SqliteConnection,
    resource: Resource,
    query: &ListQuery,
    part: list::Part,
    read: &(impl Fn(&SqliteRow) -> Result<T, Error> + Sync),
    page: &mut Vec<T>,
) -> Result<(), Error> {
    let taken = i64::try_from(page.len()).expect("a page is smaller than an i64");
    let limit = i64::from(query.limit.get()) - taken;
    let Ok(wanted @ 1..) = usize::try_from(limit) else {
        return Ok(());
    };
    let enough = |near: &[T]| {
        let bytes: usize = near.iter().map(Weigh::bytes).sum();
        near.len() >= wanted || query.max_bytes.is_some_and(|most| bytes >= most)
    };
    let list = |way| list::list(Dialect::Sqlite, resource, query, part, way, limit);
    if let Some(way) = way::near(Dialect::Sqlite, resource, query) {
        let near = list(way)?;
        let found = rows(connection, &near, read).await?;
        if enough(&found) {
            page.extend(found);
            return Ok(());
        }
        let beyond = list::beyond_near(Dialect::Sqlite, resource, query, part, way);
        if let Some(all) = all_near(connection, &near, &beyond, read).await? {
            page.extend(all);
            return Ok(());
        }
    }
    let found = way(connection, resource, query).await?;
    if let Some(way) = found.before {
        let farther = rows(connection, &list(way)?, read).await?;
        if enough(&farther) {
            page.extend(farther);
            return Ok(());
        }
    }
    page.extend(rows(connection, &list(found.way)?, read).await?);
    Ok(())
}

/// A way to rows that are not near.
pub(super) struct Found<'q> {
    /// To some, which is worth going first.
    pub(super) before: Option<Way<'q>>,
    /// To all.
    pub(super) way: Way<'q>,
}

/// The way to rows that are not near.
pub(super) async fn way<'q>(
    connection: &mut SqliteConnection,
    resource: Resource,
    query: &'q ListQuery,
) -> Result<Found<'q>, Error> {
    let mut leads = way::indexes(resource, query);
    let fields = lead::fields(&leads);
    if !fields.is_empty() {
        let row = one(connection, &promoted::unknown(&fields)).await?;
        let unknown = (0..fields.len()).map(|at| Ok(row.int(at)?.is_some()));
        lead::learn(&mut leads, &unknown.collect::<Result<Vec<_>, Error>>()?);
    }
    if leads.is_empty() {
        let way = way::unled(Dialect::Sqlite, resource, query);
        return Ok(Found { before: None, way });
    }
    let count = lead::count(Dialect::Sqlite, resource, &leads);
    let row = one(connection, &count).await?;
    let counted = (0..leads.len()).map(|at| Ok(row.int(at)?.unwrap_or(i64::MAX)));
    let counted: Vec<i64> = counted.collect::<Result<_, Error>>()?;
    let Some((lead, count)) = lead::best(&leads, &counted) else {
        return Ok(Found {
            before: None,
            way: Way::Any,
        });
    };
    let before = lead.is_long(count).then(|| way::farther(resource, query));
    Ok(Found {
        before: before.flatten(),
        way: Way::By(lead),
    })
}

/// The one row that a statement gives.
async fn one(connection: &mut SqliteConnection, statement: &Statement) -> Result<SqliteRow, Error> {
    let row = driver::query(statement).fetch_one(connection).await;
    row.map_err(|e| classify("counting matches", e))
}

/// The rows of a statement if none are beyond; as of one moment, because rows that go
/// meanwhile would bring others near that were not looked at. Only lists of one part have near
/// rows, so no transaction is under way.
async fn all_near<T>(
    connection: &mut SqliteConnection,
    near: &Statement,
    beyond: &Statement,
    read: &(impl Fn(&SqliteRow) -> Result<T, Error> + Sync),
) -> Result<Option<Vec<T>>, Error> {
    if exists(connection, beyond).await? {
        return Ok(None);
    }
    let begun = connection.begin().await;
    let mut tx = begun.map_err(|e| classify("beginning to list", e))?;
    let all = match exists(&mut tx, beyond).await? {
        true => None,
        false => Some(rows(&mut tx, near, read).await?),
    };
    let ended = tx.rollback().await;
    ended.map_err(|e| classify("ending a list", e))?;
    Ok(all)
}

/// Whether a statement gives a row.
async fn exists(connection: &mut SqliteConnection, statement: &Statement) -> Result<bool, Error> {
    let row = driver::query(statement).fetch_optional(connection).await;
    row.map(|row| row.is_some())
        .map_err(|e| classify("listing", e))
}

/// The rows of a list.
async fn rows<T>(
    connection: &mut SqliteConnection,
    statement: &Statement,
    read: &(impl Fn(&SqliteRow) -> Result<T, Error> + Sync),
) -> Result<Vec<T>, Error> {
    let mut page = Vec::new();
    let mut rows = driver::query(statement).fetch(connection);
    while let Some(row) = rows.try_next().await.map_err(|e| classify("listing", e))? {
        page.push(read(&row)?);
    }
    Ok(page)
}
