//! What Tekton does about PipelineRuns whose pipeline is inline: a TaskRun or a CustomRun for each task, in the
//! order that `runAfter` and results ask for. TaskRuns succeed at once; CustomRuns are for their controllers.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{clock::seconds, sim::Sim};

const GROUP: &str = "tekton.dev";

/// How Tekton calls itself in `managedFields`.
pub(crate) const MANAGER: &str = "tekton-pipelines-controller";

/// PipelineRuns are run until this is dropped.
#[derive(Debug)]
pub struct PipelineRunner {
    _stop: DropGuard,
}

impl Sim {
    /// Runs every PipelineRun with a `pipelineSpec` that is not managed by others: `runAfter`, parameters, results of CustomRuns, retries and
    /// timeouts of tasks, `timeouts.pipeline` and the status `Cancelled`. It needs a tokio runtime, and that the
    /// kinds of Tekton are installed.
    pub fn run_pipelines(&self) -> PipelineRunner {
        let stop = CancellationToken::new();
        tokio::spawn(conduct(self.clone(), stop.clone()));
        PipelineRunner {
            _stop: stop.drop_guard(),
        }
    }
}

async fn conduct(sim: Sim, stop: CancellationToken) {
    let mut news = sim.shared.news();
    loop {
        let runs = sim.list(GROUP, "pipelineruns");
        let due = runs.iter().filter_map(|run| Part::new(&sim, run)?.step());
        let due = due.min().map(|due| due.duration_since(sim.now()));
        let due = due.map(|due| Duration::try_from(due).unwrap_or_default());
        tokio::select! {
            () = stop.cancelled() => return,
            // No test waits for a year.
            () = sleep(due.unwrap_or(Duration::from_hours(24 * 365))) => {}
            changed = news.changed() => {
                if changed.is_err() {
                    return;
                }
            }
        }
    }
}

/// A PipelineRun that goes on.
struct Part<'r> {
    sim: &'r Sim,
    run: &'r Value,
    namespace: &'r str,
    name: &'r str,
    tasks: &'r [Value],
}

impl<'r> Part<'r> {
    fn new(sim: &'r Sim, run: &'r Value) -> Option<Self> {
        let is_of_others = !matches!(
            run["spec"]["managedBy"].as_str(),
            None | Some("tekton.dev/pipeline")
        );
        if is_of_others || outcome(run).is_some() {
            return None;
        }
        Some(Self {
            sim,
            run,
            namespace: run["metadata"]["namespace"].as_str()?,
            name: run["metadata"]["name"].as_str()?,
            tasks: run["spec"]["pipelineSpec"]["tasks"].as_array()?,
        })
    }

    /// Does what can be done now; returns when the timeout is over.
    fn step(&self) -> Option<Timestamp> {
        let now = self.sim.now();
        let start = self.run["status"]["startTime"].as_str();
        let start: Timestamp = start.and_then(|text| text.parse().ok()).unwrap_or(now);
        let timeout = self.run["spec"]["timeouts"]["pipeline"].as_str();
        let timeout: Option<SignedDuration> = timeout.and_then(|text| text.parse().ok());
        let due = timeout.and_then(|timeout| start.checked_add(timeout).ok());
        let end = match self.run["spec"]["status"].as_str() {
            Some("Cancelled") => Some(("Cancelled", "the PipelineRun was cancelled")),
            _ if due.is_some_and(|due| due <= now) => {
                Some(("PipelineRunTimeout", "the PipelineRun timed out"))
            }
            _ => None,
        };
        let mut states = Vec::new();
        for task in self.tasks {
            states.push(self.follow(task, end.is_some(), &states));
        }
        let has = |state: State| states.contains(&state);
        let (status, reason, message) = match end {
            Some((reason, message)) => ("False", reason, message),
            None if has(State::Running) => ("Unknown", "Running", "tasks are running"),
            None if has(State::Failed) => ("False", "Failed", "a task has failed"),
            None if has(State::Waiting) => ("Unknown", "Running", "tasks are waiting"),
            None => ("True", "Succeeded", "all tasks have succeeded"),
        };
        self.write(start, status, reason, message);
        due.filter(|_| status == "Unknown")
    }

