//! How objects go: options and preconditions of a deletion, and finalizers. What goes along is for
//! `controllers`.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    chores::{Chore, FOREGROUND, ORPHAN},
    clock::seconds,
    lifecycle::types,
    objects::{Key, KindId, Stored},
    patch::read_object,
    refusal::{About, Refusal},
    route::Query,
    world::World,
};

/// What a DELETE request may ask for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeleteOptions {
    pub(crate) preconditions: Option<Preconditions>,
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
    dry_run: Vec<String>,
    /// Of no effect here: no object has a process that is given time to end.
    grace_period_seconds: Option<i64>,
}

/// What must be true of the object for the deletion to happen.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Preconditions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

/// What happens to dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// Outcome of a deletion.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// The object is no more.
    Gone(Arc<Stored>),
    Held(Arc<Stored>),
}

impl DeleteOptions {
    /// Reads the options of a request: from its body, or from its query when it has none.
    ///
    /// # Errors
    /// 400 for what is no option, 422 for values that no server knows.
    pub(crate) fn read(body: &[u8], query: &Query) -> Result<Self, Refusal> {
        let options = if body.is_empty() {
            let text =
                |name: &str| Some(query.text(name).to_owned()).filter(|text| !text.is_empty());
            let grace = text("gracePeriodSeconds").map(|text| {
                text.parse().map_err(|_not_a_number| {
                    let why = format!("strconv.ParseInt: parsing \"{text}\": invalid syntax");
                    Refusal::bad_request(why)
                })
            });
            Self {
                preconditions: None,
                propagation_policy: text("propagationPolicy"),
                orphan_dependents: text("orphanDependents").map(|text| text != "false"),
                dry_run: text("dryRun").into_iter().collect(),
                grace_period_seconds: grace.transpose()?,
            }
        } else {
            serde_json::from_value(read_object(body)?).map_err(|error| {
                Refusal::bad_request(format!("the body is not DeleteOptions: {error}"))
            })?
        };
        let invalid = |field: &str, why: String| {
            let about = About {
                group: "meta.k8s.io",
                plural: "DeleteOptions",
                kind: "DeleteOptions",
                name: "",
            };
            Err(Refusal::invalid(about, field, &why))
        };
        if options.dry_run.iter().any(|value| value != "All") {
            let found = &options.dry_run;
            let why = format!("Unsupported value: {found:?}: supported values: \"All\"");
            return invalid("dryRun", why);
        }
        let known = ["Foreground", "Background", "Orphan"];
        match options.propagation_policy.as_deref() {
            Some(policy) if !known.contains(&policy) => {
                let why = format!(
                    "Unsupported value: {policy:?}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
                );
                invalid("propagationPolicy", why)
            }
            _ => Ok(options),
        }
    }

    /// In the foreground, without conditions.
    pub(crate) fn foreground() -> Self {
        Self {
            propagation_policy: Some("Foreground".into()),
            ..Self::default()
        }
    }

    fn propagation(&self) -> Propagation {
        match (self.propagation_policy.as_deref(), self.orphan_dependents) {
            (Some("Foreground"), _) => Propagation::Foreground,
            (Some("Orphan"), _) | (None, Some(true)) => Propagation::Orphan,
            _ => Propagation::Background,
        }
    }

    fn dry(&self) -> bool {
        !self.dry_run.is_empty()
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
            // Without dependents the collector has nothing to do, so that nobody sees it.
            _ if self.chores.is_none() && self.dependents(&old.uid).is_empty() => {}
            Propagation::Orphan => {
                let chore = Chore::Orphan(id, key.clone());
                return Ok(self.delete_later(id, key, &old, Some(ORPHAN), chore, now));
            }
            Propagation::Foreground => {
                let chore = Chore::Foreground(id, key.clone());
                return Ok(self.delete_later(id, key, &old, Some(FOREGROUND), chore, now));
            }
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
        self.assign(Chore::Follow(Arc::clone(&gone)), now);
        gone
    }

    pub(crate) fn remove(&mut self, id: KindId, key: &Key, now: Timestamp) -> Arc<Stored> {
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

    /// Marks an object that a controller lets go later, perhaps at once.
    fn delete_later(
        &mut self,
        id: KindId,
        key: &Key,
        old: &Arc<Stored>,
        finalizer: Option<&str>,
        chore: Chore,
        now: Timestamp,
    ) -> Deleted {
        let held = self.mark(id, key, old, finalizer, now);
        self.assign(chore, now);
        match self.get(id, key) {
            Some(still) if still.uid == old.uid => Deleted::Held(Arc::clone(still)),
            _ => Deleted::Gone(held),
        }
    }

    fn delete_namespace(
        &mut self,
        id: KindId,
        key: &Key,
        old: &Arc<Stored>,
        now: Timestamp,
    ) -> Deleted {
        if !old.deleting {
            self.mark(id, key, old, None, now);
            self.edit(id, key, |object| {
                object["status"] = json!({"phase": "Terminating"});
            });
        }
        let marked = self
            .get(id, key)
            .map_or_else(|| Arc::clone(old), Arc::clone);
        let chore = Chore::Namespace(key.name.clone());
        self.delete_later(id, key, &marked, None, chore, now)
    }

    /// Changes an object as the server itself does: no owner is recorded, every change is an event.
    pub(crate) fn edit(
        &mut self,
        id: KindId,
        key: &Key,
        change: impl FnOnce(&mut Value),
    ) -> Arc<Stored> {
        let mut object = self.value(id, key);
        change(&mut object);
        object["metadata"]["resourceVersion"] = self.tick().to_string().into();
        self.put(id, Stored::new(&object))
    }

    pub(crate) fn value(&self, id: KindId, key: &Key) -> Value {
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
