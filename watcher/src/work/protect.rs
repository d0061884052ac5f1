//! Protecting runs from others' deletes while all workers wait for the server, or have a backlog of
//! ends to store.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{Halt, Next, ROUNDS, Task};
use crate::{
    plan::{Finalize, Step},
    queue::{Done, Job, Work},
    shared::Shared,
    watch::bytes,
};

/// What is left to do about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Nothing,
    /// All others do that.
    Something,
}

/// Puts finalizers on, and does nothing else, until `stop`.
pub(crate) async fn protect(shared: Arc<Shared>, stop: CancellationToken) {
    loop {
        let job = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            job = shared.queue.pop_bare() => job,
        };
        one(&shared, job).await;
    }
}

async fn one(shared: &Shared, job: Job) {
    let mut task = Task::new(shared, job.uid.clone(), false, job.work.object);
    let done = match task.protect().await {
        Ok(Rest::Something) => Done::Rest(task.rest()),
        Ok(Rest::Nothing) => {
            task.settle();
            Done::Finished
        }
        Err(halt) => task.failed(halt, job.failures).await,
    };
    shared.queue.done(&job.uid, done);
    shared.tick();
}

impl Task<'_> {
    /// Puts the finalizer on if that is what comes first. Never waits for the server.
    async fn protect(&mut self) -> Result<Rest, Halt> {
        self.parse();
        for _ in 0..ROUNDS {
            if self.object.is_none() && !self.fetch().await? {
                // Its end is told by the watch, which may know its last state.
                return Ok(Rest::Nothing);
            }
            let (Some(remembered), Some(object)) = (self.remembered(), &self.object) else {
                return Ok(Rest::Nothing);
            };
            let is_final = self.shared.view(object).finish().done;
            // Storing it takes no longer than protecting it.
            if is_final && self.shared.gate.is_up() {
                return Ok(Rest::Something);
            }
            let finalizer = match self.plan(&remembered).into_iter().next() {
                None => return Ok(Rest::Nothing),
                Some(Step::Finalize(Finalize::Add(finalizer))) => finalizer,
                Some(_) => return Ok(Rest::Something),
            };
            self.shared.write_in_turn().await;
            if let Next::Settled(_) = self.hold(finalizer).await? {
                return Ok(Rest::Nothing);
            }
            match self.unprotected.take() {
                None => {}
                // It is stored all the same.
                Some(_) if is_final => return Ok(Rest::Something),
                Some(error) => return Err(Halt::passing(error)),
            }
        }
        Err(Halt::passing(
            "the object changes faster than it can be protected",
        ))
    }

    /// What all others need, so that they need not read the run again.
    fn rest(&mut self) -> Work {
        let object = self.object.as_ref();
        let is_final = object.is_some_and(|object| self.shared.view(object).finish().done);
        Work {
            is_final,
            object: self.bytes.take().or_else(|| object.map(bytes)),
            ..Work::default()
        }
    }
}
