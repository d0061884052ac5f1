//! What the Job controller and nodes do about Jobs, without pods: start them, and end them later.

use std::{collections::HashSet, time::Duration};

use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use crate::{
    clock::seconds,
    objects::{Key, KindId},
    sim::Sim,
};

/// Annotation of a Job: `succeed`, `fail`, or `run` for one that does not end.
pub(crate) const OUTCOME: &str = "kubesim.dev/outcome";

/// Annotation of a Job: milliseconds from its creation until it starts.
const STARTS_AFTER: &str = "kubesim.dev/starts-after";

/// Annotation of a Job: milliseconds from its start to its end.
const RUNS_FOR: &str = "kubesim.dev/runs-for";

/// How the Job controller calls itself in `managedFields`.
const MANAGER: &str = "kube-controller-manager";

/// What becomes of Jobs without annotations that say otherwise.
#[derive(Debug, Clone, Copy, Default)]
pub struct Jobs {
    /// Time from the creation of a Job until it starts.
    pub start_after: Duration,
    /// Time from its start to its end.
    pub run_for: Duration,
}

/// Jobs are run until this is dropped.
#[derive(Debug)]
pub struct JobRunner {
    _stop: DropGuard,
}

/// What is to become of one Job.
struct Job {
    key: Key,
    uid: String,
    start_after: Duration,
    run_for: Duration,
    outcome: String,
}

impl Sim {
    /// Runs every Job that is there and goes on, and every one that is created. Needs a tokio runtime.
    ///
    /// The annotations `kubesim.dev/outcome` (`succeed`, `fail`, or `run` for ever),
    /// `kubesim.dev/starts-after` and `kubesim.dev/runs-for` (milliseconds) of a Job override `jobs`.
    pub fn run_jobs(&self, jobs: Jobs) -> JobRunner {
        let stop = CancellationToken::new();
        tokio::spawn(conduct(self.clone(), jobs, stop.clone()));
        JobRunner {
            _stop: stop.drop_guard(),
        }
    }

    /// The Jobs that were created after this version and are there, and the newest version.
    fn jobs_since(&self, id: KindId, version: u64) -> (Vec<Key>, u64) {
        let world = self.shared.world();
        let newest = world.version;
        let keys = match world.history.since(version).filter(|_| version > 0) {
            Some(events) => events
                .filter(|event| event.kind == id && event.before.is_none())
                .map(|event| event.after.key.clone())
                .collect(),
            None => {
                let shelf = world.shelves.get(&id);
                let objects = shelf.into_iter().flat_map(|shelf| shelf.objects.keys());
                objects.cloned().collect()
            }
        };
        (keys, newest)
    }

    fn job(&self, key: Key, jobs: Jobs) -> Option<Job> {
        let object = self.get("batch", "jobs", &key.namespace, &key.name)?;
        let ended = object["status"]["conditions"].as_array();
        if ended.is_some_and(|conditions| !conditions.is_empty()) {
            return None;
        }
        let metadata = &object["metadata"];
        let text = |name: &str| metadata["annotations"][name].as_str();
        let time = |name: &str, otherwise: Duration| {
            let milliseconds = text(name).and_then(|text| text.parse().ok());
            milliseconds.map_or(otherwise, Duration::from_millis)
        };
        Some(Job {
            uid: metadata["uid"].as_str()?.to_owned(),
            start_after: time(STARTS_AFTER, jobs.start_after),
            run_for: time(RUNS_FOR, jobs.run_for),
            outcome: text(OUTCOME).unwrap_or("succeed").to_owned(),
            key,
        })
    }

    /// Writes the status of a Job, if it is there; returns whether it is.
    fn write_job_status(&self, job: &Job, status: &Value) -> bool {
        let Key { namespace, name } = &job.key;
        let found = self.get("batch", "jobs", namespace, name);
        let is_it = found.is_some_and(|found| found["metadata"]["uid"] == job.uid.as_str());
        // A patch of the status alone is one of the subresource.
        let patch = json!({"status": status});
        is_it
            && self
                .merge("batch", "jobs", namespace, name, patch, MANAGER)
                .is_ok()
    }
}

async fn conduct(sim: Sim, jobs: Jobs, stop: CancellationToken) {
    let id = sim.shared.world().find("batch", "jobs");
    let id = id.expect("Jobs are built in");
    let tasks = TaskTracker::new();
    let mut news = sim.shared.news();
    let mut version = 0;
    // Jobs that go on are listed again when events were compacted.
    let mut begun = HashSet::new();
    loop {
        let (keys, newest) = sim.jobs_since(id, version);
        version = newest;
        for job in keys.into_iter().filter_map(|key| sim.job(key, jobs)) {
            if !begun.insert(job.uid.clone()) {
                continue;
            }
            let (sim, stop) = (sim.clone(), stop.clone());
            tasks.spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = run(&sim, &job) => {}
                }
            });
        }
        tokio::select! {
            () = stop.cancelled() => return,
            changed = news.changed() => {
                if changed.is_err() {
                    return;
                }
            }
        }
    }
}

async fn run(sim: &Sim, job: &Job) {
    sleep(job.start_after).await;
    let start = seconds(sim.now());
    let running = json!({"startTime": start, "active": 1, "ready": 1});
    if !sim.write_job_status(job, &running) {
        return;
    }
    sleep(job.run_for).await;
    let now = seconds(sim.now());
    let condition = |r#type: &str, reason: &str| json!({"type": r#type, "status": "True", "lastProbeTime": now, "lastTransitionTime": now, "reason": reason});
    // As an API server demands it: the target condition beside the last one, and a time of completion
    // only after success.
    let end = match job.outcome.as_str() {
        "succeed" => json!({
            "active": null, "ready": 0, "succeeded": 1, "completionTime": now,
            "conditions": [
                condition("SuccessCriteriaMet", "CompletionsReached"),
                condition("Complete", "CompletionsReached"),
            ],
        }),
        "fail" => json!({
            "active": null, "ready": 0, "failed": 1,
            "conditions": [
                condition("FailureTarget", "BackoffLimitExceeded"),
                condition("Failed", "BackoffLimitExceeded"),
            ],
        }),
        _ => return,
    };
    sim.write_job_status(job, &end);
}
