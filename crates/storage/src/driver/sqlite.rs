//! The driver of one SQLite file: one writer that commits in groups, many readers.
//!
//! WAL with `synchronous=FULL`: a write that returned is on disk, and readers never wait for the
//! writer. Other processes may read and write the same file; the writer waits for them.

mod backup;
mod bind;
mod errors;
mod file;
mod migrate;
mod open;
mod reader;
mod snapshot;
#[cfg(test)]
mod tests;
mod transaction;
mod writer;

use async_trait::async_trait;
use sqlx::SqlitePool;

use self::{errors::classify, file::File, reader::PooledReader, writer::Writer};
use super::{Beside, Database, Purpose, Reader, Work};
use crate::{
    codec::row::PreparedChange,
    seam::{Connections, Error, Priority},
    sql::{dialect::Dialect, row::SqlRow as _, statement::Statement},
};

pub(crate) use backup::{copy, exists, has_log, look, private};
pub(crate) use open::open;
pub(crate) use snapshot::snapshot;

/// How often two connections are tried to be brought to the same moment, while others write.
const TRIES: usize = 3;

/// A transaction sees the moment of its first look at a table.
const LOOK: &str = "SELECT 1 FROM hindsight_schema LIMIT 1";

#[derive(Debug)]
pub(crate) struct Sqlite {
    file: File,
    readers: SqlitePool,
    /// For queries of low priority. A connection is a thread, and inherits the niceness of the
    /// thread that opened it.
    low_priority: SqlitePool,
    writer: Writer,
}

impl Sqlite {
    fn pool(&self, priority: Priority) -> &SqlitePool {
        match priority {
            Priority::Normal => &self.readers,
            Priority::Low => &self.low_priority,
        }
    }
}

#[async_trait]
impl Database for Sqlite {
    const DIALECT: Dialect = Dialect::Sqlite;

    async fn reader(
        &self,
        work: Work,
        priority: Priority,
        what: &'static str,
    ) -> Result<Box<dyn Reader>, Error> {
        let connection = self.pool(priority).acquire().await;
        let connection = connection.map_err(|e| classify("opening the file", e))?;
        Ok(Box::new(PooledReader::new(connection, work, what).await?))
    }

    async fn reader_beside(
        &self,
        first: &mut dyn Reader,
        priority: Priority,
    ) -> Result<Beside, Error> {
        // Never waited for: two that wait for each other's second would wait for ever.
        let Some(connection) = self.pool(priority).try_acquire() else {
            return Ok(Beside {
                reader: None,
                is_later: false,
            });
        };
        let mut second = PooledReader::new(connection, Work::Scan, "adding up").await?;
        for _ in 0..TRIES {
            first.end().await?;
            let before = version(&mut second).await?;
            first.begin(Purpose::Aggregate).await?;
            first.rows(&Statement::new(LOOK)).await?;
            second.begin(Purpose::Aggregate).await?;
            if version(&mut second).await? == before {
                return Ok(Beside {
                    reader: Some(Box::new(second)),
                    is_later: true,
                });
            }
            // Somebody wrote in between, so that they do not see the same.
            second.end().await?;
        }
        Box::new(second).release().await;
        Ok(Beside {
            reader: None,
            is_later: true,
        })
    }

    async fn write(&self, batch: Vec<PreparedChange>) -> Result<(), Error> {
        self.writer.commit(batch).await
    }

    async fn write_each(&self, changes: Vec<PreparedChange>) -> Vec<Result<(), Error>> {
        let commits = changes.into_iter().map(|one| self.writer.commit(vec![one]));
        futures::future::join_all(commits).await
    }

    async fn execute(&self, statements: Vec<Statement>) -> Result<u64, Error> {
        self.writer.tell(statements).await
    }

    async fn execute_each(&self, statements: Vec<Statement>) -> Result<(), Error> {
        self.writer.tell(statements).await.map(drop)
    }

    async fn migrate(&self) -> Result<Vec<i64>, Error> {
        migrate::migrate(&self.file).await
    }

    async fn secret(&self, name: &str, candidate: &[u8]) -> Result<Vec<u8>, Error> {
        migrate::secret(&self.file, name, candidate).await
    }

    async fn vacuum(&self) -> Result<Option<String>, Error> {
        migrate::rewrite(&self.file).await
    }

    fn connections(&self) -> Connections {
        Connections::of(&self.readers)
    }

    async fn close(&self) {
        self.writer.close().await;
        self.readers.close().await;
        self.low_priority.close().await;
    }
}

/// A number that is another one once another connection has written; in a transaction it is that
/// of the moment which the transaction sees, from now on.
async fn version(reader: &mut PooledReader) -> Result<Option<i64>, Error> {
    reader.rows(&Statement::new(LOOK)).await?;
    let version = reader.row(&Statement::new("PRAGMA data_version")).await?;
    version
        .map(|row| row.int(0))
        .transpose()
        .map(Option::flatten)
}
