//! Validation of clusters, before Kubernetes is asked. Order and texts are those of KubeRay, whose clients may compare them.

use std::collections::{BTreeMap, BTreeSet};

use hindsight_proto::ray_v1::{
    AutoscalerOptions, Cluster, ClusterSpec, EnvironmentVariables, HeadGroupSpec, Volume,
    WorkerGroupSpec,
    cluster::Environment,
    env_value_from::Source,
    volume::{AccessMode, HostPathType, MountPropagationMode, VolumeType},
};

use crate::{
    error::{Error, invalid, unspecified},
    groups,
    names::{is_cluster_name, is_key, is_label_value, is_quantity},
    object::ENVS,
};

/// Checks the cluster of a request for `namespace`.
///
/// # Errors
/// [`Error::Invalid`] for the first field that is missing or wrong.
pub(crate) fn cluster(cluster: &Cluster, namespace: &str) -> Result<(), Error> {
    if namespace != cluster.namespace {
        return Err(invalid(
            "The namespace in the request is different from the namespace in the cluster definition.",
        ));
    }
    if cluster.name.is_empty() {
        return Err(unspecified("Cluster name is empty"));
    }
    if cluster.user.is_empty() {
        return Err(unspecified("User who create the cluster is empty"));
    }
    let spec = cluster.cluster_spec.as_ref();
    let spec =
        spec.ok_or_else(|| invalid("A ClusterSpec object is required. Please specify one."))?;
    let head = spec.head_group_spec.as_ref().ok_or_else(|| {
        invalid("Cluster Spec Object requires HeadGroupSpec to be populated. Please specify one.")
    })?;
    head_group(head)?;
    workers(spec)?;
    if let Some(options) = &spec.autoscaler_options {
        autoscaler(options, head)?;
    }
    identity(cluster)?;
    keys(
        "headServiceAnnotations",
        spec.head_service_annotations.keys(),
    )?;
    environment("envs", cluster.envs.as_ref())?;
    let mut images = spec
        .worker_group_spec
        .iter()
        .map(|group| &group.image)
        .chain([&head.image]);
    if cluster.version.is_empty() && images.any(String::is_empty) {
        return Err(unspecified(
            "Cluster version is empty, and a group has no image",
        ));
    }
    Ok(())
}

/// Checks what becomes the name, labels and annotations of the object.
fn identity(cluster: &Cluster) -> Result<(), Error> {
    if !is_cluster_name(&cluster.name) {
        return Err(invalid(format!(
            "Cluster name `{}` is not a DNS label of at most 53 characters that begins with a letter",
            cluster.name
        )));
    }
    for (field, text) in [("user", &cluster.user), ("version", &cluster.version)] {
        if !is_label_value(text) {
            return Err(invalid(format!(
                "Cluster {field} `{text}` is not a label value: want at most 63 letters, digits, `-`, `_` and `.`, \
                 with a letter or digit at both ends"
            )));
        }
    }
    known::<Environment>("environment", cluster.environment)?;
    keys("annotations", cluster.annotations.keys())?;
    match cluster.annotations.contains_key(ENVS) {
        true => Err(invalid(format!("annotations: `{ENVS}` is reserved"))),
        false => Ok(()),
    }
}

/// # Errors
/// If an enum has no value of this number.
fn known<T: TryFrom<i32>>(field: &str, number: i32) -> Result<(), Error> {
    T::try_from(number).map_or_else(
        |_| Err(invalid(format!("{field}: there is no value {number}"))),
        |_| Ok(()),
    )
}

/// Checks names of arguments of `ray start`, which become keys of an object.
fn arguments(of: &str, params: &BTreeMap<String, String>) -> Result<(), Error> {
    match params.keys().find(|key| !is_key(key)) {
        Some(key) => Err(invalid(format!(
            "{of}: `{key}` is not the name of an argument of ray start"
        ))),
        None => Ok(()),
    }
}

