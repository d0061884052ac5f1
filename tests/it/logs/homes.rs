//! Logs that are not stored, read from Loki and from objects.

mod loki;
mod objects;

use hindsight_proto::v1::{DescribeLogRequest, LogDescription};
use serde_json::{Value, json};
use tonic::Status;

use super::{append, logs, message};
use crate::support::{
    Database, TestServer,
    http::Http,
    objects::{PIPELINE_RUN, TASK_RUN, bytes},
};

/// Begin of the runs, in nanoseconds.
const BEGAN_NS: i64 = 1_772_442_000_000_000_000;

/// A TaskRun with three steps, of which the first two are known by their containers.
fn task_run(uid: &str, name: &str) -> Value {
    json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": name, "namespace": "ci", "uid": uid,
            "labels": {"tekton.dev/pipelineTask": name, "tekton.dev/pipelineRun": "release"},
            "ownerReferences": [{"kind": "PipelineRun", "name": "release", "uid": "release"}]},
        "status": {"startTime": "2026-03-02T09:00:00Z", "completionTime": "2026-03-02T09:59:00Z",
            "podName": "pod",
            "steps": [{"name": "one", "container": "step-one"}, {"name": "two"}],
            "conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded"}]},
    })
}

/// Stores the record of a run of the result `ci/results/r`, and gives the name of its log.
async fn given(server: &TestServer, parent: &str, object: &Value) -> String {
    let uid = object["metadata"]["uid"].as_str().unwrap();
    let is_task = object["kind"] == "TaskRun";
    let data_type = if is_task { TASK_RUN } else { PIPELINE_RUN };
    let record = format!("{parent}/results/r/records/{uid}");
    server
        .given_record(&record, data_type, &bytes(object))
        .await;
    format!("{parent}/results/r/logs/{uid}")
}

async fn describe(server: &TestServer, name: &str) -> Result<LogDescription, Status> {
    let request = DescribeLogRequest {
        name: name.to_owned(),
        only_stored: false,
    };
    Ok(logs(server).describe_log(request).await?.into_inner())
}

#[tokio::test]
async fn a_log_that_is_nowhere_has_the_address_of_a_page() {
    let database = Database::sqlite();
    let link = "https://logs.example/find?ns=${namespace}&q=${name}&from=${start}";
    let server = TestServer::start_with(&database, &[("logs_link", link)]).await;
    let log = given(&server, "ci", &task_run("u-1", "a&b")).await;
    let found = describe(&server, &log).await.unwrap();
    let expected = "https://logs.example/find?ns=ci&q=a%26b&from=1772442000000";
    assert_eq!((found.containers.len(), found.link.as_str()), (0, expected));
    let mut http = Http::one(&server.url).await;
    let path = format!("/ui/logs/{}", log.replace("/logs/", "/records/"));
    let page = http.send("GET", &path, &[], "").await.text();
    let at = page.find("https://logs.example/find?ns=ci").expect(&page);
    assert!(page[at..].contains("q=a%26b"), "{page}");
    append(&server, vec![message(&log, "step-one", 0, b"stored\n")])
        .await
        .unwrap();
    assert_eq!(describe(&server, &log).await.unwrap().link, "");
    server.stop().await;
}
