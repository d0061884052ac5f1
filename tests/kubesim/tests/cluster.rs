//! What a test may do to a simulated cluster: faults, outages, scripted reviews, kinds that come
//! and go, and the record of calls.
#![expect(clippy::panic, reason = "tests may panic")]

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt, pin_mut};
use k8s_openapi::api::{
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
    core::v1::ConfigMap,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams},
    discovery::Discovery,
};
use kubesim::{Crd, Fault, Settings, Sim, SystemClock};
use serde_json::json;

fn map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.into()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

fn maps(client: Client) -> Api<ConfigMap> {
    Api::namespaced(client, "default")
}

fn code<T: std::fmt::Debug>(outcome: Result<T, kube::Error>) -> u16 {
    match outcome {
        Err(kube::Error::Api(status)) => status.code,
        other => panic!("expected a refusal, found {other:?}"),
    }
}

#[tokio::test]
async fn planned_faults_meet_the_next_matching_requests() {
    let sim = Sim::new();
    let maps = maps(sim.client());
    sim.faults().plan(
        Fault::status(500)
            .verb("create")
            .resource("configmaps")
            .times(2),
    );
    sim.faults()
        .plan(Fault::status(429).verb("create").retry_after(7));
    maps.list(&ListParams::default()).await.unwrap();
    for expected in [500, 500, 429] {
        assert_eq!(
            code(maps.create(&PostParams::default(), &map("a")).await),
            expected
        );
    }
    maps.create(&PostParams::default(), &map("a"))
        .await
        .unwrap();
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
    let maps = maps(sim.client());
    sim.faults().plan(Fault::broken().verb("create"));
    maps.create(&PostParams::default(), &map("a"))
        .await
        .unwrap_err();
    assert!(sim.get("", "configmaps", "default", "a").is_none());
    sim.faults().plan(Fault::lost_answer().verb("create"));
    maps.create(&PostParams::default(), &map("a"))
        .await
        .unwrap_err();
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
        let maps = maps(client);
        let watch = maps.watch(&WatchParams::default(), "0").await.unwrap();
        pin_mut!(watch);
        sim.faults().down();
        // The stream ends, or breaks: it must not hang.
        while let Some(Ok(_)) = watch.next().await {}
        maps.list(&ListParams::default()).await.unwrap_err();
        sim.faults().up();
        maps.list(&ListParams::default()).await.unwrap();
    }
}

#[tokio::test]
async fn dropped_watches_end_and_bookmarks_come_on_demand() {
    let sim = Sim::new();
    let maps = maps(sim.client());
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
    let maps = maps(sim.client());
    sim.faults().latency(Duration::from_millis(30));
    let begin = tokio::time::Instant::now();
    maps.list(&ListParams::default()).await.unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(30));
    sim.faults().clear();
}

#[tokio::test]
async fn a_slow_list_keeps_nobody_else_waiting() {
    let sim = Sim::new();
    let maps = maps(sim.client());
    sim.faults()
        .plan(Fault::slow(Duration::from_secs(3600)).verb("list"));
    let slow = tokio::spawn({
        let maps = maps.clone();
        async move { maps.list(&ListParams::default()).await }
    });
    while sim.faults().pending() > 0 {
        tokio::task::yield_now().await;
    }
    assert!(maps.list(&ListParams::default()).await.is_ok());
    assert!(maps.get("none").await.is_err());
    assert!(!slow.is_finished());
    slow.abort();
}

#[tokio::test]
async fn reads_may_lag_behind_but_writes_and_watches_do_not() {
    let sim = Sim::new();
    let maps = maps(sim.client());
    let data = |text: &str| json!({"data": {"text": text}});
    let map = |name: &str| {
        let mut map = data("old");
        map["metadata"] = json!({"name": name, "namespace": "default"});
        (map["apiVersion"], map["kind"]) = (json!("v1"), json!("ConfigMap"));
        map
    };
    let before = sim.version();
    sim.create(map("a")).unwrap();
    let old = sim.version();
    sim.merge("", "configmaps", "default", "a", data("new"), "x")
        .unwrap();
    sim.create(map("b")).unwrap();
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
    assert_eq!(
        maps.list(&ListParams::default()).await.unwrap().items.len(),
        2
    );
    sim.compact();
    plan(before);
    assert!(maps.get("b").await.is_ok());
}