fn pull_policy(of: &str, policy: &str) -> Result<(), Error> {
    match policy {
        "" | "Always" | "IfNotPresent" => Ok(()),
        _ => Err(invalid(format!(
            "{of} unsupported value for Image pull policy. Please specify Always or IfNotPresent"
        ))),
    }
}

fn head_group(head: &HeadGroupSpec) -> Result<(), Error> {
    pull_policy("HeadGroupSpec", &head.image_pull_policy)?;
    if !matches!(
        head.service_type.as_str(),
        "" | "ClusterIP" | "NodePort" | "LoadBalancer"
    ) {
        return Err(invalid(format!(
            "HeadGroupSpec service_type `{}` is none of ClusterIP, NodePort and LoadBalancer",
            head.service_type
        )));
    }
    arguments("HeadGroupSpec", &head.ray_start_params)?;
    volumes(&head.volumes)?;
    texts("HeadGroupSpec", &head.annotations, &head.labels)?;
    environment("HeadGroupSpec environment", head.environment.as_ref())
}

fn workers(spec: &ClusterSpec) -> Result<(), Error> {
    let mut names = BTreeSet::new();
    for (at, group) in spec.worker_group_spec.iter().enumerate() {
        let what = format!("WorkerNodeSpec {at}");
        worker(&what, group)?;
        if !names.insert(&group.group_name) {
            return Err(invalid(format!(
                "{what} group name `{}` is taken by another group",
                group.group_name
            )));
        }
    }
    Ok(())
}

fn worker(what: &str, group: &WorkerGroupSpec) -> Result<(), Error> {
    pull_policy("Worker GroupSpec", &group.image_pull_policy)?;
    if group.group_name.is_empty() {
        return Err(unspecified(&format!("{what} group name is empty")));
    }
    if !is_label_value(&group.group_name) {
        return Err(invalid(format!(
            "{what} group name `{}` is not a label value",
            group.group_name
        )));
    }
    if [group.replicas, group.min_replicas, group.max_replicas]
        .iter()
        .any(|number| *number < 0)
    {
        return Err(unspecified(&format!("{what} has negative replicas")));
    }
    let or_replicas = |number: i32| if number == 0 { group.replicas } else { number };
    let (min, max) = (
        or_replicas(group.min_replicas),
        or_replicas(group.max_replicas),
    );
    if min > max {
        return Err(unspecified(&format!("{what} MinReplica > MaxReplicas")));
    }
    arguments(what, &group.ray_start_params)?;
    volumes(&group.volumes)?;
    texts(what, &group.annotations, &group.labels)?;
    environment(&format!("{what} environment"), group.environment.as_ref())
}

fn volumes(volumes: &[Volume]) -> Result<(), Error> {
    let mut names = BTreeSet::new();
    for volume in volumes {
        let wrong = |why: &str| Err(invalid(format!("Failed to create a Ray cluster: {why}")));
        known::<VolumeType>("volume_type", volume.volume_type)?;
        known::<HostPathType>("host_path_type", volume.host_path_type)?;
        known::<MountPropagationMode>("mount_propagation_mode", volume.mount_propagation_mode)?;
        known::<AccessMode>("accessMode", volume.access_mode)?;
        let needs_source = !matches!(
            volume.volume_type(),
            VolumeType::Ephemeral | VolumeType::EmptyDir
        );
        match (volume.volume_type(), volume.storage.as_str()) {
            (VolumeType::Ephemeral, "") => return wrong("storage for ephemeral volume is empty"),
            (VolumeType::Ephemeral, size) if !is_quantity(size) => {
                return wrong("storage for ephemeral volume is not specified correctly");
            }
            (VolumeType::EmptyDir, size) if !size.is_empty() && !is_quantity(size) => {
                return wrong("storage for empty dir volume is not specified correctly");
            }
            _ => {}
        }
        if volume.name.is_empty() || volume.mount_path.is_empty() {
            return wrong("a volume has no name or no mount path");
        }
        if needs_source && volume.source.is_empty() {
            return wrong(&format!("volume `{}` has no source", volume.name));
        }
        if !names.insert(&volume.name) {
            return wrong(&format!("two volumes are called `{}`", volume.name));
        }
    }
    Ok(())
}

