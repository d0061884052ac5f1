//! The simulated cluster as its users hold it: made, installed into, looked at and disturbed here.
//! What is done here directly is not recorded as a call and meets no fault.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    calls::Calls,
    clock::{Clock, SystemClock},
    deletion::DeleteOptions,
    faults::Faults,
    kinds::{self, Crd, Kind},
    lifecycle::{Write, types},
    objects::{Key, KindId, Stored},
    patch::Patch,
    policy::Policy,
    rbac::{self, User},
    refusal::Refusal,
    rules::Part,
    service::SimService,
    shared::{Settings, Shared},
    world::World,
};

/// A simulated cluster. Clones share it.
#[derive(Debug, Clone)]
pub struct Sim {
    pub(crate) shared: Arc<Shared>,
}

impl Default for Sim {
    fn default() -> Self {
        Self::new()
    }
}

impl Sim {
    /// A cluster with the built-in kinds, the namespaces `default` and `kube-system`, and the
    /// computer's clock.
    pub fn new() -> Self {
        Self::with(Settings::default(), Arc::new(SystemClock))
    }

    /// A cluster with other settings and another clock.
    pub fn with(settings: Settings, clock: Arc<dyn Clock>) -> Self {
        let mut world = World::new(settings.history);
        world.quota = settings.storage_quota;
        for kind in kinds::built_in() {
            world.install(kind);
        }
        let uid = settings.cluster_uid.clone();
        let sim = Self {
            shared: Arc::new(Shared::new(settings, clock, world)),
        };
        sim.load(json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "kube-system", "uid": uid},
            "status": {"phase": "Active"},
        }))
        .expect("a namespace can be put into an empty cluster");
        sim.namespace("default");
        for object in rbac::defaults() {
            sim.load(object)
                .expect("roles can be put into an empty cluster");
        }
        sim
    }

    /// Installs a kind, or another version of it.
    pub fn install(&self, crd: Crd) -> &Self {
        self.shared.change(|world| {
            world.install(Kind::from_crd(crd));
            world.tick();
        });
        self
    }

    /// Installs kinds, one after another, as [`Sim::install`] does.
    pub fn install_all(&self, crds: impl IntoIterator<Item = Crd>) -> &Self {
        for crd in crds {
            self.install(crd);
        }
        self
    }

    /// Takes a kind away with all of its objects and versions; its watches end.
    pub fn uninstall(&self, crd: &Crd) -> &Self {
        self.shared.change(|world| {
            if let Some(id) = world.find(&crd.group, &crd.plural) {
                world.uninstall(id);
            }
        });
        self
    }

    /// Takes one version of a kind away; the objects stay, and the watches of that version end.
    pub fn stop_serving(&self, crd: &Crd) -> &Self {
        self.shared.change(|world| {
            if let Some(id) = world.find(&crd.group, &crd.plural) {
                world.stop_serving(id, &crd.version);
            }
        });
        self
    }

    /// Whether a kind is installed in that version.
    pub fn serves(&self, crd: &Crd) -> bool {
        self.find(&crd.group, &crd.plural)
            .is_ok_and(|(_, kind)| kind.serves(&crd.version))
    }

    /// Makes sure that a namespace exists.
    pub fn namespace(&self, name: &str) -> &Self {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        match self.create(namespace) {
            Err(refusal) if refusal.reason != "AlreadyExists" => {
                tracing::warn!(name, error = %refusal, "namespace `{name}` was not made");
            }
            _ => {}
        }
        self
    }

    /// Tokens, permissions, and how often they were asked for.
    pub fn policy(&self) -> &Policy {
        &self.shared.policy
    }

    /// What goes wrong on purpose.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// The requests so far, oldest first, as many as the settings keep.
    pub fn calls(&self) -> Calls {
        self.shared.calls.snapshot()
    }

    /// Forgets the requests so far.
    pub fn clear_calls(&self) {
        self.shared.calls.clear();
    }

    /// The newest resource version.
    pub fn version(&self) -> u64 {
        self.shared.world().version
    }

    /// The present moment of the cluster.
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// A client that reaches the cluster without sockets. Needs a tokio runtime.
    ///
    /// It shows every refusal as it is; a client that kube makes from a configuration tries again
    /// after 429, 503 and 504 by itself.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// The same as [`Sim::client`] for this user, who may do what the policy allows once it is
    /// enforced. A service account is `system:serviceaccount:NAMESPACE:NAME`.
    pub fn client_as(&self, user: &str) -> kube::Client {
        let user = User::named(user, &[]);
        kube::Client::new(self.service_for(Some(user)), "default")
    }

    /// The cluster as a service of HTTP requests that are all allowed.
    pub fn service(&self) -> SimService {
        self.service_for(Some(User::admin()))
    }

    /// Without a user, requests are of whom their tokens name.
    pub(crate) fn service_for(&self, user: Option<User>) -> SimService {
        SimService::new(Arc::clone(&self.shared), user)
    }

    /// Creates an object as a client would.
    ///
    /// # Errors
    /// As the server refuses a create; 404 when the kind is not installed.
    pub fn create(&self, object: Value) -> Result<Value, Refusal> {
        let (id, kind, write) = self.at(&object)?;
        let namespace = namespace_of(&kind, &object);
        let made = self
            .shared
            .change(|world| world.create(id, &namespace, object, &write))?;
        Ok(made.value(&types(&kind, &write.version)))
    }

    /// Puts an object in place as it was elsewhere: uid, times, status and `managedFields` are kept.
    ///
    /// # Errors
    /// As `create`.
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
    /// and `patch` has nothing but a status.
    ///
    /// # Errors
    /// As the server refuses a merge patch.
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

    /// Deletes an object with background propagation.
    ///
    /// # Errors
    /// 404 when there is no such object.
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

    /// Waits until `holds` is true of the cluster; it is asked again after every change.
    pub async fn until(&self, mut holds: impl FnMut(&Self) -> bool) {
        let mut news = self.shared.news();
        while !holds(self) {
            if news.changed().await.is_err() {
                return;
            }
        }
    }

    fn find(&self, group: &str, plural: &str) -> Result<(KindId, Arc<Kind>), Refusal> {
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
