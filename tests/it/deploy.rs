//! What is in `deploy/`: it renders, every object is one that the API server takes, the programs
//! take what it tells them, and the rights are exactly what the programs use.

mod all_in_one;
mod image;
mod limits;
mod pipelines;
mod programs;
mod render;
mod rights;
mod sql;
mod typed;
mod workflow;

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde_json::Value;

use programs::{arguments, environment, watcher_config};
use render::{render, root};
use typed::check;

/// Those of two programs.
const OVERLAYS: [&str; 3] = ["sqlite", "postgres", "complete"];
const ALL_OVERLAYS: [&str; 4] = ["sqlite", "postgres", "complete", "all-in-one"];

fn overlay(name: &str) -> Vec<Value> {
    render(&root().join("overlays").join(name))
}

fn all<'a>(objects: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    objects.iter().filter(move |object| object["kind"] == kind)
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

/// The pods of a rendering, by what they are called.
fn pods(objects: &[Value]) -> BTreeMap<&str, &Value> {
    ["Deployment", "StatefulSet"]
        .into_iter()
        .flat_map(|kind| all(objects, kind))
        .map(|object| (name(object), &object["spec"]["template"]))
        .collect()
}

fn container(pod: &Value) -> &Value {
    let containers = pod["spec"]["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 1);
    &containers[0]
}

#[test]
fn it_renders_as_kubectl_renders_it() {
    for of in ALL_OVERLAYS {
        let folder = root().join("overlays").join(of);
        let said = Command::new("kubectl")
            .arg("kustomize")
            .arg(&folder)
            .output();
        let Ok(said) = said else {
            eprintln!("not compared: there is no kubectl");
            return;
        };
        let said_wrong = String::from_utf8_lossy(&said.stderr);
        if !said.status.success() && said_wrong.contains("unknown field") {
            eprintln!("not compared: this kubectl is older than components");
            return;
        }
        assert!(said.status.success(), "{of}: {said_wrong}");
        assert_eq!(said_wrong, "", "{of}");
        let sorted = |objects: Vec<Value>| {
            let mut objects: Vec<_> = objects
                .into_iter()
                .map(|object| {
                    (
                        object["kind"].to_string(),
                        name(&object).to_owned(),
                        canonical(&object),
                    )
                })
                .collect();
            objects.sort();
            objects
        };
        let theirs = render::parse(&String::from_utf8_lossy(&said.stdout), of);
        for (ours, theirs) in sorted(overlay(of)).into_iter().zip(sorted(theirs)) {
            assert_eq!(ours, theirs, "{of}");
        }
    }
}

/// Text that is the same for the same content: keys, and lists told apart by a name, in order.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields
                .iter()
                .map(|(key, value)| format!("{key}:{}", canonical(value)))
                .collect();
            fields.sort();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => {
            let mut items: Vec<_> = items.iter().map(canonical).collect();
            if value[0].get("name").is_some() {
                items.sort();
            }
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}

#[test]
fn what_is_referred_to_is_there() {
    for of in ALL_OVERLAYS {
        let objects = overlay(of);
        let there: BTreeSet<_> = objects
            .iter()
            .map(|object| (object["kind"].as_str().unwrap(), name(object)))
            .collect();
        for kind in ["ClusterRoleBinding", "RoleBinding"] {
            for binding in all(&objects, kind) {
                let role = &binding["roleRef"];
                let role = (
                    role["kind"].as_str().unwrap(),
                    role["name"].as_str().unwrap(),
                );
                assert!(there.contains(&role), "{of}: {role:?}");
                for subject in binding["subjects"].as_array().unwrap() {
                    let account = ("ServiceAccount", subject["name"].as_str().unwrap());
                    assert!(there.contains(&account), "{of}: {account:?}");
                    assert_eq!(subject["namespace"], "hindsight", "{of}");
                }
            }
        }
        let pods = pods(&objects);
        let labels: Vec<_> = pods
            .values()
            .map(|pod| &pod["metadata"]["labels"])
            .collect();
        let selects = |selector: &Value| {
            let chosen = labels.iter().filter(|labels| {
                let mut wanted = selector.as_object().unwrap().iter();
                wanted.all(|(key, value)| labels[key] == *value)
            });
            chosen.count()
        };
        for service in all(&objects, "Service") {
            assert_eq!(selects(&service["spec"]["selector"]), 1, "{of}");
            let target = &service["spec"]["ports"][0]["targetPort"];
            let ports = container(pods["hindsight"])["ports"].as_array().unwrap();
            assert!(ports.iter().any(|port| port["name"] == *target), "{of}");
        }
        for policy in all(&objects, "NetworkPolicy") {
            assert_eq!(
                selects(&policy["spec"]["podSelector"]["matchLabels"]),
                1,
                "{of}"
            );
        }
        for budget in all(&objects, "PodDisruptionBudget") {
            assert_eq!(
                selects(&budget["spec"]["selector"]["matchLabels"]),
                1,
                "{of}"
            );
        }
        for (name, pod) in &pods {
            let account = (
                "ServiceAccount",
                pod["spec"]["serviceAccountName"].as_str().unwrap(),
            );
            assert!(there.contains(&account), "{of}: {name}");
            let policies = all(&objects, "NetworkPolicy").count();
            assert_eq!(policies, pods.len(), "{of}: a policy for each pod");
        }
    }
}

/// Asserts that a pod may do little, is probed, and is limited.
fn is_bound(pod: &Value, what: &str) {
    let whole = &pod["spec"]["securityContext"];
    assert_eq!(whole["runAsNonRoot"], true, "{what}");
    assert_eq!(whole["seccompProfile"]["type"], "RuntimeDefault", "{what}");
    let container = container(pod);
    let own = &container["securityContext"];
    assert_eq!(own["allowPrivilegeEscalation"], false, "{what}");
    assert_eq!(own["readOnlyRootFilesystem"], true, "{what}");
    assert_eq!(own["capabilities"]["drop"][0], "ALL", "{what}");
    let image = format!("hindsight:{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(container["image"], image, "{what}");
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        assert_eq!(
            container[probe]["httpGet"]["port"], "metrics",
            "{what}: {probe}"
        );
    }
    let resources = &container["resources"];
    for part in [
        &resources["requests"]["cpu"],
        &resources["requests"]["memory"],
        &resources["limits"]["memory"],
    ] {
        assert!(part.is_string(), "{what}");
    }
}

#[test]
fn every_pod_is_bound_to_as_little_as_it_needs() {
    for of in ALL_OVERLAYS {
        let objects = overlay(of);
        let pods = pods(&objects);
        let expected = [&"hindsight", &"hindsight-watcher"];
        let count = if OVERLAYS.contains(&of) { 2 } else { 1 };
        assert_eq!(pods.keys().collect::<Vec<_>>(), expected[..count], "{of}");
        for (name, pod) in pods {
            let what = format!("{of}: {name}");
            is_bound(pod, &what);
            let container = container(pod);
            // Every mount has its volume.
            let volumes = pod["spec"]["volumes"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let set = all(&objects, "StatefulSet").next();
            let claimed = set.map_or(&Value::Null, |set| {
                &set["spec"]["volumeClaimTemplates"][0]["metadata"]["name"]
            });
            for mount in container["volumeMounts"].as_array().unwrap_or(&Vec::new()) {
                let known = volumes.iter().any(|volume| volume["name"] == mount["name"]);
                assert!(known || mount["name"] == *claimed, "{what}: {mount}");
            }
        }
    }
}
