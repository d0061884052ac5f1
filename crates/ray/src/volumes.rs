//! Conversion between volumes of a group, and volumes and mounts of pods.

use hindsight_proto::ray_v1::{
    Volume,
    volume::{AccessMode, HostPathType, MountPropagationMode, VolumeType},
};
use serde_json::{Value, json};

use crate::{
    json::{flag, items, object, text},
    names::{MANAGED_BY, MANAGER},
};

/// The volumes of a pod.
pub(crate) fn volumes(volumes: &[Volume]) -> Vec<Value> {
    volumes.iter().map(volume).collect()
}

fn volume(volume: &Volume) -> Value {
    let name = &volume.name;
    let source = &volume.source;
    match volume.volume_type() {
        VolumeType::PersistentVolumeClaim => json!({
            "name": name,
            "persistentVolumeClaim": {"claimName": source, "readOnly": volume.read_only},
        }),
        VolumeType::HostPath => {
            let kind = match volume.host_path_type() {
                HostPathType::Directory => "Directory",
                HostPathType::File => "File",
            };
            json!({"name": name, "hostPath": {"path": source, "type": kind}})
        }
        VolumeType::Ephemeral => {
            let mode = match volume.access_mode() {
                AccessMode::Rwo => "ReadWriteOnce",
                AccessMode::Rox => "ReadOnlyMany",
                AccessMode::Rwx => "ReadWriteMany",
            };
            let spec = object([
                ("accessModes", json!([mode])),
                (
                    "storageClassName",
                    volume.storage_class_name.as_str().into(),
                ),
                (
                    "resources",
                    json!({"requests": {"storage": volume.storage}}),
                ),
            ]);
            let claim = json!({"metadata": {"labels": {MANAGED_BY: MANAGER}}, "spec": spec});
            json!({"name": name, "ephemeral": {"volumeClaimTemplate": claim}})
        }
        VolumeType::Configmap => {
            let of = [("name", source.as_str().into()), ("items", paths(volume))];
            json!({"name": name, "configMap": object(of)})
        }
        VolumeType::Secret => {
            let of = [
                ("secretName", source.as_str().into()),
                ("items", paths(volume)),
            ];
            json!({"name": name, "secret": object(of)})
        }
        VolumeType::EmptyDir => {
            let of = [("sizeLimit", volume.storage.as_str().into())];
            json!({"name": name, "emptyDir": object(of)})
        }
    }
}

fn paths(volume: &Volume) -> Value {
    let of = volume.items.iter();
    of.map(|(key, path)| json!({"key": key, "path": path}))
        .collect()
}

/// The mounts of a container.
pub(crate) fn mounts(volumes: &[Volume]) -> Vec<Value> {
    let mount = |volume: &Volume| {
        let propagation = match volume.mount_propagation_mode() {
            MountPropagationMode::None => "",
            MountPropagationMode::Hosttocontainer => "HostToContainer",
            MountPropagationMode::Bidirectional => "Bidirectional",
        };
        object([
            ("name", volume.name.as_str().into()),
            ("readOnly", volume.read_only.into()),
            ("mountPath", volume.mount_path.as_str().into()),
            ("mountPropagation", propagation.into()),
        ])
    };
    volumes.iter().map(mount).collect()
}

/// The volumes of the mounts of a container. Types that messages do not know are left out.
pub(crate) fn read(mounts: &[Value], volumes: &[Value]) -> Vec<Volume> {
    let of = |mount: &Value| {
        let volume = volumes
            .iter()
            .find(|volume| volume["name"] == mount["name"])?;
        let propagation = match mount["mountPropagation"].as_str() {
            Some("HostToContainer") => MountPropagationMode::Hosttocontainer,
            Some("Bidirectional") => MountPropagationMode::Bidirectional,
            _ => MountPropagationMode::None,
        };
        Some(Volume {
            name: text(mount, "/name"),
            mount_path: text(mount, "/mountPath"),
            read_only: flag(mount, "/readOnly"),
            mount_propagation_mode: propagation.into(),
            ..source(volume)?
        })
    };
    mounts.iter().filter_map(of).collect()
}

fn source(volume: &Value) -> Option<Volume> {
    let mut found = Volume::default();
    if volume.get("persistentVolumeClaim").is_some() {
        found.source = text(volume, "/persistentVolumeClaim/claimName");
    } else if volume.get("hostPath").is_some() {
        found.set_volume_type(VolumeType::HostPath);
        found.source = text(volume, "/hostPath/path");
        if text(volume, "/hostPath/type") == "File" {
            found.set_host_path_type(HostPathType::File);
        }
    } else if volume.get("ephemeral").is_some() {
        let spec = "/ephemeral/volumeClaimTemplate/spec";
        found.set_volume_type(VolumeType::Ephemeral);
        found.storage_class_name = text(volume, &format!("{spec}/storageClassName"));
        found.storage = text(volume, &format!("{spec}/resources/requests/storage"));
        found.set_access_mode(
            match text(volume, &format!("{spec}/accessModes/0")).as_str() {
                "ReadOnlyMany" => AccessMode::Rox,
                "ReadWriteMany" => AccessMode::Rwx,
                _ => AccessMode::Rwo,
            },
        );
    } else if volume.get("configMap").is_some() {
        found.set_volume_type(VolumeType::Configmap);
        found.source = text(volume, "/configMap/name");
        found.items = read_paths(volume, "/configMap/items");
    } else if volume.get("secret").is_some() {
        found.set_volume_type(VolumeType::Secret);
        found.source = text(volume, "/secret/secretName");
        found.items = read_paths(volume, "/secret/items");
    } else if volume.get("emptyDir").is_some() {
        found.set_volume_type(VolumeType::EmptyDir);
        found.storage = text(volume, "/emptyDir/sizeLimit");
    } else {
        return None;
    }
    Some(found)
}

fn read_paths(volume: &Value, at: &str) -> std::collections::BTreeMap<String, String> {
    let of = |item: &Value| (text(item, "/key"), text(item, "/path"));
    items(volume, at).iter().map(of).collect()
}
