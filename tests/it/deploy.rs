//! What is in `deploy/`: it renders, every object is one that the API server takes, the programs
//! take what it tells them, and the rights are exactly what the programs use.

mod all_in_one;
mod image;
mod limits;
mod render;
mod rights;

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use hindsight::config::{Config, File, Sources};
use hindsight_watcher::config::Launch;
use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::{ConfigMap, Namespace, Service, ServiceAccount},
    networking::v1::NetworkPolicy,
    policy::v1::PodDisruptionBudget,
    rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use render::{render, root};

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

/// What an object says that its type does not know.
fn unknown<T: Serialize + DeserializeOwned>(object: &Value) -> Vec<String> {
    let typed: T = match serde_json::from_value(object.clone()) {
        Ok(typed) => typed,
        Err(error) => return vec![error.to_string()],
    };
    let mut missing = Vec::new();
    compare(
        object,
        &serde_json::to_value(typed).unwrap(),
        "",
        &mut missing,
    );
    missing
}

fn compare(said: &Value, kept: &Value, path: &str, missing: &mut Vec<String>) {
    match (said, kept) {
        (Value::Object(said), Value::Object(kept)) => {
            for (key, value) in said {
                let path = format!("{path}.{key}");
                match kept.get(key) {
                    Some(kept) => compare(value, kept, &path, missing),
                    None => missing.push(path),
                }
            }
        }
        (Value::Array(said), Value::Array(kept)) => {
            for (at, (said, kept)) in said.iter().zip(kept).enumerate() {
                compare(said, kept, &format!("{path}[{at}]"), missing);
            }
        }
        (said, kept) if said == kept => {}
        (said, kept) => missing.push(format!("{path}: {said} is {kept}")),
    }
}

fn check(object: &Value) -> Vec<String> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let (version, unknown) = match kind {
        "Namespace" => ("v1", unknown::<Namespace>(object)),
        "ServiceAccount" => ("v1", unknown::<ServiceAccount>(object)),
        "ConfigMap" => ("v1", unknown::<ConfigMap>(object)),
        "Service" => ("v1", unknown::<Service>(object)),
        "Deployment" => ("apps/v1", unknown::<Deployment>(object)),
        "StatefulSet" => ("apps/v1", unknown::<StatefulSet>(object)),
        "NetworkPolicy" => ("networking.k8s.io/v1", unknown::<NetworkPolicy>(object)),
        "PodDisruptionBudget" => ("policy/v1", unknown::<PodDisruptionBudget>(object)),
        "ClusterRole" => (RBAC, unknown::<ClusterRole>(object)),
        "ClusterRoleBinding" => (RBAC, unknown::<ClusterRoleBinding>(object)),
        "Role" => (RBAC, unknown::<Role>(object)),
        "RoleBinding" => (RBAC, unknown::<RoleBinding>(object)),
        _ => return vec![format!("`{kind}` is no kind that is expected here")],
    };
    if object["apiVersion"] != version {
        return vec![format!(
            "{kind} is of {version}, not {}",
            object["apiVersion"]
        )];
    }
    unknown
}

const RBAC: &str = "rbac.authorization.k8s.io/v1";

#[test]
fn every_object_of_every_overlay_is_one_that_the_api_server_takes() {
    for of in ALL_OVERLAYS {
        let objects = overlay(of);
        let mut seen = BTreeSet::new();
        for object in &objects {
            let what = (
                object["kind"].as_str().unwrap(),
                object["metadata"]["namespace"].as_str().unwrap_or_default(),
                name(object),
            );
            assert!(seen.insert(what), "{of}: {what:?} is there twice");
            assert_eq!(check(object), Vec::<String>::new(), "{of}: {what:?}");
        }
        assert!(objects.len() >= 15, "{of}: {} objects", objects.len());
    }
}

