//! The store in a PostgreSQL database, which any number of replicas may share.
//!
//! A batch of one change is one statement and one round trip; the database itself gathers
//! commits. Longer batches are a transaction that first queues up behind others that touch the
//! same results, because they would lock rows in crossed orders; should it meet a deadlock
//! nevertheless, it is done again. Records that are inserted one after the other are one
//! statement, and so are changes of one kind that are wanted each by itself.

mod batch;
mod desk;
mod driver;
mod errors;
mod explain;
mod find;
mod migrate;
mod open;
#[cfg(test)]
mod pools;
mod snapshot;
mod stop;
mod sum;
#[cfg(test)]
mod tests;
mod together;
mod young;

use std::num::NonZeroU32;

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::{Connection, Executor, PgPool, pool::PoolConnection, postgres::PgRow};

use tokio::runtime::Handle;

use self::{driver::query, errors::classify, open::Place, stop::Lent, young::Growth};
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
        way,
    },
};
use hindsight_filter::measure::Group;
use hindsight_filter::model::{Record, RecordName, Resource, ResultName, RunResult};
use hindsight_filter::{
    condition::{Ability, Test},
    promoted::{Kind, Path},
};
use hindsight_runtime::background;

pub(super) use open::open;
pub(super) use snapshot::snapshot;

/// Begins reading everything as of one moment.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The store.
#[derive(Debug)]
pub(super) struct Postgres {
    place: Place,
    /// For writes, reads of one row and everything else that is short.
    pool: PgPool,
    /// For what may take long, so that it takes no connection from what is short.
    long: PgPool,
    /// Where connections live: one that a long call opens serves short ones later.
    home: Handle,
    pieces: Pieces,
    promotions: Promotions,
    objects: Option<Objects>,
    growth: Growth,
}

impl Postgres {
    async fn connection(&self) -> Result<PoolConnection<sqlx::Postgres>, Error> {
        self.connection_of(&self.pool).await
    }

    async fn connection_of(&self, pool: &PgPool) -> Result<PoolConnection<sqlx::Postgres>, Error> {
        let acquired = if background::is_here() {
            let pool = pool.clone();
            let acquire = self.home.spawn(async move { pool.acquire().await });
            acquire.await.map_err(|ended| Error::Unavailable {
                what: "connecting",
                source: ended.into(),
            })?
        } else {
            pool.acquire().await
        };
        acquired.map_err(|e| classify("connecting", e))
    }

    /// Reads a page, in one snapshot if it comes from more than one statement, or from an index
    /// of which it must be known that it is whole.
    async fn page<T: Send + Weigh>(
        &self,
        resource: Resource,
        query: &ListQuery,
        read: impl Fn(&PgRow) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let pool = match background::is_here() || way::may_take_long(resource, query) {
            true => &self.long,
            false => &self.pool,
        };
        let mut connection = Lent::new(self.connection_of(pool).await?);
        let mut page = Vec::new();
        let parts = list::parts(resource, query);
        let is_promoted = promoted::is_asked(&query.condition);
        if let ([part], false) = (parts.as_slice(), is_promoted) {
            find::fetch(&mut connection, resource, query, *part, &read, &mut page).await?;
            connection.done();
            return Ok(page);
        }
        let begun = connection.begin_with(SNAPSHOT).await;
        let mut tx = begun.map_err(|e| classify("beginning to list", e))?;
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
        connection.done();
        Ok(page)
    }
}

#[async_trait]
impl Store for Postgres {
    async fn result(&self, name: &ResultName) -> Result<Option<RunResult>, Error> {
        let statement = read::one_result(Dialect::Postgres, name);
        let mut connection = self.connection().await?;
        let row = query(&statement).fetch_optional(&mut *connection).await;
        let row = row.map_err(|e| classify("reading a result", e))?;
        row.as_ref().map(read::result).transpose()
    }

