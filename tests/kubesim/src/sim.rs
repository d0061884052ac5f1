//! The simulated cluster as its users hold it: made, installed into, looked at and disturbed here.
//! What is done here directly is not recorded as a call and meets no fault.

mod logs;
mod objects;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;

use crate::{
    calls::{Call, Calls},
    clock::{Clock, SystemClock},
    faults::Faults,
    kinds::{self, Crd, Kind},
    policy::Policy,
    rbac::{self, User},
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
        self.shared.calls.chosen(|_| true)
    }

    /// Those of them for which `keep` holds; no others are copied.
    pub fn calls_that(&self, keep: impl Fn(&Call) -> bool) -> Calls {
        self.shared.calls.chosen(keep)
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

    /// Waits until `holds` is true of the cluster; it is asked again after every change.
    pub async fn until(&self, mut holds: impl FnMut(&Self) -> bool) {
        let mut news = self.shared.news();
        while !holds(self) {
            if news.changed().await.is_err() {
                return;
            }
        }
    }
}
