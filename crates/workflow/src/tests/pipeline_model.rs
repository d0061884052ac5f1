//! Random histories of one delegated PipelineRun: two controllers with caches of any age work on it in any order
//! and die between any two steps, while its children end, time passes, and users cancel or delete.
//!
//! After every step it is asserted that a task has no more children than were deleted, and one; that none is
//! created before the tasks it waits for have succeeded, nor for a PipelineRun whose status does not say `Running`;
//! and that the end does not change. When nothing happens any more, the PipelineRun has ended, and no child goes on
//! that was not told to end.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::model::Random;
use crate::pipeline::{Child, ChildName, ChildSeen, Next, Pass, PipelineRun};

/// Histories in an ordinary run; `HINDSIGHT_TEST_HISTORIES` says another number.
const HISTORIES: u64 = 1_000;

/// What one controller has in memory.
#[derive(Default)]
struct Replica {
    /// The PipelineRun and its version.
    run: Option<(Value, u64)>,
    children: BTreeMap<ChildName, Value>,
    pass: Option<(Pass, u64)>,
}

struct World {
    now: Timestamp,
    run: Value,
    version: u64,
    children: BTreeMap<ChildName, Value>,
    uids: u64,
    replicas: [Replica; 2],
    created: BTreeMap<ChildName, u32>,
    deleted: BTreeMap<ChildName, u32>,
    /// Tasks that have succeeded.
    succeeded: BTreeSet<String>,
    end: Option<Value>,
}

fn read(run: &Value) -> PipelineRun {
    PipelineRun::read(run).unwrap()
}

fn task_of(child: &Value) -> &str {
    child["metadata"]["labels"]["tekton.dev/pipelineTask"]
        .as_str()
        .unwrap()
}

/// Some tasks that wait for some of those before them, or for their results.
fn tasks(random: &mut Random) -> Value {
    let mut tasks: Vec<Value> = Vec::new();
    for index in 0..=random.below(4) {
        let mut task = json!({"name": format!("t{index}"), "taskRef": {"name": "x"}});
        if random.one_in(3) {
            task["taskRef"] = json!({"apiVersion": "example.dev/v1", "kind": "Gate"});
        }
        let before: Vec<String> = (0..index)
            .filter(|_| random.one_in(2))
            .map(|other| format!("t{other}"))
            .collect();
        match before.first().filter(|_| random.one_in(3)) {
            Some(first) => {
                let value = format!("$(tasks.{first}.results.r)");
                task["params"] = json!([{"name": "p", "value": value}]);
            }
            None => task["runAfter"] = json!(before),
        }
        tasks.push(task);
    }
    tasks.into()
}

impl World {
    fn new(random: &mut Random) -> Self {
        let mut spec = json!({
            "managedBy": "hindsight.dev/pipelinerun", "pipelineSpec": {"tasks": tasks(random)},
        });
        if random.one_in(3) {
            let timeout = format!("{}s", 5 + random.below(20));
            spec["timeouts"] = json!({"pipeline": timeout});
        }
        if random.one_in(8) {
            spec["status"] = json!("PipelineRunPending");
        }
        Self {
            now: "2026-03-01T10:00:00Z".parse().unwrap(),
            run: json!({
                "metadata": {"name": "release", "namespace": "ci", "uid": "pr-uid"}, "spec": spec,
            }),
            version: 1,
            children: BTreeMap::new(),
            uids: 0,
            replicas: Default::default(),
            created: BTreeMap::new(),
            deleted: BTreeMap::new(),
            succeeded: BTreeSet::new(),
            end: None,
        }
    }

    fn happen(&mut self, random: &mut Random) {
        let at = random.below(2) as usize;
        match random.below(44) {
            0..24 => self.work(at),
            24..27 => self.replicas[at].run = Some((self.run.clone(), self.version)),
            27..30 => self.replicas[at].children = self.children.clone(),
            30 => self.replicas[at] = Replica::default(),
            31..34 => self.now += SignedDuration::from_secs(random.below(6) as i64),
            34 if random.one_in(4) => {
                let asked = ["Cancelled", "CancelledRunFinally", "StoppedRunFinally", ""];
                self.run["spec"]["status"] = json!(asked[random.below(4) as usize]);
                self.version += 1;
            }
            35 if random.one_in(2) => self.delete(random),
            36..41 => self.finish(random),
            _ => {}
        }
    }

    /// Others delete a child.
    fn delete(&mut self, random: &mut Random) {
        let names: Vec<ChildName> = self.children.keys().cloned().collect();
        if !names.is_empty() {
            let name = names[random.below(names.len() as u64) as usize].clone();
            self.children.remove(&name);
            *self.deleted.entry(name).or_default() += 1;
        }
    }

    fn finish(&mut self, random: &mut Random) {
        for child in self.children.values_mut() {
            if child["status"].is_null() && random.one_in(3) {
                let (status, reason) = match child["spec"]["status"].as_str() {
                    Some(_) if child["kind"] == "TaskRun" => ("False", "TaskRunCancelled"),
                    Some(_) => ("False", "CustomRunCancelled"),
                    None if random.one_in(6) => ("False", "Failed"),
                    None => ("True", "Succeeded"),
                };
                child["status"] = json!({
                    "conditions": [{"type": "Succeeded", "status": status, "reason": reason}],
                    "results": [{"name": "r", "value": "7"}],
                });
                if status == "True" {
                    self.succeeded.insert(task_of(child).to_owned());
                }
            }
        }
    }

