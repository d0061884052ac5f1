//! Conversion between clusters and RayCluster objects.

use std::collections::BTreeMap;

use hindsight_proto::ray_v1::{
    Cluster, ClusterSpec, ComputeTemplate, EnvironmentVariables, Volume, cluster::Environment,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    autoscaler, env, groups,
    json::{at, flag, items, object, text, texts},
    names::{MANAGED_BY, MANAGER},
};

/// The label that names the owner.
pub const USER: &str = "ray.io/user";
const VERSION: &str = "ray.io/version";
const ENVIRONMENT: &str = "ray.io/environment";
const CREATED: &str = "ray.io/creation-timestamp";
/// The annotation with the `envs` of a cluster, which pod templates do not tell from the variables of a group.
pub(crate) const ENVS: &str = "hindsight.dev/ray-envs";

/// The RayCluster object of a valid cluster; `templates` by their names.
pub(crate) fn ray_cluster(
    cluster: &Cluster,
    templates: &BTreeMap<String, ComputeTemplate>,
    now: Timestamp,
) -> Value {
    let mut annotations = cluster.annotations.clone();
    annotations.insert(CREATED.to_owned(), now.to_string());
    if let Some(envs) = cluster
        .envs
        .as_ref()
        .filter(|envs| **envs != EnvironmentVariables::default())
    {
        annotations.insert(ENVS.to_owned(), env::encode(envs));
    }
    let spec = cluster.cluster_spec.clone().unwrap_or_default();
    let head = spec.head_group_spec.clone().unwrap_or_default();
    let workers = spec.worker_group_spec.iter();
    let workers =
        workers.map(|group| groups::worker(cluster, group, templates.get(&group.compute_template)));
    let mut head_group = groups::head(cluster, &head, templates.get(&head.compute_template));
    if let Some(options) = &spec.autoscaler_options {
        add_volumes(&mut head_group, &options.volumes);
    }
    let autoscaler = spec.autoscaler_options.as_ref().map(autoscaler::options);
    let scales = spec.enable_in_tree_autoscaling;
    let spec = object([
        ("rayVersion", cluster.version.as_str().into()),
        (
            "enableInTreeAutoscaling",
            if scales { true.into() } else { Value::Null },
        ),
        ("autoscalerOptions", autoscaler.unwrap_or_default()),
        (
            "headServiceAnnotations",
            json!(spec.head_service_annotations),
        ),
        ("headGroupSpec", head_group),
        ("workerGroupSpecs", workers.collect()),
    ]);
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {
            "name": cluster.name,
            "namespace": cluster.namespace,
            "labels": {
                "ray.io/cluster-name": cluster.name,
                USER: cluster.user,
                VERSION: cluster.version,
                ENVIRONMENT: cluster.environment().as_str_name(),
                "app.kubernetes.io/name": "kuberay",
                MANAGED_BY: MANAGER,
            },
            "annotations": annotations,
        },
        "spec": spec,
    })
}

/// Adds volumes to the pod of the head that the autoscaler, a container of that pod, mounts.
fn add_volumes(head: &mut Value, volumes: &[Volume]) {
    let spec = &mut head["template"]["spec"];
    let mut all = items(spec, "/volumes").to_vec();
    for volume in crate::volumes::volumes(volumes) {
        if !all.iter().any(|known| known["name"] == volume["name"]) {
            all.push(volume);
        }
    }
    if !all.is_empty() {
        spec["volumes"] = all.into();
    }
}

/// The cluster of a RayCluster object, without its events.
pub(crate) fn read(object: &Value) -> Cluster {
    let labels = texts(object, "/metadata/labels");
    let label = |key: &str| labels.get(key).cloned().unwrap_or_default();
    let mut annotations = texts(object, "/metadata/annotations");
    let envs = annotations.remove(ENVS).and_then(|kept| env::decode(&kept));
    let environment = Environment::from_str_name(&label(ENVIRONMENT)).unwrap_or(Environment::Dev);
    let head = at(object, "/spec/headGroupSpec").unwrap_or(&Value::Null);
    let options = at(object, "/spec/autoscalerOptions");
    let workers = items(object, "/spec/workerGroupSpecs").iter();
    let spec = ClusterSpec {
        head_group_spec: Some(groups::read_head(head, envs.as_ref())),
        worker_group_spec: workers
            .map(|group| groups::read_worker(group, envs.as_ref()))
            .collect(),
        enable_in_tree_autoscaling: flag(object, "/spec/enableInTreeAutoscaling"),
        autoscaler_options: options
            .map(|options| autoscaler::read(options, groups::pod_volumes(head))),
        head_service_annotations: texts(object, "/spec/headServiceAnnotations"),
    };
    Cluster {
        name: text(object, "/metadata/name"),
        namespace: text(object, "/metadata/namespace"),
        user: label(USER),
        version: label(VERSION),
        environment: environment.into(),
        cluster_spec: Some(spec),
        annotations,
        envs,
        created_at: time(&text(object, "/metadata/creationTimestamp")),
        deleted_at: time(&text(object, "/metadata/deletionTimestamp")),
        cluster_state: text(object, "/status/state"),
        events: Vec::new(),
        service_endpoint: texts(object, "/status/endpoints"),
    }
}

/// Whether an object has the label of the service, of this server or of KubeRay.
pub(crate) fn is_managed(object: &Value) -> bool {
    texts(object, "/metadata/labels")
        .get(MANAGED_BY)
        .is_some_and(|by| by == MANAGER)
}

fn time(text: &str) -> Option<prost_types::Timestamp> {
    text.parse().ok().map(timestamp)
}

/// A time of a message.
pub(crate) fn timestamp(time: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: time.as_second(),
        nanos: time.subsec_nanosecond(),
    }
}
