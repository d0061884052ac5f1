//! Where the contract is tried: a simulated cluster or a real one, prepared for the cases.

use std::{
    fmt::{self, Debug},
    time::Duration,
};

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use super::{Arena, Case, Difference, GROUP, Needs, create, dynamic};
use crate::{Crd, Sim};

/// A server on which cases run.
#[derive(Clone)]
pub struct Ground {
    client: Client,
    sim: Option<Sim>,
    controllers: bool,
    roles: bool,
}

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
    /// The server differs.
    Failed(Difference),
}

impl Ground {
    /// A simulated cluster, reached by `client`; the kinds of the contract are installed.
    pub fn simulated(sim: &Sim, client: Client) -> Self {
        sim.install(Crd::namespaced(GROUP, "v1", "Widget", "widgets"));
        sim.install(Crd::namespaced(GROUP, "v1", "Gadget", "gadgets").without_status());
        sim.policy().enforce();
        Self {
            client,
            sim: Some(sim.clone()),
            controllers: true,
            roles: true,
        }
    }

    /// A real server, on which the kinds of the contract are created.
    ///
    /// # Errors
    /// When the server refuses them, or does not serve them in time.
    pub async fn real(client: Client) -> Result<Self, Difference> {
        let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let crds: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
        for (kind, plural, status) in [("Widget", "widgets", true), ("Gadget", "gadgets", false)] {
            let name = format!("{plural}.{GROUP}");
            if crds.get_opt(&name).await?.is_none() {
                create(&crds, definition(kind, plural, status)).await?;
            }
            let crds = &crds;
            let name = &name;
            super::eventually("the kinds of the contract are served", || async move {
                let found = crds.get(name).await?;
                let conditions = found.data["status"]["conditions"].as_array();
                Ok(conditions.into_iter().flatten().any(|condition| {
                    condition["type"] == "Established" && condition["status"] == "True"
                }))
            })
            .await?;
        }
        let mut ground = Self {
            client,
            sim: None,
            controllers: false,
            roles: false,
        };
        ground.controllers = ground.has_controllers().await?;
        ground.roles = ground.has_roles().await?;
        Ok(ground)
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
        let namespace = arena.namespace.clone();
        let verdict = (case.run)(arena).await;
        let cleared = self
            .namespaces()
            .delete(&namespace, &DeleteParams::default())
            .await;
        match (verdict, cleared) {
            (Ok(()), Err(kube::Error::Api(status))) if status.code == 404 => Outcome::Passed,
            (Ok(()), Err(error)) => Outcome::Failed(error.into()),
            (Ok(()), Ok(_)) => Outcome::Passed,
            (Err(difference), _) => Outcome::Failed(difference),
        }
    }

    async fn arena(&self) -> Result<Arena, Difference> {
        let namespace = dynamic(json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"generateName": "contract-"},
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
        self.namespaces()
            .delete(&arena.namespace, &DeleteParams::default())
            .await?;
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

    fn namespaces(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("", "v1", "Namespace");
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&kind))
    }
}

fn definition(kind: &str, plural: &str, status: bool) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let subresources = if status {
        json!({"status": {}})
    } else {
        json!({})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": subresources,
            }],
        },
    })
}
