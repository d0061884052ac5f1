//! What is refused, in the form of Kubeflow, and makes nothing.

use serde_json::{Value, json};

use super::{PIPELINES, Scene, Store, id, on_each, scene};

#[tokio::test]
async fn kfp_43_a_package_is_downloaded_from_public_addresses_alone_and_nothing_is_left() {
    on_each(async |scene: Scene| {
        let made = scene.made("there").await;
        let versions = format!("{PIPELINES}/{}/versions", id(&made));
        for url in [
            "https://127.0.0.1/a.yaml",
            "https://localhost/a.yaml",
            "https://[::1]/a.yaml",
            "https://169.254.169.254/latest/meta-data",
            "https://10.0.0.1/a.yaml",
            "http://example.com/a.yaml",
            "file:///etc/passwd",
            "gopher://example.com/",
        ] {
            let both = json!({
                "pipeline": {"name": "new"},
                "pipeline_version": {"package_url": {"pipeline_url": url}},
            });
            let refused = scene
                .ask("POST", &format!("{PIPELINES}/create"), &both)
                .await;
            scene.refused(&refused, 400, 3, "Pipeline URL validation failed");
            let version = json!({"name": "v", "package_url": {"pipeline_url": url}});
            let refused = scene.ask("POST", &versions, &version).await;
            scene.refused(&refused, 400, 3, "Pipeline URL validation failed");
        }
        let refused = scene.ask("POST", &versions, &json!({"name": "v"})).await;
        let why = "Failed to create a pipeline version. Package URL is empty";
        scene.refused(&refused, 400, 3, why);
        let all = scene.get(PIPELINES).await;
        assert_eq!(all["total_size"], 1);
        assert_eq!(scene.get(&versions).await, json!({}));
        scene
    })
    .await;
}

#[tokio::test]
async fn a_body_with_an_unknown_field_or_of_another_type_is_refused() {
    on_each(async |scene: Scene| {
        for body in [
            json!({"name": "a", "colour": "red"}),
            json!({"name": "a", "tags": {"a": 1}}),
            json!({"name": ["a"]}),
        ] {
            let refused = scene.ask("POST", PIPELINES, &body).await;
            assert_eq!(refused.status, 400, "{body}");
            assert_eq!(refused.json()["code"], 3);
        }
        let mut http = crate::support::http::Http::one(&scene.server.url).await;
        let twice = http
            .send("POST", PIPELINES, &[], r#"{"name":"a","name":"b"}"#)
            .await;
        assert_eq!(twice.status, 400);
        assert_eq!(scene.get(PIPELINES).await, json!({}));
        scene
    })
    .await;
}

#[tokio::test]
async fn kfp_48_limits_of_names_and_tags_hold_over_rest() {
    on_each(async |scene: Scene| {
        let many: serde_json::Map<String, Value> =
            (0..21).map(|n| (n.to_string(), json!(""))).collect();
        for (body, why) in [
            (
                json!({"name": "a", "tags": many}),
                "number of tags (21) exceeds maximum of 20 per entity",
            ),
            (
                json!({"name": "a", "tags": {"": "x"}}),
                "tag key cannot be empty",
            ),
            (
                json!({"name": "a".repeat(129)}),
                "Pipeline.Name length cannot exceed 128",
            ),
            (
                json!({"name": "a\u{0}"}),
                "Pipeline.Name must not have control characters",
            ),
        ] {
            let refused = scene.ask("POST", PIPELINES, &body).await;
            scene.refused(&refused, 400, 3, why);
        }
        scene.made(&"a".repeat(128)).await;
        scene
    })
    .await;
}

#[tokio::test]
async fn kfp_50_names_of_objects_are_those_of_kubernetes() {
    let scene = scene(Store::Kubernetes, &[]).await.unwrap();
    let refused = scene
        .ask("POST", PIPELINES, &json!({"name": "Hello World"}))
        .await;
    scene.refused(
        &refused,
        400,
        3,
        "Invalid pipeline name \"Hello World\": a lowercase RFC 1123 subdomain",
    );
    let made = scene.made("hello").await;
    let target = format!(
        "{PIPELINES}/upload_version?name=2026-01-31+10-00-00&pipelineid={}",
        id(&made)
    );
    let refused = scene
        .send_file(&target, "a.yaml", super::spec("x").as_bytes())
        .await;
    assert_eq!(refused.status, 400);
    let why = refused.json()["error_details"].as_str().unwrap().to_owned();
    assert!(
        why.contains("Invalid pipeline version name \"2026-01-31 10-00-00\""),
        "{why}"
    );
    scene.end().await;
}

#[tokio::test]
async fn what_kubeflow_offers_beside_pipelines_is_said_not_to_be_offered() {
    let scene = scene(Store::Sqlite, &[]).await.unwrap();
    for (method, target) in [
        ("POST", "/apis/v2beta1/runs"),
        ("GET", "/apis/v2beta1/runs/x"),
        ("GET", "/apis/v2beta1/experiments?filter=x"),
        ("GET", "/apis/v2beta1/recurringruns"),
        ("POST", "/apis/v2beta1/visualizations/ns"),
        ("POST", "/apis/v2beta1/workflows"),
        ("POST", "/apis/v2beta1/scheduledworkflows"),
        ("GET", "/apis/v2beta1/auth"),
        ("GET", "/apis/v1beta1/pipelines"),
        ("GET", "/apis/v1beta1/pipeline_versions/x"),
    ] {
        let refused = scene.ask(method, target, &Value::Null).await;
        assert_eq!(
            (refused.status, &refused.json()["code"]),
            (501, &json!(12)),
            "{target}"
        );
        assert!(
            refused.json()["message"]
                .as_str()
                .unwrap()
                .contains("offer"),
            "{target}"
        );
    }
    let unknown = scene
        .ask("GET", "/apis/v2beta1/pipeline", &Value::Null)
        .await;
    assert_eq!(unknown.status, 404);
    assert_eq!(unknown.json(), json!({"code": 5, "message": "Not Found"}));
    let wrong = scene.ask("PUT", PIPELINES, &Value::Null).await;
    assert_eq!((wrong.status, &wrong.json()["code"]), (501, &json!(12)));
    scene.end().await;
}

#[tokio::test]
async fn kfp_30_a_server_that_does_not_enable_it_has_no_route() {
    let database = crate::support::Database::sqlite();
    let server = crate::support::TestServer::start(&database).await;
    for target in [
        PIPELINES,
        "/apis/v2beta1/healthz",
        "/apis/v1beta1/healthz",
        "/apis/v2beta1/pipelines/upload",
        "/apis/v2beta1/runs",
    ] {
        let reply = super::ask(&server.url, "GET", target, "none", "").await;
        assert_eq!(
            (reply.status, &reply.json()["code"]),
            (404, &json!(5)),
            "{target}"
        );
    }
    let described = super::ask(&server.url, "GET", "/openapi.json", "none", "").await;
    assert!(!described.text().contains("kubeflow"));
    server.stop().await;
}
