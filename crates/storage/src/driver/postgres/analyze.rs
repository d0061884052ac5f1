//! A database that was empty a moment ago.
//!
//! PostgreSQL plans the checks of foreign keys once for each connection, and plans to go through a
//! table from end to end where it believes that there is next to nothing in it. It notices by
//! itself, after a minute; until then every record would cost more than the one before it.

use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::{Executor, Row};

use super::{Postgres, errors::classify};
use crate::seam::Error;

/// Records after which PostgreSQL is told for the first time, and how many times as many make
/// the next.
const FIRST: u64 = 500;
const AGAIN: u64 = 8;
/// After so many it is left to itself.
const LAST: u64 = 300_000;

/// How many records this process has written.
#[derive(Debug)]
pub(super) struct AnalyzeTrigger {
    written: AtomicU64,
    next: AtomicU64,
}

impl AnalyzeTrigger {
    pub(super) fn new() -> Self {
        Self {
            written: AtomicU64::new(0),
            next: AtomicU64::new(FIRST),
        }
    }

    /// Counts, and says of how many records PostgreSQL is to know now.
    fn count(&self, records: usize) -> Option<u64> {
        let records = records as u64;
        let written = self.written.fetch_add(records, Ordering::Relaxed) + records;
        let next = self.next.load(Ordering::Relaxed);
        if written < next || next > LAST {
            return None;
        }
        let later =
            self.next
                .compare_exchange(next, next * AGAIN, Ordering::Relaxed, Ordering::Relaxed);
        later.is_ok().then_some(written)
    }
}

impl Postgres {
    /// Counts what was written, and has PostgreSQL look at its tables if it takes them for much
    /// smaller than that. That it cannot is no harm: they belong to somebody else, or somebody
    /// is at it.
    pub(super) async fn grew(&self, records: usize) {
        let Some(written) = self.growth.count(records) else {
            return;
        };
        if let Err(error) = self.look(written).await {
            tracing::debug!(%error, "ANALYZE after {written} new records failed");
        }
    }

    async fn look(&self, written: u64) -> Result<(), Error> {
        let failed = |error| classify("looking at how tables grow", error);
        let mut connection = self.connection().await?;
        let known = "SELECT reltuples::bigint FROM pg_class WHERE oid = 'records'::regclass";
        let row = sqlx::query(known).fetch_one(&mut *connection).await;
        let known: i64 = row.and_then(|row| row.try_get(0)).map_err(failed)?;
        if u64::try_from(known).unwrap_or(0) < written / 2 {
            let look = "ANALYZE (SKIP_LOCKED) results, records, bodies, dictionaries";
            connection.execute(look).await.map_err(failed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_seldom_and_not_for_ever() {
        let growth = AnalyzeTrigger::new();
        let told: Vec<u64> = (0..5_000).filter_map(|_| growth.count(100)).collect();
        assert_eq!(told, [500, 4_000, 32_000, 256_000]);
    }
}