    /// Looks after the run of a task. `before` are the states of the tasks that are listed before it.
    fn follow(&self, task: &Value, is_ending: bool, before: &[State]) -> State {
        let Some(child) = self.child(task) else {
            let is_failing = before.contains(&State::Failed);
            let is_ready = self.needs(task).all(|other| {
                let child = other.and_then(|other| self.child(other));
                child.is_some_and(|child| outcome(&child) == Some(true))
            });
            if is_ending || is_failing || !is_ready {
                return State::Waiting;
            }
            self.create(task);
            return State::Running;
        };
        match outcome(&child) {
            Some(true) => return State::Succeeded,
            Some(false) => return State::Failed,
            None => {}
        }
        let (plural, name) = (plural(task), self.child_name(task));
        if plural == "taskruns" {
            let now = seconds(self.sim.now());
            let status = json!({"startTime": now, "completionTime": now, "conditions": [
                condition("True", "Succeeded", "All Steps have completed executing", &now),
            ]});
            self.merge(plural, &name, json!({"status": status}));
        } else if is_ending && child["spec"]["status"].is_null() {
            let patch = json!({"spec": {
                "status": "RunCancelled",
                "statusMessage": "CustomRun cancelled as the PipelineRun it belongs to has ended.",
            }});
            self.merge(plural, &name, patch);
        }
        State::Running
    }

    fn child_name(&self, task: &Value) -> String {
        format!("{}-{}", self.name, text(task, "name"))
    }

    fn child(&self, task: &Value) -> Option<Value> {
        let name = self.child_name(task);
        self.sim.get(GROUP, plural(task), self.namespace, &name)
    }

