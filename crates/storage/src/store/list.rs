//! Pages of lists: their rows, and what the bodies of these refer to.

use std::collections::BTreeSet;

use super::{SqlStore, find::Finder};
use crate::{
    codec::{
        known::is_asked, objects::fetch_external, parallel::par_map_blocking, record::StoredRecord,
    },
    driver::{Database, Purpose, Reader, Work},
    seam::{EncodedRecord, Error, ListQuery, Listed, Priority, RecordColumns},
    sql::{
        access_path,
        candidate::{keys_asked, values_of, with_values},
        dialect::Dialect,
        indexed, list,
        read::{self, ListRow},
        row::Row,
        statement::Statement,
        stored_time::{Stretch, stretches},
        thin,
    },
};
use hindsight_filter::Position;
use hindsight_filter::model::{Record, Resource, Tier};

/// How often rows are read again when what they refer to is gone.
const READS: usize = 4;

/// Reads a page, in one transaction if it comes from more than one statement, or from an index
/// of which it must be known that it is whole.
pub(super) async fn page<D: Database, T: Send + ListRow>(
    db: &D,
    resource: Resource,
    query: &ListQuery,
    read: &(dyn Fn(&Row) -> Result<T, Error> + Sync),
) -> Result<Vec<T>, Error> {
    page_of(db, resource, query, false, read).await
}

/// Reads a page of records with the columns of their payloads.
pub(super) async fn columns<D: Database>(
    db: &D,
    query: &ListQuery,
) -> Result<Vec<Listed<RecordColumns>>, Error> {
    let query = ListQuery {
        bodies: false,
        ..query.clone()
    };
    let read = |row: &Row| thin::listed(row, &query);
    page_of(db, Resource::Records, &query, true, &read).await
}

async fn page_of<D: Database, T: Send + ListRow>(
    db: &D,
    resource: Resource,
    query: &ListQuery,
    columns: bool,
    read: &(dyn Fn(&Row) -> Result<T, Error> + Sync),
) -> Result<Vec<T>, Error> {
    let work = match access_path::may_take_long(resource, query) {
        true => Work::Scan,
        false => Work::Page,
    };
    let mut reader = db.reader(work, query.priority, "listing").await?;
    let parts = list::parts(resource, query);
    let in_transaction = parts.len() > 1
        || is_asked(&query.condition)
        || D::DIALECT == Dialect::Sqlite && !keys_asked(&query.condition).is_empty()
        // Very many rows are not looked at twice to know that none came in between.
        || access_path::is_long_prefix(D::DIALECT, resource, query);
    if in_transaction {
        reader.begin(Purpose::List).await?;
    }
    let query = resolved(&mut *reader, D::DIALECT, query).await?;
    let mut page = Vec::new();
    for Stretch { query, is_late } in stretches(resource, query) {
        for part in &parts {
            let bytes = page.iter().map(ListRow::bytes).sum();
            let Some(rest) = list::rest(&query, bytes) else {
                break;
            };
            let mut finder = Finder {
                reader: &mut *reader,
                dialect: D::DIALECT,
                resource,
                query: &rest,
                in_transaction,
                columns,
                read,
            };
            match is_late {
                true => finder.fill_late(*part, &mut page).await?,
                false => finder.fill(*part, &mut page).await?,
            }
        }
    }
    if in_transaction {
        reader.end().await?;
    }
    reader.release().await;
    Ok(page)
}

/// The same list, with the indexed paths that are whole at the moment that is read, and on SQLite with the few values of a label
/// that rows must have.
pub(super) async fn resolved(
    reader: &mut dyn Reader,
    dialect: Dialect,
    asked: &ListQuery,
) -> Result<ListQuery, Error> {
    let mut resolved = asked.clone();
    if is_asked(&asked.condition) {
        let known = indexed::read_known(&reader.rows(&indexed::known()).await?)?;
        resolved.condition = known.resolved(&asked.condition);
    }
    if dialect == Dialect::Sqlite {
        for key in keys_asked(&asked.condition) {
            let rows = reader.rows(&values_of(key)).await?.into_iter();
            let values = rows.map(|row| Ok(read::text(&row, 0)?.unwrap_or_default()));
            let values = values.collect::<Result<Vec<_>, Error>>()?;
            resolved.condition = with_values(resolved.condition, key, &values);
        }
    }
    Ok(access_path::with_tested_parent(resolved))
}

/// Which records are read.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'q> {
    /// The one that a statement gives.
    One(&'q Statement),
    /// Those of a list.
    Page(&'q ListQuery),
}

/// Records with all that they refer to. What is gone was deleted after the rows were read, and
/// with them, so they are read again.
pub(super) async fn records<D: Database>(
    store: &SqlStore<D>,
    wanted: Wanted<'_>,
) -> Result<Vec<Listed<EncodedRecord>>, Error> {
    let priority = match wanted {
        Wanted::One(_) => Priority::Normal,
        Wanted::Page(query) => query.priority,
    };
    let mut gone = read::without_dictionary();
    for _ in 0..READS {
        let rows = match wanted {
            Wanted::One(statement) => {
                let rows = store.rows(statement, "reading a record").await?;
                rows.iter().map(read::alone).collect::<Result<_, _>>()?
            }
            Wanted::Page(query) => {
                let read = |row: &Row| read::listed_record(row, query);
                page(&store.db, Resource::Records, query, &read).await?
            }
        };
        match with_bodies(store, rows, priority).await? {
            Ok(records) => return Ok(records),
            Err(why) => gone = why,
        }
    }
    Err(gone)
}

/// The rows of a page with all that they refer to, or what is gone of it.
async fn with_bodies<D: Database>(
    store: &SqlStore<D>,
    mut rows: Vec<(StoredRecord, Position)>,
    priority: Priority,
) -> Result<Result<Vec<Listed<EncodedRecord>>, Error>, Error> {
    let raws = rows.iter_mut().map(|(raw, _)| raw);
    let outside: Vec<_> = raws
        .filter_map(|raw| raw.outside().is_some().then_some(raw))
        .collect();
    if !outside.is_empty() {
        for brought in fetch_external(store.objects(), outside).await {
            match brought {
                Err(error @ Error::MissingObject(_)) => return Ok(Err(error)),
                brought => brought?,
            }
        }
    }
    let wanted: BTreeSet<i64> = rows
        .iter()
        .filter_map(|(raw, _)| raw.dictionary())
        .collect();
    let count = wanted.len();
    let loaded = store.packed().load(&store.at(priority), wanted).await?;
    if loaded.len() < count {
        return Ok(Err(read::without_dictionary()));
    }
    let encode = |(raw, position): (StoredRecord, _)| Listed {
        item: raw.encoded(&loaded),
        position,
        tier: Tier::Hot,
    };
    Ok(Ok(rows.into_iter().map(encode).collect()))
}

/// Opens the records of a page; of big pages on threads that may block.
pub(super) async fn open_all(
    rows: Vec<Listed<EncodedRecord>>,
) -> Result<Vec<Listed<Record>>, Error> {
    let open = |row: Listed<EncodedRecord>| {
        Ok(Listed {
            item: row.item.decode()?,
            position: row.position,
            tier: row.tier,
        })
    };
    let listed = par_map_blocking(rows, |row| row.item.weight(), open).await?;
    listed.into_iter().collect()
}
