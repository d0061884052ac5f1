//! Samples.

use std::collections::BTreeMap;

use hindsight_proto::ray_v1 as v1;
use hindsight_ray::Error;
use jiff::Timestamp;

pub fn now() -> Timestamp {
    "2026-03-01T10:00:00Z".parse().unwrap()
}

pub fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

pub fn head(cluster: &mut v1::Cluster) -> &mut v1::HeadGroupSpec {
    cluster
        .cluster_spec
        .as_mut()
        .unwrap()
        .head_group_spec
        .as_mut()
        .unwrap()
}

pub fn worker(cluster: &mut v1::Cluster) -> &mut v1::WorkerGroupSpec {
    &mut cluster.cluster_spec.as_mut().unwrap().worker_group_spec[0]
}

/// A cluster with a head and a group of workers.
pub fn small(namespace: &str, name: &str) -> v1::Cluster {
    let worker = v1::WorkerGroupSpec {
        group_name: "w".into(),
        replicas: 2,
        ..Default::default()
    };
    v1::Cluster {
        name: name.into(),
        namespace: namespace.into(),
        user: "zoe".into(),
        version: "2.9.0".into(),
        cluster_spec: Some(v1::ClusterSpec {
            head_group_spec: Some(v1::HeadGroupSpec::default()),
            worker_group_spec: vec![worker],
            ..Default::default()
        }),
        ..Default::default()
    }
}

pub fn template(namespace: &str, name: &str) -> v1::ComputeTemplate {
    v1::ComputeTemplate {
        name: name.into(),
        namespace: namespace.into(),
        cpu: 2,
        memory: 4,
        gpu: 1,
        memory_unit: "Gi".into(),
        tolerations: vec![v1::PodToleration {
            key: "gpu".into(),
            operator: "Exists".into(),
            value: String::new(),
            effect: "NoSchedule".into(),
        }],
        extended_resources: [("x.io/fast".to_owned(), 3)].into(),
        ..Default::default()
    }
}

pub fn environment(pairs: &[(&str, &str)]) -> v1::EnvironmentVariables {
    let kinds = [
        ("C", v1::env_value_from::Source::Configmap),
        ("F", v1::env_value_from::Source::Field),
        ("R", v1::env_value_from::Source::Resourcefield),
        ("S", v1::env_value_from::Source::Secret),
    ];
    let from = kinds.map(|(name, source)| {
        let at = if source == v1::env_value_from::Source::Field {
            ""
        } else {
            "at"
        };
        let prefix = pairs.first().map_or("", |(name, _)| name);
        let from = v1::EnvValueFrom {
            source: source.into(),
            name: at.into(),
            key: "spec.key".into(),
        };
        (format!("{prefix}{name}"), from)
    });
    v1::EnvironmentVariables {
        values: texts(pairs),
        values_from: from.into(),
    }
}

/// A volume of every kind.
pub fn volumes() -> Vec<v1::Volume> {
    use v1::volume::{AccessMode, HostPathType, MountPropagationMode, VolumeType};
    let volume = |name: &str, kind: VolumeType| v1::Volume {
        name: name.into(),
        mount_path: format!("/{name}"),
        volume_type: kind.into(),
        source: "of".into(),
        ..Default::default()
    };
    vec![
        v1::Volume {
            read_only: true,
            ..volume("claim", VolumeType::PersistentVolumeClaim)
        },
        v1::Volume {
            host_path_type: HostPathType::File.into(),
            mount_propagation_mode: MountPropagationMode::Bidirectional.into(),
            ..volume("host", VolumeType::HostPath)
        },
        v1::Volume {
            source: String::new(),
            storage: "5Gi".into(),
            storage_class_name: "fast".into(),
            access_mode: AccessMode::Rwx.into(),
            mount_propagation_mode: MountPropagationMode::Hosttocontainer.into(),
            ..volume("own", VolumeType::Ephemeral)
        },
        v1::Volume {
            items: texts(&[("k", "p")]),
            ..volume("map", VolumeType::Configmap)
        },
        v1::Volume {
            items: texts(&[("k", "p")]),
            ..volume("secret", VolumeType::Secret)
        },
        v1::Volume {
            source: String::new(),
            storage: "1Gi".into(),
            ..volume("empty", VolumeType::EmptyDir)
        },
    ]
}

/// A cluster in which every field says something.
pub fn full(namespace: &str, name: &str) -> v1::Cluster {
    let security = v1::SecurityContext {
        capabilities: Some(v1::Capabilities {
            add: vec!["SYS_PTRACE".into()],
            drop: vec!["ALL".into()],
        }),
        privileged: Some(false),
    };
    let head = v1::HeadGroupSpec {
        compute_template: "t".into(),
        image: "ray:head".into(),
        service_type: "NodePort".into(),
        enable_ingress: true,
        ray_start_params: texts(&[("dashboard-host", "0.0.0.0")]),
        volumes: volumes(),
        service_account: "runner".into(),
        image_pull_secret: "pull".into(),
        environment: Some(environment(&[("H", "1"), ("SHARED", "head")])),
        annotations: texts(&[("x.io/a", "b")]),
        labels: texts(&[("team", "ml")]),
        image_pull_policy: "Always".into(),
        security_context: Some(security.clone()),
    };
    let worker = v1::WorkerGroupSpec {
        group_name: "w".into(),
        compute_template: "t".into(),
        image: "ray:worker".into(),
        replicas: 2,
        min_replicas: 1,
        max_replicas: 3,
        ray_start_params: texts(&[("node-ip-address", "$MY_POD_IP")]),
        volumes: volumes(),
        service_account: "runner".into(),
        image_pull_secret: "pull".into(),
        environment: Some(environment(&[("W", "1"), ("TYPE", "mine")])),
        annotations: texts(&[("x.io/a", "c")]),
        labels: texts(&[("team", "ops")]),
        image_pull_policy: "Always".into(),
        security_context: Some(security),
    };
    let from = v1::EnvValueFrom {
        source: v1::env_value_from::Source::Secret.into(),
        name: "all".into(),
        key: String::new(),
    };
    let options = v1::AutoscalerOptions {
        idle_timeout_seconds: 60,
        upscaling_mode: "Aggressive".into(),
        image: "ray:scaler".into(),
        image_pull_policy: "Always".into(),
        cpu: "1".into(),
        memory: "1Gi".into(),
        envs: Some(v1::EnvironmentVariables {
            values: texts(&[("A", "1")]),
            values_from: [("all".to_owned(), from)].into(),
        }),
        volumes: volumes()[5..].to_vec(),
    };
    v1::Cluster {
        environment: v1::cluster::Environment::Production.into(),
        annotations: texts(&[("x.io/a", "b")]),
        envs: Some(environment(&[("E", "1"), ("SHARED", "all")])),
        cluster_spec: Some(v1::ClusterSpec {
            head_group_spec: Some(head),
            worker_group_spec: vec![worker],
            enable_in_tree_autoscaling: true,
            autoscaler_options: Some(options),
            head_service_annotations: texts(&[("x.io/s", "t")]),
        }),
        ..small(namespace, name)
    }
}

#[track_caller]
pub fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>, why: &str) {
    match outcome.unwrap_err() {
        Error::Invalid(text) => assert!(text.contains(why), "{text}"),
        other => unreachable!("{other:?} instead of {why}"),
    }
}
