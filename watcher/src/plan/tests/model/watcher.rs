//! The model's watcher: what it hears, plans and carries out.

use hindsight_run::View;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{World, finalizers, put};
use crate::{
    content::same_content,
    plan::{Annotations, EventRecord, FinalizerState, Remembered, Removal, Step, Urgency, plan},
};

impl World {
    pub(in crate::plan::tests) fn notice(&mut self) {
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

    pub(in crate::plan::tests) fn work(&mut self, mut budget: usize) {
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

    pub(in crate::plan::tests) fn live(&self, uid: &str) -> Option<&Value> {
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
    pub(in crate::plan::tests) fn calm_down(&mut self) {
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
