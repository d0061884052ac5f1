//! The cluster service of KubeRay, as its clients ask it, on a simulated cluster.

mod history;
mod requests;

use hindsight_proto::{ray_v1, ray_v1alpha2 as alpha};
use kubesim::{Crd, Listening, Sim};
use serde_json::{Value, json};
use tonic::{Code, transport::Channel};

use crate::support::{
    Database, TestServer,
    http::{Http, Reply},
};

/// A cluster with the kinds of KubeRay and two namespaces, and a server that may use it.
struct Scene {
    sim: Sim,
    _listening: Listening,
    server: TestServer,
    database: Database,
}

async fn scene(more: &[(&str, &str)]) -> Scene {
    scene_on(Database::sqlite(), more).await
}

async fn scene_on(database: Database, more: &[(&str, &str)]) -> Scene {
    let sim = Sim::new();
    sim.install_all(Crd::ray()).namespace("ci").namespace("dev");
    let listening = sim.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let kubeconfig = listening.kubeconfig().display().to_string();
    let mut flags = vec![
        ("enable_ray", "true"),
        ("ray_kubeconfig", kubeconfig.as_str()),
    ];
    if more.contains(&("auth", "kubernetes")) {
        flags.push(("auth_kubeconfig", kubeconfig.as_str()));
    }
    flags.extend(more);
    let server = TestServer::start_with(&database, &flags).await;
    Scene {
        sim,
        _listening: listening,
        server,
        database,
    }
}

async fn ask(url: &str, method: &str, path: &str, token: &str, body: &str) -> Reply {
    let authorization = format!("Bearer {token}");
    let headers = [
        ("authorization", authorization.as_str()),
        ("accept", "application/json"),
    ];
    let mut http = Http::one(url).await;
    http.send(method, path, &headers, body.to_owned()).await
}

impl Scene {
    async fn ask(&self, method: &str, path: &str, body: &Value) -> Reply {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        ask(&self.server.url, method, path, "none", &body).await
    }

    async fn get(&self, path: &str) -> Value {
        self.ask("GET", path, &Value::Null).await.ok()
    }

    fn clusters(&self) -> usize {
        self.sim.count("ray.io", "rayclusters")
    }
}

/// A cluster as the Python client of KubeRay sends it.
fn sent(name: &str) -> Value {
    json!({
        "name": name, "namespace": "ci", "user": "u", "version": "2.9.0", "environment": 0,
        "envs": {"values": {"A": "1"}, "valuesFrom": {"B": {"source": 1, "name": "s", "key": "k"}}},
        "annotations": {"x.io/a": "b"},
        "clusterSpec": {
            "headGroupSpec": {
                "computeTemplate": "t", "image": "rayproject/ray:2.9.0", "serviceType": "NodePort",
                "rayStartParams": {"dashboard-host": "0.0.0.0", "metrics-export-port": "8080", "num-cpus": "0"},
                "service_account": "runner", "image_pull_secret": "pull",
                "volumes": [
                    {"mountPath": "/d", "volumeType": 1, "name": "v", "source": "/data", "hostPathType": 0},
                    {"mountPath": "/p", "volumeType": 0, "name": "p", "source": "claim"},
                ],
            },
            "workerGroupSpec": [{
                "groupName": "w", "computeTemplate": "t", "replicas": 1, "minReplicas": 1, "maxReplicas": 3,
                "rayStartParams": {"node-ip-address": "$MY_POD_IP"}, "service_account": "runner", "labels": {},
            }],
        },
    })
}

/// The same for the first version.
fn sent_alpha(name: &str) -> Value {
    let mut cluster = sent(name);
    cluster["envs"] = json!({"A": "1"});
    cluster["environment"] = 2.into();
    cluster
}

fn template() -> Value {
    json!({
        "name": "t", "namespace": "ci", "cpu": 2, "memory": 4, "gpu": 1, "gpu accelerator": "ignored",
        "extended resources": {"x.io/fast": 1},
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
    })
}

