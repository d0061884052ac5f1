//! The driver of a PostgreSQL database, which any number of replicas may share.
//!
//! A batch of one change is one statement and one round trip, which it shares with those that
//! came while another was under way. Longer batches are a transaction that first queues up behind others that touch the
//! same results, because they would lock rows in crossed orders; should it meet a deadlock
//! nevertheless, it is done again. Records that are inserted one after the other are one
//! statement, and so are changes of one kind that are wanted each by itself.

mod analyze;
mod batch;
mod bind;
mod errors;
mod group;
mod migrate;
mod open;
mod place;
mod pool;
#[cfg(test)]
mod pools;
mod reader;
mod snapshot;
#[cfg(test)]
mod tests;
mod together;

use async_trait::async_trait;
use sqlx::{Connection, Executor, postgres::PgConnection};
use tokio::runtime::Handle;

use self::{
    analyze::AnalyzeTrigger,
    batch::RETRIES,
    bind::query,
    errors::classify,
    group::Groups,
    place::Place,
    pool::{Lease, Pool},
    reader::PooledReader,
    together::each,
};
use super::{Beside, Database, Reader, Work};
use crate::{
    codec::row::PreparedChange,
    seam::{Connections, Error, Priority},
    sql::{dialect::Dialect, read, row::SqlRow as _, statement::Statement},
};

pub(crate) use open::open;
pub(crate) use snapshot::snapshot;

/// Each connection that aggregates has a core of its own.
const ALONE: &str = "SET LOCAL max_parallel_workers_per_gather = 0";

/// What another transaction needs to see the same.
const MOMENT: &str = "SELECT pg_export_snapshot()";

#[derive(Debug)]
pub(crate) struct Postgres {
    place: Place,
    /// For writes, reads of one row and everything else that is short.
    pool: Pool,
    groups: Groups,
    /// For what may take long, so that it takes no connection from what is short.
    long: Pool,
    /// Where connections live: one that a query of low priority opens may serve others later.
    home: Handle,
    growth: AnalyzeTrigger,
}

impl Postgres {
    async fn connection(&self) -> Result<Lease, Error> {
        self.connection_of(&self.pool, Priority::Normal).await
    }

    async fn connection_of(&self, pool: &Pool, priority: Priority) -> Result<Lease, Error> {
        let acquired = match priority {
            Priority::Normal => pool.acquire().await,
            Priority::Low => {
                let pool = pool.clone();
                let acquire = self.home.spawn(async move { pool.acquire().await });
                acquire.await.map_err(|ended| Error::Unavailable {
                    what: "connecting",
                    source: ended.into(),
                })?
            }
        };
        acquired.map_err(|e| classify("connecting", e))
    }
}

#[async_trait]
impl Database for Postgres {
    const DIALECT: Dialect = Dialect::Postgres;

    async fn reader(
        &self,
        work: Work,
        priority: Priority,
        what: &'static str,
    ) -> Result<Box<dyn Reader>, Error> {
        let is_long = work == Work::Scan || work == Work::Page && priority == Priority::Low;
        let pool = if is_long { &self.long } else { &self.pool };
        Ok(Box::new(PooledReader::new(
            self.connection_of(pool, priority).await?,
            what,
        )))
    }

    async fn reader_beside(
        &self,
        first: &mut dyn Reader,
        _priority: Priority,
    ) -> Result<Beside, Error> {
        // Never waited for: two that wait for each other's second would wait for ever.
        let Some(connection) = self.long.try_acquire() else {
            return Ok(Beside {
                reader: None,
                is_later: false,
            });
        };
        first.rows(&Statement::new(ALONE)).await?;
        let moment = first.row(&Statement::new(MOMENT)).await?;
        let moment = moment.map(|row| row.text(0)).transpose()?.flatten();
        let mut second = PooledReader::new(connection, "adding up");
        second.begin_at(&same(&moment.unwrap_or_default())?).await?;
        second.rows(&Statement::new(ALONE)).await?;
        Ok(Beside {
            reader: Some(Box::new(second)),
            is_later: false,
        })
    }

    async fn write(&self, batch: Vec<PreparedChange>) -> Result<(), Error> {
        let count = batch.len();
        self.groups.write(batch).await?;
        self.grew(count).await;
        Ok(())
    }

    async fn write_each(&self, changes: Vec<PreparedChange>) -> Vec<Result<(), Error>> {
        let outcomes = each(&self.pool, &changes).await;
        let written = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        self.grew(written).await;
        outcomes
    }

    async fn execute(&self, statements: Vec<Statement>) -> Result<u64, Error> {
        let mut connection = self.connection().await?;
        let mut left = RETRIES;
        loop {
            match execute(&mut connection, &statements).await {
                Err(error) if errors::is_conflict(&error) && left > 0 => left -= 1,
                outcome => return outcome.map_err(|e| classify("writing beside batches", e)),
            }
        }
    }

    async fn execute_each(&self, statements: Vec<Statement>) -> Result<(), Error> {
        let mut connection = self.connection().await?;
        for statement in &statements {
            match query(statement).execute(&mut *connection).await {
                Ok(_) => {}
                Err(error) if errors::is_orphan(&error) => {}
                Err(error) => return Err(classify("writing beside batches", error)),
            }
        }
        Ok(())
    }

    async fn migrate(&self) -> Result<Vec<i64>, Error> {
        let mut connection = self.connection().await?.detach();
        let versions = migrate::migrate(&mut connection, &self.place).await?;
        let closed = connection.close().await;
        closed.map_err(|e| classify("closing a connection", e))?;
        Ok(versions)
    }

    async fn secret(&self, name: &str, candidate: &[u8]) -> Result<Vec<u8>, Error> {
        migrate::secret(&mut *self.connection().await?, name, candidate).await
    }

    async fn vacuum(&self) -> Result<Option<String>, Error> {
        const VACUUM: &str =
            "VACUUM results, records, bodies, dictionaries, log_sources, log_chunks";
        let failed = |error| classify("vacuuming", error);
        let mut connection = self.connection().await?.detach();
        for statement in ["SET statement_timeout = 0", VACUUM] {
            connection.execute(statement).await.map_err(failed)?;
        }
        connection.close().await.map_err(failed)?;
        Ok(None)
    }

    fn connections(&self) -> Connections {
        self.pool.connections() + self.long.connections()
    }

    async fn close(&self) {
        self.pool.close().await;
        self.long.close().await;
    }
}

async fn execute(
    connection: &mut PgConnection,
    statements: &[Statement],
) -> Result<u64, sqlx::Error> {
    let mut tx = connection.begin().await?;
    let mut changed = 0;
    for statement in statements {
        changed += query(statement).execute(&mut *tx).await?.rows_affected();
    }
    tx.commit().await?;
    Ok(changed)
}

/// What makes another transaction see the same. The name of a moment cannot be bound, so it is
/// put together of the letters that such names have.
fn same(moment: &str) -> Result<Statement, Error> {
    const LETTERS: &str = "0123456789ABCDEF-";
    let mut statement = Statement::new("SET TRANSACTION SNAPSHOT '");
    for letter in moment.chars() {
        let at = LETTERS.find(letter);
        let letter = at.and_then(|at| LETTERS.get(at..=at));
        statement.push(letter.ok_or_else(|| read::corrupt("an odd name of a snapshot"))?);
    }
    statement.push("'");
    Ok(statement)
}
