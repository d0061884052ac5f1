//! Reading the feed of changes, and removing what is too old.

use std::{collections::HashMap, num::NonZeroU32};

use jiff::Timestamp;

use super::SqlStore;
use crate::{
    driver::{Database, Purpose, Reader, Work},
    seam::{ChangedRecord, Error, FeedPage, FeedPosition, Priority},
    sql::{dialect::Dialect, feed as sql, row::SqlRow as _},
};

/// The place after all changes that can be read.
pub(super) async fn end(store: &SqlStore<impl Database>) -> Result<FeedPosition, Error> {
    let mut reader = store
        .db
        .reader(Work::Lookup, Priority::Normal, "reading the feed")
        .await?;
    let bounds = Bounds::read(store.dialect(), &mut *reader).await?;
    reader.release().await;
    Ok(FeedPosition::after(bounds.last))
}

/// The place before all changes that are kept.
pub(super) async fn begin(store: &SqlStore<impl Database>) -> Result<FeedPosition, Error> {
    let mut reader = store
        .db
        .reader(Work::Lookup, Priority::Normal, "reading the feed")
        .await?;
    let bounds = Bounds::read(store.dialect(), &mut *reader).await?;
    reader.release().await;
    Ok(FeedPosition::after(bounds.floor))
}

/// At most `most` changes after a place, all as of one moment.
pub(super) async fn page<D: Database>(
    store: &SqlStore<D>,
    after: FeedPosition,
    most: NonZeroU32,
) -> Result<FeedPage, Error> {
    let mut reader = store
        .db
        .reader(Work::Page, Priority::Normal, "reading the feed")
        .await?;
    reader.begin(Purpose::List).await?;
    let bounds = Bounds::read(D::DIALECT, &mut *reader).await?;
    if sql::is_pruned(D::DIALECT, after, bounds.floor) || after.transaction > bounds.last {
        reader.end().await?;
        reader.release().await;
        return Err(Error::Expired);
    }
    let limit = i64::from(most.get());
    let noted = sql::noted(D::DIALECT, after, bounds.last, limit);
    let rows = reader.rows(&noted).await?;
    let noted = rows.iter().map(sql::noted_in);
    let noted = noted.collect::<Result<Vec<_>, _>>()?;
    let more = noted.len() as u64 >= u64::from(most.get());
    let mut records = HashMap::new();
    if !noted.is_empty() {
        let rows = noted.iter().map(|noted| noted.record_row).collect();
        let found = reader.rows(&sql::records(D::DIALECT, rows)).await?;
        for row in &found {
            let (number, update_us, columns) = sql::record_in(row)?;
            records.insert((number, update_us), columns);
        }
    }
    reader.end().await?;
    reader.release().await;
    let end = match noted.last() {
        Some(last) if more => last.position,
        _ => FeedPosition::after(bounds.last),
    };
    let mut changes = Vec::with_capacity(records.len());
    // The last of several changes with one time of update is that of the state.
    for noted in noted.iter().rev() {
        if let Some(columns) = records.remove(&(noted.record_row, noted.update_us)) {
            changes.push(ChangedRecord {
                position: noted.position,
                columns,
            });
        }
    }
    changes.reverse();
    Ok(FeedPage { changes, end, more })
}

/// Removes changes that were noted before a time, at most about `most` of them, and says how many.
pub(super) async fn prune<D: Database>(
    store: &SqlStore<D>,
    before: Timestamp,
    most: NonZeroU32,
) -> Result<u64, Error> {
    let statements = sql::prune(D::DIALECT, before, i64::from(most.get()));
    store.tell(statements).await
}

/// Which part of the feed there is.
struct Bounds {
    /// The last transaction of which changes were removed.
    floor: i64,
    /// The last transaction of which changes can be read.
    last: i64,
}

impl Bounds {
    async fn read(dialect: Dialect, reader: &mut dyn Reader) -> Result<Self, Error> {
        let row = reader.row(&sql::bounds(dialect)).await?;
        let row = row.ok_or_else(|| Error::Corrupt("the feed has no bounds".to_owned()))?;
        Ok(Self {
            floor: row.int(0)?.unwrap_or_default(),
            last: row.int(1)?.unwrap_or_default(),
        })
    }
}
