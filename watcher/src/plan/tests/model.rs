//! A world of one name in a cluster, a watcher and a server, in which anything may happen: runs
//! progress, finish, are deleted and made again, the watcher sees old states, dies between any
//! two steps, and the server forgets or is away. It asserts at every step:
//!
//! * no run is deleted by us without an equal copy of its final state on the server;
//! * a run that was made again under the same name is never hit;
//! * our finalizers come off only once the newest state is stored, or the deadline is over.

use std::collections::{BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

use hindsight_run::View;

use crate::{
    content::same_content,
    plan::{Annotations, EventRecord, FinalizerState, Remembered, Removal, Step, Urgency, plan},
    policy::Policy,
};

#[derive(Debug, Clone)]
pub(super) enum Event {
    /// The run says something new.
    Progress,
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
    Minutes(i64),
}

pub(super) fn event() -> impl Strategy<Value = Event> {
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
pub(super) struct World {
    policy: Policy,
    now: Timestamp,
    version: u64,
    uids: u64,
    pub(super) live: Option<Value>,
    pub(super) server: HashMap<String, Value>,
    /// The records of events that the server holds.
    pub(super) events: BTreeSet<String>,
    pub(super) server_away: bool,
    server_forgot: bool,
    /// What the watcher saw last of each run, and remembers of it.
    pub(super) seen: HashMap<String, (Value, Remembered)>,
    /// The last annotations that a run of this name had.
    copied: Value,
}

impl World {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            policy,
            now: "2026-03-01T10:00:00Z".parse().unwrap(),
            version: 0,
            uids: 0,
            live: None,
            server: HashMap::new(),
            events: BTreeSet::new(),
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

    pub(super) fn happen(&mut self, event: &Event) {
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

    pub(super) fn notice(&mut self) {
        let alive = self
            .live
            .as_ref()
            .and_then(|run| View::new(run).uid())
            .map(str::to_owned);
        for (uid, (_, memory)) in &mut self.seen {
            memory.presence.set_gone(Some(uid) != alive.as_ref());
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

    pub(super) fn work(&mut self, mut budget: usize) {
        let mut uids: Vec<String> = self.seen.keys().cloned().collect();
        uids.sort();
        for uid in uids {
            let (object, memory) = self.seen[&uid].clone();
            for step in plan(Some(&View::new(&object)), &memory, &self.policy, self.now) {
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
                let record = &upload.grouping.record;
                let copy = self.server.get(&record.to_string());
                self.seen
                    .get_mut(uid)
                    .unwrap()
                    .1
                    .answered(record, copy.map(View::new).as_ref());
            }
            Step::Store(upload) => {
                if self.server_away {
                    return false;
                }
                let record = &upload.grouping.record;
                let known = self.server.insert(record.to_string(), object.clone());
                if let Some(known) = known {
                    assert_eq!(
                        View::new(&known).uid(),
                        Some(uid),
                        "another run was overwritten"
                    );
                }
                self.seen
                    .get_mut(uid)
                    .unwrap()
                    .1
                    .stored(record, &View::new(object));
            }
            Step::StoreEvents(record) => {
                if self.server_away {
                    return false;
                }
                let record = record.to_string();
                assert!(record.ends_with(&format!("/{uid}-events")), "{record}");
                self.events.insert(record);
                self.seen.get_mut(uid).unwrap().1.events = EventRecord::Own;
            }
            Step::AddFinalizer(finalizer) => {
                self.add_finalizer(uid, finalizer);
                return false;
            }
            Step::RemoveFinalizers(removal) => return self.remove_finalizers(uid, object, removal),
            Step::Annotate(annotations) => {
                if self.live.as_ref().and_then(|run| View::new(run).uid()) == Some(uid) {
                    self.change(|run| {
                        for (key, value) in annotations {
                            run["metadata"]["annotations"][key] = json!(value);
                        }
                    });
                    self.seen.get_mut(uid).unwrap().1.annotations = Annotations::Written;
                }
            }
            Step::Delete {
                uid: of,
                resource_version,
            } => {
                return self.delete(uid, object, of, resource_version);
            }
            Step::Forget => {
                assert!(
                    self.seen[uid].1.presence.is_gone(),
                    "a run that is there was forgotten"
                );
                self.seen.remove(uid);
            }
            Step::Close { .. } => self.seen.get_mut(uid).unwrap().1.close(),
            Step::LookAgain(_) => {}
            Step::Trust(_) => self.seen.get_mut(uid).unwrap().1.trust(),
            Step::Lose { .. } | Step::Refuse { .. } => panic!("{step}"),
        }
        true
    }

    fn delete(&mut self, uid: &str, object: &Value, of: &str, resource_version: &str) -> bool {
        assert_eq!(uid, of);
        let memory = &mut self.seen.get_mut(uid).unwrap().1;
        let record = memory.copy().expect("a copy was confirmed").record();
        if self.server_away {
            return false;
        }
        let proof = self.server.get(&record.to_string());
        if !proof.is_some_and(|proof| same_content(proof, object)) {
            memory.answered(&record, proof.map(View::new).as_ref());
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
            memory.presence.request_delete();
            self.ask_for_end();
        }
        is_meant
    }

    fn live(&self, uid: &str) -> Option<&Value> {
        let live = self.live.as_ref();
        live.filter(|run| View::new(run).uid() == Some(uid))
    }

    /// What was planned after it is planned on the changed run.
    fn add_finalizer(&mut self, uid: &str, finalizer: &str) {
        let Some(live) = self.live(uid) else { return };
        assert!(self.policy.finalizers, "put on although nobody wants it");
        if View::new(live).deletion().is_none() {
            self.change(|run| put(run, finalizer));
        }
    }

    /// Whether it could be done.
    fn remove_finalizers(&mut self, uid: &str, object: &Value, removal: &Removal) -> bool {
        let Some(live) = self.live(uid) else {
            return false;
        };
        let view = View::new(live);
        if view.resource_version() != Some(&removal.resource_version) {
            return false;
        }
        let is_stored = self.server.values().any(|copy| same_content(copy, live));
        assert!(view.deletion().is_some() || view.finish().done);
        let is_overdue = removal.urgency == Urgency::Overdue;
        if is_overdue {
            let asked = view.deletion().expect("somebody deletes it");
            let deadline = asked.checked_add(self.policy.store_deadline).unwrap();
            assert!(deadline <= self.now, "let go before its time");
        } else {
            assert!(is_stored || self.server_forgot, "let go unstored");
        }
        assert_eq!(object, live, "another version was decided about");
        self.change(|run| {
            *finalizers(run) = removal.left.iter().map(|f| json!(f)).collect();
            for (key, value) in &removal.annotations {
                run["metadata"]["annotations"][key] = json!(value);
            }
        });
        let memory = &mut self.seen.get_mut(uid).unwrap().1;
        if !is_overdue {
            memory.finalizer = FinalizerState::Released;
        }
        if !removal.annotations.is_empty() {
            memory.annotations = Annotations::Written;
        }
        self.end_if_free();
        true
    }

    /// Nothing more happens but the watcher's work. What a server forgot is noticed before a
    /// delete, else only when everything is looked at anew.
    pub(super) fn calm_down(&mut self) {
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
pub(super) const OTHER: &str = "chains.tekton.dev/taskrun";

pub(super) fn finalizers(run: &mut Value) -> &mut Vec<Value> {
    run["metadata"]["finalizers"].as_array_mut().unwrap()
}

fn put(run: &mut Value, finalizer: &str) {
    if !finalizers(run).contains(&json!(finalizer)) {
        finalizers(run).push(json!(finalizer));
    }
}
