//! Statements that end when nobody waits for them any more.

use std::{
    ops::{Deref, DerefMut},
    time::Duration,
};

use async_trait::async_trait;
use futures::TryStreamExt as _;
use sqlx::{AssertSqlSafe, Executor as _, postgres::PgConnection};

use super::{bind::query, errors::classify, pool::Lease};
use crate::{
    driver::{Purpose, Reader, Take, each},
    seam::Error,
    sql::statement::Statement,
};

/// Begins reading everything as of one moment.
const LISTING: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Groups are hashed in memory, and compiling a statement takes longer than it saves.
const AGGREGATING: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                           SET LOCAL work_mem = '64MB'; SET LOCAL jit = off";

/// How long a statement that nobody waits for may take to end by itself. Most do, and a new
/// connection costs more.
const PATIENCE: Duration = Duration::from_millis(250);

/// Has the database look every second whether we are still there while it works, where it can.
/// So a statement ends soon after its connection.
pub(super) const WATCHED: &str = "SELECT set_config(name, '1s', false) FROM pg_settings \
                                  WHERE name = 'client_connection_check_interval'";

/// A connection that is lent for reading. Dropped before it is released, it is closed while its
/// statement runs, which ends that.
#[derive(Debug)]
pub(super) struct PooledReader {
    connection: Option<Lease>,
    in_transaction: bool,
    what: &'static str,
}

impl PooledReader {
    pub(super) fn new(connection: Lease, what: &'static str) -> Self {
        Self {
            connection: Some(connection),
            in_transaction: false,
            what,
        }
    }

    /// Begins to aggregate as of the moment that this statement names.
    pub(super) async fn begin_at(&mut self, moment: &Statement) -> Result<(), Error> {
        self.begin(Purpose::List).await?;
        let what = self.what;
        let set = self.execute(AssertSqlSafe(moment.text().to_owned())).await;
        set.map_err(|e| classify(what, e))?;
        self.run("SET LOCAL work_mem = '64MB'; SET LOCAL jit = off")
            .await
    }

    async fn run(&mut self, statements: &'static str) -> Result<(), Error> {
        let what = self.what;
        let done = sqlx::raw_sql(statements).execute(&mut **self).await;
        done.map(drop).map_err(|e| classify(what, e))
    }
}

#[async_trait]
impl Reader for PooledReader {
    async fn each(&mut self, statement: &Statement, take: &mut Take<'_>) -> Result<(), Error> {
        let what = self.what;
        let rows = query(statement).fetch(&mut **self);
        each(rows.map_err(|e| classify(what, e)), take).await
    }

    async fn begin(&mut self, purpose: Purpose) -> Result<(), Error> {
        self.in_transaction = true;
        self.run(match purpose {
            Purpose::List => LISTING,
            Purpose::Aggregate => AGGREGATING,
        })
        .await
    }

    async fn end(&mut self) -> Result<(), Error> {
        self.run("ROLLBACK").await?;
        self.in_transaction = false;
        Ok(())
    }

    async fn release(mut self: Box<Self>) {
        if let (Some(connection), false) = (self.connection.take(), self.in_transaction) {
            connection.give_back();
        }
    }
}

impl Drop for PooledReader {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        let in_transaction = self.in_transaction;
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            let end = connection.execute(if in_transaction { "ROLLBACK" } else { "" });
            let ended = tokio::time::timeout(PATIENCE, end).await;
            if !matches!(ended, Ok(Ok(_))) {
                drop(connection.detach());
            }
        });
    }
}

impl Deref for PooledReader {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.connection
            .as_ref()
            .expect("it is there until it is given back")
    }
}

impl DerefMut for PooledReader {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.connection
            .as_mut()
            .expect("it is there until it is given back")
    }
}
