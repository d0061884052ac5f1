//! Clusters that were deleted, as the watcher stored them.

#[path = "../../bench/ray/pages.rs"]
mod pages;

use std::{sync::Arc, time::Duration};

use hindsight_watcher::{
    app::App,
    config::Config,
    policy::Policy,
    sink::{GrpcSink, Sink},
};
use kubesim::Sim;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

use super::{Scene, ask, scene, scene_on, sent, template};
use crate::support::{TestServer, each_database, objects::bytes};

/// Everything has to be over by then.
const PATIENCE: Duration = Duration::from_secs(60);
const CLUSTERS: &str = "/apis/v1/namespaces/ci/clusters";

/// A watcher of the simulated cluster that stores on `server`, and events too.
async fn watch(
    sim: &Sim,
    server: &TestServer,
    stop: &CancellationToken,
) -> tokio::task::JoinHandle<()> {
    let config = Config {
        policy: Policy {
            store_events: true,
            ..Policy::default()
        },
        ..Config::default()
    };
    let sink: Arc<dyn Sink> = Arc::new(GrpcSink::new(server.client()));
    let app = App::bind(config, sim.client(), sink).await.unwrap();
    let stop = stop.clone();
    tokio::spawn(async move { app.run(stop).await.unwrap() })
}

impl Scene {
    /// The answer of `path` once it is so.
    async fn until(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let asking = async {
            loop {
                let reply = self.ask("GET", path, &Value::Null).await;
                if reply.status == 200 && is_so(&reply.json()) {
                    return reply.json();
                }
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, asking)
            .await
            .expect("what is waited for happens")
    }

    async fn refuses(&self, path: &str, says: &str) {
        let reply = self.ask("GET", path, &Value::Null).await;
        assert_eq!(reply.status, 400, "{path}: {}", reply.text());
        let message = reply.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(says), "`{message}` does not say `{says}`");
    }
}

#[tokio::test]
async fn ray_09_a_deleted_cluster_is_answered_as_it_was_with_its_events_and_the_time_of_its_deletion()
 {
    let scene = scene(&[]).await;
    let stop = CancellationToken::new();
    let watcher = watch(&scene.sim, &scene.server, &stop).await;
    let templates = "/apis/v1/namespaces/ci/compute_templates";
    scene.ask("POST", templates, &template()).await.ok();
    scene.ask("POST", CLUSTERS, &sent("a")).await.ok();
    let uid = |scene: &Scene| {
        let object = scene.sim.get("ray.io", "rayclusters", "ci", "a").unwrap();
        object["metadata"]["uid"].clone()
    };
    let first = uid(&scene);
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "head", "namespace": "ci"},
        "involvedObject": {"kind": "RayCluster", "name": "a", "namespace": "ci", "uid": first},
        "reason": "CreatedHeadPod", "message": "made", "type": "Normal", "count": 2,
        "firstTimestamp": "2026-03-01T10:00:00Z", "lastTimestamp": "2026-03-01T10:30:00Z",
    });
    scene.sim.create(event).unwrap();
    let status = json!({"status": {"state": "ready", "endpoints": {"dashboard": "30265"}}});
    let merged = scene
        .sim
        .merge("ray.io", "rayclusters", "ci", "a", status, "operator");
    merged.unwrap();
    let path = format!("{CLUSTERS}/a");
    let mut live = scene.get(&path).await;
    assert_eq!(live["events"].as_array().unwrap().len(), 1);
    scene.ask("DELETE", &path, &Value::Null).await.ok();
    assert_eq!(scene.ask("GET", &path, &Value::Null).await.status, 404);

    let deleted = format!("{path}?includeDeleted=true");
    let has_events = |cluster: &Value| cluster["events"].is_array();
    let found = scene.until(&deleted, has_events).await;
    let at = found["deletedAt"].as_str().unwrap();
    assert!(at.len() == 20 && at.ends_with('Z'), "{at}");
    live["deletedAt"] = found["deletedAt"].clone();
    assert_eq!(found, live);
    // The same name again is another cluster, which comes first.
    scene.ask("POST", CLUSTERS, &sent("a")).await.ok();
    assert_eq!(scene.get(&deleted).await.get("deletedAt"), None);
    assert_ne!(uid(&scene), first);
    let both = format!("{CLUSTERS}?include_deleted=true&sort_by=created_at");
    let two = |list: &Value| list["clusters"].as_array().unwrap().len() == 2;
    let listed = scene.until(&both, two).await;
    assert_eq!(listed["clusters"][0], found);
    assert_eq!(listed["clusters"][1].get("deletedAt"), None);
    assert_eq!(
        scene.get(CLUSTERS).await["clusters"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let alpha = "/apis/v1alpha2/namespaces/ci/clusters?include_deleted=true&sort_by=created_at";
    let listed = scene.get(alpha).await;
    assert_eq!(listed["clusters"][0]["deletedAt"], found["deletedAt"]);
    assert_eq!(listed["clusters"][0]["envs"], json!({"A": "1"}));
    stop.cancel();
    timeout(PATIENCE, watcher).await.unwrap().unwrap();
    scene.server.stop().await;
}

/// A stored cluster.
fn stored(namespace: &str, name: &str, number: u32, more: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {
            "name": name, "namespace": namespace, "uid": format!("{namespace}-{number}"),
            "creationTimestamp": format!("2026-03-01T10:00:{number:02}Z"),
            "labels": {"app.kubernetes.io/managed-by": "kuberay-apiserver", "ray.io/user": format!("u{}", number % 3)},
        },
        "spec": {"headGroupSpec": {"rayStartParams": {}}}, "status": {"state": "ready"},
    });
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.extend(more.as_object().unwrap().clone());
    object
}

