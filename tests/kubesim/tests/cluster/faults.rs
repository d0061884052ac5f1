//! Faults, delays and outages: what a test plans meets the requests that it is meant for.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{ListParams, WatchEvent, WatchParams},
};
use kubesim::{Crd, Fault, Refusal, Settings, Sim};
use serde_json::json;
use tokio::time::timeout;

use super::{code, create, listed, manual, map, maps, seconds};

#[tokio::test]
async fn planned_faults_meet_the_next_matching_requests() {
    let sim = Sim::new();
    let maps = maps(&sim);
    sim.faults().plan(
        Fault::status(500)
            .verb("create")
            .resource("configmaps")
            .times(2),
    );
    sim.faults()
        .plan(Fault::status(429).verb("create").retry_after(7));
    listed(&maps).await.unwrap();
    for expected in [500, 500, 429] {
        assert_eq!(code(create(&maps, "a").await), expected);
    }
    create(&maps, "a").await.unwrap();
    assert_eq!(sim.faults().pending(), 0);
    let creates = sim.calls().verb("create").resource("configmaps");
    let codes: Vec<_> = creates.all().iter().map(|call| call.status).collect();
    assert_eq!(codes, [Some(500), Some(500), Some(429), Some(201)]);
}

#[tokio::test]
async fn a_retry_after_is_sent_as_a_header() {
    let sim = Sim::new();
    sim.faults().plan(Fault::status(429).retry_after(7));
    let request = http::Request::get("/api/v1/configmaps")
        .body(kube::client::Body::empty())
        .unwrap();
    let answer = sim.client().send(request).await.unwrap();
    assert_eq!(answer.status(), 429);
    assert_eq!(answer.headers()["retry-after"], "7");
}

#[tokio::test]
async fn a_lost_answer_has_taken_effect_and_a_broken_request_has_not() {
    let sim = Sim::new();
    let maps = maps(&sim);
    sim.faults().plan(Fault::broken().verb("create"));
    create(&maps, "a").await.unwrap_err();
    assert!(sim.get("", "configmaps", "default", "a").is_none());
    sim.faults().plan(Fault::lost_answer().verb("create"));
    create(&maps, "a").await.unwrap_err();
    assert!(sim.get("", "configmaps", "default", "a").is_some());
    assert_eq!(
        sim.calls()
            .verb("create")
            .filter(|call| call.status.is_none())
            .count(),
        2
    );
}

#[tokio::test]
async fn an_outage_breaks_requests_and_watches_on_a_socket_too() {
    let sim = Sim::new();
    let listening = sim.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    for client in [sim.client(), listening.client().unwrap()] {
        let maps: Api<ConfigMap> = Api::namespaced(client, "default");
        let watch = maps.watch(&WatchParams::default(), "0").await.unwrap();
        pin_mut!(watch);
        sim.faults().down();
        // The stream ends, or breaks: it must not hang.
        while let Some(Ok(_)) = watch.next().await {}
        listed(&maps).await.unwrap_err();
        sim.faults().up();
        listed(&maps).await.unwrap();
    }
}

#[tokio::test]
async fn dropped_watches_end_and_bookmarks_come_on_demand() {
    let sim = Sim::new();
    let maps = maps(&sim);
    let watch = maps.watch(&WatchParams::default(), "0").await.unwrap();
    pin_mut!(watch);
    let (event, ()) = futures::join!(watch.try_next(), async {
        tokio::task::yield_now().await;
        sim.faults().send_bookmarks();
    });
    let Some(WatchEvent::Bookmark(mark)) = event.unwrap() else {
        panic!("expected a bookmark")
    };
    assert_eq!(mark.metadata.resource_version, sim.version().to_string());
    sim.faults().drop_watches();
    while let Some(Ok(_)) = watch.next().await {}
}

#[tokio::test]
async fn latency_delays_every_answer() {
    let sim = Sim::new();
    let maps = maps(&sim);
    sim.faults().latency(Duration::from_millis(30));
    let begin = tokio::time::Instant::now();
    listed(&maps).await.unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(30));
    sim.faults().clear();
}

