//! Creating, showing, changing and deleting pipelines and versions.

use serde_json::{Value, json};

use super::{NAMESPACE, PIPELINES, Scene, Store, id, on_each, scene, shown, version_id};

const NOWHERE: &str = "00000000-0000-4000-8000-000000000000";

/// Whether a text is a time in whole seconds.
fn is_time(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    text.len() == 20 && text.ends_with('Z')
}

#[tokio::test]
async fn kfp_40_a_pipeline_is_created_with_names_that_stand_for_each_other() {
    on_each(async |scene: Scene| {
        let body = json!({
            "display_name": "hello", "description": "d\nd", "namespace": "ignored", "tags": {"team": "a"},
        });
        let made = scene.ask("POST", PIPELINES, &body).await.ok();
        let mut rest = scene.common(made.clone());
        let fields = rest.as_object_mut().unwrap();
        assert!(is_time(&fields.remove("created_at").unwrap()));
        assert_eq!(fields.remove("pipeline_id").unwrap().as_str().unwrap().len(), 36);
        assert_eq!(
            rest,
            json!({"name": "hello", "display_name": "hello", "description": "d\nd", "tags": {"team": "a"}})
        );
        let body = json!({ "name": "b", "displayName": "B shown" });
        let made = scene.ask("POST", PIPELINES, &body).await.ok();
        assert_eq!(
            (&made["name"], &made["display_name"]),
            (&json!("b"), &json!("B shown"))
        );
        scene
    })
    .await;
}

#[tokio::test]
async fn kfp_40_a_name_is_required_and_taken_once() {
    on_each(async |scene: Scene| {
        for body in [json!({}), json!({"name": "", "display_name": ""})] {
            let refused = scene.ask("POST", PIPELINES, &body).await;
            scene.refused(&refused, 400, 3, "name is required");
        }
        scene.made("hello").await;
        let refused = scene.ask("POST", PIPELINES, &json!({"name": "hello"})).await;
        let why = "Failed to create a new pipeline. The name hello already exists. Please specify a new name";
        scene.refused(&refused, 409, 6, why);
        assert!(refused.text().contains("Failed to create a pipeline: "));
        scene
    })
    .await;
}

#[tokio::test]
async fn kfp_41_a_pipeline_is_shown_by_its_id_and_by_its_name() {
    on_each(async |scene: Scene| {
        assert_eq!(scene.get(PIPELINES).await, json!({}));
        let made = scene.made("hello").await;
        let by_id = scene.get(&format!("{PIPELINES}/{}", id(&made))).await;
        assert_eq!(by_id, made);
        for query in ["", "?namespace=", "?namespace=kubeflow&order_by=x"] {
            let by_name = scene.get(&format!("{PIPELINES}/names/hello{query}")).await;
            assert_eq!(by_name, made);
        }
        let page = scene.get(PIPELINES).await;
        assert_eq!(page, json!({"pipelines": [made], "total_size": 1}));
        let nowhere = format!("{PIPELINES}/{NOWHERE}");
        let missing = scene.ask("GET", &nowhere, &Value::Null).await;
        let why = format!("Pipeline {NOWHERE} not found");
        scene.refused(&missing, 404, 5, &why);
        let missing = scene
            .ask("GET", &format!("{PIPELINES}/names/b"), &Value::Null)
            .await;
        let namespace = if scene.store == Store::Kubernetes {
            NAMESPACE
        } else {
            ""
        };
        let why = format!("Namespace/Pipeline {namespace}/b not found");
        scene.refused(&missing, 404, 5, &why);
        scene
    })
    .await;
}

