//! The store in one SQLite file: one writer that commits in groups, many readers.
//!
//! WAL with `synchronous=FULL`: a write that returned is on disk, and readers never wait for the
//! writer. Other processes may read and write the same file; the writer waits for them.

mod backup;
mod desk;
mod driver;
mod errors;
mod explain;
mod find;
mod migrate;
mod open;
mod snapshot;
mod stop;
mod sum;
#[cfg(test)]
mod tests;
mod writer;

use std::num::NonZeroU32;

use async_trait::async_trait;
use futures::future;
use jiff::Timestamp;
use sqlx::{Connection, SqlitePool, pool::PoolConnection, sqlite::SqliteRow};

use self::{driver::query, errors::classify, open::File, stop::Lent, writer::Writer};
use super::{
    AggregateQuery, Batch, Change, Connections, Error, Filled, ListQuery, Listed, Maintenance,
    Plan, Promotion, Purge, Purged, Sealed, Store,
    each::commit_each,
    objects::{self, Objects},
    pieces::{self, Key, NewPiece, Pieces, REPACKS, Shelf, StoredPiece},
    promoted::{self, Promotions},
    purge,
    row::{self, Ready},
    sql::{
        dialect::Dialect,
        list, pieces as sql_pieces,
        read::{self, READS, Weigh, Whole},
    },
};
use hindsight_filter::measure::Group;
use hindsight_filter::model::{Record, RecordName, Resource, ResultName, RunResult};
use hindsight_filter::{
    condition::{Ability, Test},
    promoted::{Kind, Path},
};
use hindsight_runtime::background;

pub(super) use backup::{copy, exists, has_log, look, private};
pub(super) use open::open;
pub(super) use snapshot::snapshot;

/// The store.
#[derive(Debug)]
pub(super) struct Sqlite {
    file: File,
    readers: SqlitePool,
    /// For long calls. A connection is a thread, and has the priority of whoever opened it.
    behind: SqlitePool,
    writer: Writer,
    pieces: Pieces,
    promotions: Promotions,
    objects: Option<Objects>,
}

impl Sqlite {
    fn pool(&self) -> &SqlitePool {
        if background::is_here() {
            &self.behind
        } else {
            &self.readers
        }
    }

    async fn reader(&self) -> Result<PoolConnection<sqlx::Sqlite>, Error> {
        self.pool()
            .acquire()
            .await
            .map_err(|e| classify("opening the file", e))
    }

    /// Reads a page, in one transaction if it comes from more than one statement, or from an
    /// index of which it must be known that it is whole.
    async fn page<T>(
        &self,
        resource: Resource,
        query: &ListQuery,
        read: impl Fn(&SqliteRow) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error>
    where
        T: Send + Weigh,
    {
        let mut reader = Lent::new(self.reader().await?).await?;
        let mut page = Vec::new();
        let parts = list::parts(resource, query);
        let is_promoted = promoted::is_asked(&query.condition);
        if let ([part], false) = (parts.as_slice(), is_promoted) {
            find::fetch(&mut reader, resource, query, *part, &read, &mut page).await?;
            reader.done();
            return Ok(page);
        }
        let mut tx = reader
            .begin()
            .await
            .map_err(|e| classify("beginning to list", e))?;
        let resolved;
        let query = if is_promoted {
            resolved = desk::resolved(&mut tx, query).await?;
            &resolved
        } else {
            query
        };
        for part in parts {
            let bytes = page.iter().map(Weigh::bytes).sum();
            let Some(rest) = list::rest(query, bytes) else {
                break;
            };
            find::fetch(&mut tx, resource, &rest, part, &read, &mut page).await?;
        }
        tx.rollback()
            .await
            .map_err(|e| classify("ending a list", e))?;
        reader.done();
        Ok(page)
    }
}

#[async_trait]
impl Store for Sqlite {
    async fn result(&self, name: &ResultName) -> Result<Option<RunResult>, Error> {
        let statement = read::one_result(Dialect::Sqlite, name);
        let mut reader = self.reader().await?;
        let row = query(&statement)
            .fetch_optional(&mut *reader)
            .await
            .map_err(|e| classify("reading a result", e))?;
        row.as_ref().map(read::result).transpose()
    }

    async fn record(&self, name: &RecordName) -> Result<Option<Record>, Error> {
        let statement = read::one_record(Dialect::Sqlite, name);
        let mut gone = read::without_piece();
        for _ in 0..READS {
            let row = {
                let mut reader = self.reader().await?;
                query(&statement)
                    .fetch_optional(&mut *reader)
                    .await
                    .map_err(|e| classify("reading a record", e))?
            };
            let Some(row) = row else { return Ok(None) };
            let alone = vec![read::alone(&row)?];
            drop(row);
            match read::unpack_all(alone, self).await? {
                Whole::All(records) => {
                    return Ok(records.into_iter().next().map(|listed| listed.item));
                }
                Whole::Again(why) => gone = why,
            }
        }
        Err(gone)
    }

    async fn list_results(&self, query: &ListQuery) -> Result<Vec<Listed<RunResult>>, Error> {
        let read = |row: &SqliteRow| read::listed_result(row, &query.order);
        self.page(Resource::Results, query, read).await
    }

