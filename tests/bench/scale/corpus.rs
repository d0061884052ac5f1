//! Runs as a cluster leaves them over ninety days, made fast: what a pipeline's runs share is
//! serialised once, and what differs is put into the gaps.
//!
//! Run `n` is the same in every corpus, so that its records can be made again at any time, in
//! any order.

use std::{collections::BTreeMap, fmt::Write as _, sync::LazyLock};

use hindsight_filter::model::{Etag, Payload, Record, RecordName, ResultName, RunResult, Summary};
use jiff::Timestamp;
use serde_json::{Value, json};

/// To be changed with whatever changes the rows, so that no older data set is taken for this.
pub const VERSION: u32 = 2;
/// Records of a run: its tasks and itself.
pub const RECORDS: usize = 10;
const PIPELINES: usize = 200;
const PARENTS: usize = 64;
/// When the first run began, and how long the last one begins after it, in seconds.
const BEGAN: i64 = 1_767_225_600;
pub const SPAN: i64 = 90 * 86_400;

/// Numbers that look random and are the same in every run.
#[derive(Debug, Clone)]
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn hex(&mut self, digits: usize) -> String {
        let mut text = String::with_capacity(digits + 16);
        while text.len() < digits {
            write!(text, "{:016x}", self.next()).unwrap();
        }
        text.truncate(digits);
        text
    }

    fn suffix(&mut self) -> String {
        let letters = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5)
            .map(|_| char::from(letters[self.below(letters.len())]))
            .collect()
    }

    fn uuid(&mut self) -> String {
        let bits = (u128::from(self.next()) << 64) | u128::from(self.next());
        uuid::Builder::from_random_bytes(bits.to_be_bytes())
            .into_uuid()
            .to_string()
    }

    /// Few of many: the first is taken most often, as some pipelines run all the time.
    fn rank(&mut self, of: usize) -> usize {
        let even = f64::from(u32::try_from(self.below(1 << 20)).unwrap()) / f64::from(1 << 20);
        let most = f64::from(u32::try_from(of).unwrap());
        let rank = (even * (most + 1.0).ln()).exp() - 1.0;
        (rank as usize).min(of - 1)
    }
}

/// The name of a pipeline by its rank.
pub fn pipeline(rank: usize) -> String {
    format!("build-{rank:03}")
}

/// The name of a parent by its number.
pub fn parent(number: usize) -> String {
    format!("team-{number:02}")
}

/// A parent with few runs: that of the rarest pipeline.
pub fn small_parent() -> String {
    parent(((PIPELINES - 1) * 7 + 1) % PARENTS)
}

/// The beginning of a day of the corpus, as filters write it.
pub fn day(day: i64) -> String {
    let time = Timestamp::from_second(BEGAN + day * 86_400).unwrap();
    format!("timestamp(\"{time}\")")
}

/// The same in microseconds.
pub fn day_us(day: i64) -> i64 {
    (BEGAN + day * 86_400) * 1_000_000
}

/// How runs end; of a hundred.
const ENDS: [(usize, &str, &str, i32); 4] = [
    (88, "Succeeded", "True", 1),
    (8, "Failed", "False", 2),
    (2, "Cancelled", "False", 4),
    (2, "Timeout", "False", 3),
];

/// What the objects of one run have in common.
#[derive(Debug)]
pub struct Run {
    dice: Dice,
    pipeline: usize,
    pub parent: String,
    pub name: String,
    pub uid: String,
    pub revision: String,
    began: i64,
}

impl Run {
    /// Run `number` of a corpus of so many runs.
    pub fn new(number: usize, runs: usize) -> Self {
        let mut dice = Dice(0x5eed_0000_0000 + number as u64);
        let pipeline = dice.rank(PIPELINES);
        let parent = parent((pipeline * 7 + dice.below(3)) % PARENTS);
        let at = i64::try_from(number).unwrap() * SPAN / i64::try_from(runs).unwrap();
        Self {
            pipeline,
            parent,
            name: format!("{}-{}", self::pipeline(pipeline), dice.suffix()),
            uid: dice.uuid(),
            revision: dice.hex(40),
            began: BEGAN + at,
            dice,
        }
    }

    fn at(&self, seconds: i64) -> String {
        Timestamp::from_second(self.began + seconds)
            .unwrap()
            .to_string()
    }

