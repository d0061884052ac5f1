//! Conversion between groups of a cluster and of a RayCluster: the head, and the groups of workers.

use std::collections::BTreeMap;

use hindsight_proto::ray_v1::{
    Capabilities, Cluster, ComputeTemplate, EnvironmentVariables, HeadGroupSpec, SecurityContext,
    Volume, WorkerGroupSpec,
};
use serde_json::{Map, Value, json};

use crate::{
    env,
    json::{flag, items, number, object, text, texts},
    template::{self, TEMPLATE_NAME},
    volumes,
};

/// The annotation of pod templates with the image of a request, which may be empty.
const IMAGE: &str = "ray.io/compute-image";
/// The annotation of a cluster with which the head has the ports of Ray Serve.
const SERVES: &str = "ray.io/enable-serve-service";
const HEAD: &str = "ray-head";
const WORKER: &str = "ray-worker";

/// Annotations of pod templates that are not of users.
const OTHERS_ANNOTATIONS: [&str; 10] = [
    IMAGE,
    TEMPLATE_NAME,
    "openshift.io/scc",
    "cni.projectcalico.org/podIP",
    "cni.projectcalico.org/podIPs",
    "cni.projectcalico.org/containerID",
    "ray.io/health-state",
    "ray.io/ft-enabled",
    "k8s.v1.cni.cncf.io/network-status",
    "k8s.v1.cni.cncf.io/networks-status",
];
/// Labels of pod templates that are not of users.
const OTHERS_LABELS: [&str; 8] = [
    "app.kubernetes.io/created-by",
    "app.kubernetes.io/name",
    "ray.io/cluster",
    "ray.io/cluster-dashboard",
    "ray.io/group",
    "ray.io/identifier",
    "ray.io/is-ray-node",
    "ray.io/node-type",
];

/// The first key among annotations and labels of a group that is not for users.
pub(crate) fn reserved<'a>(annotations: &'a Texts, labels: &'a Texts) -> Option<&'a String> {
    let annotation = annotations
        .keys()
        .find(|key| OTHERS_ANNOTATIONS.contains(&key.as_str()));
    annotation.or_else(|| {
        labels
            .keys()
            .find(|key| OTHERS_LABELS.contains(&key.as_str()))
    })
}

type Texts = BTreeMap<String, String>;

/// What the pod template of a group is made of.
struct Pod<'a> {
    name: &'static str,
    image: &'a str,
    pull_policy: &'a str,
    template: Option<&'a ComputeTemplate>,
    template_name: &'a str,
    annotations: &'a Texts,
    labels: &'a Texts,
    service_account: &'a str,
    pull_secret: &'a str,
    security: Option<&'a SecurityContext>,
    volumes: &'a [Volume],
    system: Vec<Value>,
    environment: Option<&'a EnvironmentVariables>,
    ports: Value,
    lifecycle: Value,
}

impl Pod<'_> {
    fn template(self, cluster: &Cluster) -> Value {
        let mut annotations = self.annotations.clone();
        if !self.template_name.is_empty() {
            annotations.insert(TEMPLATE_NAME.to_owned(), self.template_name.to_owned());
        }
        annotations.insert(IMAGE.to_owned(), self.image.to_owned());
        let image = match self.image {
            "" => format!("rayproject/ray:{}", cluster.version),
            given => given.to_owned(),
        };
        let pull = if self.pull_policy == "Always" {
            "Always"
        } else {
            "IfNotPresent"
        };
        let container = object([
            ("name", self.name.into()),
            ("image", image.into()),
            ("imagePullPolicy", pull.into()),
            (
                "env",
                env::entries(self.system, cluster.envs.as_ref(), self.environment).into(),
            ),
            ("ports", self.ports),
            ("lifecycle", self.lifecycle),
            (
                "resources",
                self.template.map_or(Value::Null, template::resources),
            ),
            ("volumeMounts", volumes::mounts(self.volumes).into()),
            (
                "securityContext",
                self.security.map_or(Value::Null, security),
            ),
        ]);
        let secret = match self.pull_secret {
            "" => Value::Null,
            name => json!([{"name": name}]),
        };
        let tolerations = self.template.map(template::tolerations);
        let spec = object([
            ("serviceAccountName", self.service_account.into()),
            ("imagePullSecrets", secret),
            ("tolerations", tolerations.unwrap_or_default().into()),
            ("containers", json!([container])),
            ("volumes", volumes::volumes(self.volumes).into()),
        ]);
        let metadata = object([
            ("annotations", json!(annotations)),
            ("labels", json!(self.labels)),
        ]);
        json!({"metadata": metadata, "spec": spec})
    }
}