#[tokio::test]
async fn kfp_42_a_pipeline_with_versions_is_deleted_if_that_is_asked() {
    on_each(async |scene: Scene| {
        let made = scene.made("hello").await;
        let first = scene.version(id(&made), "v1").await;
        let target = format!("{PIPELINES}/{}", id(&made));
        for query in ["", "?cascade=false", "?cascade=False", "?cascade=0", "?cascade"] {
            let refused = scene.ask("DELETE", &format!("{target}{query}"), &Value::Null).await;
            if query == "?cascade" {
                assert_eq!(refused.status, 400);
                continue;
            }
            let why = format!(
                "Failed to delete pipeline with id {} as it has existing pipeline versions (e.g. {}). Set \
                 cascade=true to delete all versions",
                id(&made),
                version_id(&first)
            );
            scene.refused(&refused, 400, 3, &why);
        }
        scene.get(&format!("{target}/versions/{}", version_id(&first))).await;
        let deleted = scene.ask("DELETE", &format!("{target}?cascade=True"), &Value::Null).await;
        assert_eq!(deleted.ok(), json!({}));
        for target in [target.clone(), format!("{target}/versions")] {
            let missing = scene.ask("GET", &target, &Value::Null).await;
            scene.refused(&missing, 404, 5, "Pipeline ");
        }
        let made = scene.made("hello").await;
        let target = format!("{PIPELINES}/{}", id(&made));
        assert_eq!(scene.ask("DELETE", &target, &Value::Null).await.ok(), json!({}));
        let missing = scene.ask("DELETE", &target, &Value::Null).await;
        scene.refused(&missing, 404, 5, "Pipeline ");
        scene
    })
    .await;
}

#[tokio::test]
async fn kfp_44_and_46_a_version_is_shown_listed_and_deleted_below_its_pipeline_alone() {
    on_each(async |scene: Scene| {
        let made = scene.made("hello").await;
        let other = scene.made("other").await;
        let first = scene.version(id(&made), "v1").await;
        let mut rest = first.clone();
        let fields = rest.as_object_mut().unwrap();
        assert!(is_time(&fields.remove("created_at").unwrap()));
        fields.remove("pipeline_version_id").unwrap();
        assert_eq!(
            rest,
            json!({
                "pipeline_id": id(&made), "name": "v1", "display_name": "v1", "pipeline_spec": shown("hello"),
            })
        );
        let versions = format!("{PIPELINES}/{}/versions", id(&made));
        let target = format!("{versions}/{}", version_id(&first));
        assert_eq!(scene.get(&target).await, first);
        let listed = scene.get(&versions).await;
        assert_eq!(listed, json!({"pipeline_versions": [first], "total_size": 1}));
        let of_other = format!("{PIPELINES}/{}/versions", id(&other));
        assert_eq!(scene.get(&of_other).await, json!({}));
        let elsewhere = format!("{of_other}/{}", version_id(&first));
        let why = format!("PipelineVersion {} not found", version_id(&first));
        for verb in ["GET", "DELETE"] {
            let missing = scene.ask(verb, &elsewhere, &Value::Null).await;
            scene.refused(&missing, 404, 5, &why);
        }
        assert_eq!(scene.ask("DELETE", &target, &Value::Null).await.ok(), json!({}));
        let missing = scene.ask("GET", &target, &Value::Null).await;
        scene.refused(&missing, 404, 5, &why);
        scene
    })
    .await;
}

/// The same version name under two pipelines (#13534, #13552 of Kubeflow).
#[tokio::test]
async fn kfp_44_versions_of_two_pipelines_may_have_one_name() {
    on_each(async |scene: Scene| {
        for name in ["a", "b"] {
            let made = scene.made(name).await;
            let version = scene.version(id(&made), "v1").await;
            assert_eq!(version["name"], "v1");
            let target = format!(
                "{PIPELINES}/upload_version?name=v1&pipelineid={}",
                id(&made)
            );
            let again = scene
                .send_file(&target, "a.yaml", super::spec("x").as_bytes())
                .await;
            assert_eq!(again.status, 409, "{}", again.text());
            assert_eq!(
                again.json()["error_message"],
                "Failed to create a pipeline version"
            );
        }
        scene
    })
    .await;
}