    /// The result and its records.
    pub fn rows(mut self) -> (RunResult, Vec<Record>) {
        let name: ResultName = format!("{}/results/{}", self.parent, self.uid)
            .parse()
            .unwrap();
        let uid = self.dice.uuid();
        let made = stored(self.began, 0);
        let mut records = Vec::with_capacity(RECORDS);
        let mut last = (0, 0);
        for task in 0..RECORDS {
            let is_run = task == RECORDS - 1;
            let (id, payload, ended, status) = self.payload(task);
            let id = if is_run { self.uid.clone() } else { id };
            last = (ended, status);
            let record: RecordName = name.record(&id).unwrap();
            let uid = self.dice.uuid();
            let made = stored(self.began, task + 1);
            records.push(Record {
                name: record,
                etag: Etag::new(&uid, made),
                uid,
                create_time: made,
                update_time: made,
                data: Some(Payload::new(data_type(is_run).to_owned(), payload.into())),
            });
        }
        let result = RunResult {
            etag: Etag::new(&uid, made),
            uid,
            create_time: made,
            update_time: made,
            annotations: BTreeMap::from([("revision".to_owned(), self.revision.clone())]),
            summary: Some(Summary {
                record: name.record(&self.uid).unwrap(),
                data_type: data_type(true).to_owned(),
                start_time: Some(Timestamp::from_second(self.began).unwrap()),
                end_time: Some(Timestamp::from_second(self.began + last.0).unwrap()),
                status: last.1,
                annotations: BTreeMap::new(),
            }),
            name,
        };
        (result, records)
    }

    /// The id of an object, its JSON of some 10 KB, when it ended and how.
    fn payload(&mut self, task: usize) -> (String, String, i64, i32) {
        let is_run = task == RECORDS - 1;
        let uid = self.dice.uuid();
        let (end, reason) = self.end();
        let begun = if is_run {
            0
        } else {
            i64::try_from(task).unwrap() * 35
        };
        let ended = begun + self.duration();
        let name = if is_run {
            self.name.clone()
        } else {
            format!("{}-task-{task}", self.name)
        };
        let app = format!("app-{:03}", self.dice.below(500));
        let tier = match self.dice.below(100) {
            0 => "gold",
            1..=20 => "silver",
            _ => "bronze",
        };
        let env = if self.dice.below(10) == 0 {
            "prod"
        } else {
            "test"
        };
        let old = self.began - BEGAN < SPAN / 3 && self.dice.below(20) == 0;
        let values = |gap: Gap, dice: &mut Dice| match gap {
            Gap::Name => name.clone(),
            Gap::Uid => {
                if is_run {
                    self.uid.clone()
                } else {
                    uid.clone()
                }
            }
            Gap::Parent => self.parent.clone(),
            Gap::Run => self.name.clone(),
            Gap::RunUid => self.uid.clone(),
            Gap::Revision => self.revision.clone(),
            Gap::App => app.clone(),
            Gap::Tier => tier.to_owned(),
            Gap::Env => env.to_owned(),
            Gap::Era => if old { "old" } else { "new" }.to_owned(),
            Gap::Reason => reason.to_owned(),
            Gap::Status => end.2.to_owned(),
            Gap::Began => self.at(begun),
            Gap::Ended => self.at(ended),
            Gap::Version => (1_000_000 + dice.below(8_000_000)).to_string(),
            Gap::Digest => dice.hex(64),
        };
        let shape = &SHAPES[self.pipeline * RECORDS + task];
        let mut text = String::with_capacity(shape.bytes);
        let mut dice = self.dice.clone();
        for (before, gap) in &shape.parts {
            text.push_str(before);
            if let Some(gap) = gap {
                text.push_str(&values(*gap, &mut dice));
            }
        }
        let id = uid.clone();
        self.dice = dice;
        (id, text, ended, end.3)
    }

    fn end(&mut self) -> ((usize, &'static str, &'static str, i32), &'static str) {
        if self.dice.below(20_000) == 0 {
            return ((0, "", "False", 2), "CouldntGetTask");
        }
        if self.began - BEGAN < SPAN / 3 && self.dice.below(25) == 0 {
            return ((0, "", "False", 2), "PodCreationFailed");
        }
        let mut at = self.dice.below(100);
        for end in ENDS {
            if at < end.0 {
                return (end, end.1);
            }
            at -= end.0;
        }
        (ENDS[0], ENDS[0].1)
    }

