//! Statements that end when nobody waits for them any more.

use std::{
    ops::{Deref, DerefMut},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use futures::TryStreamExt as _;
use sqlx::{Executor as _, Sqlite, pool::PoolConnection, sqlite::SqliteConnection};

use super::{bind::query, errors::classify};
use crate::{
    driver::{Purpose, Reader, Take, Work, each},
    seam::Error,
    sql::statement::Statement,
};

/// After how many steps of its machine SQLite looks whether it should go on: well below a
/// millisecond, and not felt.
const STEPS: i32 = 10_000;

/// A connection that is lent for reading. Dropped before it is released, its statement is
/// interrupted, and the connection closed: what was cut off is not worth keeping. So is one that is
/// dropped within a transaction, because the next to borrow it would read as of an earlier moment.
#[derive(Debug)]
pub(super) struct PooledReader {
    connection: Option<PoolConnection<Sqlite>>,
    /// None where statements are too short to be interrupted.
    stop: Option<Arc<AtomicBool>>,
    in_transaction: bool,
    what: &'static str,
}

impl PooledReader {
    pub(super) async fn new(
        mut connection: PoolConnection<Sqlite>,
        work: Work,
        what: &'static str,
    ) -> Result<Self, Error> {
        let stop = (work != Work::Lookup).then(|| Arc::new(AtomicBool::new(false)));
        if let Some(stop) = &stop {
            let told = Arc::clone(stop);
            connection
                .lock_handle()
                .await
                .map_err(|e| classify(what, e))?
                .set_progress_handler(STEPS, move || !told.load(Ordering::Relaxed));
        }
        Ok(Self {
            connection: Some(connection),
            stop,
            in_transaction: false,
            what,
        })
    }

    /// Alive for as long as SQLite looks at it.
    #[cfg(test)]
    pub(super) fn watched(&self) -> std::sync::Weak<AtomicBool> {
        self.stop.as_ref().map(Arc::downgrade).unwrap_or_default()
    }
}

#[async_trait]
impl Reader for PooledReader {
    async fn each(&mut self, statement: &Statement, take: &mut Take<'_>) -> Result<(), Error> {
        let what = self.what;
        let rows = query(statement).fetch(&mut **self);
        each(rows.map_err(|e| classify(what, e)), take).await
    }

    async fn begin(&mut self, _: Purpose) -> Result<(), Error> {
        self.in_transaction = true;
        let begun = self.execute("BEGIN").await;
        begun.map(drop).map_err(|e| classify(self.what, e))
    }

    async fn end(&mut self) -> Result<(), Error> {
        let ended = self.execute("ROLLBACK").await;
        ended.map_err(|e| classify(self.what, e))?;
        self.in_transaction = false;
        Ok(())
    }

    async fn release(mut self: Box<Self>) {
        self.connection.take();
    }
}

impl Drop for PooledReader {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        if let Some(stop) = &self.stop {
            stop.store(true, Ordering::Relaxed);
        }
        if self.stop.is_some() || self.in_transaction {
            drop(connection.detach());
        }
    }
}

impl Deref for PooledReader {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        self.connection
            .as_ref()
            .expect("it is there until it is given back")
    }
}

impl DerefMut for PooledReader {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        self.connection
            .as_mut()
            .expect("it is there until it is given back")
    }
}
