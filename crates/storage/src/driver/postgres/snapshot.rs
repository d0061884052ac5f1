//! Reading one moment of a database, and nothing but reading.

use async_trait::async_trait;
use futures::TryStreamExt as _;
use sqlx::{ConnectOptions, Connection, Executor, postgres::PgConnection};

use super::{
    bind::query,
    errors::{classify, refused},
    migrate,
    open::ANSWER,
    place::options,
};
use crate::{
    driver::{Purpose, Reader, Take, each, migrations::require_current},
    seam::Error,
    sql::{dialect::Dialect, statement::Statement},
};

/// The database as it is now.
pub(crate) async fn snapshot(url: &str) -> Result<Box<dyn Reader>, Error> {
    let (connect, place) = options(url)?;
    let begun = async {
        let mut connection = connect.connect().await.map_err(|e| refused(&place, e))?;
        let found = migrate::look(&mut connection).await;
        let found = found.map_err(|e| refused(&place, e))?;
        require_current(&found, Dialect::Postgres, &place.to_string())?;
        let mut moment = Moment { connection };
        moment.begin(Purpose::List).await?;
        Ok(Box::new(moment) as Box<dyn Reader>)
    };
    tokio::time::timeout(ANSWER, begun)
        .await
        .map_err(|late| refused(&place, sqlx::Error::Io(std::io::Error::other(late))))?
}

/// A transaction that reads.
pub(super) struct Moment {
    pub(super) connection: PgConnection,
}

#[async_trait]
impl Reader for Moment {
    async fn each(&mut self, statement: &Statement, take: &mut Take<'_>) -> Result<(), Error> {
        let rows = query(statement).fetch(&mut self.connection);
        each(rows.map_err(|e| classify("reading", e)), take).await
    }

    /// The moment is that of the first statement. Rows are found by their index, so that a row
    /// which an index has lost is missed; counting goes along the table.
    async fn begin(&mut self, _: Purpose) -> Result<(), Error> {
        const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                             SET LOCAL enable_seqscan = off; SELECT 1";
        let begun = sqlx::raw_sql(BEGIN).execute(&mut self.connection).await;
        begun
            .map(drop)
            .map_err(|e| classify("beginning to read", e))
    }

    async fn end(&mut self) -> Result<(), Error> {
        let ended = self.connection.execute("ROLLBACK").await;
        ended.map(drop).map_err(|e| classify("ending a read", e))
    }

    async fn release(self: Box<Self>) {
        // Nothing was written, so nothing can be lost.
        drop(self.connection.close().await);
    }
}
