//! Logs in a SQL database.

mod append;
mod pack;
mod seal;

pub(super) use self::pack::pack;

use std::num::NonZeroU32;

use async_trait::async_trait;
use hindsight_filter::model::{Parent, RecordName, ResultPattern};
use hindsight_filter::order::Position;
use hindsight_logs::{Chunk, Window};
use jiff::Timestamp;

use super::SqlStore;
use crate::{
    codec::objects::{Objects, Reference},
    driver::Database,
    seam::{Error, ListedLog, LogAppend, LogKey, LogStore, StoredLog},
    sql::{
        logs::{self as sql, chunks, list},
        row::{Row, SqlRow as _},
        statement::Statement,
    },
};

/// How often a change is tried again that lost against another one of the same source.
const RACES: usize = 32;

/// A number that no other version of a source has.
fn new_version() -> i64 {
    let (high, _) = uuid::Uuid::new_v4().as_u64_pair();
    high.cast_signed()
}

/// Of a source that others changed each time.
fn lost() -> Error {
    Error::Unavailable {
        what: "appending to a log",
        source: "other writers of the same log were faster".into(),
    }
}

/// Whether a chunk of a sealed log of so many bytes lies outside.
fn is_outside<D: Database>(store: &SqlStore<D>, bytes: usize) -> bool {
    let objects = store.objects();
    objects.is_some_and(|objects| bytes > objects.log_above())
}

/// The chunk that a statement finds, if there is one.
async fn one_chunk<D: Database>(
    store: &SqlStore<D>,
    statement: &Statement,
) -> Result<Option<Chunk>, Error> {
    let rows = store.rows(statement, "reading a log").await?;
    match rows.first() {
        Some(row) => chunk_in(row, store.objects()).await.map(Some),
        None => Ok(None),
    }
}

/// The chunk in a row, of which the body is fetched if it lies outside.
pub(crate) async fn chunk_in(row: &Row, objects: Option<&Objects>) -> Result<Chunk, Error> {
    let found = chunks::chunk(row)?;
    if !found.is_outside {
        return Ok(found.chunk);
    }
    let Some(objects) = objects else {
        return Err(Error::Incompatible(
            "a part of a log lies in an object store, and none is configured; set objects_url to \
             where it is"
                .to_owned(),
        ));
    };
    let reference = Reference::read(&found.chunk.body)?;
    Ok(Chunk {
        body: objects.get(&reference).await?,
        head: found.chunk.head,
    })
}

#[async_trait]
impl<D: Database> LogStore for SqlStore<D> {
    async fn logs(&self, run: &RecordName) -> Result<Vec<StoredLog>, Error> {
        let rows = self.rows(&sql::all(run), "reading logs").await?;
        rows.iter().map(|row| sql::source(row, run)).collect()
    }

    async fn log(&self, key: &LogKey) -> Result<Option<StoredLog>, Error> {
        let rows = self.rows(&sql::one(key), "reading a log").await?;
        let first = rows.first();
        first.map(|row| sql::source(row, &key.run)).transpose()
    }

    async fn list_logs(
        &self,
        scope: &ResultPattern,
        after: Option<&Position>,
        most: NonZeroU32,
    ) -> Result<Vec<ListedLog>, Error> {
        let most = most.get() as usize;
        let mut listed = Vec::new();
        let rest = |listed: &[ListedLog]| i64::try_from(most - listed.len()).unwrap_or(i64::MAX);
        if let Some(statement) =
            after.and_then(|after| list::rest_of_result(scope, after, rest(&[])))
        {
            let rows = self.rows(&statement, "listing logs").await?;
            listed = rows.iter().map(list::listed).collect::<Result<_, _>>()?;
        }
        if listed.len() < most {
            let statement = list::results(scope, after, rest(&listed));
            for row in self.rows(&statement, "listing logs").await? {
                listed.push(list::listed(&row)?);
            }
        }
        Ok(listed)
    }

    async fn append_logs(
        &self,
        appends: &[LogAppend],
        now: Timestamp,
    ) -> Vec<Result<StoredLog, Error>> {
        append::append(self, appends, now).await
    }

    async fn seal_log(&self, key: &LogKey, now: Timestamp) -> Result<StoredLog, Error> {
        seal::seal(self, key, now).await
    }

    async fn replace_upload(&self, key: &LogKey, now: Timestamp) -> Result<StoredLog, Error> {
        seal::replace_upload(self, key, now).await
    }

    async fn delete_log(&self, key: &LogKey) -> Result<bool, Error> {
        Ok(self.tell(vec![sql::delete(key)]).await? > 0)
    }

    async fn delete_stale_uploads(&self, run: &RecordName, since: Timestamp) -> Result<u64, Error> {
        self.tell(vec![sql::delete_stale(run, since)]).await
    }

    async fn delete_logs(&self, run: &RecordName) -> Result<u64, Error> {
        self.tell(vec![sql::delete_all(run)]).await
    }

    async fn log_usage(&self, parent: &Parent) -> Result<u64, Error> {
        let rows = self.rows(&sql::usage(parent), "adding up logs").await?;
        let bytes = rows.first().map(|row| row.int(0)).transpose()?.flatten();
        Ok(u64::try_from(bytes.unwrap_or(0)).unwrap_or(0))
    }

    async fn next_chunk(
        &self,
        row: i64,
        line: i64,
        window: Window,
    ) -> Result<Option<Chunk>, Error> {
        one_chunk(self, &chunks::next(row, line, window)).await
    }

    async fn chunk_before(
        &self,
        row: i64,
        line: i64,
        window: Window,
    ) -> Result<Option<Chunk>, Error> {
        one_chunk(self, &chunks::before(row, line, window)).await
    }
}
