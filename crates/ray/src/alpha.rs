//! Conversion between the messages of `kuberay.v1alpha2` and those of version 1 of the API. Fields that only version 1 has
//! are left out.

use crate::error::{Error, invalid};
use hindsight_proto::{ray_v1 as v1, ray_v1alpha2 as alpha};

/// A cluster of a request.
///
/// # Errors
/// [`Error::Invalid`] if a volume has a type that this version does not know.
pub fn to_v1(of: alpha::Cluster) -> Result<v1::Cluster, Error> {
    let spec = of.cluster_spec.map(|spec| {
        let workers = spec.worker_group_spec.into_iter().map(worker_to_v1);
        Ok(v1::ClusterSpec {
            head_group_spec: spec.head_group_spec.map(head_to_v1).transpose()?,
            worker_group_spec: workers.collect::<Result<_, Error>>()?,
            ..Default::default()
        })
    });
    let envs = v1::EnvironmentVariables {
        values: of.envs,
        ..Default::default()
    };
    Ok(v1::Cluster {
        name: of.name,
        namespace: of.namespace,
        user: of.user,
        version: of.version,
        environment: of.environment,
        cluster_spec: spec.transpose()?,
        envs: (!envs.values.is_empty()).then_some(envs),
        ..Default::default()
    })
}

fn head_to_v1(of: alpha::HeadGroupSpec) -> Result<v1::HeadGroupSpec, Error> {
    Ok(v1::HeadGroupSpec {
        compute_template: of.compute_template,
        image: of.image,
        service_type: of.service_type,
        ray_start_params: of.ray_start_params,
        volumes: volumes_to_v1(of.volumes)?,
        ..Default::default()
    })
}

fn worker_to_v1(of: alpha::WorkerGroupSpec) -> Result<v1::WorkerGroupSpec, Error> {
    Ok(v1::WorkerGroupSpec {
        group_name: of.group_name,
        compute_template: of.compute_template,
        image: of.image,
        replicas: of.replicas,
        min_replicas: of.min_replicas,
        max_replicas: of.max_replicas,
        ray_start_params: of.ray_start_params,
        volumes: volumes_to_v1(of.volumes)?,
        ..Default::default()
    })
}

fn volumes_to_v1(volumes: Vec<alpha::Volume>) -> Result<Vec<v1::Volume>, Error> {
    let volumes = volumes.into_iter().map(|of| {
        let known = alpha::volume::VolumeType::try_from(of.volume_type);
        let known = known.map_err(|_unknown| {
            invalid(format!("volume_type: there is no value {}", of.volume_type))
        })?;
        Ok(v1::Volume {
            mount_path: of.mount_path,
            volume_type: known.into(),
            name: of.name,
            source: of.source,
            read_only: of.read_only,
            host_path_type: of.host_path_type,
            mount_propagation_mode: of.mount_propagation_mode,
            ..Default::default()
        })
    });
    volumes.collect()
}

/// A cluster of an answer. Its `envs` also hold the variables of the head, for which this version has no other field.
#[must_use]
pub fn from_v1(of: v1::Cluster) -> alpha::Cluster {
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
            head_group_spec: spec.head_group_spec.map(head_from_v1),
            worker_group_spec: spec
                .worker_group_spec
                .into_iter()
                .map(worker_from_v1)
                .collect(),
        }),
        created_at: of.created_at,
        deleted_at: of.deleted_at,
        cluster_state: of.cluster_state,
        events: of.events.into_iter().map(event_from_v1).collect(),
        service_endpoint: of.service_endpoint,
        envs,
    }
}

fn head_from_v1(of: v1::HeadGroupSpec) -> alpha::HeadGroupSpec {
    alpha::HeadGroupSpec {
        compute_template: of.compute_template,
        image: of.image,
        service_type: of.service_type,
        ray_start_params: of.ray_start_params,
        volumes: of.volumes.into_iter().filter_map(volume_from_v1).collect(),
    }
}

fn worker_from_v1(of: v1::WorkerGroupSpec) -> alpha::WorkerGroupSpec {
    alpha::WorkerGroupSpec {
        group_name: of.group_name,
        compute_template: of.compute_template,
        image: of.image,
        replicas: of.replicas,
        min_replicas: of.min_replicas,
        max_replicas: of.max_replicas,
        ray_start_params: of.ray_start_params,
        volumes: of.volumes.into_iter().filter_map(volume_from_v1).collect(),
    }
}

fn volume_from_v1(of: v1::Volume) -> Option<alpha::Volume> {
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

fn event_from_v1(of: v1::ClusterEvent) -> alpha::ClusterEvent {
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

/// A template of a request.
#[must_use]
pub fn template_to_v1(of: alpha::ComputeTemplate) -> v1::ComputeTemplate {
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

/// A template of an answer.
#[must_use]
pub fn template_from_v1(of: v1::ComputeTemplate) -> alpha::ComputeTemplate {
    alpha::ComputeTemplate {
        name: of.name,
        namespace: of.namespace,
        cpu: of.cpu,
        memory: of.memory,
        gpu: of.gpu,
        gpu_accelerator: of.gpu_accelerator,
    }
}
