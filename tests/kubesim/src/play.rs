//! The player: controllers of a simulated cluster, which create runs and bring them to an end.
//! What a run looks like is in `shapes`; here is when things happen, and the account of them.

use std::{
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::{
    sync::{Semaphore, watch},
    time::{Instant, sleep, sleep_until},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{kinds::Crd, refusal::Refusal, sim::Sim};
use random::Random;
use shapes::{Act, Run, Span};

mod random;
mod shapes;
#[cfg(test)]
mod tests;

/// What to play. The same plan gives the same runs: names, uids, content and outcomes.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What the runs are drawn from.
    pub seed: u64,
    /// How many runs; a pipeline run counts once, with its task runs.
    pub runs: usize,
    /// Runs started per second; infinite starts them as fast as `concurrency` allows.
    pub rate: f64,
    /// How many runs may be unfinished at once.
    pub concurrency: usize,
    /// Namespaces the runs are spread over; they are made when missing.
    pub namespaces: Vec<String>,
    /// How often each kind is drawn.
    pub mix: Mix,
    /// How long a run takes to play.
    pub life: Duration,
    /// How many seconds a run claims to have taken: it is created that far in the past.
    pub told: RangeInclusive<u32>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            seed: 1,
            runs: 100,
            rate: 50.0,
            concurrency: 50,
            namespaces: vec!["team-a".into(), "team-b".into(), "team-c".into()],
            mix: Mix::default(),
            life: Duration::from_millis(300),
            told: 5..=900,
        }
    }
}

/// Relative frequencies of the kinds of runs; a kind that is not installed is never drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mix {
    /// Tekton pipeline runs, each with one to three task runs.
    pub pipeline_runs: u32,
    /// Task runs of their own.
    pub task_runs: u32,
    /// Custom runs of their own.
    pub custom_runs: u32,
    /// Argo workflows of their own.
    pub workflows: u32,
}

impl Default for Mix {
    fn default() -> Self {
        Self {
            pipeline_runs: 5,
            task_runs: 3,
            custom_runs: 1,
            workflows: 1,
        }
    }
}

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It did what it should.
    Succeeded,
    /// A step gave up.
    Failed,
    /// A user asked it to stop.
    Cancelled,
    /// It took too long.
    TimedOut,
}

/// An object that came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// UID that the cluster gave the object.
    pub uid: String,
    /// Its uid's owner, for a task run of a pipeline run.
    pub owner: Option<String>,
    /// API group of its kind, such as `tekton.dev`.
    pub group: String,
    /// Plural of its kind.
    pub plural: String,
    /// Namespace in which the object is.
    pub namespace: String,
    /// Name of the object, unique within kind and namespace.
    pub name: String,
    /// How it ended, as its status says.
    pub outcome: Outcome,
    /// When it ended, by the clock of the cluster.
    pub at: Timestamp,
}

/// How far the play is, in runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Runs that were created.
    pub created: usize,
    /// Runs that began, whether or not they ended.
    pub running: usize,
    /// Runs that came to their end.
    pub finished: usize,
    /// Runs that somebody deleted before their end, or that could not be written.
    pub lost: usize,
    /// Whether nothing more will happen.
    pub over: bool,
}

/// Plays a plan on a cluster.
#[derive(Debug, Clone)]
pub struct Player {
    sim: Sim,
    plan: Plan,
}

/// A play that is going on. Dropping it lets it go on; `stop` ends it.
#[derive(Debug)]
pub struct Playing {
    stage: Arc<Stage>,
    progress: watch::Receiver<Progress>,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Stage {
    sim: Sim,
    plan: Plan,
    finished: Mutex<Vec<Finished>>,
    progress: watch::Sender<Progress>,
}

impl Player {
    /// A player of `plan` on `sim`; nothing happens yet.
    pub fn new(sim: &Sim, plan: Plan) -> Self {
        Self {
            sim: sim.clone(),
            plan,
        }
    }

    /// Starts to play, on the current tokio runtime.
    pub fn start(self) -> Playing {
        let (progress, receiver) = watch::channel(Progress::default());
        for namespace in &self.plan.namespaces {
            self.sim.namespace(namespace);
        }
        let finished = Mutex::new(Vec::new());
        let stage = Arc::new(Stage {
            sim: self.sim,
            plan: self.plan,
            finished,
            progress,
        });
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        tokio::spawn(conduct(Arc::clone(&stage), stop.clone(), tasks));
        Playing {
            stage,
            progress: receiver,
            stop,
        }
    }
}

impl Playing {
    /// How far it is.
    pub fn progress(&self) -> Progress {
        *self.progress.borrow()
    }

    /// Every object that came to its end so far, task runs of pipeline runs included.
    pub fn finished(&self) -> Vec<Finished> {
        self.stage.finished().clone()
    }

    /// As `finished`, without the first `known` of them.
    pub fn finished_after(&self, known: usize) -> Vec<Finished> {
        self.stage.finished()[known..].to_vec()
    }

    /// Waits until nothing more will happen, and tells the account.
    pub async fn over(&self) -> Progress {
        self.until(|progress| progress.over).await
    }

    /// Waits until `holds`, or until nothing more will happen.
    pub async fn until(&self, holds: impl Fn(&Progress) -> bool) -> Progress {
        let mut progress = self.progress.clone();
        match progress
            .wait_for(|progress| progress.over || holds(progress))
            .await
        {
            Ok(progress) => *progress,
            // The conductor is gone with its runtime: nothing more will happen.
            Err(_) => self.progress(),
        }
    }

    /// Starts no more runs and abandons those that are going on.
    pub fn stop(&self) {
        self.stop.cancel();
    }
}

/// Starts each run in its time.
async fn conduct(stage: Arc<Stage>, stop: CancellationToken, tasks: TaskTracker) {
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

    fn finished(&self) -> MutexGuard<'_, Vec<Finished>> {
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

/// A condition of type `Succeeded`.
fn condition(status: &str, reason: &str, message: &str, at: Timestamp) -> Value {
    json!([{
        "type": "Succeeded",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": crate::clock::seconds(at),
    }])
}
