//! Passes of a server: at its start, and when the file says.

use std::time::Duration;

use cronexpr::MakeTimestamp;
use hindsight_runtime::error::report;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Deletion, Mode, Retention};

/// Longest sleep, so that a clock that is set is followed.
const LOOK: Duration = Duration::from_secs(30);
/// Deletions that may wait to be told.
const WAITING: usize = 16;

impl Retention {
    /// Passes until `stopping`, when it is the turn of this server.
    pub async fn run(self, stopping: CancellationToken) {
        let holder = uuid::Uuid::new_v4().to_string();
        let mut is_due = self.rules.at_start;
        loop {
            if is_due {
                self.pass_once(&holder, &stopping).await;
            }
            is_due = true;
            let now = self.source.clock.now();
            let Ok(next) = self.rules.run_at.find_next(MakeTimestamp(now)) else {
                tracing::warn!("run_at of retention_file is never again");
                return;
            };
            if !self.wait_until(next.timestamp(), &stopping).await {
                return;
            }
        }
    }

    /// False if it is told to stop before.
    async fn wait_until(&self, time: Timestamp, stopping: &CancellationToken) -> bool {
        loop {
            let rest = time.duration_since(self.source.clock.now());
            let Ok(rest) = Duration::try_from(rest) else {
                return !stopping.is_cancelled();
            };
            if rest.is_zero() {
                return !stopping.is_cancelled();
            }
            tokio::select! {
                () = tokio::time::sleep(rest.min(LOOK)) => {}
                () = stopping.cancelled() => return false,
            }
        }
    }

    async fn pass_once(&self, holder: &str, stopping: &CancellationToken) {
        let mode = Mode::Turn {
            holder: holder.to_owned(),
        };
        let (told, mut deletions) = mpsc::channel::<Deletion>(WAITING);
        let listening = async {
            while let Some(gone) = deletions.recv().await {
                let (name, policy) = (gone.name, gone.policy);
                tracing::debug!(%name, policy, bytes = gone.bytes, "retention deleted a result");
            }
        };
        let passing = self.pass(mode, told, stopping.clone());
        let (passed, ()) = tokio::join!(passing, listening);
        match passed {
            Ok(totals) if totals.is_whole => {
                self.metrics.finished(self.source.clock.now());
                tracing::info!(
                    seen = totals.seen,
                    deleted = totals.due,
                    held = totals.held,
                    failed = totals.failed,
                    "retention pass done"
                );
            }
            Ok(_) => tracing::debug!("another server passes, or this one stops"),
            Err(error) => {
                self.metrics.failed();
                tracing::warn!(error = report(&error), "retention pass broke off");
            }
        }
    }
}
