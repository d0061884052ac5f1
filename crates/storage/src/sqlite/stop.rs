//! Statements that end when nobody waits for them any more.

use std::{
    ops::{Deref, DerefMut},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use sqlx::{Sqlite, pool::PoolConnection, sqlite::SqliteConnection};

use super::errors::classify;
use crate::Error;

/// After how many steps of its machine SQLite looks whether it should go on: well below a
/// millisecond, and not felt.
const STEPS: i32 = 10_000;

/// A connection that is lent for reading. Dropped before [`Lent::done`], its statement is
/// interrupted, and the connection closed: what was cut off is not worth keeping.
#[derive(Debug)]
pub(super) struct Lent {
    connection: Option<PoolConnection<Sqlite>>,
    stop: Arc<AtomicBool>,
}

impl Lent {
    pub(super) async fn new(mut connection: PoolConnection<Sqlite>) -> Result<Self, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        connection
            .lock_handle()
            .await
            .map_err(|e| classify("beginning to read", e))?
            .set_progress_handler(STEPS, move || !told.load(Ordering::Relaxed));
        Ok(Self {
            connection: Some(connection),
            stop,
        })
    }

    /// Gives the connection back; all that was asked was answered.
    pub(super) fn done(mut self) {
        self.connection.take();
    }

    /// Alive for as long as SQLite looks at it.
    #[cfg(test)]
    pub(super) fn watched(&self) -> std::sync::Weak<AtomicBool> {
        Arc::downgrade(&self.stop)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.stop.store(true, Ordering::Relaxed);
            drop(connection.detach());
        }
    }
}

impl Deref for Lent {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        self.connection
            .as_ref()
            .expect("it is there until it is given back")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        self.connection
            .as_mut()
            .expect("it is there until it is given back")
    }
}