    /// Most take minutes, few take hours.
    fn duration(&mut self) -> i64 {
        let even = i64::try_from(20 + self.dice.below(280)).unwrap();
        match self.dice.below(1000) {
            0 => even + 6 * 3600,
            1..=20 => even + 1800,
            _ => even,
        }
    }
}

/// When the record at a place in its run was stored: microseconds keep them apart.
fn stored(began: i64, at: usize) -> Timestamp {
    let us = (began + 400) * 1_000_000 + i64::try_from(at).unwrap() * 1_000;
    Timestamp::from_microsecond(us).unwrap()
}

fn data_type(is_run: bool) -> &'static str {
    if is_run {
        "tekton.dev/v1.PipelineRun"
    } else {
        "tekton.dev/v1.TaskRun"
    }
}

/// What is put into the serialised shape.
#[derive(Debug, Clone, Copy)]
enum Gap {
    Name,
    Uid,
    Parent,
    Run,
    RunUid,
    Revision,
    App,
    Tier,
    Env,
    Era,
    Reason,
    Status,
    Began,
    Ended,
    Version,
    Digest,
}

const GAPS: [Gap; 16] = [
    Gap::Name,
    Gap::Uid,
    Gap::Parent,
    Gap::Run,
    Gap::RunUid,
    Gap::Revision,
    Gap::App,
    Gap::Tier,
    Gap::Env,
    Gap::Era,
    Gap::Reason,
    Gap::Status,
    Gap::Began,
    Gap::Ended,
    Gap::Version,
    Gap::Digest,
];

fn gap(gap: Gap) -> String {
    format!("<<{:02}>>", gap as usize)
}

/// A serialised object, cut at its gaps.
#[derive(Debug)]
struct Shape {
    parts: Vec<(String, Option<Gap>)>,
    bytes: usize,
}

impl Shape {
    fn of(object: &Value) -> Self {
        let text = object.to_string();
        let mut parts = Vec::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("<<") {
            let number: usize = after[..2].parse().unwrap();
            parts.push((before.to_owned(), Some(GAPS[number])));
            rest = &after[4..];
        }
        parts.push((rest.to_owned(), None));
        Self {
            bytes: text.len() + 1024,
            parts,
        }
    }
}

static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    (0..PIPELINES)
        .flat_map(|pipeline| (0..RECORDS).map(move |task| Shape::of(&object(pipeline, task))))
        .collect()
});

/// Lines of a script, the same in every run of the pipeline.
fn script(dice: &mut Dice, lines: usize) -> String {
    let words = [
        "echo",
        "curl",
        "--fail",
        "export",
        "make",
        "build",
        "test",
        "git",
        "fetch",
        "push",
        "$(params.revision)",
        "cd",
        "&&",
        "exit 1",
        "digest",
        "go",
        "npm ci",
        "verify",
    ];
    let mut text = "#!/usr/bin/env bash\nset -euo pipefail\n".to_owned();
    for _ in 0..lines {
        for _ in 0..=dice.below(8) {
            text.push_str(words[dice.below(words.len())]);
            text.push(' ');
        }
        text.push('\n');
    }
    text
}

fn steps(pipeline: usize, task: usize, count: usize, lines: usize) -> Vec<Value> {
    let mut dice = Dice((pipeline * 100 + task) as u64);
    let step = |step| {
        json!({"name": format!("step-{step}"),
            "image": format!("registry.example/tools/img-{step}@sha256:{}", dice.hex(64)),
            "computeResources": {"requests": {"cpu": "250m", "memory": "512Mi"}},
            "env": [{"name": "HOME", "value": "/tekton/home"},
                    {"name": "GIT_SHA", "value": "$(params.revision)"}],
            "script": script(&mut dice, lines)})
    };
    (0..count).map(step).collect()
}

