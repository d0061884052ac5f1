//! Runs shaped as a cluster has them: few pipelines, many runs, and everything that differs from
//! run to run differs: ids, digests, times, names of pods, revisions.

use std::collections::BTreeMap;

use hindsight_filter::model::{
    Etag, Payload, Record, Resource, ResultName, RunResult, following_uid,
};
use jiff::Timestamp;
use serde_json::{Value, json};

const STEPS: usize = 4;

/// What a run is made of, and how many pipelines and namespaces the runs are of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) tasks: usize,
    pub(crate) pipelines: usize,
    pub(crate) namespaces: usize,
    /// Lines of the scripts in a TaskRun, and in a PipelineRun.
    lines: [usize; 2],
    /// Bytes that a run may take: on PostgreSQL after `VACUUM`, and on SQLite as written.
    pub(crate) most: [i64; 2],
}

/// A PipelineRun of 17 KB and three TaskRuns of 8 KB.
pub(crate) const SMALL: Shape = Shape {
    tasks: 3,
    pipelines: 12,
    namespaces: 20,
    lines: [10, 24],
    most: [5_000, 4_500],
};

/// A PipelineRun and eleven TaskRuns of 9 KB each.
pub(crate) const LARGE: Shape = Shape {
    tasks: 11,
    pipelines: 8,
    namespaces: 5,
    lines: [14, 5],
    most: [17_000, 15_000],
};

/// Numbers that look random and are the same in every run.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    pub(crate) fn hex(&mut self, digits: usize) -> String {
        let mut text = String::new();
        while text.len() < digits {
            text.push_str(&format!("{:016x}", self.next()));
        }
        text.truncate(digits);
        text
    }

    /// The end that the API server puts after a prefix.
    pub(crate) fn suffix(&mut self) -> String {
        let letters = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5)
            .map(|_| char::from(letters[self.below(letters.len())]))
            .collect()
    }

    pub(crate) fn uuid(&mut self) -> String {
        let bits = u128::from_str_radix(&self.hex(32), 16).unwrap();
        uuid::Builder::from_random_bytes(bits.to_be_bytes())
            .into_uuid()
            .to_string()
    }
}

const WORDS: [&str; 32] = [
    "echo",
    "curl",
    "--fail",
    "export",
    "PATH",
    "make",
    "build",
    "test",
    "if",
    "then",
    "fi",
    "git",
    "fetch",
    "--depth",
    "image",
    "push",
    "$(params.revision)",
    "$(workspaces.source.path)",
    "cd",
    "&&",
    "||",
    "exit",
    "1",
    "digest",
    "tee",
    "results",
    "go",
    "npm",
    "ci",
    "verify",
    "set",
    "-x",
];

fn script(dice: &mut Dice, lines: usize) -> String {
    let mut text = "#!/usr/bin/env bash\nset -euo pipefail\n".to_owned();
    for _ in 0..lines {
        for _ in 0..=dice.below(8) {
            text.push_str(WORDS[dice.below(WORDS.len())]);
            text.push(' ');
        }
        text.push('\n');
    }
    text
}

/// The spec of a task: it is the same in every run of its pipeline.
fn task_spec(pipeline: usize, task: usize, lines: usize) -> Value {
    let mut dice = Dice::new((pipeline * 100 + task) as u64);
    let steps: Vec<Value> = (0..STEPS)
        .map(|step| {
            json!({"name": format!("step-{step}"),
                "image": format!("registry.example/tools/img-{step}@sha256:{}", dice.hex(64)),
                "computeResources": {"requests": {"cpu": "250m", "memory": "512Mi"}},
                "env": [{"name": "HOME", "value": "/tekton/home"},
                        {"name": "GIT_SHA", "value": "$(params.revision)"}],
                "script": script(&mut dice, lines)})
        })
        .collect();
    json!({"params": [{"name": "revision", "type": "string"}],
        "results": [{"name": "digest", "type": "string"}], "steps": steps})
}

/// The time so many seconds into a run; a run begins every seven minutes.
fn time(run: usize, seconds: usize) -> String {
    let seconds = i64::try_from(run * 420 + seconds).unwrap();
    Timestamp::from_second(1_767_225_600 + seconds)
        .unwrap()
        .to_string()
}

fn fields(names: &[&str]) -> Value {
    let fields = names
        .iter()
        .map(|name| (format!("f:{name}"), json!({".": {}})));
    Value::Object(fields.collect())
}

