//! The loops of the workers: each takes runs from its queue, and says what becomes of them.

mod after;

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use hindsight_run::json;

use super::{End, Interrupted, Task, lane::Lane};
use crate::{
    gate::Closed,
    queue::{Done, Job, Work},
    shared::Shared,
};

/// Works on runs until `stop`; then stores the last states of runs that are gone, which are known
/// here alone, until there are none or the time is over.
pub(crate) async fn store(shared: Arc<Shared>, stop: CancellationToken) {
    loop {
        let job = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            job = shared.queues.runs.pop() => job,
        };
        one(&shared, Lane::Store, job).await;
    }
    while !shared.abandon.is_cancelled()
        && let Some(job) = shared.queues.runs.pop_gone()
    {
        if !one(&shared, Lane::Store, job).await {
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Puts finalizers on, and does nothing else, until `stop`.
pub(crate) async fn protect(shared: Arc<Shared>, stop: CancellationToken) {
    loop {
        let job = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            job = shared.queues.runs.pop_unprotected() => job,
        };
        one(&shared, Lane::Protect, job).await;
    }
}

/// Works on one run. Whether that came to an end.
async fn one(shared: &Shared, lane: Lane, job: Job) -> bool {
    let mut task = Task::new(shared, lane, job.uid.clone(), job.work);
    let done = match task.run().await {
        Ok(End::Done(again)) => {
            task.reconciled();
            match again {
                Some(at) => Done::Until(shared.instant(at)),
                None if task.has_stored_progress => {
                    Done::Paced(Instant::now() + shared.config.tuning.progress_interval)
                }
                None => Done::Finished,
            }
        }
        Ok(End::HandOver) => Done::Rest(task.rest()),
        Err(interrupted) => task.failed(interrupted, job.failures).await,
    };
    let is_done = !matches!(done, Done::Failed(..));
    shared.queues.runs.done(&job.uid, done);
    shared.notify_progress();
    is_done
}

/// Takes finalizers off overdue runs until `stop`. Does not wait for a server that is unavailable.
pub(crate) async fn release_overdue(shared: Arc<Shared>, stop: CancellationToken) {
    let mut failures = 0;
    loop {
        let next = shared
            .queues
            .deadlines
            .next(|| shared.clock.now(), |at| shared.instant(at));
        let uid = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            uid = next => uid,
        };
        let mut task = Task::new(&shared, Lane::Release, uid.clone(), Work::default());
        match task.run().await {
            Ok(End::Done(Some(turn))) => {
                shared.queues.deadlines.add(turn, &uid);
                failures = 0;
            }
            Ok(_) => failures = 0,
            Err(interrupted) => {
                failures += 1;
                let wait = match interrupted {
                    Interrupted::Abandoned => return,
                    Interrupted::Refused { error } => {
                        task.note_error(&error);
                        shared.config.tuning.rare_retry
                    }
                    Interrupted::Later { error, .. } | Interrupted::Unavailable { error } => {
                        task.warn_of_retry(&error, failures, false);
                        shared.config.tuning.retry.after(failures)
                    }
                };
                shared.queues.deadlines.add(shared.after(wait), &uid);
            }
        }
        shared.notify_progress();
    }
}

/// Writes on stored runs until `stop`.
pub(crate) async fn annotate(shared: Arc<Shared>, stop: CancellationToken) {
    let mut failures = 0;
    let work = async {
        loop {
            let uid = shared.queues.annotations.pop().await;
            let mut task = Task::new(&shared, Lane::Annotate, uid.clone(), Work::default());
            match task.run().await {
                Err(Interrupted::Later { retry_after, .. }) => {
                    failures += 1;
                    let wait = shared.config.tuning.retry.after(failures);
                    let until = shared.after(wait.max(retry_after.unwrap_or_default()));
                    shared.budgets.writes.pause(until);
                    // It is read anew, and comes back if it is still as it was.
                    shared.push(&uid, Work::default());
                }
                ended => {
                    failures = 0;
                    if let (Ok(End::HandOver), Some(object)) = (ended, &task.object) {
                        task.hand_over(object);
                    }
                }
            }
            shared.notify_progress();
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = work => {}
    }
}

/// Tries from time to time what was refused, until `stop`.
pub(crate) async fn retry_refused(shared: Arc<Shared>, stop: CancellationToken) {
    let work = async {
        loop {
            let now = || shared.clock.now();
            let (action, uid) = shared
                .queues
                .refusals
                .next(now, |at| shared.instant(at))
                .await;
            // One that is gone has nothing to try any more, unless it was never stored.
            let is_known = shared.ledger().get(&uid).is_some();
            if is_known {
                shared.retry(action, &uid);
            }
        }
    };
    stop.run_until_cancelled(work).await;
}

/// Spools what waits for the server whenever it becomes unavailable, until `stop`. What is seen later
/// is spooled when it is seen.
pub(crate) async fn spool_backlog(shared: Arc<Shared>, stop: CancellationToken) {
    let mut state = shared.server.gate.state();
    let work = async {
        loop {
            if state.wait_for(Option::is_some).await.is_err() {
                return;
            }
            let outage = shared.server.gate.outages();
            for uid in shared.queues.runs.uids() {
                if let Some(bytes) = shared.queues.runs.state(&uid)
                    && let Ok(object) = json::parse(&bytes)
                {
                    shared.spool_state(&uid, object, bytes).await;
                }
            }
            let is_over =
                |closed: &Closed| closed.is_none() || shared.server.gate.outages() != outage;
            if state.wait_for(is_over).await.is_err() {
                return;
            }
        }
    };
    stop.run_until_cancelled(work).await;
}

/// Stores what an earlier leader left in the spool, while another watcher leads: that needs no lease,
/// and no other watcher can. Returns when nothing is left.
pub(crate) async fn store_spooled(shared: &Shared) {
    let Some(spool) = &shared.server.spool else {
        return;
    };
    let mut failures = 0;
    loop {
        for uid in spool.uids() {
            let work = Work::gone();
            let mut task = Task::new(shared, Lane::Spooled, uid, work);
            if let Err(interrupted) = task.run().await {
                task.note(&interrupted);
            }
        }
        shared.notify_progress();
        if spool.size().0 == 0 {
            return;
        }
        failures += 1;
        sleep(shared.config.tuning.retry.after(failures)).await;
    }
}

impl Shared {
    /// When a time of day will be.
    fn instant(&self, at: Timestamp) -> Instant {
        let wait = at.duration_since(self.clock.now());
        Instant::now() + Duration::try_from(wait).unwrap_or_default()
    }

    /// The time of day after `wait`.
    fn after(&self, wait: Duration) -> Timestamp {
        let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
        let after = self.clock.now().saturating_add(wait);
        after.unwrap_or(Timestamp::MAX)
    }

    /// Waits for the next turn to write.
    pub(super) async fn write_in_turn(&self) {
        let turn = self.budgets.writes.turn(self.clock.now());
        sleep_until(self.instant(turn)).await;
    }

    /// Waits until there is a turn that nothing more urgent wants. Cancel safe.
    pub(super) async fn may_write(&self) {
        while let Err(at) = self.budgets.writes.take(self.clock.now()) {
            sleep_until(self.instant(at)).await;
        }
    }
}
