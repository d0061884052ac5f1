//! Random histories of one custom run: two controllers with caches of any age work on it in any order and die
//! between any two steps, while its workflows end, time passes, and users cancel.
//!
//! After every step it is asserted that an attempt has no more workflows than were deleted, and one; that none
//! is created beside one that the pass knows; that the end does not change; and that no attempt begins after
//! the last one. At rest no workflow goes on, and the run has ended as its last workflow has.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{job, model::Random};
use crate::custom::{CustomRun, Form, Next, Owned, OwnedSeen, Pass};

/// Histories in an ordinary run; `HINDSIGHT_TEST_HISTORIES` says another number.
const HISTORIES: u64 = 1_000;

/// What one controller has in memory.
#[derive(Default)]
struct Replica {
    /// The run and its version.
    run: Option<(Value, u64)>,
    workflows: BTreeMap<String, Value>,
    /// The workflows that the pass was told of when it began.
    known: BTreeMap<String, Value>,
    pass: Option<(Pass, u64)>,
}

struct World {
    now: Timestamp,
    run: Value,
    version: u64,
    workflows: BTreeMap<String, Value>,
    uids: u64,
    replicas: [Replica; 2],
    created: BTreeMap<String, u32>,
    deleted: BTreeMap<String, u32>,
    retries: u64,
    end: Option<Value>,
}

fn read(run: &Value) -> CustomRun {
    CustomRun::read(Form::CustomRun, run).unwrap()
}

impl World {
    fn new(random: &mut Random) -> Self {
        let retries = random.below(3);
        let mut spec = json!({"retries": retries, "customSpec": {
            "apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow", "spec": {"steps": {"a": job(&[])}},
        }});
        if random.one_in(2) {
            spec["timeout"] = json!(format!("{}s", 1 + random.below(30)));
        }
        Self {
            now: "2026-03-01T10:00:00Z".parse().unwrap(),
            run: json!({
                "metadata": {"name": "nightly", "namespace": "ci", "uid": "run-uid"}, "spec": spec,
            }),
            version: 1,
            workflows: BTreeMap::new(),
            uids: 0,
            replicas: Default::default(),
            created: BTreeMap::new(),
            deleted: BTreeMap::new(),
            retries,
            end: None,
        }
    }

    fn happen(&mut self, random: &mut Random) {
        let at = random.below(2) as usize;
        match random.below(40) {
            0..22 => self.work(at),
            22..25 => self.replicas[at].run = Some((self.run.clone(), self.version)),
            25..28 => self.replicas[at].workflows = self.workflows.clone(),
            28 => self.replicas[at] = Replica::default(),
            29..33 => self.now += SignedDuration::from_secs(random.below(6) as i64),
            33 if random.one_in(4) => {
                self.run["spec"]["status"] = json!("RunCancelled");
                self.version += 1;
            }
            34..38 => self.finish(random),
            _ => {}
        }
    }

    /// A workflow ends.
    fn finish(&mut self, random: &mut Random) {
        let end = ["Complete", "Failed"][random.below(2) as usize];
        let now = self.now.to_string();
        for workflow in self.workflows.values_mut() {
            if workflow["status"].is_null() && random.one_in(3) {
                workflow["status"] = json!({
                    "completionTime": now,
                    "conditions": [{"type": end, "status": "True", "reason": "Test"}],
                });
            }
        }
    }

