//! Rights and the audit log.

use hindsight_proto::kubeflow_v2beta1::{
    ListPipelinesRequest, Pipeline, UpdatePipelineRequest,
    pipeline_service_client::PipelineServiceClient,
};
use serde_json::{Value, json};
use tonic::{Code, Request, transport::Channel};

use super::{NAMESPACE, PIPELINES, Scene, Store, ask, id, scene, version_id};
use crate::support::http::Http;

const GROUP: &str = "pipelines.kubeflow.org";

async fn tried(scene: &Scene, token: &str, method: &str, target: &str, body: &str) -> u16 {
    ask(&scene.server.url, method, target, token, body)
        .await
        .status
}

/// A pipeline with a version in a namespace, made by a caller with all rights.
async fn given(scene: &Scene, namespace: &str) -> (Value, Value) {
    let url = &scene.server.url;
    let body = json!({"name": "hello", "namespace": namespace}).to_string();
    let made = ask(url, "POST", PIPELINES, "admin", &body).await.ok();
    let headers = [
        ("content-type", "multipart/form-data; boundary=abc"),
        ("authorization", "Bearer admin"),
    ];
    let form = super::form("uploadfile", "a.yaml", super::spec("x").as_bytes());
    let target = format!(
        "{PIPELINES}/upload_version?name=v1&pipelineid={}",
        id(&made)
    );
    let mut http = Http::one(url).await;
    let version = http.send("POST", &target, &headers, form).await.ok();
    (made, version)
}