async fn given(server: &TestServer, parent: &str, object: &Value) {
    let uid = object["metadata"]["uid"].as_str().unwrap();
    let name = format!("{parent}/results/{uid}/records/{uid}");
    server
        .given_record(&name, "ray.io/v1.RayCluster", &bytes(object))
        .await;
}

/// Seven deleted clusters in `ci`, one that is there, and others that no list of `ci` shows.
async fn given_history(server: &TestServer) {
    for number in 0..7 {
        let mut gone =
            json!({"deletionTimestamp": format!("2026-03-02T10:00:{:02}Z", 59 - number)});
        if number == 3 {
            // It was seen to be gone.
            gone = json!({"annotations": {
                "hindsight.dev/closed": "deleted", "hindsight.dev/closed-at": "2026-03-02T10:00:56Z",
                "hindsight.dev/closed-uid": "ci-3", "x.io/own": "kept",
            }});
        }
        let mut object = stored("ci", &format!("c{}", number % 4), number, &gone);
        if number == 5 {
            object["status"]["state"] = "failed".into();
        }
        given(server, "ci", &object).await;
    }
    given(server, "ci", &stored("ci", "live", 7, &json!({}))).await;
    let others = json!({"labels": {}, "deletionTimestamp": "2026-03-02T10:00:00Z"});
    given(server, "ci", &stored("ci", "kubectl", 8, &others)).await;
    given(server, "dev", &stored("dev", "d", 9, &json!({}))).await;
    let east = stored("ci", "east", 10, &json!({"uid": "east"}));
    given(server, "cluster/east/namespace/ci", &east).await;
}

fn names(list: &Value) -> Vec<&str> {
    let clusters = list["clusters"].as_array().unwrap().iter();
    clusters
        .map(|cluster| cluster["name"].as_str().unwrap())
        .collect()
}

/// That what is not deleted, not shown or not valid is refused; `token` is of another order of `all`.
async fn refuses_others(scene: &Scene, all: &str, token: &str) {
    for name in ["live", "kubectl", "none", "A b"] {
        let path = format!(
            "{CLUSTERS}/{}?include_deleted=true",
            name.replace(' ', "%20")
        );
        assert_eq!(
            scene.ask("GET", &path, &Value::Null).await.status,
            404,
            "{name}"
        );
    }
    scene
        .refuses(&format!("{all}&limit=3"), "send page_size and page_token")
        .await;
    scene
        .refuses(&format!("{CLUSTERS}?continue=x&page_token=y"), "page_size")
        .await;
    scene
        .refuses(&format!("{all}&page_token=garbage"), "page token")
        .await;
    scene
        .refuses(&format!("{all}&page_token={token}"), "another list")
        .await;
    scene
        .refuses(&format!("{all}&page_size=-1"), "out of range")
        .await;
    scene
        .refuses(&format!("{all}&page_size=201"), "out of range")
        .await;
    scene
        .refuses(&format!("{all}&sort_by=cluster_state"), "sort_by")
        .await;
    scene
        .refuses(&format!("{all}&filter=nonsense%20=="), "filter")
        .await;
}

