//! How long a lock is held: on SQLite what a writer waits for its turn, on PostgreSQL how old the transactions of
//! writers become.

use std::time::{Duration, Instant};

use sqlx::{Connection as _, Executor as _, PgConnection, SqliteConnection};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How often it is looked.
const EACH: Duration = Duration::from_millis(10);
/// What is locked is tried again so soon.
const RETRY: Duration = Duration::from_micros(500);
const OLDEST: &str = "SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8 * 1000 \
    FROM pg_stat_activity WHERE datname = current_database() AND backend_xid IS NOT NULL \
    AND backend_type = 'client backend'";

/// What looks until it is stopped.
#[derive(Debug)]
pub struct Probe {
    stop: CancellationToken,
    longest: JoinHandle<f64>,
}

impl Probe {
    pub fn start(url: &str) -> Self {
        let stop = CancellationToken::new();
        let (url, stopped) = (url.to_owned(), stop.clone());
        let longest = match url.starts_with("sqlite:") {
            true => tokio::spawn(waits(url, stopped)),
            false => tokio::spawn(ages(url, stopped)),
        };
        Self { stop, longest }
    }

    /// The longest time, in milliseconds.
    pub async fn stop(self) -> f64 {
        self.stop.cancel();
        self.longest.await.unwrap()
    }
}

async fn waits(url: String, stop: CancellationToken) -> f64 {
    let mut connection = SqliteConnection::connect(&url).await.unwrap();
    // SQLite's own retries wait ever longer, also for writers that took turns meanwhile.
    connection.execute("PRAGMA busy_timeout = 0").await.unwrap();
    let mut longest = Duration::ZERO;
    while !stop.is_cancelled() {
        let began = Instant::now();
        while connection.execute("BEGIN IMMEDIATE").await.is_err() {
            tokio::time::sleep(RETRY).await;
        }
        longest = longest.max(began.elapsed());
        connection.execute("ROLLBACK").await.unwrap();
        tokio::time::sleep(EACH).await;
    }
    longest.as_secs_f64() * 1e3
}

async fn ages(url: String, stop: CancellationToken) -> f64 {
    let mut connection = PgConnection::connect(&url).await.unwrap();
    let mut longest = 0.0_f64;
    while !stop.is_cancelled() {
        let oldest: f64 = sqlx::query_scalar(OLDEST)
            .fetch_one(&mut connection)
            .await
            .unwrap();
        longest = longest.max(oldest);
        tokio::time::sleep(EACH).await;
    }
    longest
}
