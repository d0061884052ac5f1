//! Background sweeps: what no record refers to any more is removed, and what older rules made is made
//! again.

use std::{
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use hindsight_runtime::clock::Clock;
use hindsight_runtime::error::report;
use hindsight_runtime::low_priority;
use hindsight_storage::Maintenance;

/// How often it is looked at.
const INTERVAL: Duration = Duration::from_mins(10);
/// How long a deleted payload may stay readable as a dictionary, but for the time that it takes.
const PIECES: Duration = Duration::from_mins(1);
/// How many changes go at once.
const CHANGES: NonZeroU32 = NonZeroU32::new(5_000).expect("5,000 is not 0");
/// How many dictionaries go at once, so that writers never wait long.
const MOST: NonZeroU32 = NonZeroU32::new(500).expect("500 is not 0");

/// Removes unreferenced objects at intervals, for as long as it is polled.
/// Several servers may do so at once.
pub(super) async fn objects(maintenance: Arc<dyn Maintenance>, clock: Arc<dyn Clock>) {
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
pub(super) async fn changes(
    maintenance: Arc<dyn Maintenance>,
    clock: Arc<dyn Clock>,
    retention: Duration,
) {
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

/// Runs that are read again at once for their signatures.
const SIGNED: NonZeroU32 = NonZeroU32::new(100).expect("100 is not 0");
/// How many times as long as it worked it rests.
const REST: u32 = 4;

/// Writes the signatures of failed runs again that other rules made, for as long as it is polled, on
/// threads of low priority. Several servers may do so at once.
pub(super) async fn sign(maintenance: Arc<dyn Maintenance>) {
    loop {
        let began = Instant::now();
        let store = Arc::clone(&maintenance);
        let signing = async move { store.sign(SIGNED).await };
        let rest = match low_priority::run(signing).await {
            Ok(Ok(0)) => PIECES,
            Ok(Ok(runs)) => {
                tracing::debug!(runs, "updated signatures of failed runs");
                began.elapsed() * REST
            }
            Ok(Err(error)) => {
                tracing::warn!(
                    error = report(&error),
                    "cannot update signatures of failed runs; retrying"
                );
                PIECES
            }
            Err(error) => {
                tracing::warn!(%error, "cannot update signatures of failed runs; retrying");
                PIECES
            }
        };
        tokio::time::sleep(rest).await;
    }
}

/// Removes dictionaries whose payload is gone, and entries of indexes that were dropped, now
/// and then, for as long as it is polled. Several servers may do so at once: a dictionary in
/// use cannot go.
pub(super) async fn sweep(maintenance: Arc<dyn Maintenance>) {
    loop {
        tokio::time::sleep(PIECES).await;
        loop {
            match maintenance.sweep(MOST).await {
                Ok(gone) => {
                    if gone > 0 {
                        tracing::debug!(gone, "removed unowned dictionaries");
                    }
                    if gone < u64::from(MOST.get()) {
                        break;
                    }
                }
                Err(error) => {
                    tracing::warn!(
                        error = report(&error),
                        "cannot remove unowned dictionaries; retrying"
                    );
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
