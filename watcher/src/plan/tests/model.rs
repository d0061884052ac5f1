//! A world of one name in a cluster, a watcher and a server, in which anything may happen: runs
//! progress, finish, are deleted and made again, the watcher sees old states, dies between any
//! two steps, and the server forgets or is away. It asserts at every step:
//!
//! * no run is deleted by us without an equal copy of its final state on the server;
//! * a run that was made again under the same name is never hit;
//! * our finalizers come off only once the newest state is stored, or the deadline is over.

mod watcher;

use std::collections::{BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

use hindsight_run::View;

use crate::{plan::Remembered, policy::Policy};

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