#[test]
fn a_field_that_does_not_exist_is_noticed() {
    let mut objects = overlay("sqlite");
    let set = objects
        .iter_mut()
        .find(|object| object["kind"] == "StatefulSet")
        .unwrap();
    set["spec"]["template"]["spec"]["containers"][0]["redinessProbe"] =
        Value::Object([].into_iter().collect());
    assert_eq!(
        check(set),
        [".spec.template.spec.containers[0].redinessProbe"]
    );
    set["spec"]["replicas"] = "one".into();
    assert_eq!(check(set).len(), 1);
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

#[test]
fn every_pod_is_bound_to_as_little_as_it_needs() {
    let image = format!("hindsight:{}", env!("CARGO_PKG_VERSION"));
    for of in ALL_OVERLAYS {
        let objects = overlay(of);
        let pods = pods(&objects);
        let expected = [&"hindsight", &"hindsight-watcher"];
        let count = if OVERLAYS.contains(&of) { 2 } else { 1 };
        assert_eq!(pods.keys().collect::<Vec<_>>(), expected[..count], "{of}");
        for (name, pod) in pods {
            let what = format!("{of}: {name}");
            let whole = &pod["spec"]["securityContext"];
            assert_eq!(whole["runAsNonRoot"], true, "{what}");
            assert_eq!(whole["seccompProfile"]["type"], "RuntimeDefault", "{what}");
            let container = container(pod);
            let own = &container["securityContext"];
            assert_eq!(own["allowPrivilegeEscalation"], false, "{what}");
            assert_eq!(own["readOnlyRootFilesystem"], true, "{what}");
            assert_eq!(own["capabilities"]["drop"][0], "ALL", "{what}");
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

/// The environment of a container, without what comes from elsewhere.
fn environment(container: &Value) -> BTreeMap<String, String> {
    let entries = container["env"].as_array().cloned().unwrap_or_default();
    entries
        .iter()
        .filter(|entry| entry["name"] != "SSL_CERT_FILE")
        .map(|entry| {
            let text = entry["value"]
                .as_str()
                .unwrap_or("postgres://hindsight:x@db/hindsight");
            (entry["name"].as_str().unwrap().to_owned(), text.to_owned())
        })
        .collect()
}

fn arguments(container: &Value) -> Vec<&str> {
    container["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap())
        .collect()
}

/// What a server of this overlay runs with.
fn server_config(objects: &[Value]) -> Config {
    let pods = pods(objects);
    let container = container(pods["hindsight"]);
    assert_eq!(
        arguments(container),
        ["serve", "--config=/etc/hindsight/hindsight.toml"]
    );
    let map = all(objects, "ConfigMap")
        .find(|map| name(map) == "hindsight")
        .unwrap();
    let file = File {
        path: "/etc/hindsight/hindsight.toml".to_owned(),
        text: Ok(map["data"]["hindsight.toml"].as_str().unwrap().to_owned()),
    };
    let sources = Sources {
        file: Some(file),
        env: environment(container),
        flags: BTreeMap::new(),
    };
    Config::load(&sources).unwrap_or_else(|problems| panic!("{problems}"))
}

/// What a watcher of this overlay runs with.
fn watcher_config(objects: &[Value]) -> Launch {
    let pods = pods(objects);
    let container = container(pods["hindsight-watcher"]);
    let flags = arguments(container).into_iter().map(|argument| {
        let argument = argument.strip_prefix("--").unwrap();
        let (name, text) = argument.split_once('=').unwrap_or((argument, "true"));
        (name.replace('-', "_"), text.to_owned())
    });
    let sources = Sources {
        flags: flags.collect(),
        env: environment(container),
        file: None,
    };
    Launch::load(&sources).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn the_programs_take_what_they_are_told() {
    for of in OVERLAYS {
        let objects = overlay(of);
        let (server, watcher) = (server_config(&objects), watcher_config(&objects));
        let pods = pods(&objects);
        let port = |pod: &str, name: &str| {
            let ports = container(pods[pod])["ports"].as_array().unwrap();
            let port = ports.iter().find(|port| port["name"] == name).unwrap();
            u16::try_from(port["containerPort"].as_u64().unwrap()).unwrap()
        };
        assert_eq!(server.listen.port(), port("hindsight", "api"), "{of}");
        let metrics = [server.metrics_listen, watcher.config.metrics_listen];
        let ports = [("hindsight", "9090"), ("hindsight-watcher", "9091")];
        for (address, (pod, scraped)) in metrics.into_iter().zip(ports) {
            assert_eq!(address.unwrap().port(), port(pod, "metrics"), "{of}");
            let told = &pods[pod]["metadata"]["annotations"]["prometheus.io/port"];
            assert_eq!(told, scraped, "{of}");
        }
        let scheme = if server.tls_cert.is_some() {
            "https"
        } else {
            "http"
        };
        assert!(
            watcher
                .settings
                .server
                .as_str()
                .starts_with(&format!("{scheme}://hindsight")),
            "{of}"
        );
        assert!(watcher.settings.server.as_str().ends_with(":8080"), "{of}");
        assert!(watcher.config.lease.is_some(), "{of}: there are two");
        assert_eq!(watcher.config.policy.collect.is_some(), of == "complete");

        // Kubernetes waits for what the server waits for.
        let spec = &pods["hindsight"]["spec"];
        let sleeps =
            container(pods["hindsight"])["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64();
        let waits = spec["terminationGracePeriodSeconds"].as_u64().unwrap();
        assert!(
            waits > sleeps.unwrap() + server.shutdown_grace.get().as_secs(),
            "{of}"
        );
        let waits = pods["hindsight-watcher"]["spec"]["terminationGracePeriodSeconds"].as_u64();
        assert!(
            waits.unwrap() > watcher.config.shutdown_grace.as_secs(),
            "{of}"
        );

        // What is written to is mounted so that it can be.
        if let Some(file) = server.db.to_string().strip_prefix("sqlite:") {
            let mounts = container(pods["hindsight"])["volumeMounts"]
                .as_array()
                .unwrap();
            let mount = mounts.iter().find(|mount| {
                file.starts_with(&format!("{}/", mount["mountPath"].as_str().unwrap()))
            });
            assert_ne!(mount.unwrap()["readOnly"], true);
        }
    }
}
