//! Reading the logs of containers and storing them: what of logs waits for the cluster and the server.
//!
//! One task for each label watches pods, one asks the server what it holds, one sends, and each
//! container that is read has a reader. All of them end together, and what was not stored is read
//! again by the next ones, or found in the spool.

mod ask;
mod hole;
mod left;
mod pods;
mod read;
mod send;
mod server;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{
    logs::{Slots, label},
    shared::Shared,
};

/// Containers that ended are read so many at once.
const READERS: usize = 32;

/// How often runs are looked at whose logs are waited for.
const TICK: Duration = Duration::from_secs(1);

/// How long what was read is still sent at the end.
const LAST: Duration = Duration::from_secs(5);

/// Reads logs and stores them until `stop`, except while the server has no logs.
pub(crate) async fn collect(shared: Arc<Shared>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let woken = shared.logs.turn(true);
        shared.wake(woken);
        tokio::select! {
            () = stop.cancelled() => return,
            () = left::send(&shared) => {}
        }
        let mut tasks = Tasks::begin(&shared);
        let is_refused = tokio::select! {
            biased;
            () = stop.cancelled() => false,
            () = tasks.run(&shared) => true,
        };
        if !is_refused {
            drop(tasks);
            let rest = tokio::time::timeout(LAST, send::rest(&shared)).await;
            if rest.is_err() {
                info!("lines of logs that could not be sent any more are read again");
            }
            return;
        }
        drop(tasks);
        let wait = shared.config.tuning.rare_retry;
        warn!("server keeps no logs; runs are stored without them, asking again every {wait:?}");
        let woken = shared.logs.turn(false);
        shared.wake(woken);
        tokio::select! {
            () = stop.cancelled() => {}
            () = until_there(&shared) => {}
        }
    }
}

/// Waits until the server keeps logs.
async fn until_there(shared: &Shared) {
    loop {
        tokio::time::sleep(shared.config.tuning.rare_retry).await;
        if server::keeps_logs(shared).await {
            return;
        }
    }
}

struct Tasks {
    /// Tasks that end only when the server has no logs.
    fixed: JoinSet<()>,
    follow: JoinSet<()>,
    read: JoinSet<()>,
}

impl Tasks {
    fn begin(shared: &Arc<Shared>) -> Self {
        let mut fixed = JoinSet::new();
        let kinds = shared.config.kinds.iter();
        let labels: BTreeSet<&'static str> = kinds.filter_map(|kind| label(kind)).collect();
        for label in labels {
            fixed.spawn(pods::follow(Arc::clone(shared), label));
        }
        fixed.spawn(ask::ask(Arc::clone(shared)));
        fixed.spawn(send::send(Arc::clone(shared)));
        Self {
            fixed,
            follow: JoinSet::new(),
            read: JoinSet::new(),
        }
    }

    /// Begins readers when it is their turn; returns once the server has no logs.
    async fn run(&mut self, shared: &Arc<Shared>) {
        let mut tick = tokio::time::interval(TICK.min(shared.config.tuning.logs_settle * 2));
        loop {
            self.start(shared);
            let metrics = &shared.metrics.logs;
            metrics.followed.set(count(self.follow.len()));
            metrics.waiting.set(count(shared.logs.waiting()));
            tokio::select! {
                () = shared.logs.to_read.notified() => {}
                _ = self.follow.join_next(), if !self.follow.is_empty() => {}
                _ = self.read.join_next(), if !self.read.is_empty() => {}
                _ = self.fixed.join_next() => return,
                _ = tick.tick() => {
                    let now = tokio::time::Instant::now();
                    let woken = shared.logs.tick(now);
                    wake(shared, woken);
                }
            }
        }
    }

    fn start(&mut self, shared: &Arc<Shared>) {
        loop {
            let most = shared.config.logs_followed.get();
            let slots = Slots {
                follow: most.saturating_sub(self.follow.len()),
                read: READERS.min(most).saturating_sub(self.read.len()),
            };
            let Some((source, follow)) = shared.logs.next(slots) else {
                return;
            };
            let tasks = if follow {
                &mut self.follow
            } else {
                &mut self.read
            };
            tasks.spawn(read::read(Arc::clone(shared), source));
        }
    }
}

/// Runs whose logs are over may be waited for, and so may those that own them.
fn wake(shared: &Shared, runs: Vec<crate::ledger::Uid>) {
    for uid in &runs {
        shared.wake_owners(uid);
    }
    shared.wake(runs);
    shared.notify_progress();
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
