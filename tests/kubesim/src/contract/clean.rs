//! Leaving a server as it was found: namespaces go with what is in them, and so do the kinds that were
//! made for the cases.

use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::json;

use super::{Arena, Difference, Ground, Verdict, eventually, ground::LABEL};

/// The kinds beside the custom ones of which cases make objects.
const BUILT_IN: &[(&str, &str, &str)] = &[
    ("", "ConfigMap", "configmaps"),
    ("", "Event", "events"),
    ("batch", "Job", "jobs"),
    ("coordination.k8s.io", "Lease", "leases"),
    ("rbac.authorization.k8s.io", "Role", "roles"),
    ("rbac.authorization.k8s.io", "RoleBinding", "rolebindings"),
];

impl Ground {
    /// Takes a namespace away with all that is in it.
    ///
    /// # Errors
    /// When the server does not.
    pub async fn clear(&self, arena: &Arena) -> Verdict {
        let namespaces = self.namespaces();
        if namespaces.get_opt(&arena.namespace).await?.is_none() {
            return Ok(());
        }
        for api in self.custom(arena) {
            let held = api.list(&ListParams::default()).await?;
            for object in held.items {
                if object.metadata.finalizers.is_none() {
                    continue;
                }
                let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                let name = object.metadata.name.unwrap_or_default();
                gone_is_fine(api.patch(&name, &PatchParams::default(), &none).await)?;
            }
        }
        if !self.controllers {
            let built_in = BUILT_IN
                .iter()
                .map(|(group, kind, plural)| self.api(arena, group, "v1", kind, plural));
            for api in built_in.chain(self.custom(arena)) {
                let all = ListParams::default();
                // Without a policy Jobs would wait until their pods are orphaned.
                api.delete_collection(&DeleteParams::background(), &all)
                    .await?;
            }
        }
        gone_is_fine(
            namespaces
                .delete(&arena.namespace, &DeleteParams::default())
                .await,
        )?;
        if !self.controllers {
            // What the namespace controller would do.
            let mut namespace = json!(namespaces.get(&arena.namespace).await?);
            namespace["spec"]["finalizers"] = json!([]);
            let path = format!("/api/v1/namespaces/{}/finalize", arena.namespace);
            arena
                .raw("PUT", &path, "application/json", &namespace)
                .await?;
        }
        Ok(())
    }

    /// Waits until every namespace is gone, and deletes the kinds that were created.
    ///
    /// # Errors
    /// When the server does not, or does not in time.
    pub async fn leave(self) -> Verdict {
        let (namespaces, own) = (self.namespaces(), format!("{LABEL}={}", self.label));
        let (namespaces, own) = (&namespaces, ListParams::default().labels(&own));
        let own = &own;
        eventually("the namespaces of the contract go", || async move {
            Ok(namespaces.list(own).await?.items.is_empty())
        })
        .await?;
        let crds = &self.definitions();
        for name in &self.made {
            crds.delete(name, &DeleteParams::default()).await?;
            eventually("the kinds of the contract go", || async move {
                Ok(crds.get_opt(name).await?.is_none())
            })
            .await?;
        }
        Ok(())
    }

    fn custom<'a>(&'a self, arena: &'a Arena) -> impl Iterator<Item = Api<DynamicObject>> + 'a {
        self.kinds
            .iter()
            .map(|crd| self.api(arena, &crd.group, &crd.version, &crd.kind, &crd.plural))
    }

    fn api(
        &self,
        arena: &Arena,
        group: &str,
        version: &str,
        kind: &str,
        plural: &str,
    ) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        Api::namespaced_with(self.client.clone(), &arena.namespace, &resource)
    }
}

fn gone_is_fine<T>(outcome: Result<T, kube::Error>) -> Result<(), Difference> {
    match outcome {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}
