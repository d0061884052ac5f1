//! The player: controllers of a simulated cluster, which create runs and bring them to an end.
//! What a run looks like is in `shapes`; here is when things happen, and the account of them.

use std::{
    ops::RangeInclusive,
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::sim::Sim;
use stage::{Stage, conduct};

mod random;
mod shapes;
mod stage;
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
