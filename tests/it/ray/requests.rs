//! Requests as KubeRay's Python client sent them to a recorder, one a line: every field that it knows, and every call.

use serde_json::{Value, json};

use super::{Reply, ask, scene};

const RECORDED: &str = include_str!("python-client.jsonl");

/// What the service adds to a cluster that was sent: fields that the client leaves out have their values.
fn expected(sent: &Value, answered: &Value) -> Value {
    let mut cluster = sent.clone();
    cluster["createdAt"] = answered["createdAt"].clone();
    let created = &answered["annotations"]["ray.io/creation-timestamp"];
    cluster["annotations"]["ray.io/creation-timestamp"] = created.clone();
    let spec = &mut cluster["clusterSpec"];
    camel(&mut spec["headGroupSpec"]);
    for group in spec["workerGroupSpec"].as_array_mut().unwrap() {
        camel(group);
        // What is not `Always` is the default.
        if group["imagePullPolicy"] == "IfNotPresent" {
            group.as_object_mut().unwrap().remove("imagePullPolicy");
        }
    }
    cluster
}

/// Without what answers leave out: zero values, but for types of volumes.
fn pruned(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let is_zero = |value: &Value| {
                matches!(value, Value::Number(n) if n.as_u64() == Some(0)) || *value == ""
            };
            let kept = fields
                .iter()
                .filter(|(key, value)| *key == "volumeType" || !is_zero(value));
            kept.map(|(key, value)| (key.clone(), pruned(value)))
                .collect()
        }
        Value::Array(items) => items.iter().map(pruned).collect(),
        other => other.clone(),
    }
}

/// The client spells these in snake case, and its answers are in camel case.
fn camel(group: &mut Value) {
    let group = group.as_object_mut().unwrap();
    for (snake, camel) in [
        ("service_account", "serviceAccount"),
        ("image_pull_secret", "imagePullSecret"),
    ] {
        if let Some(value) = group.remove(snake) {
            group.insert(camel.to_owned(), value);
        }
    }
}

#[tokio::test]
async fn ray_03_and_14_recorded_requests_of_the_python_client_have_the_answers_that_it_reads() {
    let scene = scene(&[]).await;
    let mut made = Value::Null;
    let mut sent = Value::Null;
    let mut calls = 0;
    for line in RECORDED.lines() {
        let request: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| request[key].as_str().unwrap();
        let (method, path) = (text("method"), text("path"));
        let body = request
            .get("body")
            .map(Value::to_string)
            .unwrap_or_default();
        let reply: Reply = ask(&scene.server.url, method, path, "secret", &body).await;
        calls += 1;
        if path.contains("/jobsubmissions/") {
            assert_eq!(
                (reply.status, &reply.json()["code"]),
                (501, &json!(12)),
                "{path}"
            );
            assert!(reply.json()["message"].is_string());
            continue;
        }
        let answer = reply.ok();
        match (method, path.rsplit('/').next().unwrap()) {
            ("POST", "clusters") if request["body"]["name"] == "full" => {
                let status =
                    json!({"status": {"state": "ready", "endpoints": {"dashboard": "30265"}}});
                let merged =
                    scene
                        .sim
                        .merge("ray.io", "rayclusters", "ci", "full", status, "operator");
                merged.unwrap();
                (sent, made) = (request["body"].clone(), answer);
            }
            ("GET", "full") => {
                let mut found = answer;
                let more = found.as_object_mut().unwrap();
                assert_eq!(more.remove("clusterState"), Some(json!("ready")));
                assert_eq!(
                    more.remove("serviceEndpoint").unwrap()["dashboard"],
                    "30265"
                );
                assert_eq!(found, made);
                assert_eq!(found, pruned(&expected(&sent, &made)));
            }
            ("GET", "clusters") => assert_eq!(answer["clusters"].as_array().unwrap().len(), 2),
            ("GET", "compute_templates") => assert!(answer["computeTemplates"].is_array()),
            ("GET", "t") => {
                assert_eq!((&answer["cpu"], &answer["memory"]), (&json!(2), &json!(8)));
                let operators = answer["tolerations"].as_array().unwrap().iter();
                let operators: Vec<_> = operators.map(|one| one["operator"].clone()).collect();
                assert_eq!(operators, ["Exists", "Equal"]);
                // Keys with blanks are no fields.
                assert_eq!(answer.get("gpuAccelerator"), None);
            }
            ("DELETE", _) => assert_eq!(answer, json!({})),
            _ => assert!(answer["name"].is_string(), "{line}"),
        }
    }
    assert_eq!(calls, 18);
    assert_eq!(scene.clusters(), 1);
    scene.server.stop().await;
}
