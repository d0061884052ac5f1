//! Background sweeps: remove what no record refers to any more, and make again what older rules made.

use std::{
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use hindsight_runtime::clock::Clock;
use hindsight_runtime::error::report;
use hindsight_runtime::low_priority;
use hindsight_storage::{Error, Maintenance};
use tokio::task::JoinSet;

/// How often it is looked at.
const INTERVAL: Duration = Duration::from_mins(10);
/// How long a deleted payload may stay readable as a dictionary, but for the time that it takes.
const PIECES: Duration = Duration::from_mins(1);
/// How many changes go at once.
const CHANGES: NonZeroU32 = NonZeroU32::new(5_000).expect("5,000 is not 0");
/// How many dictionaries go at once, so that writers never wait long.
const MOST: NonZeroU32 = NonZeroU32::new(500).expect("500 is not 0");

/// Begins all sweeps, which end with what is returned.
pub(super) fn begin(
    maintenance: &Arc<dyn Maintenance>,
    clock: &Arc<dyn Clock>,
    changes_retention: Duration,
) -> JoinSet<()> {
    let (maintenance, clock) = (|| Arc::clone(maintenance), || Arc::clone(clock));
    let mut sweeps = JoinSet::new();
    sweeps.spawn(sweep(maintenance()));
    sweeps.spawn(changes(maintenance(), clock(), changes_retention));
    sweeps.spawn(sign(maintenance()));
    sweeps.spawn(pack(maintenance(), clock()));
    sweeps.spawn(objects(maintenance(), clock()));
    sweeps
}

/// Removes unreferenced objects at intervals, for as long as it is polled.
/// Several servers may do so at once.
async fn objects(maintenance: Arc<dyn Maintenance>, clock: Arc<dyn Clock>) {
    loop {
        match maintenance.sweep_objects(clock.now(), MOST).await {
            Ok(0) => {}
            Ok(removed) => tracing::debug!(removed, "removed unreferenced objects"),
            Err(error) => tracing::warn!(
                error = report(&error),
                "cannot remove unreferenced objects; retrying"
            ),
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Removes changes of runs that are older than `retention`, for as long as it is polled. Several servers
/// may do so at once.
async fn changes(maintenance: Arc<dyn Maintenance>, clock: Arc<dyn Clock>, retention: Duration) {
    loop {
        let before = clock.now().checked_sub(retention);
        let removed = match before {
            Ok(before) => maintenance.prune_feed(before, CHANGES).await,
            Err(_before_all_times) => Ok(0),
        };
        match removed {
            // There may be more.
            Ok(removed) if removed >= u64::from(CHANGES.get()) => continue,
            Ok(0) => {}
            Ok(removed) => tracing::debug!(removed, "removed changes of runs"),
            Err(error) => {
                tracing::warn!(
                    error = report(&error),
                    "cannot remove changes of runs; retrying"
                );
            }
        }
        tokio::time::sleep(PIECES).await;
    }
}

/// Works at low priority; the error says what went wrong in either.
async fn at_low_priority<T: Send + 'static>(
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, String> {
    let done = low_priority::run(work).await;
    done.map_err(|broken| report(&broken))?
        .map_err(|error| report(&error))
}

/// Runs that are read again at once for their signatures.
const SIGNED: NonZeroU32 = NonZeroU32::new(100).expect("100 is not 0");
/// How many times as long as it worked it rests.
const REST: u32 = 4;

/// Writes the signatures of failed runs again that other rules made, for as long as it is polled, on
/// threads of low priority. Several servers may do so at once.
async fn sign(maintenance: Arc<dyn Maintenance>) {
    loop {
        let began = Instant::now();
        let store = Arc::clone(&maintenance);
        let signing = async move { store.sign(SIGNED).await };
        let rest = match at_low_priority(signing).await {
            Ok(0) => PIECES,
            Ok(runs) => {
                tracing::debug!(runs, "updated signatures of failed runs");
                began.elapsed() * REST
            }
            Err(error) => {
                tracing::warn!(error, "cannot update signatures of failed runs; retrying");
                PIECES
            }
        };
        tokio::time::sleep(rest).await;
    }
}

/// Bytes of logs that are compressed again before the store rests.
const PACKED: NonZeroU32 = NonZeroU32::new(8 << 20).expect("8 MiB is not 0");
/// How often sealed logs are looked for, and after how long a failure is forgotten.
const SEALED: Duration = Duration::from_secs(5);

/// Compresses sealed logs again, for as long as it is polled, on threads of low priority. Several servers
/// may do so at once.
async fn pack(maintenance: Arc<dyn Maintenance>, clock: Arc<dyn Clock>) {
    loop {
        let store = Arc::clone(&maintenance);
        let now = clock.now();
        let packing = async move { store.pack_logs(now, PACKED).await };
        let rest = match at_low_priority(packing).await {
            Ok(0) => SEALED,
            // There may be more.
            Ok(bytes) => {
                tracing::debug!(bytes, "compressed sealed logs");
                Duration::ZERO
            }
            Err(error) => {
                tracing::warn!(error, "cannot compress sealed logs; retrying");
                PIECES
            }
        };
        tokio::time::sleep(rest).await;
    }
}

/// Removes dictionaries whose payload is gone, and entries of indexes that were dropped, now
/// and then, for as long as it is polled. Several servers may do so at once: a dictionary in
/// use cannot go.
async fn sweep(maintenance: Arc<dyn Maintenance>) {
    loop {
        tokio::time::sleep(PIECES).await;
        loop {
            let store = Arc::clone(&maintenance);
            let sweeping = async move { store.sweep(MOST, REST).await };
            match at_low_priority(sweeping).await {
                Ok(gone) => {
                    if gone > 0 {
                        tracing::debug!(gone, "removed unowned dictionaries");
                    }
                    if gone < u64::from(MOST.get()) {
                        break;
                    }
                }
                Err(error) => {
                    tracing::warn!(error, "cannot remove unowned dictionaries; retrying");
                    break;
                }
            }
        }
        match maintenance.sweep_indexes(MOST).await {
            Ok(0) => {}
            Ok(entries) => tracing::debug!(entries, "removed entries of dropped indexes"),
            Err(error) => {
                tracing::warn!(
                    error = report(&error),
                    "cannot remove entries of dropped indexes; retrying"
                );
            }
        }
    }
}
