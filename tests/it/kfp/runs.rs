//! Runs of Kubeflow, which are workflows of Argo, and the versions that they were compiled from.

use hindsight_kfp::{
    history::{VERSION_TYPE, object},
    model::{Pipeline, PipelineVersion, Spec},
};
use serde_json::{Value, json};

use super::{NAMESPACE, PIPELINES, Scene, Store, ask, id, on_each, scene, shown, version_id};
use crate::support::{TestServer, http::Http, process::run};
use crate::web::page;

const RUN: &str = "team/results/r/records/run";

/// A run of the pipeline `hello`, which began at this time.
fn workflow(created: &str) -> Value {
    let part = |name: &str, value: Value| json!({"name": name, "value": value.to_string()});
    let spec = shown("hello");
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": "hello-x7k2p", "namespace": "team", "uid": "w", "generateName": "hello-",
            "labels": {"pipeline/runid": "7"}, "creationTimestamp": created},
        "spec": {"arguments": {"parameters": [
            part("components-0f", json!({"executorLabel": "exec-a"})),
            part("implementations-0f", json!({"image": "python:3.11"})),
            part("components-root", spec["root"].clone()),
        ]}},
        "status": {"phase": "Succeeded", "startedAt": created, "finishedAt": "2099-01-01T01:00:00Z"},
    })
}

async fn given_run(scene: &Scene, created: &str) {
    let bytes = workflow(created).to_string().into_bytes();
    let kind = "argoproj.io/v1alpha1.Workflow";
    scene.server.given_record(RUN, kind, &bytes).await;
}

/// What is below the run: kinds, names and records.
async fn below(scene: &Scene, token: &str) -> Vec<[String; 3]> {
    let target = format!("/apis/hindsight.dev/v1/parents/{RUN}/tree");
    let tree = ask(&scene.server.url, "GET", &target, token, "").await.ok();
    assert!(tree.get("criticalPath").is_none(), "{tree}");
    let nodes = tree["nodes"].as_array().unwrap().iter().skip(1);
    let text = |node: &Value, key: &str| node[key].as_str().unwrap_or_default().to_owned();
    let nodes = nodes.map(|node| ["kind", "name", "record"].map(|key| text(node, key)));
    nodes.collect()
}

fn node(name: &str, record: String) -> [String; 3] {
    ["PipelineVersion".to_owned(), name.to_owned(), record]
}

#[tokio::test]
async fn a_run_of_another_namespace_links_to_its_version() {
    on_each(async |scene: Scene| {
        let made = scene.made("hello").await;
        let version = scene.version(id(&made), "v1").await;
        given_run(&scene, "2099-01-01T00:00:00Z").await;
        let (pipeline, id) = (id(&made), version_id(&version));
        let record = format!("{NAMESPACE}/results/{pipeline}/records/{id}");
        let linked = [node("hello-v1", record.clone())];
        assert_eq!(below(&scene, "none").await, linked);

        let url = scene.server.url.as_str();
        let said = run(&["describe", RUN, "--server", url]).await;
        said.prints(
            0,
            "\n        hello-v1                                        PipelineVersion\n",
        );
        let target = format!("/ui/run/{RUN}");
        let page = page(&mut Http::one(url).await, &target).await.text();
        let link = format!(
            r#"href="/ui/run/{record}">hello-v1</a> <span class="note">PipelineVersion</span>"#
        );
        assert!(page.contains(&link), "{page}");

        // It stays readable, and linked, once it is deleted.
        let target = format!("{PIPELINES}/{pipeline}/versions/{id}");
        scene.ask("DELETE", &target, &Value::Null).await.ok();
        assert_eq!(below(&scene, "none").await, linked);
        scene
    })
    .await;
}

/// A record of a version of a pipeline, made at this time.
async fn given_version(scene: &Scene, parent: &str, name: &str, image: &str, created: &str) {
    let mut spec = shown("hello");
    spec["deploymentSpec"]["executors"]["exec-a"]["container"]["image"] = json!(image);
    let created_at = created.parse().unwrap();
    let pipeline = Pipeline {
        id: "p".to_owned(),
        name: "hello".to_owned(),
        namespace: String::new(),
        display_name: "hello".to_owned(),
        description: String::new(),
        tags: Default::default(),
        created_at,
        original_id: None,
    };
    let version = PipelineVersion {
        id: name.to_owned(),
        pipeline_id: pipeline.id.clone(),
        name: name.to_owned(),
        display_name: name.to_owned(),
        description: String::new(),
        code_source_url: String::new(),
        package_url: String::new(),
        tags: Default::default(),
        created_at,
        status: Default::default(),
        original_id: None,
        spec: Ok(Spec {
            pipeline: spec,
            platform: None,
        }),
    };
    let bytes = object(&pipeline, &version).to_string().into_bytes();
    let record = format!("{parent}/results/p/records/{name}");
    scene
        .server
        .given_record(&record, VERSION_TYPE, &bytes)
        .await;
}

#[tokio::test]
async fn of_several_versions_of_one_content_it_is_the_last_that_was_there_when_the_run_began() {
    for store in [Store::Sqlite, Store::Postgres] {
        let Some(scene) = scene(store, &[]).await else {
            continue;
        };
        let content = "python:3.11";
        let versions = [
            ("team", "early", content, "2026-03-01T09:00:00Z"),
            (NAMESPACE, "right", content, "2026-03-01T10:00:00Z"),
            ("team", "other", "python:3.12", "2026-03-01T10:00:01Z"),
            ("foreign", "foreign", content, "2026-03-01T10:00:02Z"),
            ("team", "late", content, "2026-03-01T10:00:03Z"),
        ];
        given_run(&scene, "2026-03-01T10:00:02Z").await;
        assert_eq!(below(&scene, "none").await, Vec::<[String; 3]>::new());
        for (parent, name, image, created) in versions {
            given_version(&scene, parent, name, image, created).await;
        }
        let record = format!("{NAMESPACE}/results/p/records/right");
        assert_eq!(below(&scene, "none").await, [node("hello-right", record)]);
        scene.end().await;
    }
}

#[tokio::test]
async fn a_version_is_told_to_callers_who_may_list_its_records_alone() {
    let scene = scene(Store::Sqlite, &[]).await.unwrap();
    let (image, created) = ("python:3.11", "2026-03-01T09:00:00Z");
    given_version(&scene, NAMESPACE, "v1", image, created).await;
    given_run(&scene, "2026-03-01T10:00:00Z").await;
    scene.server.stop().await;
    let kubeconfig = scene.listening.kubeconfig().display().to_string();
    let flags = [
        ("enable_pipelines", "true"),
        ("auth", "kubernetes"),
        ("auth_kubeconfig", kubeconfig.as_str()),
    ];
    let server = TestServer::start_with(&scene.database, &flags).await;
    let scene = Scene { server, ..scene };
    let policy = scene.sim.policy();
    for (token, places) in [
        ("of-team", &["team"][..]),
        ("of-both", &["team", NAMESPACE]),
    ] {
        policy.token(token, token, &[]);
        for place in places {
            policy.allow(token, "list", "results.tekton.dev", "records", place);
        }
        policy.allow(token, "get", "results.tekton.dev", "records", NAMESPACE);
    }
    assert_eq!(below(&scene, "of-team").await, Vec::<[String; 3]>::new());
    assert_eq!(below(&scene, "of-both").await.len(), 1);
    scene.end().await;
}
