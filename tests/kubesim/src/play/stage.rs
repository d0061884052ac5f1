//! The stage of a play: which run is when, and what is written of it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::{
    sync::{Semaphore, watch},
    time::{Instant, sleep, sleep_until},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Finished, Mix, Plan, Progress};
use crate::{
    kinds::Crd,
    play::{
        random::Random,
        shapes::{Act, Run, Span},
    },
    refusal::Refusal,
    sim::Sim,
};

#[derive(Debug)]
pub(super) struct Stage {
    pub(super) sim: Sim,
    pub(super) plan: Plan,
    pub(super) finished: Mutex<Vec<Finished>>,
    pub(super) progress: watch::Sender<Progress>,
}

/// Starts each run in its time.
pub(super) async fn conduct(stage: Arc<Stage>, stop: CancellationToken, tasks: TaskTracker) {
    let slots = Arc::new(Semaphore::new(stage.plan.concurrency.max(1)));
    let begin = Instant::now();
    for number in 0..stage.plan.runs {
        let due = Duration::try_from_secs_f64(number as f64 / stage.plan.rate).unwrap_or_default();
        let slot = tokio::select! {
            () = stop.cancelled() => break,
            slot = async {
                sleep_until(begin + due).await;
                Arc::clone(&slots).acquire_owned().await
            } => slot.expect("the semaphore is never closed"),
        };
        let (stage, stop) = (Arc::clone(&stage), stop.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = stage.play(number) => {}
            }
            drop(slot);
        });
    }
    tasks.close();
    tasks.wait().await;
    stage.progress.send_modify(|progress| progress.over = true);
}

impl Stage {
    async fn play(&self, number: usize) {
        let mut random = Random::new(self.plan.seed).fork(number as u64);
        let Some(run) = Run::draw(&mut random, number, &self.plan, &self.installed_mix()) else {
            self.progress.send_modify(|progress| progress.lost += 1);
            return;
        };
        match self.perform(&run).await {
            Ok(()) => self.progress.send_modify(|progress| progress.finished += 1),
            Err(refusal) => {
                let name = &run.main.name;
                tracing::debug!(error = %refusal, "run `{name}` was lost");
                self.progress.send_modify(|progress| progress.lost += 1);
            }
        }
    }

    /// Leads one run, with its children, from creation to its end.
    async fn perform(&self, run: &Run) -> Result<(), Refusal> {
        let third = self.plan.life / 3;
        let created = self.sim.now() - SignedDuration::from_secs(i64::from(run.seconds));
        self.create(&run.main, created, None).await?;
        self.progress.send_modify(|progress| progress.created += 1);
        sleep(third).await;
        let span = Span {
            created,
            finished: created,
        };
        self.write(&run.main, run.main.begin(span)).await?;
        self.progress.send_modify(|progress| progress.running += 1);
        for (position, child) in run.children.iter().enumerate() {
            let share = |part: usize| run.share_of(created, part);
            self.create(child, share(position), Some(&run.main)).await?;
            let span = Span {
                created: share(position),
                finished: share(position),
            };
            // Who watches may collect a child early; the run goes on without it.
            if self.write(child, child.begin(span)).await.is_ok() {
                sleep(third / u32::try_from(run.children.len()).unwrap_or(1)).await;
                let span = Span {
                    finished: share(position + 1),
                    ..span
                };
                if self.finish(child, span).await.is_ok() {
                    self.account(child, Some(&run.main));
                }
            }
        }
        sleep(third).await;
        self.finish(
            &run.main,
            Span {
                created,
                finished: self.sim.now(),
            },
        )
        .await?;
        self.account(&run.main, None);
        Ok(())
    }

    async fn create(&self, act: &Act, at: Timestamp, owner: Option<&Act>) -> Result<(), Refusal> {
        self.awake().await;
        self.sim.load_as(act.creation(at, owner), act.creator())?;
        Ok(())
    }

    async fn finish(&self, act: &Act, span: Span) -> Result<(), Refusal> {
        if let Some(order) = act.stop_order() {
            self.write(act, order).await?;
        }
        self.write(act, act.end(span)).await
    }

    async fn write(&self, act: &Act, patch: Value) -> Result<(), Refusal> {
        self.awake().await;
        // Somebody else may have replaced the object: the uid makes sure it is the same one.
        let found = self
            .sim
            .get(act.group(), act.plural(), &act.namespace, &act.name);
        if found.is_none_or(|found| found["metadata"]["uid"] != act.uid.as_str()) {
            return Err(Refusal::new(
                404,
                "NotFound",
                format!("`{}` was deleted meanwhile", act.name),
            ));
        }
        self.sim.merge(
            act.group(),
            act.plural(),
            &act.namespace,
            &act.name,
            patch,
            act.controller(),
        )?;
        Ok(())
    }

    /// Controllers can do nothing while the server is down.
    async fn awake(&self) {
        let mut signals = self.sim.faults().signals();
        if signals.wait_for(|signals| !signals.down).await.is_err() {
            tracing::debug!("the cluster is gone");
        }
    }

    fn account(&self, act: &Act, owner: Option<&Act>) {
        self.finished().push(Finished {
            uid: act.uid.clone(),
            owner: owner.map(|owner| owner.uid.clone()),
            group: act.group().into(),
            plural: act.plural().into(),
            namespace: act.namespace.clone(),
            name: act.name.clone(),
            outcome: act.outcome,
            at: self.sim.now(),
        });
    }

    pub(super) fn finished(&self) -> MutexGuard<'_, Vec<Finished>> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mix without kinds that are not installed now.
    fn installed_mix(&self) -> Mix {
        let has = |crd: Crd| u32::from(self.sim.serves(&crd));
        let mix = self.plan.mix;
        let task_runs = has(Crd::tekton_task_run());
        Mix {
            pipeline_runs: mix.pipeline_runs * task_runs * has(Crd::tekton_pipeline_run()),
            task_runs: mix.task_runs * task_runs,
            custom_runs: mix.custom_runs * has(Crd::tekton_custom_run()),
            workflows: mix.workflows * has(Crd::argo_workflow()),
        }
    }
}
