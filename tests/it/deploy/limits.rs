//! What pods and people are limited to: users, memory, volumes, roles.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    ALL_OVERLAYS, OVERLAYS, all, container, name, overlay, pods,
    render::{self, root},
    watcher_config,
};

#[test]
fn on_openshift_the_cluster_chooses_the_users() {
    for of in ALL_OVERLAYS {
        let mut objects = overlay(of);
        render::add(&root().join("components/openshift"), &mut objects);
        for (name, pod) in pods(&objects) {
            let whole = pod["spec"]["securityContext"].as_object().unwrap();
            let keys: BTreeSet<_> = whole.keys().map(String::as_str).collect();
            let expected = BTreeSet::from(["runAsNonRoot", "seccompProfile"]);
            assert_eq!(keys, expected, "{of}: {name}");
        }
    }
}

#[test]
fn only_who_may_administer_a_namespace_may_rewrite_its_history() {
    for role in all(&overlay("sqlite"), "ClusterRole") {
        let is_added = |to: &str| {
            let label = format!("rbac.authorization.k8s.io/aggregate-to-{to}");
            role["metadata"]["labels"].get(&label).is_some()
        };
        assert_eq!(is_added("view"), name(role) == "hindsight-readonly");
        assert!(!is_added("edit"), "{}", name(role));
    }
}

#[test]
fn a_watcher_keeps_what_only_it_knows_on_a_volume_and_in_its_limits() {
    for of in OVERLAYS {
        let objects = overlay(of);
        let watcher = watcher_config(&objects).config;
        let spool = watcher.spool.unwrap();
        let pod = pods(&objects)["hindsight-watcher"];
        let mounts = container(pod)["volumeMounts"].as_array().unwrap();
        let dir = spool.dir.to_str().unwrap();
        let mount = mounts
            .iter()
            .find(|mount| mount["mountPath"] == dir)
            .unwrap();
        let volumes = pod["spec"]["volumes"].as_array().unwrap();
        let volume = volumes.iter().find(|v| v["name"] == mount["name"]).unwrap();
        let mebibytes = |text: &Value| {
            let number = text.as_str().unwrap().strip_suffix("Mi").unwrap();
            number.parse::<u64>().unwrap() << 20
        };
        let room = mebibytes(&volume["emptyDir"]["sizeLimit"]);
        assert!(spool.limit + (256 << 20) <= room, "{of}");
        let memory = mebibytes(&container(pod)["resources"]["limits"]["memory"]);
        assert!(watcher.tuning.hold_bytes as u64 <= memory / 4, "{of}");
    }
}
