//! A world to watch: a simulated cluster, a server in memory, and a watcher between them that
//! can be stopped and started.

mod logs;
mod memory;
pub(crate) mod process;
mod rpc;
mod world;

use std::{
    future::Future,
    time::{Duration, Instant},
};

use hindsight_watcher::{
    backoff::Backoff,
    config::{Config, File, Launch, PROGRAM, Sources, Tuning},
    policy::{Collect, Policy},
};
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::time::timeout;

pub(crate) use logs::LogStore;
pub(crate) use memory::MemorySink;
pub(crate) use rpc::RpcServer;
pub(crate) use world::{World, stored_annotation};

pub(crate) const NAMESPACE: &str = "ci";

/// A watcher that is quick to try again, because tests are.
pub(crate) fn quick() -> Config {
    let quick = Backoff {
        first: Duration::from_millis(5),
        most: Duration::from_millis(50),
    };
    Config {
        tuning: Tuning {
            kind_poll: Duration::from_millis(20),
            server: quick,
            cluster: quick,
            retry: quick,
            rare_retry: Duration::from_millis(100),
            ..Tuning::default()
        },
        // Most tests are about the ends of runs, and count writes.
        policy: Policy {
            store_incomplete: false,
            verify_within: SignedDuration::from_secs(-1),
            ..Policy::default()
        },
        ..Config::default()
    }
}

/// What a watcher does with a file of configuration.
pub(crate) fn from_file(text: &str) -> Config {
    let file = File {
        path: "w.toml".to_owned(),
        text: Ok(text.to_owned()),
    };
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    Launch::load(&PROGRAM, &sources).unwrap().config
}

/// The same, deleting what is stored at once.
pub(crate) fn collecting() -> Config {
    let collect = Collect {
        grace: SignedDuration::ZERO,
        recheck: SignedDuration::from_millis(50),
        ..Collect::default()
    };
    Config {
        policy: Policy {
            collect: Some(collect),
            ..quick().policy
        },
        ..quick()
    }
}

/// Nothing that is waited for takes this long.
pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(30), what)
        .await
        .expect("what is waited for happens")
}

/// Waits until it holds.
pub(crate) async fn eventually(mut holds: impl FnMut() -> bool) {
    within(async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// Waits longer than other tests do.
pub(crate) async fn patiently(mut holds: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(300);
    while !holds() {
        assert!(Instant::now() < patience, "what is waited for happens");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap().to_owned()
}

pub(crate) fn is_done(object: &Value) -> bool {
    object["status"]["completionTime"].is_string()
}

pub(crate) fn task_run(name: &str) -> Value {
    json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"taskRef": {"name": "build"}},
    })
}

/// A TaskRun that `owner` owns.
pub(crate) fn child(name: &str, owner: &Value) -> Value {
    let mut run = task_run(name);
    run["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": true,
    }]);
    run
}

pub(crate) fn pipeline_run(name: &str) -> Value {
    json!({
        "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"pipelineRef": {"name": "nightly"}},
    })
}

pub(crate) fn done() -> Value {
    json!({
        "startTime": "2026-03-01T10:00:00Z", "completionTime": "2026-03-01T10:05:00Z",
        "conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded"}],
    })
}
