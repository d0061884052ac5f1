//! What is done behind the requests: letting go of what no record has any more.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use hindsight_runtime::clock::Clock;
use hindsight_runtime::error::report;
use hindsight_storage::Maintenance;

/// How often it is looked at.
const INTERVAL: Duration = Duration::from_mins(10);
/// How long a deleted payload may stay readable as a piece, but for the time that it takes.
const PIECES: Duration = Duration::from_mins(1);
/// How many pieces go at once, so that writers never wait long.
const MOST: NonZeroU32 = NonZeroU32::new(500).expect("500 is not 0");

/// Removes objects that nobody refers to any more, now and then, for as long as it is polled.
/// Several servers may do so at once.
pub(super) async fn objects(maintenance: Arc<dyn Maintenance>, clock: Arc<dyn Clock>) {
    loop {
        match maintenance.sweep_objects(clock.now(), MOST).await {
            Ok(0) => {}
            Ok(removed) => tracing::debug!(removed, "unused objects were removed"),
            Err(error) => tracing::warn!(error = report(&error), "unused objects stay for now"),
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Removes pieces whose payload is gone, and entries of indexes that were dropped, now and then, for
/// as long as it is polled. Several servers may do so at once: a piece in use cannot go.
pub(super) async fn sweep(maintenance: Arc<dyn Maintenance>) {
    loop {
        tokio::time::sleep(PIECES).await;
        loop {
            match maintenance.sweep(MOST).await {
                Ok(gone) => {
                    if gone > 0 {
                        tracing::debug!(gone, "pieces whose payload is gone were removed");
                    }
                    if gone < u64::from(MOST.get()) {
                        break;
                    }
                }
                Err(error) => {
                    tracing::warn!(
                        error = report(&error),
                        "pieces whose payload is gone stay for now"
                    );
                    break;
                }
            }
        }
        match maintenance.sweep_indexes(MOST).await {
            Ok(0) => {}
            Ok(entries) => tracing::debug!(entries, "entries of dropped indexes were removed"),
            Err(error) => {
                tracing::warn!(error = report(&error), "dropped indexes stay for now");
            }
        }
    }
}