#[tokio::test]
async fn kfp_25_each_verb_is_a_right_in_the_namespace_of_the_pipeline() {
    for store in [Store::Sqlite, Store::Kubernetes] {
        let more = [("auth", "kubernetes"), ("pipelines_multi_user", "true")];
        let scene = scene(store, &more).await.unwrap();
        let policy = scene.sim.policy();
        policy
            .token("admin", "admin", &[])
            .token("none", "none", &[]);
        policy.allow("admin", "*", GROUP, "*", "*");
        for verb in ["create", "get", "list", "update", "delete"] {
            policy.token(verb, verb, &[]);
            policy.allow(verb, verb, GROUP, "pipelines", "ci");
            let both = format!("{verb}-both");
            policy.token(&both, &both, &[]);
            policy.allow(&both, verb, GROUP, "*", "ci");
        }
        let (made, version) = given(&scene, "ci").await;
        let pipeline = format!("{PIPELINES}/{}", id(&made));
        let versions = format!("{pipeline}/versions");
        let one = format!("{versions}/{}", version_id(&version));
        let of_pipeline = [
            (
                "create",
                "POST",
                PIPELINES,
                r#"{"name":"new","namespace":"ci"}"#,
            ),
            ("get", "GET", &pipeline, ""),
            (
                "get",
                "GET",
                "/apis/v2beta1/pipelines/names/hello?namespace=ci",
                "",
            ),
            ("list", "GET", "/apis/v2beta1/pipelines?namespace=ci", ""),
            ("update", "PATCH", &pipeline, r#"{"display_name":"x"}"#),
        ];
        for (verb, method, target, body) in of_pipeline {
            for (token, status) in [("stranger", 401), ("none", 403), (verb, 200)] {
                let got = tried(&scene, token, method, target, body).await;
                assert_eq!(got, status, "{store:?} {token} {method} {target}");
            }
            let wrong = if verb == "get" { "list" } else { "get" };
            let got = tried(&scene, wrong, method, target, body).await;
            assert_eq!(got, 403, "{wrong} {method} {target}");
        }
        // Where versions are objects, they are guarded as such too.
        let alone = if store == Store::Kubernetes { 403 } else { 200 };
        let of_version = [
            ("get", "GET", &one, ""),
            ("list", "GET", &versions, ""),
            ("update", "PATCH", &one, r#"{"display_name":"x"}"#),
        ];
        for (verb, method, target, body) in of_version {
            assert_eq!(
                tried(&scene, "none", method, target, body).await,
                403,
                "{target}"
            );
            let got = tried(&scene, verb, method, target, body).await;
            assert_eq!(got, alone, "{store:?} {verb} {method} {target}");
            let both = format!("{verb}-both");
            assert_eq!(
                tried(&scene, &both, method, target, body).await,
                200,
                "{target}"
            );
        }
        let list = "/apis/v2beta1/pipelines?namespace=dev";
        assert_eq!(tried(&scene, "list", "GET", list, "").await, 403);
        // Pipelines of no namespace are those of the namespace of the server.
        assert_eq!(tried(&scene, "list", "GET", PIPELINES, "").await, 403);
        policy.allow("list", "list", GROUP, "pipelines", NAMESPACE);
        assert_eq!(tried(&scene, "list", "DELETE", &one, "").await, 403);
        assert_eq!(tried(&scene, "delete-both", "DELETE", &one, "").await, 200);
        assert_eq!(tried(&scene, "get", "DELETE", &pipeline, "").await, 403);
        assert_eq!(tried(&scene, "delete", "DELETE", &pipeline, "").await, 200);
        scene.end().await;
    }
}

#[tokio::test]
async fn changes_are_in_the_audit_log() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit").display().to_string();
    let scene = scene(
        Store::Sqlite,
        &[("auth", "kubernetes"), ("audit_log", &audit)],
    )
    .await;
    let scene = scene.unwrap();
    let policy = scene.sim.policy();
    policy
        .token("admin", "admin", &[])
        .token("none", "none", &[]);
    policy.allow("admin", "*", GROUP, "*", NAMESPACE);
    let (made, version) = given(&scene, "").await;
    let pipeline = format!("{PIPELINES}/{}", id(&made));
    let one = format!("{pipeline}/versions/{}", version_id(&version));
    assert_eq!(
        tried(
            &scene,
            "admin",
            "PATCH",
            &pipeline,
            r#"{"display_name":"x"}"#
        )
        .await,
        200
    );
    assert_eq!(tried(&scene, "none", "DELETE", &one, "").await, 403);
    assert_eq!(tried(&scene, "admin", "DELETE", &one, "").await, 200);
    assert_eq!(tried(&scene, "admin", "DELETE", &pipeline, "").await, 200);
    scene.end().await;
    let lines = std::fs::read_to_string(&audit).unwrap_or_default();
    let count = |verb: &str, name: &str| {
        let verb = format!("\"{verb}\"");
        let name = format!("\"{name}\"");
        let found = lines
            .lines()
            .filter(|line| line.contains(&verb) && line.contains(&name));
        found.count()
    };
    let (of_pipeline, of_version) = (
        "kubeflow/pipelines/hello",
        "kubeflow/pipelines/hello/versions/v1",
    );
    assert_eq!(count("create", of_pipeline), 1, "{lines}");
    assert_eq!(count("create", of_version), 1, "{lines}");
    assert_eq!(count("update", of_pipeline), 1, "{lines}");
    assert_eq!(count("delete", of_version), 2, "{lines}");
    assert_eq!(count("delete", of_pipeline), 1, "{lines}");
}

#[tokio::test]
async fn over_grpc_empty_tags_are_cleared_by_metadata_and_reasons_are_details() {
    let scene = scene(Store::Sqlite, &[]).await.unwrap();
    let body = json!({"name": "hello", "tags": {"a": "1"}});
    let made = scene.ask("POST", PIPELINES, &body).await.ok();
    let channel = Channel::from_shared(scene.server.url.clone()).unwrap();
    let mut client = PipelineServiceClient::new(channel.connect().await.unwrap());
    let update = || UpdatePipelineRequest {
        pipeline: Some(Pipeline {
            pipeline_id: id(&made).to_owned(),
            ..Pipeline::default()
        }),
    };
    let same = client.update_pipeline(update()).await.unwrap().into_inner();
    assert_eq!(same.tags.len(), 1);
    let mut request = Request::new(update());
    request
        .metadata_mut()
        .insert("x-clear-tags", "true".parse().unwrap());
    let cleared = client.update_pipeline(request).await.unwrap().into_inner();
    assert!(cleared.tags.is_empty());
    let request = ListPipelinesRequest {
        page_size: -1,
        ..ListPipelinesRequest::default()
    };
    let refused = client.list_pipelines(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(!refused.details().is_empty());
    scene.end().await;
}

/// Behind the gateway of Kubeflow, which knows its users and has a token of its own.
#[tokio::test]
async fn a_gateway_acts_for_the_users_that_it_names() {
    let more = [("auth", "kubernetes"), ("pipelines_multi_user", "true")];
    let scene = scene(Store::Sqlite, &more).await.unwrap();
    let policy = scene.sim.policy();
    policy.token("gateway", "gateway", &[]);
    policy.allow("gateway", "impersonate", "", "users", "*");
    policy.allow("alice@example.org", "list", GROUP, "pipelines", "ci");
    let listed = async |namespace: &str, headers: &[(&str, &str)]| {
        let target = format!("{PIPELINES}?namespace={namespace}");
        let mut http = Http::one(&scene.server.url).await;
        http.send("GET", &target, headers, "").await.status
    };
    let gateway = ("authorization", "Bearer gateway");
    for (user, of_ci) in [("alice@example.org", 200), ("bob@example.org", 403)] {
        let named = [gateway, ("impersonate-user", user)];
        assert_eq!(listed("ci", &named).await, of_ci, "{user}");
        assert_eq!(listed("dev", &named).await, 403, "{user}");
        // The header of Kubeflow alone names no caller.
        let trusted = ("kubeflow-userid", user);
        assert_eq!(listed("ci", &[trusted]).await, 401);
        assert_eq!(listed("ci", &[gateway, trusted]).await, 403);
    }
    scene.end().await;
}
