//! Events about runs, posted to receivers: what they say, and that none is missed whatever the
//! receiver does and whichever server is killed.

mod faults;
mod restarts;
mod secured;

use std::collections::{BTreeMap, BTreeSet};

use hindsight_proto::v1alpha2 as pb;
use serde_json::{Value, json};

use crate::support::{
    TestServer, each_database,
    http::Http,
    objects::{PIPELINE_RUN, TASK_RUN, bytes},
    receiver::{Act, Got, Receiver},
};

/// A file of receivers.
struct File {
    folder: tempfile::TempDir,
}

impl File {
    /// One with these receivers: name, address, and further keys.
    fn of(receivers: &[(&str, &str, &str)]) -> Self {
        let text: String = receivers
            .iter()
            .map(|(name, url, more)| {
                format!("[[receivers]]\nname = '{name}'\nurl = '{url}'\n{more}\n")
            })
            .collect();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("events.toml"), text).unwrap();
        Self { folder }
    }

    /// Writes a file beside it, and says where.
    fn beside(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn path(&self) -> String {
        self.folder.path().join("events.toml").display().to_string()
    }
}

/// A run of this kind that runs, or that ended so.
fn run(kind: &str, name: &str, reason: Option<&str>) -> Value {
    let mut object = json!({
        "apiVersion": "tekton.dev/v1", "kind": kind,
        "metadata": {"name": name, "namespace": "ci", "uid": format!("uid-{name}"),
            "creationTimestamp": "2026-03-01T10:00:00Z",
            "labels": {"tekton.dev/pipeline": "nightly"}},
        "spec": {},
        "status": {"startTime": "2026-03-01T10:00:05Z",
            "conditions": [{"type": "Succeeded", "status": "Unknown", "reason": "Running"}]},
    });
    if let Some(reason) = reason {
        let status = if reason == "Succeeded" {
            "True"
        } else {
            "False"
        };
        object["status"]["completionTime"] = json!("2026-03-01T10:03:05Z");
        object["status"]["conditions"][0] =
            json!({"type": "Succeeded", "status": status, "reason": reason});
    }
    object
}

fn record(name: &str) -> String {
    format!("ci/results/r/records/{name}")
}

async fn given(server: &TestServer, object: &Value) {
    let name = object["metadata"]["name"].as_str().unwrap();
    let data_type = match object["kind"].as_str() {
        Some("PipelineRun") => PIPELINE_RUN,
        _ => TASK_RUN,
    };
    server
        .given_record(&record(name), data_type, &bytes(object))
        .await;
}

async fn changed(server: &TestServer, object: &Value) {
    let stored = server
        .get_record(&record(object["metadata"]["name"].as_str().unwrap()))
        .await;
    let stored = stored.unwrap();
    let data = pb::Any {
        r#type: stored.data.unwrap().r#type,
        value: bytes(object).into(),
    };
    let update = pb::UpdateRecordRequest {
        record: Some(pb::Record {
            name: stored.name,
            data: Some(data),
            ..pb::Record::default()
        }),
        ..pb::UpdateRecordRequest::default()
    };
    server.rpc().update_record(update).await.unwrap();
}

/// A task that runs, and then ended well.
async fn played(server: &TestServer, name: &str) {
    given(server, &run("TaskRun", name, None)).await;
    changed(server, &run("TaskRun", name, Some("Succeeded"))).await;
}

/// Every run of these started and then finished, by what was acknowledged first, and each by one id.
#[track_caller]
fn nothing_is_missed(taken: &[Got], runs: &BTreeSet<String>) {
    let mut first: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for got in taken {
        let events = first.entry(got.run()).or_default();
        let event = (got.moment(), got.id());
        if !events.contains(&event) {
            events.push(event);
        }
    }
    for (name, events) in &first {
        let moments: Vec<_> = events.iter().map(|(moment, _)| *moment).collect();
        assert_eq!(moments, ["started", "finished"], "{name}: {events:?}");
    }
    let told: BTreeSet<_> = first.keys().map(|name| (*name).to_owned()).collect();
    assert_eq!(&told, runs);
}

