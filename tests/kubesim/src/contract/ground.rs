//! Where the contract is tried: a simulated cluster or a real one, prepared for the cases.

use std::{
    fmt::{self, Debug},
    time::Duration,
};

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use super::{Arena, Case, Difference, GROUP, Needs, create, dynamic};
use crate::{Crd, Sim};

/// A server on which cases run.
pub struct Ground {
    pub(super) client: Client,
    pub(super) sim: Option<Sim>,
    pub(super) controllers: bool,
    roles: bool,
    pub(super) kinds: Vec<Crd>,
    /// Names of the definitions that were not there before.
    pub(super) made: Vec<String>,
    /// The value of the label of its namespaces.
    pub(super) label: String,
}

/// The label of the namespaces of a ground.
pub(super) const LABEL: &str = "contract.kubesim.dev/run";

impl Debug for Ground {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let simulated = self.sim.is_some();
        f.debug_struct("Ground")
            .field("simulated", &simulated)
            .finish_non_exhaustive()
    }
}

/// What became of a case.
#[derive(Debug)]
pub enum Outcome {
    /// The server does as it must.
    Passed,
    /// The server lacks what the case needs.
    Skipped(Needs),
    /// The server does not as it must; this is the first difference.
    Failed(Difference),
}

impl Ground {
    /// A simulated cluster, reached by `client`; the kinds of the contract are installed.
    pub fn simulated(sim: &Sim, client: Client) -> Self {
        let ground = Self {
            sim: Some(sim.clone()),
            controllers: true,
            roles: true,
            ..Self::new(client, own_kinds())
        };
        sim.install_all(ground.kinds.clone());
        sim.policy().enforce();
        ground
    }

    /// A real server, on which the kinds of the contract and `more` are created if they are not there.
    /// It is as before after [`Ground::leave`].
    ///
    /// # Errors
    /// When the server refuses them, or does not serve them in time.
    pub async fn real(client: Client, more: &[Crd]) -> Result<Self, Difference> {
        let mut ground = Self::new(client, [&own_kinds(), more].concat());
        let crds = ground.definitions();
        for crd in &ground.kinds {
            let name = format!("{}.{}", crd.plural, crd.group);
            if crds.get_opt(&name).await?.is_none() {
                create(&crds, definition(crd)).await?;
                ground.made.push(name.clone());
            }
            let (crds, name) = (&crds, &name);
            super::eventually("the kinds of the contract are served", || async move {
                let found = crds.get(name).await?;
                let conditions = found.data["status"]["conditions"].as_array();
                Ok(conditions.into_iter().flatten().any(|condition| {
                    condition["type"] == "Established" && condition["status"] == "True"
                }))
            })
            .await?;
        }
        ground.controllers = ground.has_controllers().await?;
        ground.roles = ground.has_roles().await?;
        Ok(ground)
    }

    fn new(client: Client, kinds: Vec<Crd>) -> Self {
        Self {
            client,
            sim: None,
            controllers: false,
            roles: false,
            kinds,
            made: Vec::new(),
            label: uuid::Uuid::new_v4().to_string(),
        }
    }

    /// Runs a case in a namespace of its own.
    pub async fn run(&self, case: &Case) -> Outcome {
        let lacking = match case.needs {
            Needs::Nothing => false,
            Needs::Controllers => !self.controllers,
            Needs::Forgetting => self.sim.is_none(),
            Needs::Roles => !self.roles,
        };
        if lacking {
            return Outcome::Skipped(case.needs);
        }
        let arena = match self.arena().await {
            Ok(arena) => arena,
            Err(difference) => return Outcome::Failed(difference),
        };
        let verdict = (case.run)(arena.clone()).await;
        match verdict.and(self.clear(&arena).await) {
            Ok(()) => Outcome::Passed,
            Err(difference) => Outcome::Failed(difference),
        }
    }

    /// A new namespace. It is for the caller to clear it.
    ///
    /// # Errors
    /// When the server makes none.
    pub async fn arena(&self) -> Result<Arena, Difference> {
        let namespace = dynamic(json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"generateName": "contract-", "labels": {LABEL: self.label}},
        }));
        let made = self
            .namespaces()
            .create(&PostParams::default(), &namespace)
            .await?;
        Ok(Arena {
            client: self.client.clone(),
            namespace: made.metadata.name.unwrap_or_default(),
            sim: self.sim.clone(),
        })
    }

    /// A controller manager puts a config map into every new namespace.
    async fn has_controllers(&self) -> Result<bool, Difference> {
        let arena = self.arena().await?;
        let mut found = false;
        for _ in 0..30 {
            found = arena.maps().get_opt("kube-root-ca.crt").await?.is_some();
            if found {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.clear(&arena).await?;
        Ok(found)
    }

    /// Without roles, everybody may do everything.
    async fn has_roles(&self) -> Result<bool, Difference> {
        let review: SubjectAccessReview = serde_json::from_value(json!({
            "metadata": {},
            "spec": {"user": "contract-nobody", "resourceAttributes": {"verb": "list", "resource": "pods"}},
        }))
        .expect("the review is well formed");
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| !status.allowed))
    }

    pub(super) fn namespaces(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("", "v1", "Namespace");
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind))
    }

    pub(super) fn definitions(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind))
    }
}

fn own_kinds() -> Vec<Crd> {
    vec![
        Crd::namespaced(GROUP, "v1", "Widget", "widgets"),
        Crd::namespaced(GROUP, "v1", "Gadget", "gadgets").without_status(),
    ]
}

fn definition(crd: &Crd) -> Value {
    if let Some(definition) = &crd.definition {
        return definition.clone();
    }
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let subresources = if crd.status_subresource {
        json!({"status": {}})
    } else {
        json!({})
    };
    let (kind, plural) = (&crd.kind, &crd.plural);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{}", crd.group)},
        "spec": {
            "group": crd.group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": crd.version,
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": subresources,
            }],
        },
    })
}
