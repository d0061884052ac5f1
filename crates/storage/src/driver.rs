//! What a database driver does: it reads and executes statements, writes
//! changes, and looks after its schema. Everything else is the same for all of
//! them, see [`SqlStore`](crate::store::SqlStore).

pub(crate) mod migrations;
pub(crate) mod options;
pub(crate) mod postgres;
pub(crate) mod sqlite;

use std::{fmt::Debug, ops::ControlFlow};

use async_trait::async_trait;
use futures::{Stream, TryStreamExt as _};

use crate::{
    codec::row::PreparedChange,
    seam::{Connections, Error, Priority},
    sql::{
        dialect::Dialect,
        row::{Row, SqlRow},
        statement::Statement,
    },
};

/// How much a read may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// A few rows by their keys: too short to be worth a cancellation.
    Lookup,
    /// The next rows of an index.
    Page,
    /// Any number of rows. It takes no connection from what is short.
    Scan,
}

/// What a transaction reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    List,
    /// Groups of very many rows.
    Aggregate,
}

/// Takes a row that was read, and says whether others are wanted.
pub(crate) type Take<'t> = dyn FnMut(Row) -> Result<ControlFlow<()>, Error> + Send + 't;

/// A connection for reading. Dropped before [`Reader::release`], the statement under
/// way is cancelled.
#[async_trait]
pub(crate) trait Reader: Send {
    /// Gives each row of a statement to `take`, in order, until that wants no more.
    async fn each(&mut self, statement: &Statement, take: &mut Take<'_>) -> Result<(), Error>;

    /// Begins a transaction, in which all statements see the same moment.
    async fn begin(&mut self, purpose: Purpose) -> Result<(), Error>;

    async fn end(&mut self) -> Result<(), Error>;

    /// Gives the connection back to be used again.
    async fn release(self: Box<Self>);

    /// The rows of a statement.
    async fn rows(&mut self, statement: &Statement) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        self.each(statement, &mut |row| {
            rows.push(row);
            Ok(ControlFlow::Continue(()))
        })
        .await?;
        Ok(rows)
    }

    /// The only row of a statement, if it gives one.
    async fn row(&mut self, statement: &Statement) -> Result<Option<Row>, Error> {
        Ok(self.rows(statement).await?.into_iter().next())
    }
}

/// What came of asking for a second connection.
pub(crate) struct Beside {
    pub(crate) reader: Option<Box<dyn Reader>>,
    /// Whether the transaction of the first one was begun anew for it.
    pub(crate) is_later: bool,
}

/// Gives each row that a driver streams to `take`, in order, until that wants no more.
async fn each<R: SqlRow + Send + Sync + 'static>(
    rows: impl Stream<Item = Result<R, Error>> + Send,
    take: &mut Take<'_>,
) -> Result<(), Error> {
    let mut rows = std::pin::pin!(rows);
    while let Some(row) = rows.try_next().await? {
        if take(Box::new(row))?.is_break() {
            break;
        }
    }
    Ok(())
}

/// A database behind a [`SqlStore`](crate::store::SqlStore).
#[async_trait]
pub(crate) trait Database: Debug + Send + Sync + 'static {
    /// How statements are written for it.
    const DIALECT: Dialect;

    /// A connection for reading; `what` says in errors what it is for.
    async fn reader(
        &self,
        work: Work,
        priority: Priority,
        what: &'static str,
    ) -> Result<Box<dyn Reader>, Error>;

    /// A second connection that sees the same moment as `first`, which is in a transaction to
    /// aggregate; none if no connection is idle, or others write all the time.
    async fn reader_beside(
        &self,
        first: &mut dyn Reader,
        priority: Priority,
    ) -> Result<Beside, Error>;

    /// Does all of a batch, durably, or nothing.
    async fn write(&self, batch: Vec<PreparedChange>) -> Result<(), Error>;

    /// Does each change by itself, durably, and says what became of each, in order.
    async fn write_each(&self, changes: Vec<PreparedChange>) -> Vec<Result<(), Error>>;

    /// Does all of these statements, or none, and says how many rows they changed.
    async fn execute(&self, statements: Vec<Statement>) -> Result<u64, Error>;

    /// Does these statements, each by itself where that keeps replicas from waiting for each
    /// other. One that refers to a row which is gone changes nothing.
    async fn execute_each(&self, statements: Vec<Statement>) -> Result<(), Error>;

    /// Brings the schema up to date and returns the versions applied.
    async fn migrate(&self) -> Result<Vec<i64>, Error>;

    /// The secret of this name; `candidate` becomes it if there is none.
    async fn secret(&self, name: &str, candidate: &[u8]) -> Result<Vec<u8>, Error>;

    /// Removes from the files what was deleted, and says of what that was not possible.
    async fn vacuum(&self) -> Result<Option<String>, Error>;

    /// How many connections there are.
    fn connections(&self) -> Connections;

    /// Finishes what is under way and lets go of files and connections.
    async fn close(&self);
}

impl Connections {
    fn of<D: sqlx::Database>(pool: &sqlx::Pool<D>) -> Self {
        let idle = u32::try_from(pool.num_idle()).unwrap_or(u32::MAX);
        Self {
            busy: pool.size().saturating_sub(idle),
            idle,
            most: pool.options().get_max_connections(),
        }
    }
}