fn managed(run: usize, owner: Option<&str>, state: &[&str]) -> Value {
    let mut metadata = json!({"f:annotations": fields(&["note", "repo", "sha"]),
        "f:labels": fields(&["tekton.dev/memberOf", "tekton.dev/pipeline"])});
    if let Some(uid) = owner {
        metadata["f:ownerReferences"] = json!({".": {}, format!("k:{{\"uid\":\"{uid}\"}}"): {}});
    }
    json!([{"apiVersion": "tekton.dev/v1", "fieldsType": "FieldsV1",
            "manager": "tekton-pipelines-controller", "operation": "Update",
            "time": time(run, 1), "fieldsV1": {"f:metadata": metadata,
                "f:spec": fields(&["params", "serviceAccountName", "taskSpec", "timeout"])}},
           {"apiVersion": "tekton.dev/v1", "fieldsType": "FieldsV1",
            "manager": "tekton-pipelines-controller", "operation": "Update",
            "subresource": "status", "time": time(run, 400), "fieldsV1": {"f:status": fields(state)}}])
}

fn provenance() -> Value {
    json!({"featureFlags": {"awaitSidecarReadiness": true, "coschedule": "workspaces",
        "enableAPIFields": "beta", "enableProvenanceInStatus": true,
        "enforceNonfalsifiability": "none", "maxResultSize": 4096,
        "resultExtractionMethod": "termination-message", "runningInEnvWithInjectedSidecars": true,
        "verificationNoMatchPolicy": "ignore"}})
}

/// What the objects of one run have in common.
struct Run {
    shape: Shape,
    number: usize,
    pipeline: usize,
    name: String,
    uid: String,
    revision: String,
    namespace: String,
}

impl Run {
    fn new(dice: &mut Dice, shape: Shape, number: usize) -> Self {
        let pipeline = number % shape.pipelines;
        Self {
            shape,
            number,
            pipeline,
            name: format!("pipeline-{pipeline}-{}", dice.suffix()),
            uid: dice.uuid(),
            revision: dice.hex(40),
            namespace: format!("team-{:02}", number % shape.namespaces),
        }
    }

    fn annotations(&self) -> Value {
        json!({"note": format!("run {}", self.number), "repo": format!("org/repo-{}", self.pipeline),
            "pipelinesascode.tekton.dev/sha": self.revision, "chains.tekton.dev/signed": "true"})
    }

    fn task(&self, dice: &mut Dice, task: usize) -> (String, Value) {
        let spec = task_spec(self.pipeline, task, self.shape.lines[0]);
        let begun = task * 35 + dice.below(9);
        let took = 20 + dice.below(90);
        let at = |seconds| time(self.number, seconds);
        let steps: Vec<Value> = (0..STEPS)
            .map(|step| {
                json!({"container": format!("step-step-{step}"), "name": format!("step-{step}"),
                    "imageID": spec["steps"][step]["image"],
                    "terminated": {"containerID": format!("containerd://{}", dice.hex(64)),
                        "exitCode": 0, "reason": "Completed",
                        "startedAt": at(begun + step), "finishedAt": at(begun + took)}})
            })
            .collect();
        let uid = dice.uuid();
        let name = format!("{}-task-{task}", self.name);
        let object = json!({"apiVersion": "tekton.dev/v1", "kind": "TaskRun",
            "metadata": {"name": name, "namespace": self.namespace, "uid": uid,
                "resourceVersion": (1_000_000 + dice.below(8_000_000)).to_string(), "generation": 1,
                "creationTimestamp": at(begun), "annotations": self.annotations(),
                "labels": {"app.kubernetes.io/managed-by": "tekton-pipelines",
                    "tekton.dev/memberOf": "tasks", "tekton.dev/pipelineRun": self.name,
                    "tekton.dev/pipeline": format!("pipeline-{}", self.pipeline),
                    "tekton.dev/pipelineTask": format!("task-{task}")},
                "ownerReferences": [{"apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
                    "name": self.name, "uid": self.uid, "controller": true,
                    "blockOwnerDeletion": true}],
                "managedFields": managed(self.number, Some(&self.uid), &["completionTime",
                    "conditions", "podName", "results", "startTime", "steps", "taskSpec"])},
            "spec": {"params": [{"name": "revision", "value": self.revision}],
                "serviceAccountName": "pipeline", "timeout": "1h0m0s", "taskSpec": spec},
            "status": {"podName": format!("{name}-pod"), "startTime": at(begun),
                "completionTime": at(begun + took), "provenance": provenance(),
                "conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded",
                    "message": "All Steps have completed executing",
                    "lastTransitionTime": at(begun + took)}],
                "results": [{"name": "digest", "type": "string",
                    "value": format!("sha256:{}", dice.hex(64))}],
                "steps": steps, "taskSpec": spec}});
        (uid, object)
    }

    fn pipeline(&self, dice: &mut Dice) -> Value {
        let at = |seconds| time(self.number, seconds);
        let tasks: Vec<Value> = (0..self.shape.tasks)
            .map(|task| {
                let after: Vec<String> = task
                    .checked_sub(1)
                    .iter()
                    .map(|t| format!("task-{t}"))
                    .collect();
                json!({"name": format!("task-{task}"), "runAfter": after,
                    "params": [{"name": "revision", "value": "$(params.revision)"}],
                    "taskSpec": task_spec(self.pipeline, task, self.shape.lines[1])})
            })
            .collect();
        let children: Vec<Value> = (0..self.shape.tasks)
            .map(|task| {
                json!({"apiVersion": "tekton.dev/v1", "kind": "TaskRun",
                    "name": format!("{}-task-{task}", self.name),
                    "pipelineTaskName": format!("task-{task}")})
            })
            .collect();
        json!({"apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
            "metadata": {"name": self.name, "namespace": self.namespace, "uid": self.uid,
                "generateName": format!("pipeline-{}-", self.pipeline),
                "resourceVersion": (1_000_000 + dice.below(8_000_000)).to_string(), "generation": 1,
                "creationTimestamp": at(0), "annotations": self.annotations(),
                "labels": {"tekton.dev/pipeline": format!("pipeline-{}", self.pipeline)},
                "managedFields": managed(self.number, None, &["childReferences", "completionTime",
                    "conditions", "pipelineSpec", "startTime"])},
            "spec": {"pipelineRef": {"name": format!("pipeline-{}", self.pipeline)},
                "params": [{"name": "revision", "value": self.revision}]},
            "status": {"startTime": at(0), "completionTime": at(400 + dice.below(90)),
                "conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded",
                    "message": format!("Tasks Completed: {} (Failed: 0, Cancelled 0), Skipped: 0", self.shape.tasks),
                    "lastTransitionTime": at(480)}],
                "results": [{"name": "image", "value": format!("sha256:{}", dice.hex(64))}],
                "childReferences": children, "pipelineSpec": {"tasks": tasks},
                "provenance": provenance()}})
    }
}