    /// One controller does one thing, or begins a pass.
    fn work(&mut self, at: usize) {
        let Some((mut pass, mut base)) = self.replicas[at].pass.take() else {
            let replica = &mut self.replicas[at];
            if let Some((run, version)) = &replica.run {
                let mut pass = Pass::new(read(run));
                replica.known = replica.workflows.clone();
                let names = pass.names();
                replica.known.retain(|name, _| names.contains(name));
                for known in replica.known.values() {
                    pass.knows(Owned::read(known).unwrap());
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
            Next::Look(name) => {
                let found = self.workflows.get(&name);
                let seen = found.map_or(OwnedSeen::Gone, |found| {
                    OwnedSeen::There(Owned::read(found).unwrap())
                });
                pass.saw(&name, seen);
            }
            Next::Template(name) => panic!("nothing names {name}"),
            Next::Write { status, .. } => {
                if base != self.version {
                    return;
                }
                self.run["status"] = status.value();
                self.version += 1;
                base = self.version;
                pass.has(read(&self.run));
            }
            Next::Create(manifest) => {
                let name = manifest["metadata"]["name"].as_str().unwrap().to_owned();
                self.check_create(at, &name);
                if !self.workflows.contains_key(&name) {
                    self.uids += 1;
                    let mut made = manifest.clone();
                    made["metadata"]["uid"] = json!(format!("uid-{}", self.uids));
                    self.workflows.insert(name.clone(), made);
                    *self.created.entry(name.clone()).or_default() += 1;
                }
                let owned = Owned::read(&self.workflows[&name]).unwrap();
                pass.saw(&name, OwnedSeen::There(owned));
            }
            Next::Delete { name, uid } => {
                let found = self.workflows.get(&name);
                if found.is_some_and(|found| found["metadata"]["uid"] == uid.as_str()) {
                    self.workflows.remove(&name);
                    *self.deleted.entry(name).or_default() += 1;
                }
                pass.deleted(&uid);
            }
        }
        self.replicas[at].pass = Some((pass, base));
    }

    /// No workflow that a pass was told of when it began goes on beside the one that it creates.
    fn check_create(&self, at: usize, created: &str) {
        for (name, known) in &self.replicas[at].known {
            let goes_on = self.workflows.get(name).is_some_and(|found| {
                found["metadata"]["uid"] == known["metadata"]["uid"] && found["status"].is_null()
            });
            assert!(
                !goes_on || name == created,
                "{name} goes on beside {created}"
            );
        }
    }

    fn check(&mut self) {
        for (name, count) in &self.created {
            let deleted = self.deleted.get(name).copied().unwrap_or_default();
            assert!(*count <= deleted + 1, "{name} was created {count} times");
        }
        let run = read(&self.run);
        assert!(run.status.attempt() as u64 <= self.retries);
        let end = run.status.is_done().then(|| run.status.value());
        if self.end.is_some() {
            assert_eq!(self.end, end, "the end changed");
        }
        self.end = end;
    }

    /// Everything that goes on ends, and both controllers see it, until they change nothing any more.
    fn settle(&mut self, random: &mut Random) {
        let mut calm = 0;
        for round in 0.. {
            assert!(round < 300, "it does not settle: {}", self.run);
            if calm == 3 {
                return;
            }
            self.finish(random);
            let before = (self.version, self.workflows.len());
            for at in 0..2 {
                self.replicas[at].run = Some((self.run.clone(), self.version));
                self.replicas[at].workflows = self.workflows.clone();
                for _ in 0..8 {
                    self.work(at);
                }
                self.check();
                self.replicas[at].pass = None;
            }
            let is_calm = before == (self.version, self.workflows.len());
            let goes_on = self
                .workflows
                .values()
                .any(|workflow| workflow["status"].is_null());
            calm = if is_calm && !goes_on { calm + 1 } else { 0 };
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "tests may read the environment")]
fn whatever_happens_each_attempt_has_one_workflow_and_the_run_ends_as_the_last_one() {
    let histories = std::env::var("HINDSIGHT_TEST_HISTORIES");
    let histories = histories.map_or(HISTORIES, |text| text.parse().unwrap());
    let (mut well, mut badly) = (0_u32, 0_u32);
    for seed in 0..histories {
        let mut random = Random(seed);
        let mut world = World::new(&mut random);
        for _ in 0..random.below(120) {
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
        let goes_on = |workflow: &&Value| workflow["status"].is_null();
        assert_eq!(
            world.workflows.values().filter(goes_on).count(),
            0,
            "history {seed}"
        );
        match run.status.is_successful() {
            true => {
                let claim = run.status.claim().unwrap();
                let last = &world.workflows[&claim.name];
                assert_eq!(
                    last["status"]["conditions"][0]["type"], "Complete",
                    "history {seed}"
                );
                well += 1;
            }
            false => badly += 1,
        }
    }
    assert!(
        well > 100 && badly > 100,
        "{well} ended well, {badly} badly"
    );
}