#[tokio::test]
async fn ray_03_and_17_the_calls_of_the_python_client_are_answered_as_it_reads_them() {
    let scene = scene(&[]).await;
    let (templates, clusters) = (
        "/apis/v1/namespaces/ci/compute_templates",
        "/apis/v1/namespaces/ci/clusters",
    );
    assert_eq!(scene.get(templates).await, json!({"computeTemplates": []}));
    assert_eq!(scene.get(clusters).await, json!({"clusters": []}));
    let made = scene.ask("POST", templates, &template()).await.ok();
    assert_eq!(
        (&made["cpu"], &made["memoryUnit"]),
        (&json!(2), &json!("Gi"))
    );
    assert_eq!(made["gpuAccelerator"], Value::Null);
    let all = scene.get("/apis/v1/compute_templates").await;
    assert_eq!(all["computeTemplates"], json!([made]));

    let made = scene.ask("POST", clusters, &sent("a")).await.ok();
    let path = format!("{clusters}/a");
    let status = json!({"status": {"state": "ready", "endpoints": {"dashboard": "30265"}}});
    scene
        .sim
        .merge("ray.io", "rayclusters", "ci", "a", status, "operator")
        .unwrap();
    let found = scene.get(&path).await;
    assert_eq!(
        (
            &found["clusterState"],
            &found["serviceEndpoint"]["dashboard"]
        ),
        (&json!("ready"), &json!("30265"))
    );
    // Numbers, and no key where the value is zero, except where the client indexes it.
    assert_eq!(found.get("environment"), None);
    let head = &found["clusterSpec"]["headGroupSpec"];
    assert_eq!(head["volumes"][0]["volumeType"], 1);
    assert_eq!(head["volumes"][1]["volumeType"], 0);
    assert_eq!(head["serviceAccount"], "runner");
    assert_eq!(head["imagePullSecret"], "pull");
    let expected =
        json!({"values": {"A": "1"}, "valuesFrom": {"B": {"source": 1, "name": "s", "key": "k"}}});
    assert_eq!(found["envs"], expected);
    assert_eq!(found["clusterSpec"], made["clusterSpec"]);
    let created = found["createdAt"].as_str().unwrap();
    assert!(created.len() == 20 && created.ends_with('Z'), "{created}");
    assert_eq!(
        scene.get("/apis/v1/clusters").await["clusters"],
        json!([found])
    );

    scene.ask("POST", clusters, &sent("b")).await.ok();
    let first = scene.get(&format!("{clusters}?limit=1&unknown=1")).await;
    let next = first["continue"].as_str().unwrap();
    let second = scene
        .get(&format!("{clusters}?limit=1&continue={next}"))
        .await;
    assert_eq!(
        (&second["clusters"][0]["name"], second.get("continue")),
        (&json!("b"), None)
    );

    assert_eq!(
        scene.ask("DELETE", &path, &Value::Null).await.ok(),
        json!({})
    );
    let gone = scene.ask("GET", &path, &Value::Null).await;
    assert_eq!((gone.status, &gone.json()["code"]), (404, &json!(5)));
    assert!(
        gone.json()["message"]
            .as_str()
            .unwrap()
            .starts_with("Cluster a not found")
    );
    let template = format!("{templates}/t");
    assert_eq!(
        scene.ask("DELETE", &template, &Value::Null).await.ok(),
        json!({})
    );
    scene.server.stop().await;
}

#[tokio::test]
async fn ray_03_to_07_the_first_version_has_its_own_paths_and_messages() {
    let scene = scene(&[]).await;
    let templates = "/apis/v1alpha2/namespaces/ci/compute_templates";
    scene.ask("POST", templates, &template()).await.ok();
    let clusters = "/apis/v1alpha2/namespaces/ci/clusters";
    let made = scene.ask("POST", clusters, &sent_alpha("a")).await.ok();
    assert_eq!(
        (&made["environment"], &made["envs"]),
        (&json!(2), &json!({"A": "1"}))
    );
    assert_eq!(made.get("annotations"), None);
    let found = scene.get(&format!("{clusters}/a")).await;
    assert_eq!(found, made);
    assert_eq!(scene.get(clusters).await["clusters"], json!([made]));
    assert_eq!(
        scene.get("/apis/v1alpha2/clusters").await["clusters"],
        json!([made])
    );
    // The same cluster in the other version.
    let other = scene.get("/apis/v1/namespaces/ci/clusters/a").await;
    assert_eq!(other["envs"], json!({"values": {"A": "1"}}));
    let names = json!({"name": "b", "environment": "PRODUCTION"});
    let mut by_name = sent_alpha("b");
    by_name["environment"] = names["environment"].clone();
    assert_eq!(
        scene.ask("POST", clusters, &by_name).await.ok()["environment"],
        3
    );
    let deleted = scene
        .ask("DELETE", &format!("{clusters}/a"), &Value::Null)
        .await;
    assert_eq!(deleted.ok(), json!({}));
    scene.server.stop().await;
}