fn security(context: &SecurityContext) -> Value {
    let capabilities = context.capabilities.as_ref();
    let capabilities =
        capabilities.map(|of| object([("add", json!(of.add)), ("drop", json!(of.drop))]));
    object([
        ("privileged", json!(context.privileged)),
        ("capabilities", capabilities.unwrap_or_default()),
    ])
}

fn field(name: &str, path: &str) -> Value {
    json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
}

fn head_system() -> Vec<Value> {
    vec![field("MY_POD_IP", "status.podIP")]
}

fn worker_system() -> Vec<Value> {
    let value = |name: &str, value: &str| json!({"name": name, "value": value});
    let resource = |name: &str, resource: &str| json!({"name": name, "valueFrom": {"resourceFieldRef": {"containerName": WORKER, "resource": resource}}});
    vec![
        value("RAY_DISABLE_DOCKER_CPU_WARNING", "1"),
        value("TYPE", "worker"),
        resource("CPU_REQUEST", "requests.cpu"),
        resource("CPU_LIMITS", "limits.cpu"),
        resource("MEMORY_REQUESTS", "requests.memory"),
        resource("MEMORY_LIMITS", "limits.memory"),
        field("MY_POD_NAME", "metadata.name"),
        field("MY_POD_IP", "status.podIP"),
    ]
}

/// The head of a RayCluster, with the resources and tolerations of `template`.
pub(crate) fn head(
    cluster: &Cluster,
    head: &HeadGroupSpec,
    template: Option<&ComputeTemplate>,
) -> Value {
    let port = |name: &str, port: u16| json!({"name": name, "containerPort": port});
    let mut ports = vec![
        port("redis", 6379),
        port("head", 10001),
        port("dashboard", 8265),
        port("metrics", 8080),
    ];
    if cluster
        .annotations
        .get(SERVES)
        .is_some_and(|value| value == "true")
    {
        ports.extend([port("dashboard-agent", 52365), port("serve", 8000)]);
    }
    let pod = Pod {
        name: HEAD,
        image: &head.image,
        pull_policy: &head.image_pull_policy,
        template,
        template_name: &head.compute_template,
        annotations: &head.annotations,
        labels: &head.labels,
        service_account: &head.service_account,
        pull_secret: &head.image_pull_secret,
        security: head.security_context.as_ref(),
        volumes: &head.volumes,
        system: head_system(),
        environment: head.environment.as_ref(),
        ports: ports.into(),
        lifecycle: Value::Null,
    };
    let mut written = object([
        ("serviceType", head.service_type.as_str().into()),
        (
            "enableIngress",
            if head.enable_ingress {
                true.into()
            } else {
                Value::Null
            },
        ),
    ]);
    // The kind requires it, also when it is empty.
    written["rayStartParams"] = json!(head.ray_start_params);
    written["template"] = pod.template(cluster);
    written
}

/// A group of workers of a RayCluster, with the resources and tolerations of `template`.
pub(crate) fn worker(
    cluster: &Cluster,
    group: &WorkerGroupSpec,
    template: Option<&ComputeTemplate>,
) -> Value {
    let or_replicas = |number: i32| if number == 0 { group.replicas } else { number };
    let pod = Pod {
        name: WORKER,
        image: &group.image,
        pull_policy: &group.image_pull_policy,
        template,
        template_name: &group.compute_template,
        annotations: &group.annotations,
        labels: &group.labels,
        service_account: &group.service_account,
        pull_secret: &group.image_pull_secret,
        security: group.security_context.as_ref(),
        volumes: &group.volumes,
        system: worker_system(),
        environment: group.environment.as_ref(),
        ports: json!([{"containerPort": 80}]),
        lifecycle: json!({"preStop": {"exec": {"command": ["/bin/sh", "-c", "ray stop"]}}}),
    };
    json!({
        "groupName": group.group_name,
        "replicas": group.replicas,
        "minReplicas": or_replicas(group.min_replicas),
        "maxReplicas": or_replicas(group.max_replicas),
        "rayStartParams": group.ray_start_params,
        "template": pod.template(cluster),
    })
}

