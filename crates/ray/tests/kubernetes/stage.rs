//! Two namespaces of an API server, simulated or real.

use hindsight_ray::{Clusters, Error};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
};
use kubesim::{
    Sim,
    contract::{Arena, Difference, Ground},
};
use serde_json::Value;

use crate::fixtures::now;

pub struct Stage {
    here: Arena,
    there: Arena,
    /// The calls that are tried.
    pub clusters: Clusters,
    /// The namespace of most objects.
    pub ns: String,
    /// Another one.
    pub other: String,
}

impl Stage {
    pub async fn new(ground: &Ground) -> Result<Self, Difference> {
        let (here, there) = (ground.arena().await?, ground.arena().await?);
        Ok(Self {
            clusters: Clusters::over(here.client.clone()),
            ns: here.namespace.clone(),
            other: there.namespace.clone(),
            here,
            there,
        })
    }

    pub fn arenas(&self) -> [Arena; 2] {
        [self.here.clone(), self.there.clone()]
    }

    /// The simulated cluster, where it is one.
    pub fn sim(&self) -> Option<&Sim> {
        self.here.sim()
    }

    pub fn api(&self, kind: &str) -> Api<DynamicObject> {
        self.api_in(&self.ns, kind)
    }

    fn api_in(&self, namespace: &str, kind: &str) -> Api<DynamicObject> {
        let kind = match kind {
            "RayCluster" | "RayJob" => GroupVersionKind::gvk("ray.io", "v1", kind),
            kind => GroupVersionKind::gvk("", "v1", kind),
        };
        let resource = ApiResource::from_gvk(&kind);
        Api::namespaced_with(self.here.client.clone(), namespace, &resource)
    }

    /// How many objects of a kind there are in both namespaces, of config maps those that tests make.
    pub async fn count(&self, kind: &str) -> usize {
        let mut count = 0;
        for namespace in [&self.ns, &self.other] {
            let listed = self
                .api_in(namespace, kind)
                .list(&ListParams::default())
                .await
                .unwrap();
            let names = listed
                .items
                .iter()
                .filter_map(|item| item.metadata.name.as_deref());
            count += names.filter(|name| *name != "kube-root-ca.crt").count();
        }
        count
    }

    /// An object as it is stored.
    pub async fn stored(&self, kind: &str, name: &str) -> Value {
        serde_json::to_value(self.api(kind).get(name).await.unwrap()).unwrap()
    }

    /// Creates an object in the namespace that it names.
    pub async fn make(&self, object: Value) {
        let kind = object["kind"].as_str().unwrap().to_owned();
        let namespace = object["metadata"]["namespace"].as_str().unwrap().to_owned();
        let object = serde_json::from_value(object).unwrap();
        let made = self
            .api_in(&namespace, &kind)
            .create(&PostParams::default(), &object)
            .await;
        made.unwrap();
    }

    /// Merges into the cluster `name`, and into its status what is one.
    pub async fn merge(&self, name: &str, patch: Value) {
        let (api, params) = (self.api("RayCluster"), PatchParams::default());
        let merged = match patch.get("status") {
            Some(_) => api.patch_status(name, &params, &Patch::Merge(&patch)).await,
            None => api.patch(name, &params, &Patch::Merge(&patch)).await,
        };
        merged.unwrap();
    }

    pub async fn create(
        &self,
        cluster: hindsight_proto::ray_v1::Cluster,
    ) -> Result<hindsight_proto::ray_v1::Cluster, Error> {
        self.clusters.create(&self.ns, Some(cluster), now()).await
    }

    pub fn small(&self, name: &str) -> hindsight_proto::ray_v1::Cluster {
        crate::fixtures::small(&self.ns, name)
    }

    pub fn full(&self, name: &str) -> hindsight_proto::ray_v1::Cluster {
        crate::fixtures::full(&self.ns, name)
    }

    pub fn template(&self, name: &str) -> hindsight_proto::ray_v1::ComputeTemplate {
        crate::fixtures::template(&self.ns, name)
    }
}