#[tokio::test]
async fn ray_17_the_history_has_pages_orders_and_filters() {
    for database in each_database().await {
        let scene = scene_on(database, &[]).await;
        given_history(&scene.server).await;
        let all = format!("{CLUSTERS}?includeDeleted=true");
        let listed = scene.get(&format!("{all}&sort_by=name")).await;
        assert_eq!(
            names(&listed),
            ["c0", "c0", "c1", "c1", "c2", "c2", "c3", "live"]
        );
        assert_eq!(listed["clusters"][6]["deletedAt"], "2026-03-02T10:00:56Z");
        assert_eq!(
            listed["clusters"][6]["annotations"],
            json!({"x.io/own": "kept"})
        );
        assert_eq!(listed.get("nextPageToken"), None);
        let mut found = Vec::new();
        let mut token = String::new();
        loop {
            let page =
                format!("{all}&page_size=3&sort_by=deleted_at%20desc,name&page_token={token}");
            let page = scene.get(&page).await;
            found.extend(names(&page).into_iter().map(str::to_owned));
            match page["nextPageToken"].as_str() {
                Some(next) => token = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(found, ["c0", "c1", "c2", "c3", "c0", "c1", "c2", "live"]);
        let by_user = scene.get(&format!("{all}&sortBy=user,created_at")).await;
        assert_eq!(
            names(&by_user),
            ["c0", "c3", "c2", "c1", "c0", "live", "c2", "c1"]
        );
        let failed = "data.status.state%20==%20'failed'";
        assert_eq!(
            names(&scene.get(&format!("{all}&filter={failed}")).await),
            ["c1"]
        );
        // Without the deleted ones a filter is of those that are there.
        assert_eq!(
            names(&scene.get(&format!("{CLUSTERS}?pageSize=9")).await),
            ["live"]
        );
        let none = scene.get(&format!("{CLUSTERS}?filter={failed}")).await;
        assert_eq!(none, json!({"clusters": []}));
        let everywhere = "/apis/v1alpha2/clusters?include_deleted=true&sort_by=namespace%20desc";
        assert_eq!(names(&scene.get(everywhere).await)[0], "d");
        let last = scene
            .get(&format!("{CLUSTERS}/c0?include_deleted=true"))
            .await;
        assert_eq!(last["deletedAt"], "2026-03-02T10:00:59Z");
        refuses_others(&scene, &all, &token).await;
        scene.server.stop().await;
    }
}

#[tokio::test]
async fn ray_18_the_history_of_clusters_takes_the_rights_of_live_ones() {
    let more = [("auth", "kubernetes"), ("ray_cluster_id", "east")];
    let scene = scene(&more).await;
    let policy = scene.sim.policy();
    for user in ["maker", "history", "root"] {
        policy.token(user, user, &[]);
    }
    for verb in ["get", "list"] {
        policy.allow("maker", verb, "ray.hindsight.dev", "clusters", "ci");
    }
    policy.allow("history", "*", "results.tekton.dev", "*", "*");
    policy.allow("root", "*", "*", "*", "*");
    let open = TestServer::start(&scene.database).await;
    given_history(&open).await;
    let gone = stored(
        "ci",
        "gone",
        11,
        &json!({"deletionTimestamp": "2026-03-02T10:00:00Z"}),
    );
    given(&open, "cluster/east/namespace/ci", &gone).await;
    open.stop().await;
    let url = &scene.server.url;
    let all = format!("{CLUSTERS}?include_deleted=true");
    // Only what is stored of this Kubernetes cluster is shown, and what was stored last is first.
    let listed = ask(url, "GET", &all, "maker", "").await.ok();
    assert_eq!(names(&listed), ["gone", "east"]);
    let one = format!("{CLUSTERS}/gone?include_deleted=true");
    assert_eq!(
        ask(url, "GET", &one, "maker", "").await.ok()["name"],
        "gone"
    );
    for path in [&all, &one] {
        assert_eq!(ask(url, "GET", path, "history", "").await.status, 403);
        assert_eq!(ask(url, "GET", path, "stranger", "").await.status, 401);
    }
    let everywhere = "/apis/v1/clusters?include_deleted=true";
    assert_eq!(ask(url, "GET", everywhere, "maker", "").await.status, 403);
    assert_eq!(
        names(&ask(url, "GET", everywhere, "root", "").await.ok()).len(),
        2
    );
    scene.server.stop().await;
}

#[tokio::test]
async fn every_page_of_a_longer_history_is_right() {
    for database in each_database().await {
        pages::fill(&database.url(), 400).await;
        let scene = scene_on(database, &[]).await;
        let channel = Channel::from_shared(scene.server.url.clone()).unwrap();
        let channel = channel.connect().await.unwrap();
        let asked = pages::ask(channel, 400, 5).await;
        assert!(
            asked.iter().all(|asked| asked.times.len() == 5),
            "{asked:?}"
        );
        let rows: Vec<_> = asked.iter().map(|asked| (asked.case, asked.rows)).collect();
        let expected = [
            ("newest first", 50),
            ("by name", 50),
            ("by the time of deletion, newest first", 50),
            ("of one user, by the time of creation", 20),
            ("first page of all namespaces", 50),
            ("one deleted cluster", 1),
        ];
        assert_eq!(rows, expected);
        scene.server.stop().await;
    }
}
