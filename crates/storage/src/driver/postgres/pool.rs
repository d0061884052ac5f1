//! Connections that are given back without a round trip.
//!
//! The pool of sqlx asks each connection that comes back whether it still answers: another round trip for each
//! call. A connection whose last statement ended is kept here for the next caller instead, for [`KEPT`] at
//! most: then it goes back to that pool, which looks after its age, and whether it answers. One that is dropped
//! goes there at once.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sqlx::{PgPool, Postgres, pool::PoolConnection, postgres::PgConnection};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use crate::seam::Connections;

/// How long a connection is lent by one caller to the next before it is asked whether it answers.
const KEPT: Duration = Duration::from_millis(500);

/// A pool of connections. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Pool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pool: PgPool,
    /// As many as there are connections, so that what is kept is never waited for.
    turns: Arc<Semaphore>,
    kept: Mutex<Shelf>,
}

/// What is kept.
#[derive(Debug, Default)]
struct Shelf {
    all: Vec<Kept>,
    /// Whether what becomes old is taken out.
    is_swept: bool,
    is_closed: bool,
}

/// A connection, and since when the pool of sqlx has not seen it.
#[derive(Debug)]
struct Kept {
    connection: PoolConnection<Postgres>,
    since: Instant,
}

/// A connection that is lent. Dropped, it is asked whether it answers before the next caller has it.
#[derive(Debug)]
pub(super) struct Lease {
    connection: Option<Kept>,
    pool: Pool,
    _turn: OwnedSemaphorePermit,
}

impl Pool {
    /// Lends the connections of `pool`, which are asked for nowhere else.
    pub(super) fn new(pool: PgPool) -> Self {
        let most = pool.options().get_max_connections();
        let turns = usize::try_from(most).unwrap_or(Semaphore::MAX_PERMITS);
        Self(Arc::new(Inner {
            pool,
            turns: Arc::new(Semaphore::new(turns)),
            kept: Mutex::default(),
        }))
    }

    /// A connection, as soon as there is one. Fails after the time that the pool waits, and if none can be opened.
    pub(super) async fn acquire(&self) -> Result<Lease, sqlx::Error> {
        let wait = self.0.pool.options().get_acquire_timeout();
        let turn = Arc::clone(&self.0.turns).acquire_owned();
        let turn = tokio::time::timeout(wait, turn)
            .await
            .map_err(|_late| sqlx::Error::PoolTimedOut)?
            .map_err(|_closed| sqlx::Error::PoolClosed)?;
        let connection = match self.fresh() {
            Some(kept) => kept,
            None => Kept {
                connection: self.0.pool.acquire().await?,
                since: Instant::now(),
            },
        };
        Ok(self.lease(connection, turn))
    }

    /// A connection that is open and not lent, if there is one.
    pub(super) fn try_acquire(&self) -> Option<Lease> {
        let turn = Arc::clone(&self.0.turns).try_acquire_owned().ok()?;
        let known = || {
            Some(Kept {
                connection: self.0.pool.try_acquire()?,
                since: Instant::now(),
            })
        };
        let connection = self.fresh().or_else(known)?;
        Some(self.lease(connection, turn))
    }

    fn lease(&self, connection: Kept, turn: OwnedSemaphorePermit) -> Lease {
        Lease {
            connection: Some(connection),
            pool: self.clone(),
            _turn: turn,
        }
    }

    fn kept(&self) -> MutexGuard<'_, Shelf> {
        // Every change leaves it whole.
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection that was given back last, unless that is long ago.
    fn fresh(&self) -> Option<Kept> {
        let kept = self.kept().all.pop()?;
        kept.is_fresh().then_some(kept)
    }

    /// Keeps a connection for the next caller.
    fn keep(&self, connection: Kept) {
        let mut kept = self.kept();
        if kept.is_closed {
            return;
        }
        kept.all.push(connection);
        if !std::mem::replace(&mut kept.is_swept, true) {
            tokio::spawn(self.clone().sweep());
        }
    }

    /// Gives what is kept too long to the pool of sqlx, until nothing is kept.
    async fn sweep(self) {
        loop {
            tokio::time::sleep(KEPT).await;
            let mut kept = self.kept();
            let all = std::mem::take(&mut kept.all).into_iter();
            let (fresh, old): (Vec<_>, Vec<_>) = all.partition(Kept::is_fresh);
            kept.all = fresh;
            kept.is_swept = !kept.all.is_empty();
            let is_done = !kept.is_swept;
            drop(kept);
            drop(old);
            if is_done {
                return;
            }
        }
    }