fn keys<'a>(of: &str, mut keys: impl Iterator<Item = &'a String>) -> Result<(), Error> {
    match keys.find(|key| !is_key(key)) {
        Some(key) => Err(invalid(format!(
            "{of}: `{key}` is not the key of a label or annotation"
        ))),
        None => Ok(()),
    }
}

/// Checks the annotations and labels of a pod template.
fn texts(
    of: &str,
    annotations: &BTreeMap<String, String>,
    labels: &BTreeMap<String, String>,
) -> Result<(), Error> {
    keys(of, annotations.keys().chain(labels.keys()))?;
    if let Some((key, value)) = labels.iter().find(|(_, value)| !is_label_value(value)) {
        return Err(invalid(format!(
            "{of}: `{value}` of label `{key}` is not a label value"
        )));
    }
    match groups::reserved(annotations, labels) {
        Some(key) => Err(invalid(format!(
            "{of}: `{key}` is reserved for the operator"
        ))),
        None => Ok(()),
    }
}

fn environment(of: &str, variables: Option<&EnvironmentVariables>) -> Result<(), Error> {
    let Some(variables) = variables else {
        return Ok(());
    };
    for from in variables.values_from.values() {
        known::<Source>(&format!("{of}: source"), from.source)?;
    }
    let name = variables
        .values
        .keys()
        .chain(variables.values_from.keys())
        .find(|name| name.is_empty() || name.contains('='));
    if let Some(name) = name {
        return Err(invalid(format!(
            "{of}: `{name}` is not the name of a variable"
        )));
    }
    match variables
        .values
        .keys()
        .find(|name| variables.values_from.contains_key(*name))
    {
        Some(name) => Err(invalid(format!(
            "{of}: `{name}` is given in values and in valuesFrom"
        ))),
        None => Ok(()),
    }
}

fn autoscaler(options: &AutoscalerOptions, head: &HeadGroupSpec) -> Result<(), Error> {
    for (what, amount) in [("cpu", &options.cpu), ("memory", &options.memory)] {
        if !amount.is_empty() && !is_quantity(amount) {
            return Err(invalid(format!(
                "{what} for autoscaler is not specified correctly"
            )));
        }
    }
    pull_policy("AutoscalerOptions", &options.image_pull_policy)?;
    if !matches!(
        options.upscaling_mode.as_str(),
        "" | "Conservative" | "Default" | "Aggressive"
    ) {
        return Err(invalid(
            "autoscalerOptions: upscalingMode is none of Conservative, Default and Aggressive",
        ));
    }
    if options.idle_timeout_seconds < 0 {
        return Err(invalid("autoscalerOptions: idleTimeoutSeconds is negative"));
    }
    volumes(&options.volumes)?;
    let clashes = |volume: &&Volume| {
        let same = head
            .volumes
            .iter()
            .find(|of_head| of_head.name == volume.name);
        same.is_some_and(|same| {
            (same.volume_type, &same.source) != (volume.volume_type, &volume.source)
        })
    };
    if let Some(volume) = options.volumes.iter().find(clashes) {
        return Err(invalid(format!(
            "autoscalerOptions: volume `{}` is another one in the head",
            volume.name
        )));
    }
    environment("autoscalerOptions", options.envs.as_ref())?;
    let from = options
        .envs
        .iter()
        .flat_map(|envs| envs.values_from.values());
    match from
        .into_iter()
        .any(|from| !matches!(from.source(), Source::Configmap | Source::Secret))
    {
        true => Err(invalid(
            "autoscalerOptions: valuesFrom takes whole config maps and secrets only",
        )),
        false => Ok(()),
    }
}