/// Results, and their records in the order in which they are stored.
#[derive(Debug)]
pub(crate) struct Corpus {
    pub(crate) shape: Shape,
    pub(crate) runs: usize,
    pub(crate) results: Vec<RunResult>,
    pub(crate) records: Vec<Record>,
}

impl Corpus {
    /// So many runs of a shape.
    pub(crate) fn new(shape: Shape, runs: usize) -> Self {
        let mut dice = Dice::new(1);
        let (mut results, mut records) = (Vec::new(), Vec::new());
        for number in 0..runs {
            let run = Run::new(&mut dice, shape, number);
            let us = 1_767_225_600_000_000 + i64::try_from(number).unwrap() * 420_000_000;
            let mut at = (us..).map(|us| Timestamp::from_microsecond(us).unwrap());
            let mut time = || at.next().unwrap();
            let name: ResultName = format!("{}/results/{}", run.namespace, run.uid)
                .parse()
                .unwrap();
            let made = time();
            let uid = following_uid(Resource::Results, &run.uid, made).unwrap();
            results.push(RunResult {
                name: name.clone(),
                etag: Etag::new(&uid, made),
                uid,
                create_time: made,
                update_time: made,
                annotations: BTreeMap::new(),
                summary: None,
            });
            let mut objects: Vec<(String, &str, Value)> = (0..shape.tasks)
                .map(|task| run.task(&mut dice, task))
                .map(|(uid, object)| (uid, "tekton.dev/v1.TaskRun", object))
                .collect();
            let whole = run.pipeline(&mut dice);
            objects.push((run.uid.clone(), "tekton.dev/v1.PipelineRun", whole));
            for (id, data_type, object) in objects {
                let made = time();
                // As the server makes it.
                let uid = following_uid(Resource::Records, &id, made).unwrap();
                records.push(Record {
                    name: name.record(&id).unwrap(),
                    etag: Etag::new(&uid, made),
                    uid,
                    create_time: made,
                    update_time: made,
                    data: Some(Payload::new(
                        data_type.to_owned(),
                        object.to_string().into(),
                    )),
                });
            }
        }
        Self {
            shape,
            runs,
            results,
            records,
        }
    }

    /// The payloads as text.
    pub(crate) fn payloads(&self) -> Vec<&str> {
        self.records
            .iter()
            .map(|record| std::str::from_utf8(&record.data.as_ref().unwrap().value).unwrap())
            .collect()
    }
}
