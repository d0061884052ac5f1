//! Messages of `kuberay.v1alpha2` as those of version 1 of the API, and back. What version 1 has more is left out.

use hindsight_proto::{ray_v1 as v1, ray_v1alpha2 as alpha};

/// A cluster that is asked for.
#[must_use]
pub fn asked(of: alpha::Cluster) -> v1::Cluster {
    let envs = v1::EnvironmentVariables {
        values: of.envs,
        ..Default::default()
    };
    v1::Cluster {
        name: of.name,
        namespace: of.namespace,
        user: of.user,
        version: of.version,
        environment: of.environment,
        cluster_spec: of.cluster_spec.map(|spec| v1::ClusterSpec {
            head_group_spec: spec.head_group_spec.map(head_asked),
            worker_group_spec: spec
                .worker_group_spec
                .into_iter()
                .map(worker_asked)
                .collect(),
            ..Default::default()
        }),
        envs: (!envs.values.is_empty()).then_some(envs),
        ..Default::default()
    }
}

fn head_asked(of: alpha::HeadGroupSpec) -> v1::HeadGroupSpec {
    v1::HeadGroupSpec {
        compute_template: of.compute_template,
        image: of.image,
        service_type: of.service_type,
        ray_start_params: of.ray_start_params,
        volumes: of.volumes.into_iter().map(volume_asked).collect(),
        ..Default::default()
    }
}

fn worker_asked(of: alpha::WorkerGroupSpec) -> v1::WorkerGroupSpec {
    v1::WorkerGroupSpec {
        group_name: of.group_name,
        compute_template: of.compute_template,
        image: of.image,
        replicas: of.replicas,
        min_replicas: of.min_replicas,
        max_replicas: of.max_replicas,
        ray_start_params: of.ray_start_params,
        volumes: of.volumes.into_iter().map(volume_asked).collect(),
        ..Default::default()
    }
}

/// Kinds of volumes that only version 1 has are none that this version knows.
fn volume_asked(of: alpha::Volume) -> v1::Volume {
    v1::Volume {
        mount_path: of.mount_path,
        volume_type: match alpha::volume::VolumeType::try_from(of.volume_type) {
            Ok(known) => known.into(),
            Err(_unknown) => -1,
        },
        name: of.name,
        source: of.source,
        read_only: of.read_only,
        host_path_type: of.host_path_type,
        mount_propagation_mode: of.mount_propagation_mode,
        ..Default::default()
    }
}

/// A cluster that is answered. Variables that the head alone has are told as those of the cluster, for which there is
/// no other place.
#[must_use]
pub fn answered(of: v1::Cluster) -> alpha::Cluster {
    let head = of
        .cluster_spec
        .as_ref()
        .and_then(|spec| spec.head_group_spec.as_ref());
    let of_head = head
        .and_then(|head| head.environment.clone())
        .unwrap_or_default();
    let mut envs = of.envs.unwrap_or_default().values;
    envs.extend(of_head.values);
    alpha::Cluster {
        name: of.name,
        namespace: of.namespace,
        user: of.user,
        version: of.version,
        environment: of.environment,
        cluster_spec: of.cluster_spec.map(|spec| alpha::ClusterSpec {
            head_group_spec: spec.head_group_spec.map(head_answered),
            worker_group_spec: spec
                .worker_group_spec
                .into_iter()
                .map(worker_answered)
                .collect(),
        }),
        created_at: of.created_at,
        deleted_at: of.deleted_at,
        cluster_state: of.cluster_state,
        events: of.events.into_iter().map(event_answered).collect(),
        service_endpoint: of.service_endpoint,
        envs,
    }
}

fn head_answered(of: v1::HeadGroupSpec) -> alpha::HeadGroupSpec {
    alpha::HeadGroupSpec {
        compute_template: of.compute_template,
        image: of.image,
        service_type: of.service_type,
        ray_start_params: of.ray_start_params,
        volumes: of.volumes.into_iter().filter_map(volume_answered).collect(),
    }
}

fn worker_answered(of: v1::WorkerGroupSpec) -> alpha::WorkerGroupSpec {
    alpha::WorkerGroupSpec {
        group_name: of.group_name,
        compute_template: of.compute_template,
        image: of.image,
        replicas: of.replicas,
        min_replicas: of.min_replicas,
        max_replicas: of.max_replicas,
        ray_start_params: of.ray_start_params,
        volumes: of.volumes.into_iter().filter_map(volume_answered).collect(),
    }
}

fn volume_answered(of: v1::Volume) -> Option<alpha::Volume> {
    let known = alpha::volume::VolumeType::try_from(of.volume_type).ok()?;
    Some(alpha::Volume {
        mount_path: of.mount_path,
        volume_type: known.into(),
        name: of.name,
        source: of.source,
        read_only: of.read_only,
        host_path_type: of.host_path_type,
        mount_propagation_mode: of.mount_propagation_mode,
    })
}

fn event_answered(of: v1::ClusterEvent) -> alpha::ClusterEvent {
    alpha::ClusterEvent {
        id: of.id,
        name: of.name,
        created_at: of.created_at,
        first_timestamp: of.first_timestamp,
        last_timestamp: of.last_timestamp,
        reason: of.reason,
        message: of.message,
        r#type: of.r#type,
        count: of.count,
    }
}

/// A template that is asked for.
#[must_use]
pub fn template_asked(of: alpha::ComputeTemplate) -> v1::ComputeTemplate {
    v1::ComputeTemplate {
        name: of.name,
        namespace: of.namespace,
        cpu: of.cpu,
        memory: of.memory,
        gpu: of.gpu,
        gpu_accelerator: of.gpu_accelerator,
        ..Default::default()
    }
}

/// A template that is answered.
#[must_use]
pub fn template_answered(of: v1::ComputeTemplate) -> alpha::ComputeTemplate {
    alpha::ComputeTemplate {
        name: of.name,
        namespace: of.namespace,
        cpu: of.cpu,
        memory: of.memory,
        gpu: of.gpu,
        gpu_accelerator: of.gpu_accelerator,
    }
}
