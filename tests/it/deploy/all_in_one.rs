//! The overlay of one process: what holds for two pods holds for the one.

use std::{collections::BTreeSet, process::Stdio};

use hindsight::config::{Auth, Config, File, Sources};
use kubesim::Sim;
use serde_json::Value;

use super::{all, arguments, check, container, environment, name, overlay, pods, rights};
use crate::support::{Database, process::hindsight};

const OVERLAY: &str = "all-in-one";

fn process(objects: &[Value]) -> &Value {
    let pods = pods(objects);
    assert_eq!(pods.keys().collect::<Vec<_>>(), [&"hindsight"]);
    pods["hindsight"]
}

fn server(objects: &[Value]) -> Config {
    let map = all(objects, "ConfigMap").next().unwrap();
    let file = File {
        path: "/etc/hindsight/hindsight.toml".to_owned(),
        text: Ok(map["data"]["hindsight.toml"].as_str().unwrap().to_owned()),
    };
    let sources = Sources {
        file: Some(file),
        env: environment(container(process(objects))),
        ..Sources::default()
    };
    Config::load(&sources).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn one_process_is_one_pod_with_the_ports_the_time_and_the_token_it_needs() {
    let objects = overlay(OVERLAY);
    for object in &objects {
        assert_eq!(check(object), Vec::<String>::new(), "{}", name(object));
    }
    let pod = process(&objects);
    let container = container(pod);
    let config = server(&objects);
    assert_eq!(config.auth, Auth::Kubernetes);
    let arguments = arguments(container);
    assert_eq!(arguments[0], "all-in-one");
    let watcher = |flag: &str| {
        let value = arguments.iter().find_map(|given| given.strip_prefix(flag));
        value.unwrap_or_else(|| panic!("{flag} is missing"))
    };
    assert!(watcher("--watcher-token-file=").ends_with("/serviceaccount/token"));
    let ports = container["ports"].as_array().unwrap();
    let port = |named: &str| {
        let port = ports.iter().find(|port| port["name"] == named).unwrap();
        format!("0.0.0.0:{}", port["containerPort"])
    };
    assert_eq!(config.listen.to_string(), port("api"));
    assert_eq!(config.metrics_listen.unwrap().to_string(), port("metrics"));
    assert_eq!(watcher("--watcher-metrics-listen="), port("watcher"));
    // Every port has a way in, and only those.
    let [policy] = all(&objects, "NetworkPolicy").collect::<Vec<_>>()[..] else {
        panic!("one pod has one policy");
    };
    let ways = policy["spec"]["ingress"].as_array().unwrap();
    let ways = ways.iter().flat_map(|way| way["ports"].as_array().unwrap());
    let ways: BTreeSet<_> = ways.map(|way| way["port"].as_str().unwrap()).collect();
    assert_eq!(ways, BTreeSet::from(["api", "metrics", "watcher"]));
    // Kubernetes waits for the watcher, and then for the server.
    let waits = pod["spec"]["terminationGracePeriodSeconds"].as_u64();
    let sleeps = container["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64();
    let own =
        config.shutdown_grace.get() + hindsight_watcher::config::Config::default().shutdown_grace;
    assert!(waits.unwrap() > sleeps.unwrap() + own.as_secs());
}

/// The process of the overlay on a simulated cluster until it has asked for all that it may.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_process_may_do_what_it_does_and_nothing_else() {
    let objects = overlay(OVERLAY);
    let wanted = rights::of_cluster(rights::granted(&objects, "hindsight"));
    let (sim, database) = (rights::cluster(), Database::sqlite());
    let listening = sim.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let kubeconfig = listening.kubeconfig().display().to_string();
    let policy = sim.policy().token("secret", "hindsight", &[]);
    for verb in ["get", "list", "create", "update"] {
        for resource in ["results", "records"] {
            policy.allow("hindsight", verb, "results.tekton.dev", resource, "ci");
        }
    }
    let token = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(token.path(), "secret").unwrap();
    let mut command = hindsight();
    command
        .arg("all-in-one")
        .args(["--db", &database.url(), "--listen", "127.0.0.1:0"])
        .args(["--metrics-listen", "off", "--auth", "kubernetes"])
        .args([
            "--auth-kubeconfig",
            &kubeconfig,
            "--watcher-kubeconfig",
            &kubeconfig,
        ])
        .arg("--watcher-token-file")
        .arg(token.path());
    // Whatever else the overlay tells the watcher.
    let elsewhere = ["--watcher-token-file=", "--watcher-metrics-listen="];
    let given = arguments(container(process(&objects)));
    let given = given.iter().filter(|given| given.starts_with("--watcher-"));
    command.args(given.filter(|given| !elsewhere.iter().any(|start| given.starts_with(start))));
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let rare = rights::rare();
    let seen = |sim: &Sim| -> BTreeSet<_> {
        let asked = rights::asked(sim.calls().all());
        asked.into_iter().chain(rare.clone()).collect()
    };
    let done = sim.until(|sim| seen(sim).is_superset(&wanted));
    let in_time = tokio::time::timeout(rights::PATIENCE, done).await;
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        in_time.is_ok(),
        "granted and not asked: {:?}",
        wanted.difference(&seen(&sim))
    );
    assert_eq!(seen(&sim), wanted);
}
