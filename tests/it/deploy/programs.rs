//! The programs take the configuration that their pods are given.

use std::collections::BTreeMap;

use hindsight::config::{Config, File, Sources};
use hindsight_watcher::config::{Launch, PROGRAM};
use serde_json::Value;

use super::{OVERLAYS, all, container, name, overlay, pods};

/// The environment of a container, without what comes from elsewhere.
pub(super) fn environment(container: &Value) -> BTreeMap<String, String> {
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

pub(super) fn arguments(container: &Value) -> Vec<&str> {
    container["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap())
        .collect()
}

/// What a server of this overlay runs with.
pub(super) fn server_config(objects: &[Value]) -> Config {
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
pub(super) fn watcher_config(objects: &[Value]) -> Launch {
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
    Launch::load(&PROGRAM, &sources).unwrap_or_else(|problems| panic!("{problems}"))
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