#[tokio::test]
async fn a_short_history_forgets_and_a_live_watch_that_lags_is_told() {
    let settings = Settings {
        history: 4,
        ..Settings::default()
    };
    let sim = Sim::with(settings, Arc::new(SystemClock));
    let maps = maps(sim.client());
    let from = sim.version().to_string();
    let watch = maps.watch(&WatchParams::default(), &from).await.unwrap();
    pin_mut!(watch);
    for number in 0..6 {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m{number}")}});
        sim.create(object).unwrap();
    }
    let Some(WatchEvent::Error(status)) = watch.try_next().await.unwrap() else {
        panic!("expected an error event")
    };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    assert!(watch.try_next().await.unwrap().is_none());
}

#[tokio::test]
async fn kinds_come_and_go_while_the_server_runs() {
    let sim = Sim::new();
    let client = sim.client();
    let found = Discovery::new(client.clone()).run().await.unwrap();
    assert!(!found.has_group("tekton.dev"));

    let crd = Crd::tekton_task_run();
    sim.install(crd.clone());
    let found = Discovery::new(client.clone()).run().await.unwrap();
    let (resource, _) = found
        .get("tekton.dev")
        .unwrap()
        .recommended_kind("TaskRun")
        .unwrap();
    let runs: Api<kube::core::DynamicObject> =
        Api::namespaced_with(client.clone(), "default", &resource);
    let object =
        json!({"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "metadata": {"name": "a"}});
    sim.create(object.clone()).unwrap();
    let watch = runs.watch(&WatchParams::default(), "0").await.unwrap();
    pin_mut!(watch);
    assert!(matches!(
        watch.try_next().await.unwrap(),
        Some(WatchEvent::Added(_))
    ));

    sim.uninstall(&crd);
    assert!(watch.try_next().await.unwrap().is_none(), "the watch ends");
    assert_eq!(code(runs.list(&ListParams::default()).await), 404);
    assert_eq!(sim.create(object).unwrap_err().code, 404);
    sim.install(crd);
    assert!(
        runs.list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
}

#[tokio::test]
async fn one_kind_may_have_several_versions() {
    let sim = Sim::new();
    sim.install(Crd::tekton_task_run());
    sim.install(Crd {
        version: "v1beta1".into(),
        ..Crd::tekton_task_run()
    });
    let object =
        json!({"apiVersion": "tekton.dev/v1beta1", "kind": "TaskRun", "metadata": {"name": "a"}});
    assert_eq!(
        sim.create(object).unwrap()["apiVersion"],
        "tekton.dev/v1beta1"
    );
    assert_eq!(
        sim.get("tekton.dev", "taskruns", "default", "a").unwrap()["apiVersion"],
        "tekton.dev/v1"
    );
    let found = Discovery::new(sim.client()).run().await.unwrap();
    let group = found.get("tekton.dev").unwrap();
    assert_eq!(group.versions().collect::<Vec<_>>(), ["v1", "v1beta1"]);
}

#[tokio::test]
async fn access_follows_the_policy_and_is_counted() {
    let sim = Sim::new();
    sim.policy()
        .allow("devs", "get", "results.tekton.dev", "records", "team-a")
        .allow("root", "*", "*", "*", "*");
    let reviews: Api<SubjectAccessReview> = Api::all(sim.client());
    let mut expected = 0;
    for (user, groups, verb, namespace, allowed) in [
        ("alice", vec!["devs"], "get", "team-a", true),
        ("alice", vec!["devs"], "get", "team-b", false),
        ("alice", vec!["devs"], "get", "", false),
        ("alice", vec!["devs"], "delete", "team-a", false),
        ("alice", vec![], "get", "team-a", false),
        ("root", vec![], "delete", "", true),
    ] {
        let attributes = ResourceAttributes {
            verb: Some(verb.into()),
            group: Some("results.tekton.dev".into()),
            resource: Some("records".into()),
            namespace: Some(namespace.into()),
            ..ResourceAttributes::default()
        };
        let spec = SubjectAccessReviewSpec {
            user: Some(user.into()),
            groups: Some(groups.into_iter().map(str::to_owned).collect()),
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview {
            spec,
            ..SubjectAccessReview::default()
        };
        let status = reviews
            .create(&PostParams::default(), &review)
            .await
            .unwrap()
            .status
            .unwrap();
        assert_eq!(status.allowed, allowed, "{user} {verb} {namespace}");
        expected += 1;
    }
    assert_eq!(sim.policy().access_reviews(), expected);
    let nobody = SubjectAccessReview::default();
    assert_eq!(
        code(reviews.create(&PostParams::default(), &nobody).await),
        422
    );
}

#[tokio::test]
async fn calls_tell_what_was_asked_and_answered() {
    let sim = Sim::new();
    let maps = maps(sim.client());
    maps.create(&PostParams::default(), &map("a"))
        .await
        .unwrap();
    maps.get("a").await.unwrap();
    maps.get("b").await.unwrap_err();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let seen: Vec<_> = sim
        .calls()
        .resource("configmaps")
        .namespace("default")
        .all()
        .iter()
        .map(|call| (call.verb, call.name.clone(), call.status))
        .collect();
    assert_eq!(
        seen,
        [
            ("create", String::new(), Some(201)),
            ("get", "a".into(), Some(200)),
            ("get", "b".into(), Some(404)),
            ("delete", "a".into(), Some(200)),
        ]
    );
    assert_eq!(sim.calls().status(404).count(), 1);
    sim.clear_calls();
    assert_eq!(sim.calls().count(), 0);
}

#[tokio::test]
async fn dumps_are_loaded_as_they_were() {
    let sim = Sim::new();
    sim.install(Crd::argo_workflow());
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {
            "name": "a",
            "namespace": "ml",
            "uid": "b39e2457-fddd-4416-835d-ade5a2e05720",
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "resourceVersion": "777",
        },
        "status": {"phase": "Failed"},
    });
    let list = json!({"kind": "List", "apiVersion": "v1", "items": [object]});
    assert_eq!(sim.load_dump(&list.to_string()).unwrap(), 1);
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: second}\n";
    assert_eq!(sim.load_dump(yaml).unwrap(), 2);
    let loaded = sim.get("argoproj.io", "workflows", "ml", "a").unwrap();
    for field in ["uid", "creationTimestamp"] {
        assert_eq!(loaded["metadata"][field], object["metadata"][field]);
    }
    assert_ne!(loaded["metadata"]["resourceVersion"], "777");
    assert_eq!(loaded["status"], object["status"]);
    let unknown = r#"{"apiVersion": "nobody.dev/v1", "kind": "Thing", "metadata": {"name": "z", "namespace": "n"}}"#;
    let error = sim.load_dump(unknown).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Thing `n/z` is not taken; install its kind, or leave it out"
    );
}

#[tokio::test]
async fn pages_of_many_large_objects_are_quick() {
    let sim = Sim::new();
    let filler = "x".repeat(9_500);
    let number = 5_000;
    for number in 0..number {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("m{number:05}")},
            "data": {"filler": filler},
        });
        sim.create(object).unwrap();
    }
    let maps = maps(sim.client());
    let mut params = ListParams::default().limit(500);
    let mut seen = 0;
    let begin = tokio::time::Instant::now();
    loop {
        let page = maps.list(&params).await.unwrap();
        seen += page.items.len();
        assert!(page.items.iter().all(|map| map.name_any().starts_with('m')));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(seen, number);
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(10), "ten pages took {took:?}");
}
