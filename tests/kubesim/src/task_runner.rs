//! What Tekton does about TaskRuns, without pods: they end at once, or once they are cancelled.

use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    clock::seconds,
    job_runner::OUTCOME,
    pipeline_runner::{MANAGER, condition, outcome},
    sim::Sim,
};

/// Annotation of a TaskRun: its results, as the JSON of `status.results`.
const RESULTS: &str = "kubesim.dev/results";

/// TaskRuns are run until this is dropped.
#[derive(Debug)]
pub struct TaskRunner {
    _stop: DropGuard,
}

impl Sim {
    /// Runs every TaskRun. The annotation `kubesim.dev/outcome` says whether one is to `succeed`, as those without
    /// it do, to `fail`, or to `run` until it is cancelled; `kubesim.dev/results` has results for one that
    /// succeeds. It needs a tokio runtime, and that the kind is installed.
    pub fn run_tasks(&self) -> TaskRunner {
        let stop = CancellationToken::new();
        tokio::spawn(conduct(self.clone(), stop.clone()));
        TaskRunner {
            _stop: stop.drop_guard(),
        }
    }
}

async fn conduct(sim: Sim, stop: CancellationToken) {
    let mut news = sim.shared.news();
    loop {
        for run in sim.list("tekton.dev", "taskruns") {
            follow(&sim, &run);
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

fn follow(sim: &Sim, run: &Value) {
    if outcome(run).is_some() {
        return;
    }
    let metadata = &run["metadata"];
    let annotation = |name: &str| metadata["annotations"][name].as_str();
    let is_cancelled = run["spec"]["status"] == "TaskRunCancelled";
    let (status, reason) = match annotation(OUTCOME) {
        _ if is_cancelled => ("False", "TaskRunCancelled"),
        Some("fail") => ("False", "Failed"),
        Some("run") if run["status"]["startTime"].is_string() => return,
        Some("run") => ("Unknown", "Running"),
        _ => ("True", "Succeeded"),
    };
    let now = seconds(sim.now());
    let mut written = json!({"conditions": [condition(status, reason, "", &now)]});
    if run["status"]["startTime"].is_null() {
        written["startTime"] = json!(now);
    }
    if status != "Unknown" {
        written["completionTime"] = json!(now);
    }
    if status == "True" {
        let results = annotation(RESULTS).and_then(|text| serde_json::from_str::<Value>(text).ok());
        written["results"] = results.unwrap_or_default();
    }
    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
    let (namespace, name) = (text("namespace"), text("name"));
    let patch = json!({"status": written});
    if let Err(refusal) = sim.merge("tekton.dev", "taskruns", namespace, name, patch, MANAGER) {
        tracing::debug!(name, error = %refusal, "`{name}` is gone");
    }
}
