//! Random histories of one name in a cluster: runs progress, finish, are deleted and made
//! again, the watcher sees old states, dies between any two steps, and the server forgets or
//! is away. Whatever happens:
//!
//! * no run is deleted by us without an equal copy of its final state on the server;
//! * a run that was made again under the same name is never hit;
//! * our finalizers come off only once the newest state is stored, or the deadline is over, and
//!   never stay on a run that somebody deletes;
//! * once all is calm, every finished run that is there is stored and annotated, and nothing
//!   is left to do.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

use hindsight_proto::run::View;

use crate::{
    content::same_content,
    plan::{Finalize, Remembered, Step, plan},
    policy::{Collect, Policy},
};

#[derive(Debug, Clone)]
enum Event {
    /// The run says something new.
    Progress,
    /// The run ends.
    Finish,
    /// Somebody writes on it, finished or not.
    Touch,
    /// Somebody deletes it; it stays while it has finalizers.
    Delete,
    /// A controller puts its finalizer on: Tekton Results' watcher with `true`, else another.
    Hold(bool),
    /// The other controller takes its finalizer off.
    Release,
    /// A run of the same name is made, with the annotations of the last one or without.
    Create(bool),
    /// The watcher notices the newest state.
    Notice,
    /// The watcher works on what it noticed, but dies before the n-th step.
    Work(usize),
    /// As before, and its memory is lost.
    Restart,
    /// The server comes back from an old backup.
    ServerForgets,
    /// The server does not answer until it does again.
    ServerAway(bool),
    /// Time passes.
    Minutes(i64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => Just(Event::Progress),
        3 => Just(Event::Finish),
        2 => Just(Event::Touch),
        2 => Just(Event::Delete),
        1 => any::<bool>().prop_map(Event::Hold),
        1 => Just(Event::Release),
        2 => any::<bool>().prop_map(Event::Create),
        6 => Just(Event::Notice),
        8 => (0usize..5).prop_map(Event::Work),
        1 => Just(Event::Restart),
        1 => Just(Event::ServerForgets),
        1 => any::<bool>().prop_map(Event::ServerAway),
        2 => (0i64..20).prop_map(Event::Minutes),
    ]
}

/// The world, as far as one name in it goes.
struct World {
    policy: Policy,
    now: Timestamp,
    version: u64,
    uids: u64,
    live: Option<Value>,
    server: HashMap<String, Value>,
    server_away: bool,
    server_forgot: bool,
    /// What the watcher saw last of each run, and remembers of it.
    seen: HashMap<String, (Value, Remembered)>,
    /// The last annotations that a run of this name had.
    copied: Value,
}

impl World {
    fn new(policy: Policy) -> Self {
        Self {
            policy,
            now: "2026-03-01T10:00:00Z".parse().unwrap(),
            version: 0,
            uids: 0,
            live: None,
            server: HashMap::new(),
            server_away: false,
            server_forgot: false,
            seen: HashMap::new(),
            copied: json!({}),
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut Value)) {
        self.version += 1;
        let version = self.version;
        if let Some(run) = &mut self.live {
            change(run);
            run["metadata"]["resourceVersion"] = json!(version.to_string());
        }
    }

    fn ask_for_end(&mut self) {
        let now = self.now.to_string();
        self.change(|run| {
            if View::new(run).deletion().is_none() {
                run["metadata"]["deletionTimestamp"] = json!(now);
            }
        });
        self.end_if_free();
    }

    fn end_if_free(&mut self) {
        let is_free = self
            .live
            .as_mut()
            .is_some_and(|run| View::new(run).deletion().is_some() && finalizers(run).is_empty());
        if is_free {
            self.end();
        }
    }

    fn end(&mut self) {
        if let Some(run) = self.live.take() {
            self.copied = run["metadata"]["annotations"].clone();
        }
    }

    fn happen(&mut self, event: &Event) {
        let version = self.version;
        let now = self.now.to_string();
        match event {
            Event::Progress => self.change(|run| {
                if !View::new(run).finish().done {
                    run["status"]["progress"] = json!(version);
                }
            }),
            Event::Finish => self.change(|run| {
                if !View::new(run).finish().done {
                    run["status"]["completionTime"] = json!(now);
                    run["status"]["conditions"] =
                        json!([{"type": "Succeeded", "status": "True", "reason": "Succeeded"}]);
                }
            }),
            Event::Touch => {
                self.change(|run| run["metadata"]["annotations"]["touched"] = json!(now));
            }
            Event::Delete => self.ask_for_end(),
            Event::Hold(ours) => self.change(|run| {
                if View::new(run).deletion().is_none() {
                    put(run, if *ours { UPSTREAM } else { OTHER });
                }
            }),
            Event::Release => {
                self.change(|run| finalizers(run).retain(|finalizer| finalizer != OTHER));
                self.end_if_free();
            }
            Event::Create(copied) => self.create(*copied),
            Event::Notice => self.notice(),
            Event::Work(steps) => self.work(*steps),
            Event::Restart => self.seen.clear(),
            Event::ServerForgets => {
                self.server.clear();
                self.server_forgot = true;
            }
            Event::ServerAway(away) => self.server_away = *away,
            Event::Minutes(minutes) => {
                self.now = self
                    .now
                    .checked_add(SignedDuration::from_mins(*minutes))
                    .unwrap();
            }
        }
    }

