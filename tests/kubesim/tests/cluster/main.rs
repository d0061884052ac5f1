//! What a test may do to a simulated cluster, and what the cluster does by itself as a real one.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

mod faults;
mod jobs;
mod logs;
mod steps;
mod tasks;

use std::{sync::Arc, time::Duration};

use futures::{TryStreamExt, pin_mut};
use k8s_openapi::api::{
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
    core::v1::ConfigMap,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams},
    discovery::Discovery,
};
use kubesim::{Crd, ManualClock, Settings, Sim, SystemClock};
use serde_json::{Value, json};

/// A config map as it is sent.
fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

fn maps(sim: &Sim) -> Api<ConfigMap> {
    Api::namespaced(sim.client(), "default")
}

/// Creates a config map as clients do.
async fn create(maps: &Api<ConfigMap>, name: &str) -> kube::Result<ConfigMap> {
    let map = serde_json::from_value(map(name)).unwrap();
    maps.create(&PostParams::default(), &map).await
}

/// How many config maps a list shows.
async fn listed(maps: &Api<ConfigMap>) -> kube::Result<usize> {
    let list = maps.list(&ListParams::default()).await?;
    Ok(list.items.len())
}

fn code<T: std::fmt::Debug>(outcome: Result<T, kube::Error>) -> u16 {
    match outcome.unwrap_err() {
        kube::Error::Api(status) => status.code,
        error => panic!("{error}"),
    }
}

/// A cluster whose time the test moves.
fn manual(settings: Settings) -> (Sim, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at("2026-03-01T10:00:00Z".parse().unwrap()));
    let sim = Sim::with(settings, Arc::clone(&clock) as Arc<_>);
    (sim, clock)
}

fn seconds(seconds: i64) -> jiff::SignedDuration {
    jiff::SignedDuration::from_secs(seconds)
}

#[tokio::test]
async fn a_short_history_forgets_and_a_live_watch_that_lags_is_told() {
    let settings = Settings {
        history: 4,
        ..Settings::default()
    };
    let sim = Sim::with(settings, Arc::new(SystemClock));
    let maps = maps(&sim);
    let from = sim.version().to_string();
    let watch = maps.watch(&WatchParams::default(), &from).await.unwrap();
    pin_mut!(watch);
    for number in 0..6 {
        sim.create(map(&format!("m{number}"))).unwrap();
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
    let maps = maps(&sim);
    create(&maps, "a").await.unwrap();
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
        let mut object = map(&format!("m{number:05}"));
        object["data"] = json!({"filler": filler});
        sim.create(object).unwrap();
    }
    let maps = maps(&sim);
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
