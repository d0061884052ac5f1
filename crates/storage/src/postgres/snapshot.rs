//! Reading one moment of a database, and nothing but reading.

use async_trait::async_trait;
use futures::TryStreamExt;
use sqlx::{ConnectOptions, Connection, Executor, postgres::PgConnection};

use super::{
    driver::query,
    errors::{classify, refused},
    migrate,
    open::{ANSWER, options},
};
use crate::{
    Error,
    migrations::require_current,
    snapshot::{Row, Rows, Snapshot},
    sql::{dialect::Dialect, statement::Statement},
};

/// The database as it is now.
pub(crate) async fn snapshot(url: &str) -> Result<Snapshot, Error> {
    let (connect, place) = options(url)?;
    let begun = async {
        let mut connection = connect.connect().await.map_err(|e| refused(&place, e))?;
        let found = migrate::look(&mut connection).await;
        let found = found.map_err(|e| refused(&place, e))?;
        require_current(&found, Dialect::Postgres, &place.to_string())?;
        let mut moment = Moment { connection };
        moment.begin().await?;
        Ok(Snapshot::new(Dialect::Postgres, Box::new(moment)))
    };
    tokio::time::timeout(ANSWER, begun)
        .await
        .map_err(|late| refused(&place, sqlx::Error::Io(std::io::Error::other(late))))?
}

/// A transaction that reads.
pub(super) struct Moment {
    pub(super) connection: PgConnection,
}

impl Moment {
    /// The moment is that of the first statement. Rows are found by their index, so that a row
    /// which an index has lost is missed; counting goes along the table.
    pub(super) async fn begin(&mut self) -> Result<(), Error> {
        const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                             SET LOCAL enable_seqscan = off; SELECT 1";
        let begun = sqlx::raw_sql(BEGIN).execute(&mut self.connection).await;
        begun
            .map(drop)
            .map_err(|e| classify("beginning to read", e))
    }
}

#[async_trait]
impl Rows for Moment {
    async fn rows(&mut self, statement: &Statement) -> Result<Vec<Row>, Error> {
        let rows = query(statement).fetch(&mut self.connection);
        rows.map_ok(|row| Box::new(row) as Row)
            .try_collect()
            .await
            .map_err(|e| classify("reading", e))
    }

    async fn refresh(&mut self) -> Result<(), Error> {
        let ended = self.connection.execute("ROLLBACK").await;
        ended.map_err(|e| classify("ending a read", e))?;
        self.begin().await
    }

    /// Nothing: looking at pages and indexes takes `pg_amcheck` and its rights.
    async fn damage(&mut self, _table: &'static str) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    async fn close(self: Box<Self>) {
        // Nothing was written, so nothing can be lost.
        drop(self.connection.close().await);
    }
}
