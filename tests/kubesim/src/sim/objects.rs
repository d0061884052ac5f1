//! The objects of a cluster, as a test makes, changes and looks at them.

use std::sync::Arc;

use serde_json::Value;

use super::Sim;
use crate::{
    deletion::DeleteOptions,
    kinds::Kind,
    lifecycle::{Write, types},
    objects::{Key, KindId, Stored},
    patch::Patch,
    refusal::Refusal,
    rules::Part,
    webhook::Webhook,
};

impl Sim {
    /// Has the creates and updates of a kind, but not those of its status, reviewed by the webhook `name`:
    /// `answer` is given an AdmissionReview and returns one. It fails with 404 when the kind is not installed.
    pub fn review(
        &self,
        group: &str,
        plural: &str,
        name: &str,
        answer: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Result<(), Refusal> {
        let (kind, _) = self.find(group, plural)?;
        let webhook = Webhook {
            kind,
            name: name.to_owned(),
            answer: Arc::new(answer),
        };
        self.shared.change(|world| world.webhooks.push(webhook));
        Ok(())
    }

    /// Creates an object as a client would. It fails as the server refuses a create, and with 404 when
    /// the kind is not installed.
    pub fn create(&self, object: Value) -> Result<Value, Refusal> {
        let (id, kind, write) = self.at(&object)?;
        let namespace = namespace_of(&kind, &object);
        let made = self
            .shared
            .change(|world| world.create(id, &namespace, object, &write))?;
        Ok(made.value(&types(&kind, &write.version)))
    }

    /// Puts an object in place as it was elsewhere: uid, times, status and `managedFields` are kept. It
    /// fails as `create` does.
    pub fn load(&self, object: Value) -> Result<Value, Refusal> {
        self.load_as(object, "kubesim")
    }

    pub(crate) fn load_as(&self, object: Value, manager: &str) -> Result<Value, Refusal> {
        let (id, kind, write) = self.at(&object)?;
        let namespace = namespace_of(&kind, &object);
        let write = Write {
            manager: manager.into(),
            ..write
        };
        let made = self
            .shared
            .change(|world| world.restore(id, &namespace, object, &write))?;
        Ok(made.value(&types(&kind, &write.version)))
    }

    /// Merges `patch` into an object as `manager`; into its status subresource where there is one
    /// and `patch` has nothing but a status. It fails as the server refuses a merge patch.
    pub fn merge(
        &self,
        group: &str,
        plural: &str,
        namespace: &str,
        name: &str,
        patch: Value,
        manager: &str,
    ) -> Result<Value, Refusal> {
        let (id, kind) = self.find(group, plural)?;
        let fields = patch.as_object();
        let status =
            fields.is_some_and(|fields| fields.len() == 1 && fields.contains_key("status"));
        let write = Write {
            manager: manager.into(),
            part: if status && kind.status {
                Part::Status
            } else {
                Part::Main
            },
            ..self.write(&kind.versions[0])
        };
        let key = Key::new(namespace, name);
        let patch = Patch::Merge(patch);
        let (new, _) = self
            .shared
            .change(|world| world.patch(id, &key, &patch, &write))?;
        Ok(new.value(&types(&kind, &write.version)))
    }

    /// Deletes an object with background propagation; 404 when there is none.
    pub fn delete(
        &self,
        group: &str,
        plural: &str,
        namespace: &str,
        name: &str,
    ) -> Result<(), Refusal> {
        let (id, _) = self.find(group, plural)?;
        let key = Key::new(namespace, name);
        let now = self.now();
        self.shared
            .change(|world| world.delete(id, &key, &DeleteOptions::default(), now))?;
        Ok(())
    }

    /// Reads an object as it is stored; `None` if it does not exist.
    pub fn get(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        let (id, kind) = self.find(group, plural).ok()?;
        let stored = self
            .shared
            .world()
            .get(id, &Key::new(namespace, name))
            .cloned()?;
        Some(stored.value(&types(&kind, &kind.versions[0])))
    }

    /// Reads every object of a kind, ordered by namespace and name.
    pub fn list(&self, group: &str, plural: &str) -> Vec<Value> {
        let Ok((id, kind)) = self.find(group, plural) else {
            return Vec::new();
        };
        let stored: Vec<Arc<Stored>> = {
            let world = self.shared.world();
            world
                .shelves
                .get(&id)
                .into_iter()
                .flat_map(|shelf| shelf.objects.values())
                .cloned()
                .collect()
        };
        let types = types(&kind, &kind.versions[0]);
        stored.iter().map(|stored| stored.value(&types)).collect()
    }

    /// How many objects of a kind there are.
    pub fn count(&self, group: &str, plural: &str) -> usize {
        let world = self.shared.world();
        let id = world.find(group, plural);
        id.and_then(|id| world.shelves.get(&id))
            .map_or(0, |shelf| shelf.objects.len())
    }

    pub(crate) fn find(&self, group: &str, plural: &str) -> Result<(KindId, Arc<Kind>), Refusal> {
        let world = self.shared.world();
        let id = world
            .find(group, plural)
            .ok_or_else(|| not_installed(group, plural))?;
        Ok((id, world.served(id)?))
    }

    /// The kind of an object, by its `apiVersion` and `kind`.
    fn at(&self, object: &Value) -> Result<(KindId, Arc<Kind>, Write), Refusal> {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        let (group, version) = text("apiVersion")
            .split_once('/')
            .unwrap_or(("", text("apiVersion")));
        let world = self.shared.world();
        let found = world.shelves.iter().find(|(_, shelf)| {
            let kind = &shelf.kind;
            kind.group == group && kind.kind == text("kind") && kind.serves(version)
        });
        let (id, shelf) = found.ok_or_else(|| not_installed(text("apiVersion"), text("kind")))?;
        if !shelf.kind.stored() {
            let why = format!("{} objects are answered, not stored", shelf.kind.kind);
            return Err(Refusal::new(405, "MethodNotAllowed", why));
        }
        Ok((*id, Arc::clone(&shelf.kind), self.write(version)))
    }

    fn write(&self, version: &str) -> Write {
        Write {
            manager: "kubesim".into(),
            version: version.into(),
            part: Part::Main,
            now: self.now(),
            dry_run: false,
        }
    }
}

fn namespace_of(kind: &Kind, object: &Value) -> String {
    match object["metadata"]["namespace"].as_str() {
        _ if !kind.namespaced => String::new(),
        Some(namespace) if !namespace.is_empty() => namespace.into(),
        _ => "default".into(),
    }
}

fn not_installed(group: &str, kind: &str) -> Refusal {
    let message = format!("no kind `{kind}` of `{group}` is installed; install its Crd first");
    Refusal::new(404, "NotFound", message)
}
