//! Letting go of what no body refers to any more.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use crate::{error::report, storage::Maintenance};

/// How often it is looked at.
const INTERVAL: Duration = Duration::from_mins(10);
/// How many pieces go at once, so that writers never wait long.
const MOST: NonZeroU32 = NonZeroU32::new(500).expect("500 is not 0");

/// Removes unused pieces now and then, for as long as it is polled. Several servers may do so at
/// once: a piece in use cannot go.
pub(super) async fn sweep(maintenance: Arc<dyn Maintenance>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        loop {
            match maintenance.sweep(MOST).await {
                Ok(gone) => {
                    tracing::debug!(gone, "unused pieces were removed");
                    if gone < u64::from(MOST.get()) {
                        break;
                    }
                }
                Err(error) => {
                    tracing::warn!(error = report(&error), "unused pieces stay for now");
                    break;
                }
            }
        }
    }
}
