//! The pipelines store of Kubeflow, as its clients ask it: one suite, on each store.

mod access;
mod history;
mod lists;
mod pipelines;
mod refusals;
mod runs;
mod transfer;
mod uploads;
mod webhooks;

use kubesim::{Crd, Listening, Sim};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::support::{
    Database, TestServer,
    database::postgres_or_skip,
    http::{Http, Reply},
};

const PIPELINES: &str = "/apis/v2beta1/pipelines";
/// The namespace of the server.
const NAMESPACE: &str = "kubeflow";

/// Where pipelines are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Store {
    Sqlite,
    Postgres,
    Kubernetes,
}

/// A server with a store.
struct Scene {
    store: Store,
    sim: Sim,
    listening: Listening,
    server: TestServer,
    database: Database,
}

/// A server with the store; none without its database.
async fn scene(store: Store, more: &[(&str, &str)]) -> Option<Scene> {
    let sim = Sim::new();
    sim.install_all(Crd::kubeflow());
    for namespace in [NAMESPACE, "ci", "dev"] {
        sim.namespace(namespace);
    }
    let listening = sim.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let kubeconfig = listening.kubeconfig().display().to_string();
    let database = match store {
        Store::Postgres => postgres_or_skip().await?,
        Store::Sqlite | Store::Kubernetes => Database::sqlite(),
    };
    let mut flags = vec![("enable_pipelines", "true")];
    if store == Store::Kubernetes {
        flags.push(("pipelines_store", "kubernetes"));
        flags.push(("pipelines_kubeconfig", kubeconfig.as_str()));
    }
    if more.contains(&("auth", "kubernetes")) {
        flags.push(("auth_kubeconfig", kubeconfig.as_str()));
    }
    flags.extend(more);
    let server = TestServer::start_with(&database, &flags).await;
    Some(Scene {
        store,
        sim,
        listening,
        server,
        database,
    })
}

/// Runs a case on every store.
async fn on_each<W: Future<Output = Scene>>(case: impl Fn(Scene) -> W) {
    for store in [Store::Sqlite, Store::Postgres, Store::Kubernetes] {
        if let Some(scene) = scene(store, &[]).await {
            let scene = case(scene).await;
            scene.end().await;
        }
    }
}

async fn ask(url: &str, method: &str, target: &str, token: &str, body: &str) -> Reply {
    let authorization = format!("Bearer {token}");
    let headers = [
        ("authorization", authorization.as_str()),
        ("accept", "application/json"),
    ];
    let mut http = Http::one(url).await;
    http.send(method, target, &headers, body.to_owned()).await
}

impl Scene {
    async fn end(self) {
        self.server.stop().await;
        self.database.remove().await;
    }

    async fn ask(&self, method: &str, target: &str, body: &Value) -> Reply {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        ask(&self.server.url, method, target, "none", &body).await
    }

    async fn get(&self, target: &str) -> Value {
        self.ask("GET", target, &Value::Null).await.ok()
    }

    /// Sends a file as the SDK does.
    async fn send_file(&self, target: &str, name: &str, content: &[u8]) -> Reply {
        let form = form("uploadfile", name, content);
        let headers = [("content-type", "multipart/form-data; boundary=abc")];
        let mut http = Http::one(&self.server.url).await;
        http.send("POST", target, &headers, form).await
    }

    /// A pipeline without versions.
    async fn made(&self, name: &str) -> Value {
        self.ask("POST", PIPELINES, &json!({ "name": name }))
            .await
            .ok()
    }

    /// The id of a version of a pipeline.
    async fn version(&self, pipeline_id: &str, name: &str) -> Value {
        let target = format!("{PIPELINES}/upload_version?name={name}&pipelineid={pipeline_id}");
        self.send_file(&target, "a.yaml", spec("hello").as_bytes())
            .await
            .ok()
    }

    /// What is left of an answer once what differs between stores is taken off: the namespace, which only objects have.
    fn common(&self, mut answer: Value) -> Value {
        if let Some(fields) = answer.as_object_mut() {
            let namespace = fields.remove("namespace");
            match self.store {
                Store::Kubernetes => assert_eq!(namespace, Some(json!(NAMESPACE))),
                _ => assert_eq!(namespace, None),
            }
        }
        answer
    }

    /// Refused with these, and a bare reason among the details.
    #[track_caller]
    fn refused(&self, reply: &Reply, status: u16, code: i32, reason: &str) {
        let store = self.store;
        assert_eq!(reply.status, status, "{store:?} {}", reply.text());
        let body = reply.json();
        assert_eq!(body["code"], code, "{store:?}");
        let detail = &body["details"][0];
        assert_eq!(detail["@type"], "type.googleapis.com/google.rpc.Status");
        assert_eq!(detail["code"], code);
        let said = detail["message"].as_str().unwrap();
        assert!(said.starts_with(reason), "{store:?}: {said}");
        assert!(body["message"].as_str().unwrap().contains(said), "{body}");
    }
}

fn form(part: &str, name: &str, content: &[u8]) -> Vec<u8> {
    let head = format!(
        "--abc\r\nContent-Disposition: form-data; name=\"{part}\"; filename=\"{name}\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    );
    [head.as_bytes(), content, b"\r\n--abc--\r\n"].concat()
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// The specification of a pipeline as the SDK writes it.
fn spec(name: &str) -> String {
    format!(
        "components:\n  comp-a:\n    executorLabel: exec-a\ndeploymentSpec:\n  executors:\n    exec-a:\n      container:\n        \
         image: python:3.11\npipelineInfo:\n  name: {name}\nroot:\n  dag:\n    tasks:\n      a:\n        \
         cachingOptions:\n          enableCache: true\n        componentRef:\n          name: comp-a\n        taskInfo:\n          \
         name: a\nschemaVersion: 2.1.0\nsdkVersion: kfp-2.17.0\n"
    )
}

/// The same as answers show it.
fn shown(name: &str) -> Value {
    json!({
        "components": {"comp-a": {"executorLabel": "exec-a"}},
        "deploymentSpec": {"executors": {"exec-a": {"container": {"image": "python:3.11"}}}},
        "pipelineInfo": {"name": name},
        "root": {"dag": {"tasks": {"a": {
            "cachingOptions": {"enableCache": true},
            "componentRef": {"name": "comp-a"},
            "taskInfo": {"name": "a"},
        }}}},
        "schemaVersion": "2.1.0",
        "sdkVersion": "kfp-2.17.0",
    })
}

fn id(pipeline: &Value) -> &str {
    pipeline["pipeline_id"].as_str().expect("it has an id")
}

fn version_id(version: &Value) -> &str {
    version["pipeline_version_id"]
        .as_str()
        .expect("it has an id")
}
