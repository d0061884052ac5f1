//! What a real server does in its own time, and a test in steps: histories that end, clients that do
//! not read, controllers that come later.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, WatchEvent, WatchParams},
};
use kubesim::{Crd, Settings, Sim, SystemClock};
use serde_json::json;
use tokio::time::timeout;

use super::{code, manual, map, maps, seconds};

const PATIENCE: Duration = Duration::from_secs(20);

type Events = BoxStream<'static, Result<WatchEvent<ConfigMap>, kube::Error>>;

async fn watch(sim: &Sim, version: u64) -> Events {
    let params = WatchParams::default();
    let stream = maps(sim).watch(&params, &version.to_string()).await;
    stream.unwrap().boxed()
}

#[tokio::test]
async fn a_watch_that_is_not_read_is_closed_and_one_that_is_read_is_not() {
    let settings = Settings {
        watch_buffer: 4,
        watch_patience: Duration::from_millis(5),
        ..Settings::default()
    };
    let sim = Sim::with(settings, Arc::new(SystemClock));
    let version = sim.version();
    let (read, left) = (watch(&sim, version).await, watch(&sim, version).await);
    let reader = tokio::spawn(read.take(500).try_collect::<Vec<_>>());
    for count in 0..500 {
        sim.create(map(&format!("map-{count}"))).unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(
        timeout(PATIENCE, reader)
            .await
            .unwrap()
            .unwrap()
            .unwrap()
            .len(),
        500
    );
    let seen: Vec<_> = timeout(PATIENCE, left.try_collect())
        .await
        .unwrap()
        .unwrap();
    assert!(seen.len() < 500, "{}", seen.len());
    assert_eq!(sim.closed_watches(), 1);
    // The client goes on where it was.
    let WatchEvent::Added(last) = seen.last().unwrap() else {
        panic!("a config map comes last");
    };
    let from = last.resource_version().unwrap().parse().unwrap();
    let rest = watch(&sim, from).await.take(500 - seen.len());
    let rest: Vec<_> = timeout(PATIENCE, rest.try_collect())
        .await
        .unwrap()
        .unwrap();
    assert!(matches!(rest.last(), Some(WatchEvent::Added(map)) if map.name_any() == "map-499"));
}

#[tokio::test]
async fn watches_go_back_75_seconds_and_pages_5_minutes() {
    let (sim, clock) = manual(Settings::default());
    sim.create(map("first")).unwrap();
    let old = sim.version();
    let maps = maps(&sim);
    for count in 0..150 {
        sim.create(map(&format!("map-{count}"))).unwrap();
    }
    let first = async |version| watch(&sim, version).await.next().await.unwrap().unwrap();
    clock.advance(seconds(75));
    assert!(matches!(first(old).await, WatchEvent::Added(_)));
    sim.create(map("last")).unwrap();
    clock.advance(seconds(1));
    assert!(matches!(first(old).await, WatchEvent::Error(status) if status.code == 410));
    // The last hundred changes are kept however old they are.
    let late = sim.version() - 100;
    assert!(matches!(first(late).await, WatchEvent::Added(_)));

    let one = ListParams::default().limit(1);
    let next = |token: &str| one.clone().continue_token(token);
    let token = maps.list(&one).await.unwrap().metadata.continue_.unwrap();
    sim.create(map("more")).unwrap();
    clock.advance(seconds(300));
    maps.list(&next(&token)).await.unwrap();
    clock.advance(seconds(1));
    assert_eq!(code(maps.list(&next(&token)).await), 410);
}

#[tokio::test]
async fn etcd_is_full_until_it_is_compacted() {
    let (sim, clock) = manual(Settings {
        storage_quota: Some(100_000),
        ..Settings::default()
    });
    let large = |name: &str| {
        let mut map = map(name);
        map["data"] = json!({"filler": "x".repeat(60_000)});
        map
    };
    sim.create(large("a")).unwrap();
    let refusal = sim.create(large("b")).unwrap_err();
    assert_eq!(refusal.code, 500);
    assert_eq!(refusal.message, "etcdserver: mvcc: database space exceeded");
    clock.advance(seconds(301));
    sim.create(large("b")).unwrap();
}

#[tokio::test]
async fn controllers_work_in_steps() {
    let sim = Sim::new();
    sim.stop_controllers();
    let namespaces: Api<Namespace> = Api::all(sim.client());
    sim.namespace("ci");
    let owner = sim
        .create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner", "namespace": "ci"}}))
        .unwrap();
    let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]);
    let child = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "child", "namespace": "ci", "ownerReferences": reference},
    });
    sim.create(child.clone()).unwrap();
    sim.delete("", "configmaps", "ci", "owner").unwrap();
    assert!(sim.get("", "configmaps", "ci", "child").is_some());
    while sim.step_controllers() {}
    assert!(sim.get("", "configmaps", "ci", "child").is_none());

    sim.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "left", "namespace": "ci"}}))
        .unwrap();
    let deleted = namespaces
        .delete("ci", &DeleteParams::default())
        .await
        .unwrap();
    let held = deleted.left().unwrap();
    assert_eq!(held.status.unwrap().phase.as_deref(), Some("Terminating"));
    assert_eq!(held.spec.unwrap().finalizers.unwrap(), ["kubernetes"]);
    assert!(sim.get("", "configmaps", "ci", "left").is_some());
    assert!(
        sim.create(child)
            .unwrap_err()
            .message
            .contains("is being terminated")
    );
    sim.start_controllers();
    assert!(namespaces.get_opt("ci").await.unwrap().is_none());
    assert!(!sim.step_controllers());
}

#[tokio::test]
async fn discovery_may_lag() {
    let sim = Sim::new();
    sim.freeze_discovery().install_all(Crd::tekton());
    let known = async || {
        let groups = sim.client().list_api_groups().await.unwrap();
        groups.groups.iter().any(|group| group.name == "tekton.dev")
    };
    assert!(!known().await);
    // The kind itself is served already.
    let client = sim.client();
    let runs = client.request::<serde_json::Value>(
        http::Request::get("/apis/tekton.dev/v1/taskruns")
            .body(Vec::new())
            .unwrap(),
    );
    assert_eq!(runs.await.unwrap()["kind"], "TaskRunList");
    sim.thaw_discovery();
    assert!(known().await);
}
