//! What a cluster's controllers do after a deletion: the garbage collector follows owner references,
//! the namespace controller empties namespaces. They work at once, or one step at a time when a test
//! wants to see what is in between.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    chores::{Chore, FOREGROUND, ORPHAN},
    deletion::DeleteOptions,
    objects::{Key, KindId, Stored},
    world::World,
};

impl World {
    /// From now on controllers wait for steps, or no longer do.
    pub(crate) fn controllers_wait(&mut self, wait: bool, now: Timestamp) {
        if wait {
            self.chores.get_or_insert_with(VecDeque::new);
            return;
        }
        for chore in self.chores.take().into_iter().flatten() {
            self.work(chore, now);
        }
    }

    /// Does the oldest chore; `false` when there is none.
    pub(crate) fn step(&mut self, now: Timestamp) -> bool {
        let chore = self.chores.as_mut().and_then(VecDeque::pop_front);
        let Some(chore) = chore else {
            return false;
        };
        self.work(chore, now);
        true
    }

    pub(crate) fn assign(&mut self, chore: Chore, now: Timestamp) {
        match &mut self.chores {
            Some(chores) => chores.push_back(chore),
            None => self.work(chore, now),
        }
    }

    fn work(&mut self, chore: Chore, now: Timestamp) {
        match chore {
            Chore::Follow(gone) => self.follow(&gone, now),
            Chore::Foreground(id, key) => {
                let Some(owner) = self.get(id, &key).cloned() else {
                    return;
                };
                for (dependent, key) in self.dependents(&owner.uid) {
                    // A dependent that an earlier step of the cascade took is gone, as it should be.
                    drop(self.delete(dependent, &key, &DeleteOptions::foreground(), now));
                }
                self.release_foreground(id, &key, now);
            }
            Chore::Orphan(id, key) => {
                let Some(owner) = self.get(id, &key).cloned() else {
                    return;
                };
                for (dependent, key) in self.dependents(&owner.uid) {
                    self.drop_owner(dependent, &key, &owner.uid);
                }
                self.take_off(id, &key, ORPHAN, now);
            }
            Chore::Namespace(name) => {
                for (kind, key) in self.content(&name) {
                    // Content that went with an earlier owner is gone, as it should be.
                    drop(self.delete(kind, &key, &DeleteOptions::default(), now));
                }
                self.release_namespace(&name, now);
            }
        }
    }

    /// Lets an owner go that waited for dependents, when none of them blocks it any more.
    fn release_foreground(&mut self, id: KindId, key: &Key, now: Timestamp) {
        let Some(owner) = self.get(id, key).cloned() else {
            return;
        };
        let waits = owner.deleting && owner.finalizers.iter().any(|name| name == FOREGROUND);
        let blocked = self.dependents(&owner.uid).iter().any(|(dependent, key)| {
            self.get(*dependent, key).is_some_and(|stored| {
                stored
                    .owners
                    .iter()
                    .any(|link| link.uid == owner.uid && link.blocks)
            })
        });
        if !waits || blocked {
            return;
        }
        self.take_off(id, key, FOREGROUND, now);
    }

    /// Takes a finalizer off, and the object away if it was the last.
    fn take_off(&mut self, id: KindId, key: &Key, finalizer: &str, now: Timestamp) {
        let mut last = self.value(id, key);
        let mut left = 0;
        if let Some(list) = last["metadata"]["finalizers"].as_array_mut() {
            list.retain(|name| name != finalizer);
            left = list.len();
        }
        if left == 0 {
            self.finish(id, last, now);
        } else {
            self.edit(id, key, |object| *object = last);
        }
    }

    fn content(&self, namespace: &str) -> Vec<(KindId, Key)> {
        let from = Key::new(namespace, "");
        self.shelves
            .iter()
            .filter(|(_, shelf)| shelf.kind.namespaced)
            .flat_map(|(id, shelf)| {
                let inside = shelf.objects.range(from.clone()..);
                inside
                    .take_while(|(key, _)| key.namespace == namespace)
                    .map(|(key, _)| (*id, key.clone()))
            })
            .collect()
    }

    /// Removes a namespace that is being deleted once it is empty and nothing else holds it.
    fn release_namespace(&mut self, namespace: &str, now: Timestamp) {
        let Some(id) = self.find("", "namespaces") else {
            return;
        };
        let key = Key::new("", namespace);
        let ready = self
            .get(id, &key)
            .is_some_and(|stored| stored.deleting && stored.finalizers.is_empty());
        if ready && self.content(namespace).is_empty() {
            self.edit(id, &key, |object| object["spec"] = json!({}));
            self.remove(id, &key, now);
        }
    }

    /// What the garbage collector and the namespace controller do after `gone` went.
    fn follow(&mut self, gone: &Stored, now: Timestamp) {
        for (id, key) in self.dependents(&gone.uid) {
            let Some(dependent) = self.get(id, &key).cloned() else {
                continue;
            };
            if dependent
                .owners
                .iter()
                .any(|owner| self.by_uid(&owner.uid).is_some())
            {
                self.drop_owner(id, &key, &gone.uid);
            } else {
                // A dependent that went meanwhile is gone, as it should be.
                drop(self.delete(id, &key, &DeleteOptions::default(), now));
            }
        }
        for owner in &gone.owners {
            if let Some((id, key)) = self.by_uid(&owner.uid).cloned() {
                self.release_foreground(id, &key, now);
            }
        }
        if !gone.key.namespace.is_empty() {
            self.release_namespace(&gone.key.namespace, now);
        }
    }

    fn drop_owner(&mut self, id: KindId, key: &Key, uid: &str) {
        self.edit(id, key, |object| {
            let Some(metadata) = object["metadata"].as_object_mut() else {
                return;
            };
            if let Some(owners) = metadata
                .get_mut("ownerReferences")
                .and_then(Value::as_array_mut)
            {
                owners.retain(|owner| owner["uid"] != uid);
                if owners.is_empty() {
                    metadata.shift_remove("ownerReferences");
                }
            }
        });
    }
}