#[tokio::test]
async fn ray_02_and_04_both_services_are_there_over_grpc_and_described() {
    let scene = scene(&[]).await;
    let channel = Channel::from_shared(scene.server.url.clone()).unwrap();
    let channel = channel.connect().await.unwrap();
    let mut now = ray_v1::cluster_service_client::ClusterServiceClient::new(channel.clone());
    let mut first = alpha::cluster_service_client::ClusterServiceClient::new(channel);
    let group = alpha::HeadGroupSpec {
        service_type: "ClusterIP".into(),
        ..Default::default()
    };
    let cluster = alpha::Cluster {
        name: "a".into(),
        namespace: "ci".into(),
        user: "u".into(),
        version: "2.9.0".into(),
        cluster_spec: Some(alpha::ClusterSpec {
            head_group_spec: Some(group.clone()),
            worker_group_spec: Vec::new(),
        }),
        ..Default::default()
    };
    let request = |cluster| alpha::CreateClusterRequest {
        cluster,
        namespace: "ci".into(),
    };
    first
        .create_cluster(request(Some(cluster.clone())))
        .await
        .unwrap();
    let again = first
        .create_cluster(request(Some(cluster)))
        .await
        .unwrap_err();
    assert_eq!(again.code(), Code::AlreadyExists);
    let empty = first.create_cluster(request(None)).await.unwrap_err();
    assert_eq!(empty.code(), Code::InvalidArgument);
    let name = ray_v1::GetClusterRequest {
        name: "a".into(),
        namespace: "ci".into(),
        ..Default::default()
    };
    let found = now.get_cluster(name).await.unwrap().into_inner();
    let head = found.cluster_spec.unwrap().head_group_spec.unwrap();
    assert_eq!(head.service_type, group.service_type);
    let described = scene.get("/openapi.json").await;
    let mut operations: Vec<&str> = Vec::new();
    for (path, verbs) in described["paths"].as_object().unwrap() {
        for operation in verbs.as_object().unwrap().values() {
            operations.push(operation["operationId"].as_str().unwrap());
        }
        let is_ray = path.starts_with("/apis/v1/") || path.starts_with("/apis/v1alpha2/");
        assert_eq!(
            is_ray,
            path.contains("cluster") || path.contains("compute"),
            "{path}"
        );
    }
    let all = operations.len();
    operations.sort_unstable();
    operations.dedup();
    assert_eq!(operations.len(), all, "each has an id of its own");
    let schema = &described["components"]["schemas"]["kuberay.v1alpha2.Cluster"]["properties"];
    assert_eq!(schema["environment"]["type"], "integer");
    scene.server.stop().await;
}

#[tokio::test]
async fn ray_10_and_11_refusals_have_their_codes_and_make_nothing() {
    let scene = scene(&[]).await;
    let clusters = "/apis/v1/namespaces/ci/clusters";
    let change = |at: &str, value: Value| {
        let mut cluster = sent("a");
        *cluster.pointer_mut(at).unwrap() = value;
        cluster
    };
    let worker = "/clusterSpec/workerGroupSpec/0";
    let cases = [
        Value::Null,
        json!({}),
        // The template is not there.
        sent("a"),
        change("/user", "zoe@example.org".into()),
        change("/environment", 9.into()),
        change("/environment", "MOON".into()),
        change("/namespace", "dev".into()),
        change("/clusterSpec", Value::Null),
        change(&format!("{worker}/minReplicas"), 4.into()),
        change(&format!("{worker}/groupName"), "".into()),
        change(&format!("{worker}/labels"), json!({"team": "a b"})),
    ];
    for body in cases {
        let refused = scene.ask("POST", clusters, &body).await;
        assert_eq!(
            (refused.status, &refused.json()["code"]),
            (400, &json!(3)),
            "{body}"
        );
        assert!(!refused.json()["message"].as_str().unwrap().is_empty());
    }
    // A type of volumes that the first version does not have.
    let mut later = sent_alpha("a");
    later["clusterSpec"]["headGroupSpec"]["volumes"][0]["volumeType"] = 5.into();
    let refused = scene
        .ask("POST", "/apis/v1alpha2/namespaces/ci/clusters", &later)
        .await;
    assert_eq!(refused.status, 400);
    assert_eq!(
        refused.json()["message"],
        "volume_type: there is no value 5"
    );
    assert_eq!(scene.clusters(), 0);
    let template = "/apis/v1/namespaces/ci/compute_templates";
    scene.ask("POST", template, &self::template()).await.ok();
    let taken = scene.ask("POST", template, &self::template()).await;
    assert_eq!((taken.status, &taken.json()["code"]), (409, &json!(6)));
    scene.ask("POST", clusters, &sent("a")).await.ok();
    let taken = scene.ask("POST", clusters, &sent("a")).await;
    assert_eq!((taken.status, &taken.json()["code"]), (409, &json!(6)));
    let expired = scene
        .ask("GET", &format!("{clusters}?continue=garbage"), &Value::Null)
        .await;
    assert_eq!(expired.status, 400);
    for (method, path) in [
        ("POST", "/apis/v1/namespaces/ci/jobs"),
        ("GET", "/apis/v1/namespaces/ci/services/s"),
        ("GET", "/apis/v1alpha2/jobs"),
        ("POST", "/apis/v1/namespaces/ci/jobsubmissions/a"),
        ("GET", "/apis/v1/namespaces/ci/jobsubmissions/a/log/1"),
        ("PUT", clusters),
    ] {
        let refused = scene.ask(method, path, &Value::Null).await;
        assert_eq!(
            (refused.status, &refused.json()["code"]),
            (501, &json!(12)),
            "{path}"
        );
        assert!(!refused.json()["message"].as_str().unwrap().is_empty());
    }
    let unknown = scene
        .ask("GET", "/apis/ray.io/v1/rayclusters", &Value::Null)
        .await;
    assert_eq!(unknown.status, 404);
    assert_eq!(scene.clusters(), 1);
    scene.server.stop().await;
}

