//! How objects go: preconditions, finalizers, the garbage collector that follows owner references,
//! and namespaces that take their content along. The collector runs at once, within the deletion.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    clock::seconds,
    lifecycle::types,
    objects::{Key, KindId, Stored, World},
    refusal::Refusal,
};

/// The finalizer that holds an owner until its dependents are gone.
const FOREGROUND: &str = "foregroundDeletion";

/// What a DELETE request may ask for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeleteOptions {
    pub(crate) preconditions: Option<Preconditions>,
    pub(crate) propagation_policy: Option<Propagation>,
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) dry_run: Option<Vec<String>>,
}

/// What must be true of the object for the deletion to happen.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Preconditions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

/// What happens to dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// Outcome of a deletion.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object is no more.
    Gone(Arc<Stored>),
    /// Finalizers hold it.
    Held(Arc<Stored>),
}

impl DeleteOptions {
    fn propagation(&self) -> Propagation {
        match (self.propagation_policy, self.orphan_dependents) {
            (Some(policy), _) => policy,
            (None, Some(true)) => Propagation::Orphan,
            _ => Propagation::Background,
        }
    }

    fn dry(&self) -> bool {
        self.dry_run
            .as_ref()
            .is_some_and(|values| !values.is_empty())
    }
}

impl World {
    /// Deletes an object, or marks it as being deleted when finalizers hold it.
    ///
    /// # Errors
    /// 404 when there is no object, 409 when a precondition does not hold.
    pub(crate) fn delete(
        &mut self,
        id: KindId,
        key: &Key,
        options: &DeleteOptions,
        now: Timestamp,
    ) -> Result<Deleted, Refusal> {
        let kind = self.served(id)?;
        let old = self.existing(id, key)?;
        if let Some(wanted) = &options.preconditions {
            let version = old.version.to_string();
            let checks = [
                ("UID", wanted.uid.as_ref(), &old.uid),
                (
                    "ResourceVersion",
                    wanted.resource_version.as_ref(),
                    &version,
                ),
            ];
            for (what, wanted, found) in checks {
                if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
                    let why = format!(
                        "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
                    );
                    return Err(Refusal::conflict(kind.about(&key.name), &why));
                }
            }
        }
        if options.dry() {
            return Ok(Deleted::Gone(old));
        }
        if kind.is_namespaces() {
            return Ok(self.delete_namespace(id, key, &old, now));
        }
        match options.propagation() {
            Propagation::Background => {}
            Propagation::Orphan => {
                for (dependent, key) in self.dependents(&old.uid) {
                    self.drop_owner(dependent, &key, &old.uid);
                }
            }
            Propagation::Foreground if self.dependents(&old.uid).is_empty() => {}
            Propagation::Foreground => return Ok(self.delete_foreground(id, key, &old, now)),
        }
        if old.finalizers.is_empty() {
            return Ok(Deleted::Gone(self.remove(id, key, now)));
        }
        Ok(Deleted::Held(self.mark(id, key, &old, None, now)))
    }

    /// Removes an object whose last finalizer just went; `last` is its final form.
    pub(crate) fn finish(&mut self, id: KindId, mut last: Value, now: Timestamp) -> Arc<Stored> {
        last["metadata"]["resourceVersion"] = self.tick().to_string().into();
        let gone = self.take(id, Stored::new(&last));
        self.follow(&gone, now);
        gone
    }

    fn remove(&mut self, id: KindId, key: &Key, now: Timestamp) -> Arc<Stored> {
        let last = self.value(id, key);
        self.finish(id, last, now)
    }

    /// Sets the deletion time, once, and perhaps one more finalizer.
    fn mark(
        &mut self,
        id: KindId,
        key: &Key,
        old: &Arc<Stored>,
        finalizer: Option<&str>,
        now: Timestamp,
    ) -> Arc<Stored> {
        let known = |name: &str| old.finalizers.iter().any(|known| known == name);
        if old.deleting && finalizer.is_none_or(known) {
            return Arc::clone(old);
        }
        self.edit(id, key, |object| {
            let metadata = &mut object["metadata"];
            if let Some(finalizer) = finalizer.filter(|name| !known(name)) {
                match metadata["finalizers"].as_array_mut() {
                    Some(list) => list.push(finalizer.into()),
                    None => metadata["finalizers"] = json!([finalizer]),
                }
            }
            if !old.deleting {
                metadata["deletionTimestamp"] = seconds(now).into();
                metadata["deletionGracePeriodSeconds"] = 0.into();
                if let Some(generation) = metadata["generation"].as_i64() {
                    metadata["generation"] = (generation + 1).into();
                }
            }
        })
    }

    fn delete_foreground(
        &mut self,
        id: KindId,
        key: &Key,
        old: &Arc<Stored>,
        now: Timestamp,
    ) -> Deleted {
        let held = self.mark(id, key, old, Some(FOREGROUND), now);
        for (dependent, key) in self.dependents(&old.uid) {
            let options = DeleteOptions {
                propagation_policy: Some(Propagation::Foreground),
                ..DeleteOptions::default()
            };
            // A dependent that an earlier step of the cascade took is gone, as it should be.
            drop(self.delete(dependent, &key, &options, now));
        }
        self.release_foreground(id, key, now);
        match self.get(id, key) {
            Some(still) if still.uid == old.uid => Deleted::Held(Arc::clone(still)),
            _ => Deleted::Gone(held),
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
        let mut last = self.value(id, key);
        if let Some(list) = last["metadata"]["finalizers"].as_array_mut() {
            list.retain(|name| name != FOREGROUND);
        }
        if owner.finalizers.len() == 1 {
            self.finish(id, last, now);
        } else {
            self.edit(id, key, |object| *object = last);
        }
    }

    fn delete_namespace(
        &mut self,
        id: KindId,
        key: &Key,
        old: &Arc<Stored>,
        now: Timestamp,
    ) -> Deleted {
        let mut marked = Arc::clone(old);
        if !old.deleting {
            self.mark(id, key, old, None, now);
            marked = self.edit(id, key, |object| {
                object["status"] = json!({"phase": "Terminating"})
            });
        }
        for (kind, key) in self.content(&key.name) {
            // Content that went with an earlier owner is gone, as it should be.
            drop(self.delete(kind, &key, &DeleteOptions::default(), now));
        }
        self.release_namespace(&key.name, now);
        match self.get(id, key) {
            Some(still) if still.uid == old.uid => Deleted::Held(Arc::clone(still)),
            _ => Deleted::Gone(marked),
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

    /// Changes an object as the server itself does: no owner is recorded, every change is an event.
    fn edit(&mut self, id: KindId, key: &Key, change: impl FnOnce(&mut Value)) -> Arc<Stored> {
        let mut object = self.value(id, key);
        change(&mut object);
        object["metadata"]["resourceVersion"] = self.tick().to_string().into();
        self.put(id, Stored::new(&object))
    }

    fn value(&self, id: KindId, key: &Key) -> Value {
        let shelf = self
            .shelves
            .get(&id)
            .expect("a kind with objects has a shelf");
        let stored = shelf
            .objects
            .get(key)
            .expect("the object was just seen under this lock");
        stored.value(&types(&shelf.kind, &shelf.kind.versions[0]))
    }
}