/// Waits until a server sends to a receiver, so that what comes is told.
async fn sends(server: &TestServer, receiver: &str) {
    let line = format!("hindsight_events_sending{{receiver=\"{receiver}\"}} 1");
    while !metrics(server).await.contains(&line) {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

async fn metrics(server: &TestServer) -> String {
    let mut http = Http::one(&format!("http://{}", server.admin)).await;
    http.send("GET", "/metrics", &[], "").await.text()
}

#[tokio::test]
async fn runs_are_told_as_they_start_and_finish() {
    for database in each_database().await {
        let all = Receiver::start(|_, _| Act::status(202)).await;
        let failed = Receiver::start(|_, _| Act::status(200)).await;
        let file = File::of(&[
            ("all", &all.url(), ""),
            (
                "failed",
                &failed.url(),
                "query = 'failed'\ntypes = ['finished']",
            ),
        ]);
        let path = file.path();
        let more = [
            ("events_file", path.as_str()),
            ("public_url", "https://h.example"),
        ];
        let server = TestServer::start_with(&database, &more).await;
        sends(&server, "all").await;
        sends(&server, "failed").await;
        given(&server, &run("PipelineRun", "build", None)).await;
        all.until_taken(1).await;
        let mut labelled = run("PipelineRun", "build", None);
        labelled["metadata"]["labels"]["team"] = json!("blue");
        changed(&server, &labelled).await;
        given(&server, &run("TaskRun", "test", Some("Failed"))).await;
        server.given_record(&record("note"), "note", b"{}").await;
        changed(&server, &run("PipelineRun", "build", Some("Succeeded"))).await;
        let taken = all.until_taken(4).await;
        let told: BTreeSet<_> = taken
            .iter()
            .map(|got| (got.run(), got.header("ce-type")))
            .collect();
        let expected = [
            ("build", "dev.cdevents.pipelinerun.finished.0.3.0"),
            ("build", "dev.cdevents.pipelinerun.started.0.3.0"),
            ("test", "dev.cdevents.taskrun.finished.0.3.0"),
            ("test", "dev.cdevents.taskrun.started.0.3.0"),
        ];
        assert_eq!(told, expected.into());
        assert_eq!(taken.len(), 4, "a run that goes on started once");
        for got in &taken {
            assert_eq!(got.header("ce-specversion"), "1.0");
            assert!(got.header("content-type").starts_with("application/json"));
            let context = &got.body["context"];
            for (attribute, member) in [
                ("ce-id", "id"),
                ("ce-source", "source"),
                ("ce-type", "type"),
                ("ce-time", "timestamp"),
            ] {
                assert_eq!(got.header(attribute), context[member].as_str().unwrap());
            }
            assert_eq!(
                got.header("ce-subject"),
                got.body["subject"]["id"].as_str().unwrap()
            );
        }
        let only = failed.until_taken(1).await;
        assert_eq!(
            (only.len(), only[0].run(), only[0].moment()),
            (1, "test", "finished")
        );
        assert_eq!(only[0].body["subject"]["content"]["outcome"], "failure");
        let page = &only[0].body["subject"]["content"]["uri"];
        assert_eq!(
            *page,
            format!("https://h.example/ui/run/{}", record("test"))
        );
        // It is counted when the answer has arrived.
        let line = "hindsight_events_delivered_total{receiver=\"all\"} 4";
        while !metrics(&server).await.contains(line) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        server.stop().await;
        database.remove().await;
    }
}

#[tokio::test]
async fn a_server_with_wrong_receivers_does_not_start() {
    let database = crate::support::Database::sqlite();
    for (more, says) in [
        ("query = 'nonsense('", "receiver `a`: query"),
        ("colour = 'red'", "line 4"),
        ("token_file = '/does/not/exist'", "/does/not/exist"),
        ("ca_file = '/does/not/exist'", "/does/not/exist"),
    ] {
        let file = File::of(&[("a", "http://127.0.0.1:1", more)]);
        let path = file.path();
        let config = crate::support::server::config(&database, &[("events_file", path.as_str())]);
        let clock = std::sync::Arc::new(hindsight_runtime::clock::SystemClock);
        let refused = hindsight::app::App::bind(&config, clock).await.unwrap_err();
        let said = hindsight_runtime::error::report(&refused);
        assert!(said.contains(says), "{said}");
    }
}