    fn create(&mut self, copied: bool) {
        if self.live.is_some() {
            return;
        }
        self.uids += 1;
        self.version += 1;
        let annotations = if copied {
            self.copied.clone()
        } else {
            json!({})
        };
        self.live = Some(json!({
            "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
            "metadata": {
                "name": "run", "namespace": "ci", "uid": format!("uid-{}", self.uids),
                "resourceVersion": self.version.to_string(), "annotations": annotations,
                "finalizers": [],
            },
            "status": {},
        }));
    }

    fn notice(&mut self) {
        let alive = self
            .live
            .as_ref()
            .and_then(|run| View::new(run).uid())
            .map(str::to_owned);
        for (uid, (_, memory)) in &mut self.seen {
            memory.gone = Some(uid) != alive.as_ref();
        }
        if let Some(run) = &self.live {
            let is_final = View::new(run).finish().done;
            let is_first = !self.seen.contains_key(alive.as_deref().unwrap());
            let entry = self
                .seen
                .entry(alive.unwrap())
                .or_insert_with(|| (run.clone(), Remembered::new(self.now)));
            entry.0 = run.clone();
            entry.1.saw(is_final, is_first, self.now);
        }
    }

    fn work(&mut self, mut budget: usize) {
        let mut uids: Vec<String> = self.seen.keys().cloned().collect();
        uids.sort();
        for uid in uids {
            let (object, memory) = self.seen[&uid].clone();
            for step in plan(Some(&object), &memory, &self.policy, self.now) {
                if budget == 0 || !self.carry_out(&uid, &object, &step) {
                    return;
                }
                budget -= 1;
            }
        }
    }

    /// Whether the step could be done, as the doing half would.
    fn carry_out(&mut self, uid: &str, object: &Value, step: &Step) -> bool {
        match step {
            Step::Ask(upload) => {
                if self.server_away {
                    return false;
                }
                let record = upload.grouping.record.clone();
                let copy = self.server.get(&record.to_string());
                self.seen.get_mut(uid).unwrap().1.answered(record, copy);
            }
            Step::Store(upload) => {
                if self.server_away {
                    return false;
                }
                let record = upload.grouping.record.clone();
                let known = self.server.insert(record.to_string(), object.clone());
                if let Some(known) = known {
                    assert_eq!(
                        View::new(&known).uid(),
                        Some(uid),
                        "another run was overwritten"
                    );
                }
                self.seen.get_mut(uid).unwrap().1.stored(record, object);
            }
            Step::Finalize(change) => return self.finalize(uid, object, change),
            Step::Annotate(annotations) => {
                if self.live.as_ref().and_then(|run| View::new(run).uid()) == Some(uid) {
                    self.change(|run| {
                        for (key, value) in annotations {
                            run["metadata"]["annotations"][key] = json!(value);
                        }
                    });
                    self.seen.get_mut(uid).unwrap().1.annotated = true;
                }
            }
            Step::Delete {
                uid: of,
                resource_version,
            } => {
                return self.delete(uid, object, of, resource_version);
            }
            Step::Forget => {
                assert!(self.seen[uid].1.gone, "a run that is there was forgotten");
                self.seen.remove(uid);
            }
            Step::Close { .. } => self.seen.get_mut(uid).unwrap().1.closed = true,
            Step::LookAgain(_) => {}
            Step::Lose { .. } | Step::Refuse { .. } => panic!("{step}"),
        }
        true
    }

    fn delete(&mut self, uid: &str, object: &Value, of: &str, resource_version: &str) -> bool {
        assert_eq!(uid, of);
        let memory = &mut self.seen.get_mut(uid).unwrap().1;
        let record = memory
            .copy
            .as_ref()
            .expect("a copy was confirmed")
            .record
            .clone();
        if self.server_away {
            return false;
        }
        let proof = self.server.get(&record.to_string());
        if !proof.is_some_and(|proof| same_content(proof, object)) {
            memory.answered(record, proof);
            return false;
        }
        let live = self.live.as_ref().map(View::new);
        let is_meant = live.is_some_and(|live| {
            live.uid() == Some(of) && live.resource_version() == Some(resource_version)
        });
        if is_meant {
            let live = self.live.as_ref().unwrap();
            assert!(
                View::new(live).finish().done,
                "an unfinished run was deleted"
            );
            let copy = &self.server[&record.to_string()];
            assert!(same_content(copy, live), "deleted without an equal copy");
            memory.deleted = true;
            self.ask_for_end();
        }
        is_meant
    }