#[tokio::test]
async fn a_slow_list_keeps_nobody_else_waiting() {
    let sim = Sim::new();
    let maps = maps(&sim);
    sim.faults()
        .plan(Fault::slow(Duration::from_secs(3600)).verb("list"));
    let slow = tokio::spawn({
        let maps = maps.clone();
        async move { maps.list(&ListParams::default()).await }
    });
    while sim.faults().pending() > 0 {
        tokio::task::yield_now().await;
    }
    assert!(listed(&maps).await.is_ok());
    assert!(maps.get("none").await.is_err());
    assert!(!slow.is_finished());
    slow.abort();
}

#[tokio::test]
async fn reads_may_lag_behind_but_writes_and_watches_do_not() {
    let sim = Sim::new();
    let maps = maps(&sim);
    let data = |text: &str| json!({"data": {"text": text}});
    let old_map = |name: &str| {
        let mut map = map(name);
        map["data"] = data("old")["data"].clone();
        map
    };
    let before = sim.version();
    sim.create(old_map("a")).unwrap();
    let old = sim.version();
    sim.merge("", "configmaps", "default", "a", data("new"), "x")
        .unwrap();
    sim.create(old_map("b")).unwrap();
    let plan = |version| sim.faults().plan(Fault::stale(version));
    plan(before);
    assert!(maps.get("a").await.is_err());
    plan(old);
    let found = maps.get("a").await.unwrap();
    assert_eq!(found.data.unwrap()["text"], "old");
    plan(old);
    let list = maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items.len(), 1);
    assert_eq!(list.metadata.resource_version, Some(old.to_string()));
    // What is told from there on is everything since.
    let from = old.to_string();
    let watch = maps.watch(&WatchParams::default(), &from).await.unwrap();
    pin_mut!(watch);
    for wanted in ["a", "b"] {
        let event = watch.try_next().await.unwrap();
        assert!(
            matches!(&event, Some(WatchEvent::Modified(map) | WatchEvent::Added(map)) if map.name_any() == wanted),
            "{event:?}"
        );
    }
    // It is what it was, once the fault is over; and what is forgotten cannot be read.
    assert_eq!(listed(&maps).await.unwrap(), 2);
    sim.compact();
    plan(before);
    assert!(maps.get("b").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_neither_answers_nor_ends() {
    let sim = Sim::new();
    sim.create(map("a")).unwrap();
    let (maps, params) = (maps(&sim), ListParams::default());
    sim.faults().plan(Fault::silent().verb("list"));
    let list = maps.list(&params);
    timeout(Duration::from_hours(1), list).await.unwrap_err();

    sim.faults().plan(Fault::stalled_after(10).verb("list"));
    let list = maps.list(&params);
    timeout(Duration::from_hours(1), list).await.unwrap_err();

    sim.faults().plan(Fault::broken_after(10).verb("list"));
    listed(&maps).await.unwrap_err();
    sim.faults().plan(Fault::ended_after(10).verb("list"));
    listed(&maps).await.unwrap_err();
    assert_eq!(listed(&maps).await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_frozen_watch_says_nothing_until_it_is_thawed() {
    let sim = Sim::new();
    let params = WatchParams::default().timeout(60);
    let version = sim.version().to_string();
    let stream = maps(&sim).watch(&params, &version).await.unwrap();
    pin_mut!(stream);
    sim.create(map("a")).unwrap();
    assert!(matches!(
        stream.next().await,
        Some(Ok(WatchEvent::Added(_)))
    ));
    sim.faults().freeze_watches();
    sim.create(map("b")).unwrap();
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
    let maps = maps(&sim);
    for _ in 0..3 {
        let denied = create(&maps, "a").await.unwrap_err();
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
        listed(&maps).await.unwrap();
    }
    assert_eq!(sim.faults().pending(), 0);
    sim.faults().clear();
    create(&maps, "a").await.unwrap();
}

#[tokio::test]
async fn a_busy_server_answers_so_many_requests_a_second() {
    let (sim, clock) = manual(Settings::default());
    sim.faults().limit(3);
    let maps = maps(&sim);
    let mut codes = Vec::new();
    for _ in 0..5 {
        let outcome = maps.list(&ListParams::default()).await;
        codes.push(outcome.map_or_else(|error| code::<()>(Err(error)), |_| 200));
    }
    assert_eq!(codes, [200, 200, 200, 429, 429]);
    clock.advance(seconds(1));
    listed(&maps).await.unwrap();
}