#[tokio::test]
async fn ray_18_callers_need_rights_of_the_service_and_none_of_kubernetes() {
    let audit = tempfile::tempdir().unwrap();
    let audit = audit.path().join("audit").display().to_string();
    let scene = scene(&[("auth", "kubernetes"), ("audit_log", &audit)]).await;
    let policy = scene.sim.policy();
    policy
        .token("maker", "maker", &[])
        .token("reader", "reader", &[])
        .token("history", "history", &[]);
    for verb in ["create", "get", "list", "delete"] {
        policy.allow("maker", verb, "ray.hindsight.dev", "*", "ci");
    }
    policy.allow("reader", "list", "ray.hindsight.dev", "clusters", "*");
    policy.allow("history", "*", "results.tekton.dev", "*", "*");
    let url = &scene.server.url;
    let clusters = "/apis/v1/namespaces/ci/clusters";
    let body = sent("a").to_string();
    let template = template().to_string();
    let templates = "/apis/v1/namespaces/ci/compute_templates";
    for (token, status) in [("stranger", 401), ("reader", 403), ("history", 403)] {
        let refused = ask(url, "POST", clusters, token, &body).await;
        assert_eq!(refused.status, status, "{token}");
        assert!(refused.json()["message"].is_string());
        let refused = ask(url, "POST", templates, token, &template).await;
        assert_eq!(refused.status, status, "{token}");
    }
    assert_eq!(scene.clusters() + scene.sim.count("", "configmaps"), 0);
    ask(url, "POST", templates, "maker", &template).await.ok();
    ask(url, "POST", clusters, "maker", &body).await.ok();
    let elsewhere = ask(url, "GET", "/apis/v1/namespaces/dev/clusters", "maker", "").await;
    assert_eq!(elsewhere.status, 403);
    assert_eq!(
        ask(url, "GET", "/apis/v1/clusters", "maker", "")
            .await
            .status,
        403
    );
    ask(url, "GET", "/apis/v1/clusters", "reader", "")
        .await
        .ok();
    let deleted = ask(url, "DELETE", &format!("{clusters}/a"), "reader", "").await;
    assert_eq!(deleted.status, 403);
    ask(url, "DELETE", &format!("{clusters}/a"), "maker", "")
        .await
        .ok();
    scene.server.stop().await;
    let lines = std::fs::read_to_string(&audit).unwrap_or_default();
    let deletes = lines
        .lines()
        .filter(|line| line.contains("ci/clusters/a") && line.contains("\"delete\""));
    assert_eq!(deletes.count(), 2, "{lines}");
}

#[tokio::test]
async fn a_server_that_does_not_enable_it_has_no_route_and_asks_no_cluster() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    for path in [
        "/apis/v1/clusters",
        "/apis/v1alpha2/clusters",
        "/apis/v1/namespaces/ci/jobs",
    ] {
        let reply = ask(&server.url, "GET", path, "none", "").await;
        assert_eq!(
            (reply.status, &reply.json()["code"]),
            (404, &json!(5)),
            "{path}"
        );
    }
    let described = ask(&server.url, "GET", "/openapi.json", "none", "").await;
    assert!(!described.text().contains("kuberay"));
    let services = crate::wire::services(&server.url).await;
    assert!(
        services.len() > 3 && !services.iter().any(|name| name.contains("ClusterService")),
        "{services:?}"
    );
    let channel = Channel::from_shared(server.url.clone()).unwrap();
    let channel = channel.connect().await.unwrap();
    let mut client = ray_v1::cluster_service_client::ClusterServiceClient::new(channel);
    let request = ray_v1::ListAllClustersRequest::default();
    let refused = client.list_all_clusters(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
    server.stop().await;
}