/// The container of Ray in a pod template: the one of this name, else the first.
fn container<'a>(group: &'a Value, name: &str) -> &'a Value {
    let containers = items(group, "/template/spec/containers");
    let named = containers.iter().find(|of| of["name"] == name);
    named.or(containers.first()).unwrap_or(&Value::Null)
}

/// The annotations or labels at a pointer, without the keys `others`.
fn without(group: &Value, at: &str, others: &[&str]) -> Texts {
    let mut all = texts(group, at);
    all.retain(|key, _| !others.contains(&key.as_str()));
    all
}

fn read_security(container: &Value) -> Option<SecurityContext> {
    let context = container.get("securityContext")?.as_object()?;
    let names = |of: &Map<String, Value>, key: &str| {
        let names = of.get(key).and_then(Value::as_array).into_iter().flatten();
        names
            .filter_map(|name| Some(name.as_str()?.to_owned()))
            .collect()
    };
    let capabilities = context.get("capabilities").and_then(Value::as_object);
    Some(SecurityContext {
        capabilities: capabilities.map(|of| Capabilities {
            add: names(of, "add"),
            drop: names(of, "drop"),
        }),
        privileged: context.get("privileged").and_then(Value::as_bool),
    })
}

fn read_pull_policy(container: &Value) -> String {
    let policy = text(container, "/imagePullPolicy");
    if policy == "Always" {
        policy
    } else {
        String::new()
    }
}

fn annotation(group: &Value, key: &str) -> String {
    texts(group, "/template/metadata/annotations")
        .remove(key)
        .unwrap_or_default()
}

/// The volumes of a pod template.
pub(crate) fn pod_volumes(group: &Value) -> &[Value] {
    items(group, "/template/spec/volumes")
}

fn read_volumes(group: &Value, container: &Value) -> Vec<Volume> {
    volumes::read(items(container, "/volumeMounts"), pod_volumes(group))
}

/// The head of a RayCluster as a message; `envs` are those of all groups.
pub(crate) fn read_head(group: &Value, envs: Option<&EnvironmentVariables>) -> HeadGroupSpec {
    let container = container(group, HEAD);
    HeadGroupSpec {
        compute_template: annotation(group, TEMPLATE_NAME),
        image: annotation(group, IMAGE),
        service_type: text(group, "/serviceType"),
        enable_ingress: flag(group, "/enableIngress"),
        ray_start_params: texts(group, "/rayStartParams"),
        volumes: read_volumes(group, container),
        service_account: text(group, "/template/spec/serviceAccountName"),
        image_pull_secret: text(group, "/template/spec/imagePullSecrets/0/name"),
        environment: env::read(container, &head_system(), envs),
        annotations: without(group, "/template/metadata/annotations", &OTHERS_ANNOTATIONS),
        labels: without(group, "/template/metadata/labels", &OTHERS_LABELS),
        image_pull_policy: read_pull_policy(container),
        security_context: read_security(container),
    }
}

/// A group of workers of a RayCluster as a message. What it does not say is as the kind has it.
pub(crate) fn read_worker(group: &Value, envs: Option<&EnvironmentVariables>) -> WorkerGroupSpec {
    let container = container(group, WORKER);
    WorkerGroupSpec {
        group_name: text(group, "/groupName"),
        compute_template: annotation(group, TEMPLATE_NAME),
        image: annotation(group, IMAGE),
        replicas: number(group, "/replicas").unwrap_or(0),
        min_replicas: number(group, "/minReplicas").unwrap_or(0),
        max_replicas: number(group, "/maxReplicas").unwrap_or(i32::MAX),
        ray_start_params: texts(group, "/rayStartParams"),
        volumes: read_volumes(group, container),
        service_account: text(group, "/template/spec/serviceAccountName"),
        image_pull_secret: text(group, "/template/spec/imagePullSecrets/0/name"),
        environment: env::read(container, &worker_system(), envs),
        annotations: without(group, "/template/metadata/annotations", &OTHERS_ANNOTATIONS),
        labels: without(group, "/template/metadata/labels", &OTHERS_LABELS),
        image_pull_policy: read_pull_policy(container),
        security_context: read_security(container),
    }
}
