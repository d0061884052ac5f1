//! Versions as records of the history.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{NAMESPACE, PIPELINES, Scene, Store, id, on_each, shown, version_id};

/// The record of a version: its type and its payload.
async fn record(scene: &Scene, pipeline_id: &str, id: &str) -> (Value, Value) {
    let target = format!(
        "/apis/results.tekton.dev/v1alpha2/parents/{NAMESPACE}/results/{pipeline_id}/records/{id}"
    );
    let record = scene.get(&target).await;
    let value = STANDARD.decode(record["data"]["value"].as_str().unwrap());
    let value = serde_json::from_slice(&value.unwrap()).unwrap();
    (record["data"]["type"].clone(), value)
}

#[tokio::test]
async fn a_version_stays_in_the_history_when_it_is_deleted() {
    on_each(async |scene: Scene| {
        let made = scene.made("hello").await;
        let versions = [
            scene.version(id(&made), "v1").await,
            scene.version(id(&made), "v2").await,
        ];
        let pipeline = format!("{PIPELINES}/{}", id(&made));
        for version in &versions {
            let (data_type, object) = record(&scene, id(&made), version_id(version)).await;
            assert_eq!(data_type, "pipelines.kubeflow.org/v2beta1.PipelineVersion");
            assert_eq!(object["metadata"]["uid"], version["pipeline_version_id"]);
            assert_eq!(object["metadata"].get("deletionTimestamp"), None);
            assert_eq!(object["spec"]["pipelineSpec"], shown("hello"));
            assert_eq!(
                (
                    &object["spec"]["pipelineName"],
                    &object["spec"]["versionName"]
                ),
                (&json!("hello"), &version["name"])
            );
        }
        let one = format!("{pipeline}/versions/{}", version_id(&versions[0]));
        let body = json!({"display_name": "Shown"});
        scene.ask("PATCH", &one, &body).await.ok();
        let (_, changed) = record(&scene, id(&made), version_id(&versions[0])).await;
        assert_eq!(changed["spec"]["displayName"], "Shown");
        scene.ask("DELETE", &one, &Value::Null).await.ok();
        let cascade = format!("{pipeline}?cascade=true");
        scene.ask("DELETE", &cascade, &Value::Null).await.ok();
        for version in &versions {
            let (_, object) = record(&scene, id(&made), version_id(version)).await;
            assert!(
                object["metadata"]["deletionTimestamp"].is_string(),
                "{object}"
            );
            assert_eq!(object["spec"]["pipelineSpec"], shown("hello"));
        }
        assert!(scene.store != Store::Kubernetes || made["namespace"] == NAMESPACE);
        scene
    })
    .await;
}