    async fn list_sealed(&self, query: &ListQuery) -> Result<Vec<Listed<Sealed>>, Error> {
        let read = |row: &SqliteRow| read::listed_record(row, query);
        let mut gone = read::without_piece();
        for _ in 0..READS {
            let page = self.page(Resource::Records, query, read).await?;
            match read::seal_all(page, self).await? {
                Whole::All(records) => return Ok(records),
                Whole::Again(why) => gone = why,
            }
        }
        Err(gone)
    }

    async fn aggregate(&self, query: &AggregateQuery) -> Result<Vec<Group>, Error> {
        sum::aggregate(self.pool(), query).await
    }

    async fn commit(&self, batch: &Batch) -> Result<(), Error> {
        let known = promoted::known(self).await?;
        let mut left = REPACKS;
        loop {
            // In the end without references, which nobody can delete.
            let pieces = (left > 0).then_some(&self.pieces);
            let mut changes = row::ready(batch, pieces, self, &known, objects::above(self)).await?;
            objects::place(self, &mut changes).await?;
            match self.writer.commit(changes).await {
                Err(error) if pieces::is_gone(&error) && left > 0 => {
                    left -= 1;
                    self.pieces.forget();
                }
                outcome => return outcome,
            }
        }
    }

    async fn commit_each(&self, changes: &[Change]) -> Vec<Result<(), Error>> {
        let write = |ready: Vec<Ready>| {
            let commits = ready.into_iter().map(|one| self.writer.commit(vec![one]));
            future::join_all(commits)
        };
        commit_each(self, changes, write).await
    }

    async fn explain(
        &self,
        resource: Resource,
        query: &ListQuery,
        most: u64,
    ) -> Result<Plan, Error> {
        let mut reader = self.reader().await?;
        let resolved = desk::resolved(&mut reader, query).await?;
        explain::plan(&mut reader, resource, &resolved, most).await
    }

    async fn refresh_indexes(&self) -> Result<(), Error> {
        promoted::known(self).await.map(drop)
    }

    fn ability(&self, test: &Test) -> Ability {
        self.promotions.ability(test)
    }
}

#[async_trait]
impl Shelf for Sqlite {
    async fn current(&self, keys: &[Key]) -> Result<Vec<(Key, StoredPiece)>, Error> {
        let statement = read::current_pieces(keys);
        let rows = query(&statement)
            .fetch_all(&mut *self.reader().await?)
            .await;
        let rows = rows.map_err(|e| classify("reading pieces", e))?;
        rows.iter().map(read::current_piece).collect()
    }

    async fn pieces(&self, ids: &[i64]) -> Result<Vec<StoredPiece>, Error> {
        let statement = read::pieces(Dialect::Sqlite, ids);
        let rows = query(&statement)
            .fetch_all(&mut *self.reader().await?)
            .await;
        let rows = rows.map_err(|e| classify("reading pieces", e))?;
        rows.iter().map(|row| read::piece(row, 0)).collect()
    }

    async fn put(&self, new: Vec<NewPiece>) -> Result<(), Error> {
        let statements = new.iter().flat_map(sql_pieces::put).collect();
        self.writer.tell(statements).await.map(drop)
    }
}

#[async_trait]
impl Maintenance for Sqlite {
    async fn sweep(&self, most: NonZeroU32) -> Result<u64, Error> {
        pieces::sweep(self, most).await
    }

    async fn purgeable(&self, what: &Purge) -> Result<Purged, Error> {
        purge::count(self, what).await
    }

    async fn purge(&self, what: &Purge, now: Timestamp) -> Result<Purged, Error> {
        let mut purged = purge::purge(self, what, now).await?;
        purged.left.extend(migrate::rewrite(&self.file).await?);
        Ok(purged)
    }

    async fn sweep_objects(&self, now: Timestamp, batch: NonZeroU32) -> Result<u64, Error> {
        objects::sweep(self, now, batch).await
    }

    async fn promotions(&self) -> Result<Vec<Promotion>, Error> {
        Ok(promoted::look(self).await?.all().to_vec())
    }

    async fn promote(&self, path: &Path, kind: Kind, now: Timestamp) -> Result<Promotion, Error> {
        promoted::promote(self, path, kind, now).await
    }

    async fn demote(&self, path: &Path) -> Result<(), Error> {
        promoted::demote(self, path).await
    }

    async fn fill(&self, field: i64, most: NonZeroU32) -> Result<Filled, Error> {
        promoted::fill(self, field, most).await
    }

    async fn settle(&self, most: NonZeroU32) -> Result<u64, Error> {
        promoted::settle(self, most).await
    }

    async fn migrate(&self) -> Result<Vec<i64>, Error> {
        migrate::migrate(&self.file).await
    }

    async fn secret(&self, name: &str, candidate: &[u8]) -> Result<Vec<u8>, Error> {
        migrate::secret(&self.file, name, candidate).await
    }

    async fn ping(&self) -> Result<(), Error> {
        let mut reader = self.reader().await?;
        let answer = sqlx::query("SELECT count(*) FROM hindsight_schema");
        answer
            .fetch_one(&mut *reader)
            .await
            .map_err(|e| classify("asking for the schema", e))?;
        Ok(())
    }

    fn connections(&self) -> Connections {
        Connections::of(&self.readers)
    }

    async fn close(&self) {
        self.writer.close().await;
        self.readers.close().await;
        self.behind.close().await;
    }
}
