//! Pods, and the logs of their containers.

use futures::AsyncBufRead;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::LogParams, core::GroupVersionKind, discovery::ApiResource};

use super::{Cluster, ClusterError, call};
use crate::object::Object;

/// Which log is read, and from when on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogOf<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) pod: &'a str,
    pub(crate) container: &'a str,
    /// Of the start before the newest one.
    pub(crate) previous: bool,
    pub(crate) follow: bool,
    /// From this second on.
    pub(crate) since: Option<Timestamp>,
}

impl Cluster {
    /// All watched pods.
    pub(crate) fn pods(&self) -> Api<Object> {
        let kind = GroupVersionKind::gvk("", "v1", "Pod");
        let resource = ApiResource::from_gvk_with_plural(&kind, "pods");
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// The log of a container, each line with its time.
    pub(crate) async fn log(
        &self,
        of: &LogOf<'_>,
    ) -> Result<impl AsyncBufRead + use<>, ClusterError> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), of.namespace);
        let params = LogParams {
            container: Some(of.container.to_owned()),
            follow: of.follow,
            previous: of.previous,
            since_time: of.since,
            timestamps: true,
            ..LogParams::default()
        };
        call(pods.log_stream(of.pod, &params)).await
    }
}