#[tokio::test]
async fn kfp_44_an_update_changes_names_and_tags_and_clears_tags_only_if_they_are_said_to_be_empty()
{
    on_each(async |scene: Scene| {
        let body = json!({"name": "hello", "tags": {"a": "1", "b": "2"}});
        let made = scene.ask("POST", PIPELINES, &body).await.ok();
        let first = scene.version(id(&made), "v1").await;
        let pipeline = format!("{PIPELINES}/{}", id(&made));
        let version = format!("{pipeline}/versions/{}", version_id(&first));
        for target in [&pipeline, &version] {
            let patch = async |body: Value| scene.ask("PATCH", target, &body).await.ok();
            let all = json!({"a": "1", "b": "2"});
            patch(json!({ "tags": all })).await;
            // Other fields and another id in the body are passed over.
            let changed = patch(json!({
                "display_name": "Shown", "description": "x", "name": "other", "pipeline_id": NOWHERE,
            }))
            .await;
            assert_eq!((&changed["display_name"], &changed["tags"]), (&json!("Shown"), &all));
            assert_eq!(changed["description"], Value::Null);
            assert_ne!(changed["name"], "other");
            let changed = patch(json!({"tags": {"b": "3"}})).await;
            assert_eq!(
                (&changed["display_name"], &changed["tags"]),
                (&json!("Shown"), &json!({"b": "3"}))
            );
            let same = patch(json!({"display_name": ""})).await;
            assert_eq!(same, changed);
            let changed = patch(json!({"tags": {}})).await;
            assert_eq!((&changed["display_name"], &changed["tags"]), (&json!("Shown"), &Value::Null));
            assert_eq!(scene.get(target).await, changed);
            let refused = scene.ask("PATCH", target, &json!({"tags": {"a.b": ""}})).await;
            scene.refused(&refused, 400, 3, "tag key \"a.b\" must not contain '.' character");
        }
        let missing = format!("{PIPELINES}/{NOWHERE}");
        let refused = scene.ask("PATCH", &missing, &json!({"tags": {}})).await;
        scene.refused(&refused, 404, 5, "Pipeline ");
        scene
    })
    .await;
}

#[tokio::test]
async fn kfp_49_the_health_page_has_four_fields_and_needs_no_caller() {
    for store in [Store::Sqlite, Store::Kubernetes] {
        let scene = scene(store, &[("auth", "kubernetes")]).await.unwrap();
        let health = super::ask(
            &scene.server.url,
            "GET",
            "/apis/v2beta1/healthz",
            "stranger",
            "",
        );
        let name = if store == Store::Kubernetes {
            "kubernetes"
        } else {
            "database"
        };
        assert_eq!(
            health.await.ok(),
            json!({"commit_sha": "unknown", "tag_name": "unknown", "multi_user": false, "pipeline_store": name})
        );
        let before = super::ask(
            &scene.server.url,
            "GET",
            "/apis/v1beta1/healthz",
            "stranger",
            "",
        );
        assert_eq!(
            before.await.ok(),
            json!({"commit_sha": "unknown", "tag_name": "unknown", "multi_user": false})
        );
        scene.end().await;
    }
}

/// KFP-26: what the database has is there again when the server comes back to it.
#[tokio::test]
async fn kfp_26_pipelines_of_the_database_outlive_a_server_without_them() {
    let scene = scene(Store::Sqlite, &[]).await.unwrap();
    let made = scene.made("hello").await;
    let (database, server) = (scene.database, scene.server);
    server.stop().await;
    let off = crate::support::TestServer::start(&database).await;
    off.stop().await;
    let server =
        crate::support::TestServer::start_with(&database, &[("enable_pipelines", "true")]).await;
    let target = format!("{PIPELINES}/{}", id(&made));
    let found = super::ask(&server.url, "GET", &target, "none", "").await;
    assert_eq!(found.ok(), made);
    server.stop().await;
}