fn managed() -> Value {
    let fields = |names: &[&str]| -> Value {
        names
            .iter()
            .map(|name| (format!("f:{name}"), json!({".": {}})))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    json!([{"apiVersion": "tekton.dev/v1", "fieldsType": "FieldsV1", "operation": "Update",
        "manager": "tekton-pipelines-controller", "time": gap(Gap::Began),
        "fieldsV1": {"f:metadata": {"f:annotations": fields(&["note", "repo", "sha"]),
            "f:ownerReferences": {".": {}, format!("k:{{\"uid\":\"{}\"}}", gap(Gap::RunUid)): {}}},
            "f:spec": fields(&["params", "serviceAccountName", "taskSpec", "timeout"])}},
      {"apiVersion": "tekton.dev/v1", "fieldsType": "FieldsV1", "operation": "Update",
        "manager": "tekton-pipelines-controller", "subresource": "status",
        "time": gap(Gap::Ended), "fieldsV1": {"f:status": fields(&["completionTime", "conditions",
            "podName", "results", "startTime", "steps", "taskSpec"])}}])
}

fn object(pipeline: usize, task: usize) -> Value {
    let is_run = task == RECORDS - 1;
    let mut labels = json!({"app.kubernetes.io/managed-by": "tekton-pipelines",
        "tekton.dev/pipeline": self::pipeline(pipeline), "app": gap(Gap::App),
        "tier": gap(Gap::Tier), "era": gap(Gap::Era)});
    let mut metadata = json!({"name": gap(Gap::Name), "namespace": gap(Gap::Parent),
        "uid": gap(Gap::Uid), "resourceVersion": gap(Gap::Version), "generation": 1,
        "creationTimestamp": gap(Gap::Began), "managedFields": managed(),
        "annotations": {"repo": format!("org/repo-{pipeline}"), "sha": gap(Gap::Revision),
            "chains.tekton.dev/signed": "true"}});
    let params = json!([{"name": "revision", "value": gap(Gap::Revision)},
        {"name": "env", "value": gap(Gap::Env)}]);
    let mut status = json!({"startTime": gap(Gap::Began), "completionTime": gap(Gap::Ended),
        "conditions": [{"type": "Succeeded", "status": gap(Gap::Status),
            "reason": gap(Gap::Reason), "message": "All Steps have completed executing",
            "lastTransitionTime": gap(Gap::Ended)}],
        "results": [{"name": "digest", "value": format!("sha256:{}", gap(Gap::Digest))}],
        "provenance": {"featureFlags": {"awaitSidecarReadiness": true, "coschedule": "workspaces",
            "enableAPIFields": "beta", "enforceNonfalsifiability": "none", "maxResultSize": 4096}}});
    let spec;
    let kind;
    if is_run {
        kind = "PipelineRun";
        let tasks: Vec<Value> = (0..RECORDS - 1)
            .map(|task| {
                json!({"name": format!("task-{task}"),
                "taskSpec": {"steps": steps(pipeline, task, 2, 3)}})
            })
            .collect();
        status["pipelineSpec"] = json!({"tasks": tasks});
        spec = json!({"pipelineRef": {"name": self::pipeline(pipeline)}, "params": params});
    } else {
        kind = "TaskRun";
        labels["tekton.dev/pipelineRun"] = gap(Gap::Run).into();
        labels["tekton.dev/pipelineTask"] = format!("task-{task}").into();
        metadata["ownerReferences"] = json!([{"apiVersion": "tekton.dev/v1",
            "kind": "PipelineRun", "name": gap(Gap::Run), "uid": gap(Gap::RunUid),
            "controller": true, "blockOwnerDeletion": true}]);
        let steps = steps(pipeline, task, 4, 14);
        let ended: Vec<Value> = steps
            .iter()
            .map(|step| {
                json!({"name": step["name"], "imageID": step["image"],
                "terminated": {"containerID": format!("containerd://{}", gap(Gap::Digest)),
                    "exitCode": 0, "reason": "Completed", "startedAt": gap(Gap::Began),
                    "finishedAt": gap(Gap::Ended)}})
            })
            .collect();
        status["steps"] = ended.into();
        status["podName"] = format!("{}-pod", gap(Gap::Name)).into();
        let task_spec = json!({"params": [{"name": "revision", "type": "string"}], "steps": steps});
        status["taskSpec"] = task_spec.clone();
        spec = json!({"params": params, "serviceAccountName": "pipeline", "timeout": "1h0m0s",
            "taskRef": {"name": format!("task-{task}")}, "taskSpec": task_spec});
    }
    metadata["labels"] = labels;
    json!({"apiVersion": "tekton.dev/v1", "kind": kind, "metadata": metadata, "spec": spec,
        "status": status})
}