    /// The tasks that succeed before this one starts; `None` for one that there is not.
    fn needs(&self, task: &'r Value) -> impl Iterator<Item = Option<&'r Value>> {
        let after = task["runAfter"].as_array();
        let after = after.into_iter().flatten().filter_map(Value::as_str);
        let mut names: Vec<String> = after.map(str::to_owned).collect();
        let params = task["params"].to_string();
        let references = params.split("$(tasks.").skip(1);
        names.extend(references.filter_map(|rest| Some(rest.split_once('.')?.0.to_owned())));
        let named = |name: String| self.tasks.iter().find(|task| text(task, "name") == name);
        names.into_iter().map(named).collect::<Vec<_>>().into_iter()
    }

    fn create(&self, task: &Value) {
        let metadata = &self.run["metadata"];
        let mut labels = metadata["labels"].as_object().cloned().unwrap_or_default();
        for (label, value) in [
            ("pipelineRun", self.name),
            ("pipelineTask", text(task, "name")),
        ] {
            labels.insert(format!("{GROUP}/{label}"), value.into());
        }
        let (version, kind) = match plural(task) {
            "taskruns" => ("v1", "TaskRun"),
            _ => ("v1beta1", "CustomRun"),
        };
        let child = json!({
            "apiVersion": format!("{GROUP}/{version}"), "kind": kind,
            "metadata": {
                "name": self.child_name(task), "namespace": self.namespace, "labels": labels,
                "annotations": metadata["annotations"].as_object().cloned().unwrap_or_default(),
                "ownerReferences": [{
                    "apiVersion": format!("{GROUP}/v1"), "kind": "PipelineRun", "name": self.name,
                    "uid": metadata["uid"], "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": self.spec(task, kind),
        });
        self.sim
            .create(child)
            .expect("a child that is not there can be created");
    }

    fn spec(&self, task: &Value, kind: &str) -> Value {
        let mut spec = Map::new();
        let names = match kind {
            "TaskRun" => [("taskRef", "taskRef"), ("taskSpec", "taskSpec")],
            _ => [("taskRef", "customRef"), ("taskSpec", "customSpec")],
        };
        for (from, to) in names
            .into_iter()
            .chain([("retries", "retries"), ("timeout", "timeout")])
        {
            if let Some(value) = task.get(from) {
                spec.insert(to.to_owned(), value.clone());
            }
        }
        if let Some(params) = task["params"].as_array() {
            let filled = params.iter().map(|param| {
                let mut param = param.clone();
                param["value"] = self.filled(&param["value"]);
                param
            });
            spec.insert("params".to_owned(), filled.collect());
        }
        spec.insert("serviceAccountName".to_owned(), "default".into());
        Value::Object(spec)
    }

    /// A value with parameters of the run and results of its tasks.
    fn filled(&self, value: &Value) -> Value {
        let mut known = Vec::new();
        let params = self.run["spec"]["params"].as_array();
        for param in params.into_iter().flatten() {
            known.push((
                format!("$(params.{})", text(param, "name")),
                &param["value"],
            ));
            known.push((
                format!("$(params.{}[*])", text(param, "name")),
                &param["value"],
            ));
        }
        let children: Vec<_> = self
            .tasks
            .iter()
            .map(|task| (task, self.child(task)))
            .collect();
        for (task, child) in &children {
            let results = child
                .as_ref()
                .and_then(|child| child["status"]["results"].as_array());
            for result in results.into_iter().flatten() {
                let (task, name) = (text(task, "name"), text(result, "name"));
                known.push((format!("$(tasks.{task}.results.{name})"), &result["value"]));
            }
        }
        fill(value, &known)
    }

    fn write(&self, start: Timestamp, status: &str, reason: &str, message: &str) {
        let now = seconds(self.sim.now());
        let old = &self.run["status"];
        let mut new = old.as_object().cloned().unwrap_or_default();
        new.insert("startTime".to_owned(), seconds(start).into());
        if old["conditions"][0]["reason"] != reason {
            let condition = condition(status, reason, message, &now);
            new.insert("conditions".to_owned(), json!([condition]));
        }
        let children = self.tasks.iter().filter_map(|task| {
            let child = self.child(task)?;
            Some(json!({
                "apiVersion": child["apiVersion"], "kind": child["kind"],
                "name": child["metadata"]["name"], "pipelineTaskName": task["name"],
            }))
        });
        new.insert("childReferences".to_owned(), children.collect());
        if status != "Unknown" {
            new.insert("completionTime".to_owned(), now.into());
        }
        let new = Value::Object(new);
        if new != *old {
            self.merge("pipelineruns", self.name, json!({"status": new}));
        }
    }

    fn merge(&self, plural: &str, name: &str, patch: Value) {
        if let Err(refusal) = self
            .sim
            .merge(GROUP, plural, self.namespace, name, patch, MANAGER)
        {
            tracing::debug!(plural, name, error = %refusal, "`{name}` is gone");
        }
    }
}

/// How far a task is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Running,
    Succeeded,
    Failed,
}

fn plural(task: &Value) -> &'static str {
    let is_custom = |part: &Value| {
        let kind = text(part, "kind");
        part["apiVersion"].is_string() || !matches!(kind, "" | "Task" | "ClusterTask")
    };
    match is_custom(&task["taskRef"]) || is_custom(&task["taskSpec"]) {
        true => "customruns",
        false => "taskruns",
    }
}

/// Whether a run has succeeded; `None` while it goes on.
pub(crate) fn outcome(run: &Value) -> Option<bool> {
    let conditions = run["status"]["conditions"].as_array()?;
    let succeeded = conditions
        .iter()
        .find(|condition| condition["type"] == "Succeeded")?;
    match text(succeeded, "status") {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }
}

pub(crate) fn condition(status: &str, reason: &str, message: &str, now: &str) -> Value {
    json!({
        "type": "Succeeded", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": now,
    })
}

fn fill(value: &Value, known: &[(String, &Value)]) -> Value {
    match value {
        Value::String(text) => {
            if let Some((_, value)) = known.iter().find(|(name, _)| name == text) {
                return (*value).clone();
            }
            let mut filled = text.clone();
            for (name, value) in known {
                if let Some(value) = value.as_str() {
                    filled = filled.replace(name, value);
                }
            }
            filled.into()
        }
        Value::Array(items) => items.iter().map(|item| fill(item, known)).collect(),
        value => value.clone(),
    }
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}
