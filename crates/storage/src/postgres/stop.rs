//! Statements that end when nobody waits for them any more.

use std::{
    ops::{Deref, DerefMut},
    time::Duration,
};

use sqlx::{Connection as _, Postgres, pool::PoolConnection, postgres::PgConnection};

/// How long a statement that nobody waits for may take to end by itself. Most do, and a new
/// connection costs more.
const PATIENCE: Duration = Duration::from_millis(250);

/// Has the database look every second whether we are still there while it works, where it can.
/// So a statement ends soon after its connection.
pub(super) const WATCHED: &str = "SELECT set_config(name, '1s', false) FROM pg_settings \
                                  WHERE name = 'client_connection_check_interval'";

/// A connection that is lent for reading. Dropped before [`Lent::done`], it is closed while its
/// statement runs, which ends that.
#[derive(Debug)]
pub(super) struct Lent(Option<PoolConnection<Postgres>>);

impl Lent {
    pub(super) fn new(connection: PoolConnection<Postgres>) -> Self {
        Self(Some(connection))
    }

    /// Gives the connection back; all that was asked was answered.
    pub(super) fn done(mut self) {
        self.0.take();
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(mut connection) = self.0.take() else {
            return;
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            let ended = tokio::time::timeout(PATIENCE, connection.ping()).await;
            if !matches!(ended, Ok(Ok(()))) {
                drop(connection.detach());
            }
        });
    }
}

impl Deref for Lent {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.0.as_ref().expect("it is there until it is given back")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.0.as_mut().expect("it is there until it is given back")
    }
}