    async fn record(&self, name: &RecordName) -> Result<Option<Record>, Error> {
        let statement = read::one_record(Dialect::Postgres, name);
        let mut gone = read::without_piece();
        for _ in 0..READS {
            let row = {
                let mut connection = self.connection().await?;
                let row = query(&statement).fetch_optional(&mut *connection).await;
                row.map_err(|e| classify("reading a record", e))?
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
        let read = |row: &PgRow| read::listed_result(row, &query.order);
        self.page(Resource::Results, query, read).await
    }

    async fn list_sealed(&self, query: &ListQuery) -> Result<Vec<Listed<Sealed>>, Error> {
        let read = |row: &PgRow| read::listed_record(row, query);
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
        sum::aggregate(self.connection_of(&self.long).await?, &self.long, query).await
    }

    async fn commit(&self, batch: &Batch) -> Result<(), Error> {
        let known = promoted::known(self).await?;
        let mut left = REPACKS;
        loop {
            // In the end without references, which nobody can delete.
            let pieces = (left > 0).then_some(&self.pieces);
            let mut changes = row::ready(batch, pieces, self, &known, objects::above(self)).await?;
            objects::place(self, &mut changes).await?;
            match self.write(&changes).await {
                Err(error) if pieces::is_gone(&error) && left > 0 => {
                    left -= 1;
                    self.pieces.forget();
                }
                outcome => {
                    if outcome.is_ok() {
                        self.grew(changes.len()).await;
                    }
                    return outcome;
                }
            }
        }
    }

    async fn commit_each(&self, changes: &[Change]) -> Vec<Result<(), Error>> {
        let write = |ready: Vec<Ready>| async move { self.each(&ready).await };
        let outcomes = commit_each(self, changes, write).await;
        let written = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        self.grew(written).await;
        outcomes
    }

    async fn explain(
        &self,
        resource: Resource,
        query: &ListQuery,
        _most: u64,
    ) -> Result<Plan, Error> {
        let mut connection = Lent::new(self.connection_of(&self.long).await?);
        let resolved = desk::resolved(&mut connection, query).await?;
        let plan = explain::plan(&mut connection, resource, &resolved).await?;
        connection.done();
        Ok(plan)
    }

    async fn refresh_indexes(&self) -> Result<(), Error> {
        promoted::known(self).await.map(drop)
    }

    fn ability(&self, test: &Test) -> Ability {
        self.promotions.ability(test)
    }
}

#[async_trait]
impl Shelf for Postgres {
    async fn current(&self, keys: &[Key]) -> Result<Vec<(Key, StoredPiece)>, Error> {
        let statement = read::current_pieces(keys);
        let rows = query(&statement)
            .fetch_all(&mut *self.connection().await?)
            .await;
        let rows = rows.map_err(|e| classify("reading pieces", e))?;
        rows.iter().map(read::current_piece).collect()
    }

    async fn pieces(&self, ids: &[i64]) -> Result<Vec<StoredPiece>, Error> {
        let statement = read::pieces(Dialect::Postgres, ids);
        let rows = query(&statement)
            .fetch_all(&mut *self.connection().await?)
            .await;
        let rows = rows.map_err(|e| classify("reading pieces", e))?;
        rows.iter().map(|row| read::piece(row, 0)).collect()
    }

    /// One statement at a time, so that replicas which store the same pieces in other orders
    /// do not wait for each other in a circle.
    async fn put(&self, new: Vec<NewPiece>) -> Result<(), Error> {
        let mut connection = self.connection().await?;
        for statement in new.iter().flat_map(sql_pieces::put) {
            match query(&statement).execute(&mut *connection).await {
                Ok(_) => {}
                // It was swept already, so it is current for nothing.
                Err(error) if errors::is_orphan(&error) => {}
                Err(error) => return Err(classify("storing pieces", error)),
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Maintenance for Postgres {
    async fn sweep(&self, most: NonZeroU32) -> Result<u64, Error> {
        pieces::sweep(self, most).await
    }

    async fn purgeable(&self, what: &Purge) -> Result<Purged, Error> {
        purge::count(self, what).await
    }

    async fn purge(&self, what: &Purge, now: Timestamp) -> Result<Purged, Error> {
        const VACUUM: &str = "VACUUM results, records, bodies, pieces";
        let purged = purge::purge(self, what, now).await?;
        let failed = |error| classify("vacuuming", error);
        let mut connection = self.connection().await?.detach();
        for statement in ["SET statement_timeout = 0", VACUUM] {
            connection.execute(statement).await.map_err(failed)?;
        }
        connection.close().await.map_err(failed)?;
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
        let mut connection = self.connection().await?.detach();
        let versions = migrate::migrate(&mut connection, &self.place).await?;
        let closed = connection.close().await;
        closed.map_err(|e| classify("closing a connection", e))?;
        Ok(versions)
    }

    async fn secret(&self, name: &str, candidate: &[u8]) -> Result<Vec<u8>, Error> {
        let mut connection = self.connection().await?;
        migrate::secret(&mut connection, name, candidate).await
    }

    async fn ping(&self) -> Result<(), Error> {
        let mut connection = self.connection().await?;
        let answer = sqlx::query("SELECT count(*) FROM hindsight_schema");
        let answer = answer.fetch_one(&mut *connection).await;
        answer
            .map(drop)
            .map_err(|e| classify("asking for the schema", e))
    }

    fn connections(&self) -> Connections {
        Connections::of(&self.pool) + Connections::of(&self.long)
    }

    async fn close(&self) {
        self.pool.close().await;
        self.long.close().await;
    }
}