    /// Whether it could be done. What was planned after it is planned on the changed run.
    fn finalize(&mut self, uid: &str, object: &Value, change: &Finalize) -> bool {
        let live = self
            .live
            .as_ref()
            .filter(|run| View::new(run).uid() == Some(uid));
        let Some(live) = live else { return false };
        let view = View::new(live);
        match change {
            Finalize::Add(finalizer) => {
                assert!(self.policy.finalizers, "put on although nobody wants it");
                if view.deletion().is_none() {
                    self.change(|run| put(run, finalizer));
                }
                false
            }
            Finalize::Remove {
                resource_version,
                left,
                is_overdue,
            } => {
                if view.resource_version() != Some(resource_version) {
                    return false;
                }
                let asked = view.deletion().expect("somebody deletes it");
                let is_stored = self.server.values().any(|copy| same_content(copy, live));
                if *is_overdue {
                    let deadline = asked.checked_add(self.policy.store_deadline).unwrap();
                    assert!(deadline <= self.now, "let go before its time");
                } else {
                    assert!(is_stored || self.server_forgot, "let go unstored");
                }
                assert_eq!(object, live, "another version was decided about");
                self.change(|run| *finalizers(run) = left.iter().map(|f| json!(f)).collect());
                self.end_if_free();
                true
            }
        }
    }

    /// Nothing more happens but the watcher's work. What a server forgot is noticed before a
    /// delete, else only when everything is looked at anew.
    fn calm_down(&mut self) {
        self.server_away = false;
        if self.server_forgot {
            self.seen.clear();
        }
        for _ in 0..12 {
            self.notice();
            self.work(usize::MAX);
            self.now = self.now.checked_add(SignedDuration::from_mins(30)).unwrap();
        }
    }
}

/// The finalizer of Tekton Results' watcher.
const UPSTREAM: &str = "results.tekton.dev/taskrun";
/// A finalizer of somebody else.
const OTHER: &str = "chains.tekton.dev/taskrun";

fn finalizers(run: &mut Value) -> &mut Vec<Value> {
    run["metadata"]["finalizers"].as_array_mut().unwrap()
}

fn put(run: &mut Value, finalizer: &str) {
    if !finalizers(run).contains(&json!(finalizer)) {
        finalizers(run).push(json!(finalizer));
    }
}

fn policy(collect: bool, store_incomplete: bool, finalizers: bool) -> Policy {
    let collect = collect.then(Collect::default);
    Policy {
        collect,
        store_incomplete,
        finalizers,
        ..Policy::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_history_leads_to_an_unproven_delete(
        events in proptest::collection::vec(event(), 1..60),
        collect in any::<bool>(),
        store_incomplete in any::<bool>(),
        hold in any::<bool>(),
    ) {
        let mut world = World::new(policy(collect, store_incomplete, hold));
        for event in &events {
            world.happen(event);
        }
        world.calm_down();
        if let Some(live) = &world.live {
            let view = View::new(live);
            if view.finish().done {
                let uid = view.uid().unwrap();
                let copy = world.server.values().find(|copy| View::new(copy).uid() == Some(uid));
                prop_assert!(copy.is_some_and(|copy| same_content(copy, live)), "not stored");
                prop_assert_eq!(view.annotation("results.tekton.dev/stored"), Some("true"));
                prop_assert!(!collect || view.deletion().is_some(), "not collected");
            }
            if view.deletion().is_some() {
                let mut live = live.clone();
                prop_assert_eq!(finalizers(&mut live).clone(), vec![json!(OTHER)], "it is wedged");
            }
        }
    }

    /// Cutting the work anywhere and planning again ends where uncut work ends.
    #[test]
    fn a_lost_suffix_of_steps_changes_nothing_in_the_end(
        before in proptest::collection::vec(event(), 1..20),
        cuts in proptest::collection::vec((0usize..4, any::<bool>()), 0..8),
        collect in any::<bool>(),
        hold in any::<bool>(),
    ) {
        let end = |cuts: &[(usize, bool)]| {
            let mut world = World::new(policy(collect, false, hold));
            for event in before.iter().filter(|event| !matches!(event, Event::ServerForgets)) {
                world.happen(event);
            }
            world.server_away = false;
            for (steps, restart) in cuts {
                world.notice();
                world.work(*steps);
                if *restart && world.live.is_some() {
                    world.seen.retain(|_, (_, memory)| memory.gone);
                }
            }
            world.calm_down();
            (world.live.map(bare), world.server.into_iter().map(|(k, v)| (k, bare(v))).collect())
        };
        let uncut: (Option<Value>, HashMap<String, Value>) = end(&[]);
        prop_assert_eq!(end(&cuts), uncut);
    }
}

/// Without what depends on how often and when something was written.
fn bare(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.remove("resourceVersion");
    metadata.remove("finalizers");
    if let Some(asked) = metadata.get_mut("deletionTimestamp") {
        *asked = json!("set");
    }
    metadata["annotations"]
        .as_object_mut()
        .unwrap()
        .retain(|key, _| !key.starts_with("results.tekton.dev/"));
    object
}