    pub(super) fn connections(&self) -> Connections {
        let kept = u32::try_from(self.kept().all.len()).unwrap_or(u32::MAX);
        let seen = Connections::of(&self.0.pool);
        Connections {
            busy: seen.busy.saturating_sub(kept),
            idle: seen.idle.saturating_add(kept),
            ..seen
        }
    }

    /// The pool that is lent from, for what a test does beside the store.
    #[cfg(test)]
    pub(super) fn inner(&self) -> &PgPool {
        &self.0.pool
    }

    /// Closes all connections, those that are lent when they come back.
    pub(super) async fn close(&self) {
        let all = {
            let mut kept = self.kept();
            kept.is_closed = true;
            std::mem::take(&mut kept.all)
        };
        drop(all);
        self.0.pool.close().await;
    }
}

impl Kept {
    fn is_fresh(&self) -> bool {
        self.since.elapsed() < KEPT
    }
}

impl Lease {
    /// Gives it back after a statement that ended, outside of any transaction.
    pub(super) fn give_back(mut self) {
        if let Some(connection) = self.connection.take()
            && connection.is_fresh()
        {
            self.pool.keep(connection);
        }
    }

    /// Takes it out of the pool.
    pub(super) fn detach(mut self) -> PgConnection {
        self.connection.take().expect(LENT).connection.detach()
    }
}

const LENT: &str = "it is there until it is given back";

impl Deref for Lease {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection.as_ref().expect(LENT).connection
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection.as_mut().expect(LENT).connection
    }
}

#[cfg(test)]
mod tests {
    use sqlx::postgres::PgPoolOptions;

    use super::*;
    use crate::conformance::tests::postgres_server;

    impl Pool {
        fn has_kept(&self) -> bool {
            !self.kept().all.is_empty()
        }
    }

    fn pool(most: u32) -> Option<Pool> {
        let options = PgPoolOptions::new()
            .max_connections(most)
            .acquire_timeout(Duration::from_secs(1));
        Some(Pool::new(
            options.connect_lazy_with(postgres_server()?.clone()),
        ))
    }

    /// Which connection it is.
    async fn number(lease: &mut Lease) -> i32 {
        let number = sqlx::query_scalar("SELECT pg_backend_pid()");
        number.fetch_one(&mut **lease).await.unwrap()
    }

    #[tokio::test]
    async fn what_is_given_back_is_lent_next_and_then_seen_by_the_pool() {
        let Some(pool) = pool(2) else { return };
        let mut first = pool.acquire().await.unwrap();
        let known = number(&mut first).await;
        let mut second = pool.acquire().await.unwrap();
        first.give_back();
        assert_eq!((pool.inner().num_idle(), pool.connections().idle), (0, 1));
        let mut again = pool.acquire().await.unwrap();
        assert_eq!(number(&mut again).await, known);
        assert_ne!(number(&mut second).await, known);
        again.give_back();
        // In the end, also if nothing is asked for.
        while pool.has_kept() || pool.inner().num_idle() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut again = pool.try_acquire().unwrap();
        assert_eq!(number(&mut again).await, known);
    }

    #[tokio::test]
    async fn what_is_dropped_or_was_not_seen_for_long_is_not_kept() {
        let Some(pool) = pool(1) else { return };
        drop(pool.acquire().await.unwrap());
        assert!(!pool.has_kept());
        let mut lease = pool.acquire().await.unwrap();
        lease.connection.as_mut().unwrap().since -= KEPT;
        lease.give_back();
        assert!(!pool.has_kept());
        // Kept, and then not asked for until it is old.
        pool.acquire().await.unwrap().give_back();
        pool.kept().all[0].since -= KEPT;
        assert!(pool.fresh().is_none());
        pool.acquire().await.unwrap();
    }

    #[tokio::test]
    async fn as_many_are_lent_as_there_are_and_the_next_waits() {
        let Some(pool) = pool(1) else { return };
        let lease = pool.acquire().await.unwrap();
        let refused = pool.acquire().await.unwrap_err();
        assert!(matches!(refused, sqlx::Error::PoolTimedOut), "{refused}");
        assert!(pool.try_acquire().is_none());
        let (next, ()) = tokio::join!(pool.acquire(), async { lease.give_back() });
        drop(next.unwrap().detach());
        // Another is opened in its place.
        pool.acquire().await.unwrap().give_back();
    }

    #[tokio::test]
    async fn closing_waits_for_what_is_lent_and_not_for_what_is_kept() {
        let Some(pool) = pool(2) else { return };
        let lease = pool.acquire().await.unwrap();
        pool.acquire().await.unwrap().give_back();
        assert!(pool.has_kept());
        tokio::join!(pool.close(), async { lease.give_back() });
        let refused = pool.acquire().await.unwrap_err();
        assert!(matches!(refused, sqlx::Error::PoolClosed), "{refused}");
    }
}
