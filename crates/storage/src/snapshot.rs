//! One moment of a database, read from end to end beside writers, without changing a byte of it.
//!
//! What checks and copies whole databases reads through this: one connection, one transaction.
//! SQLite keeps its log, and PostgreSQL its dead rows, for as long as one is open.

use std::{fmt, sync::Arc};

use async_trait::async_trait;

use super::{
    Error,
    objects::{Depot, Objects},
    postgres,
    resolve::{Address, address},
    sql::{dialect::Dialect, read::Cells, statement::Statement},
    sqlite,
};

/// A row of either driver.
pub(super) type Row = Box<dyn Cells + Send + Sync>;

/// A connection that reads inside one transaction.
#[async_trait]
pub(super) trait Rows: Send + Sync {
    /// The rows of a statement, as the database was when the transaction began.
    async fn rows(&mut self, statement: &Statement) -> Result<Vec<Row>, Error>;

    /// Lets go of the moment and takes the present one.
    async fn refresh(&mut self) -> Result<(), Error>;

    /// What the engine itself finds wrong with a table and its indexes, a text for each.
    async fn damage(&mut self, table: &'static str) -> Result<Vec<String>, Error>;

    /// Lets go of the connection.
    async fn close(self: Box<Self>);
}

/// One moment of a database.
pub struct Snapshot {
    /// How to say things to it.
    pub(super) dialect: Dialect,
    rows: Box<dyn Rows>,
    objects: Option<Objects>,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snapshot of {:?}", self.dialect)
    }
}

impl Snapshot {
    /// The moment that `rows` reads.
    pub(super) fn new(dialect: Dialect, rows: Box<dyn Rows>) -> Self {
        Self {
            dialect,
            rows,
            objects: None,
        }
    }

    /// Opens `sqlite:PATH` or `postgres://...` as it is now, only to read it. Its schema must be
    /// up to date.
    ///
    /// # Errors
    /// As [`super::resolve::open`].
    pub async fn open(url: &str) -> Result<Self, Error> {
        match address(url)? {
            Address::Sqlite(path) => sqlite::snapshot(&path).await,
            Address::Postgres(url) => postgres::snapshot(&url).await,
        }
    }

    /// The same, and the payloads that lie in an object store.
    ///
    /// # Errors
    /// Likewise.
    pub async fn open_with(url: &str, depot: Option<&Arc<Depot>>) -> Result<Self, Error> {
        let mut snapshot = Self::open(url).await?;
        snapshot.objects = Objects::of(&mut snapshot, depot).await?;
        Ok(snapshot)
    }

    /// Where payloads lie outside the database, if that is known.
    pub(super) fn objects(&self) -> Option<&Objects> {
        self.objects.as_ref()
    }

    /// The rows of a statement.
    pub(super) async fn rows(&mut self, statement: &Statement) -> Result<Vec<Row>, Error> {
        self.rows.rows(statement).await
    }

    /// The one number that a statement gives.
    pub(super) async fn number(&mut self, statement: &Statement) -> Result<i64, Error> {
        let rows = self.rows.rows(statement).await?;
        let number = rows.first().map(|row| row.int(0)).transpose()?.flatten();
        number.ok_or_else(|| Error::Corrupt("a count gave no number".to_owned()))
    }

    /// Takes the present moment instead.
    pub(super) async fn refresh(&mut self) -> Result<(), Error> {
        self.rows.refresh().await
    }

    /// What the engine itself finds wrong with a table.
    pub(super) async fn damage(&mut self, table: &'static str) -> Result<Vec<String>, Error> {
        self.rows.damage(table).await
    }

    /// Lets go of the database.
    pub async fn close(self) {
        self.rows.close().await;
    }
}