    /// One controller does one thing, or begins a pass.
    fn work(&mut self, at: usize) {
        let Some((mut pass, mut base)) = self.replicas[at].pass.take() else {
            let replica = &mut self.replicas[at];
            if let Some((run, version)) = &replica.run {
                let mut pass = Pass::new(read(run));
                for name in pass.names() {
                    if let Some(known) = replica.children.get(&name) {
                        pass.knows(name, Child::read(known).unwrap());
                    }
                }
                replica.pass = Some((pass, *version));
            }
            return;
        };
        match pass.next(self.now) {
            Next::Rest(_) => return,
            Next::Reread => {
                base = self.version;
                pass.has(read(&self.run));
            }
            Next::Look(name) => pass.saw(&name, self.see(&name)),
            Next::Write { status, .. } => {
                if base != self.version {
                    return;
                }
                self.run["status"] = status.value();
                self.version += 1;
                base = self.version;
                pass.wrote(read(&self.run));
            }
            Next::Create { child, manifest } => {
                // After a failure or a stop it is another one.
                assert_eq!(pass.run().status.reason(), Some("Running"), "{child:?}");
                self.create(&child, manifest);
                pass.saw(&child, self.see(&child));
            }
            Next::Cancel { child, uid, .. } => {
                if let Some(found) = self.children.get_mut(&child)
                    && found["metadata"]["uid"] == uid.as_str()
                {
                    found["spec"]["status"] = json!(child.kind.cancelled());
                }
                pass.cancelled(&uid);
            }
        }
        self.replicas[at].pass = Some((pass, base));
    }

    fn create(&mut self, name: &ChildName, manifest: Value) {
        if self.children.contains_key(name) {
            return;
        }
        let task = task_of(&manifest).to_owned();
        let spec = &self.run["spec"]["pipelineSpec"]["tasks"];
        let mut tasks = spec.as_array().unwrap().iter();
        let of = tasks.find(|of| of["name"] == task.as_str()).unwrap();
        let after = of["runAfter"].as_array().into_iter().flatten();
        for before in after.filter_map(Value::as_str) {
            assert!(
                self.succeeded.contains(before),
                "{task} starts before {before}"
            );
        }
        if of["params"].is_array() {
            assert_eq!(manifest["spec"]["params"][0]["value"], "7");
        }
        self.uids += 1;
        let mut made = manifest;
        made["metadata"]["uid"] = json!(format!("uid-{}", self.uids));
        self.children.insert(name.clone(), made);
        *self.created.entry(name.clone()).or_default() += 1;
    }

    fn see(&self, name: &ChildName) -> ChildSeen {
        let found = self.children.get(name);
        found.map_or(ChildSeen::Gone, |child| {
            ChildSeen::There(Child::read(child).unwrap())
        })
    }

    fn check(&mut self) {
        for (name, count) in &self.created {
            let deleted = self.deleted.get(name).copied().unwrap_or_default();
            assert!(*count <= deleted + 1, "{name:?} was created {count} times");
        }
        let run = read(&self.run);
        let end = run.status.is_done().then(|| run.status.value());
        if self.end.is_some() {
            assert_eq!(self.end, end, "the end changed");
        }
        self.end = end;
    }

    /// Everything that goes on ends, and both controllers see it, until they change nothing any more.
    fn settle(&mut self, random: &mut Random) {
        if self.run["spec"]["status"] == "PipelineRunPending" {
            self.run["spec"]["status"] = json!("");
            self.version += 1;
        }
        let mut calm = 0;
        for round in 0.. {
            assert!(round < 300, "it does not settle: {}", self.run);
            if calm == 2 {
                return;
            }
            self.finish(random);
            let before = (self.version, self.children.len());
            for at in 0..2 {
                self.replicas[at].run = Some((self.run.clone(), self.version));
                self.replicas[at].children = self.children.clone();
                self.replicas[at].pass = None;
                self.work(at);
                while self.replicas[at].pass.is_some() {
                    self.work(at);
                }
                self.check();
            }
            let is_calm = before == (self.version, self.children.len());
            let goes_on = self
                .children
                .values()
                .any(|child| child["status"].is_null());
            calm = if is_calm && !goes_on { calm + 1 } else { 0 };
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "tests may read the environment")]
fn whatever_happens_each_task_has_one_child_in_its_turn_and_the_pipeline_run_ends() {
    let histories = std::env::var("HINDSIGHT_TEST_HISTORIES");
    let histories = histories.map_or(HISTORIES, |text| text.parse().unwrap());
    let mut ends: BTreeMap<String, u32> = BTreeMap::new();
    for seed in 0..histories {
        let mut random = Random(seed);
        let mut world = World::new(&mut random);
        for _ in 0..random.below(160) {
            world.happen(&mut random);
            world.check();
        }
        world.settle(&mut random);
        let run = read(&world.run);
        assert!(
            run.status.is_done(),
            "history {seed} does not end: {}",
            world.run
        );
        let reason = run.status.reason().unwrap().to_owned();
        if run.status.is_successful() {
            let tasks = &world.run["spec"]["pipelineSpec"]["tasks"];
            assert_eq!(world.succeeded.len(), tasks.as_array().unwrap().len());
        }
        *ends.entry(reason).or_default() += 1;
    }
    for reason in ["Succeeded", "Failed", "Cancelled", "PipelineRunTimeout"] {
        assert!(ends.get(reason).is_some_and(|count| *count > 5), "{ends:?}");
    }
}
