//! What a real server does in its own time, and a test in steps: histories that end, clients that do
//! not read, connections that fall silent, controllers that come later.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt, pin_mut, stream::BoxStream};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams},
};
use kubesim::{Crd, Fault, ManualClock, Refusal, Settings, Sim, SystemClock};
use serde_json::json;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

fn maps(client: Client) -> Api<ConfigMap> {
    Api::namespaced(client, "default")
}

fn make(sim: &Sim, name: &str) {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    sim.create(map).unwrap();
}

type Events = BoxStream<'static, Result<WatchEvent<ConfigMap>, kube::Error>>;

async fn watch(sim: &Sim, version: u64) -> Events {
    let params = WatchParams::default();
    let stream = maps(sim.client())
        .watch(&params, &version.to_string())
        .await;
    stream.unwrap().boxed()
}

fn code<T: std::fmt::Debug>(outcome: Result<T, kube::Error>) -> u16 {
    match outcome.unwrap_err() {
        kube::Error::Api(status) => status.code,
        error => panic!("{error}"),
    }
}

fn manual() -> (Sim, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at("2026-03-01T10:00:00Z".parse().unwrap()));
    let sim = Sim::with(Settings::default(), Arc::clone(&clock) as Arc<_>);
    (sim, clock)
}

fn seconds(seconds: i64) -> jiff::SignedDuration {
    jiff::SignedDuration::from_secs(seconds)
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
        make(&sim, &format!("map-{count}"));
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
    let (sim, clock) = manual();
    make(&sim, "first");
    let old = sim.version();
    let maps = maps(sim.client());
    for count in 0..150 {
        make(&sim, &format!("map-{count}"));
    }
    let first = async |version| watch(&sim, version).await.next().await.unwrap().unwrap();
    clock.advance(seconds(75));
    assert!(matches!(first(old).await, WatchEvent::Added(_)));
    make(&sim, "last");
    clock.advance(seconds(1));
    assert!(matches!(first(old).await, WatchEvent::Error(status) if status.code == 410));
    // The last hundred changes are kept however old they are.
    let late = sim.version() - 100;
    assert!(matches!(first(late).await, WatchEvent::Added(_)));

    let one = ListParams::default().limit(1);
    let next = |token: &str| one.clone().continue_token(token);
    let token = maps.list(&one).await.unwrap().metadata.continue_.unwrap();
    make(&sim, "more");
    clock.advance(seconds(300));
    maps.list(&next(&token)).await.unwrap();
    clock.advance(seconds(1));
    assert_eq!(code(maps.list(&next(&token)).await), 410);
}

#[tokio::test]
async fn etcd_is_full_until_it_is_compacted() {
    let clock = Arc::new(ManualClock::at("2026-03-01T10:00:00Z".parse().unwrap()));
    let settings = Settings {
        storage_quota: Some(100_000),
        ..Settings::default()
    };
    let sim = Sim::with(settings, Arc::clone(&clock) as Arc<_>);
    let large = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"filler": "x".repeat(60_000)},
        })
    };
    sim.create(large("a")).unwrap();
    let refusal = sim.create(large("b")).unwrap_err();
    assert_eq!(refusal.code, 500);
    assert_eq!(refusal.message, "etcdserver: mvcc: database space exceeded");
    clock.advance(seconds(301));
    sim.create(large("b")).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_neither_answers_nor_ends() {
    let sim = Sim::new();
    make(&sim, "a");
    let (maps, params) = (maps(sim.client()), ListParams::default());
    sim.faults().plan(Fault::silent().verb("list"));
    let list = maps.list(&params);
    timeout(Duration::from_hours(1), list).await.unwrap_err();

    sim.faults().plan(Fault::stalled_after(10).verb("list"));
    let list = maps.list(&params);
    timeout(Duration::from_hours(1), list).await.unwrap_err();

    sim.faults().plan(Fault::broken_after(10).verb("list"));
    maps.list(&ListParams::default()).await.unwrap_err();
    assert_eq!(
        maps.list(&ListParams::default()).await.unwrap().items.len(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_frozen_watch_says_nothing_until_it_is_thawed() {
    let sim = Sim::new();
    let params = WatchParams::default().timeout(60);
    let version = sim.version().to_string();
    let stream = maps(sim.client()).watch(&params, &version).await.unwrap();
    pin_mut!(stream);
    make(&sim, "a");
    assert!(matches!(
        stream.next().await,
        Some(Ok(WatchEvent::Added(_)))
    ));
    sim.faults().freeze_watches();
    make(&sim, "b");
    timeout(Duration::from_hours(1), stream.next())
        .await
        .unwrap_err();
    sim.faults().thaw_watches();
    assert!(matches!(
        stream.next().await,
        Some(Ok(WatchEvent::Added(_)))
    ));
}

#[tokio::test]
async fn refusals_may_last_and_keep_to_a_kind() {
    let sim = Sim::new();
    sim.install_all(Crd::tekton());
    let plan = |fault: Fault| sim.faults().plan(fault.lasting());
    plan(
        Fault::denied_by_webhook("policy.example.dev", "no labels")
            .verb("create")
            .resource("configmaps"),
    );
    plan(
        Fault::conversion_failed("tekton.dev/v1", "TaskRun")
            .group("tekton.dev")
            .resource("taskruns"),
    );
    plan(
        Fault::refusal(Refusal::new(403, "Forbidden", "exceeded quota"))
            .verb("create")
            .namespace("full"),
    );
    let maps = maps(sim.client());
    for _ in 0..3 {
        let denied = maps
            .create(&PostParams::default(), &map("a"))
            .await
            .unwrap_err();
        let kube::Error::Api(status) = denied else {
            panic!("{denied}");
        };
        let why = "admission webhook \"policy.example.dev\" denied the request: no labels";
        assert_eq!((status.code, status.message.as_str()), (400, why));
        let taskruns = sim.client().list_api_group_resources("tekton.dev/v1").await;
        assert!(!taskruns.unwrap().resources.is_empty());
        let runs: Api<kube::core::DynamicObject> = {
            let kind = kube::core::GroupVersionKind::gvk("tekton.dev", "v1", "TaskRun");
            Api::all_with(sim.client(), &kube::core::ApiResource::from_gvk(&kind))
        };
        assert_eq!(code(runs.list(&ListParams::default()).await), 500);
        maps.list(&ListParams::default()).await.unwrap();
    }
    assert_eq!(sim.faults().pending(), 0);
    sim.faults().clear();
    maps.create(&PostParams::default(), &map("a"))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_busy_server_answers_so_many_requests_a_second() {
    let (sim, clock) = manual();
    sim.faults().limit(3);
    let maps = maps(sim.client());
    let mut codes = Vec::new();
    for _ in 0..5 {
        let outcome = maps.list(&ListParams::default()).await;
        codes.push(outcome.map_or_else(|error| code::<()>(Err(error)), |_| 200));
    }
    assert_eq!(codes, [200, 200, 200, 429, 429]);
    clock.advance(seconds(1));
    maps.list(&ListParams::default()).await.unwrap();
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
