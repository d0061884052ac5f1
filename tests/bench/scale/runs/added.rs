//! What the corpus lacks: runs of the last thirty days, and workflows of many nodes.

use hindsight_filter::model::{Etag, Payload, Record, ResultName, RunResult};
use hindsight_storage::{Batch, Change};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{data::Database, plain::Plain};

/// The parent of what is added.
pub const PARENT: &str = "bench-runs";
/// Ids of the workflows.
const WORKFLOWS: [&str; 2] = ["a", "b"];
/// Nodes of a workflow.
pub const NODES: usize = 400;
/// Pipelines of the last thirty days.
const PIPELINES: usize = 50;
const BATCH: usize = 500;

/// Removes what a run that broke off has left.
pub async fn clean(database: &Database) {
    let mut plain = Plain::connect(&database.url).await;
    let there = "SELECT count(*) FROM sqlite_schema WHERE name = 'results'";
    let there = match database.label {
        "postgres" => "SELECT count(*) FROM pg_tables WHERE tablename = 'results'",
        _ => there,
    };
    if plain.number(there.to_owned()).await > 0 {
        let delete = format!("DELETE FROM results WHERE parent = '{PARENT}'");
        plain.run(delete).await;
    }
    plain.close().await;
}

fn row(name: &ResultName, id: &str, at: Timestamp, data_type: &str, object: &Value) -> Change {
    let uid = uuid::Uuid::new_v4().to_string();
    Change::InsertRecord(Record {
        name: name.record(id).unwrap(),
        etag: Etag::new(&uid, at),
        uid,
        create_time: at,
        update_time: at,
        data: Some(Payload::new(
            data_type.to_owned(),
            object.to_string().into(),
        )),
    })
}

fn result(id: &str) -> ResultName {
    format!("{PARENT}/results/{id}").parse().unwrap()
}

fn inserted(name: &ResultName, at: Timestamp) -> Change {
    let uid = uuid::Uuid::new_v4().to_string();
    Change::InsertResult(RunResult {
        name: name.clone(),
        etag: Etag::new(&uid, at),
        uid,
        create_time: at,
        update_time: at,
        annotations: std::collections::BTreeMap::new(),
        summary: None,
    })
}

/// Adds workflows and runs of the last thirty days, as many as the corpus has in as long. Returns the number of runs.
pub async fn add(database: &Database) -> usize {
    let opened = database.open().await;
    let now = Timestamp::now();
    let runs = (database.runs() / 3).max(PIPELINES * 10);
    let name = result("all");
    let mut first = vec![inserted(&name, now)];
    // Each in a result of its own, as the watcher stores them: what is below a run is sought in its result.
    for id in WORKFLOWS {
        let of = result(id);
        let kind = "argoproj.io/v1alpha1.Workflow";
        first.push(inserted(&of, now));
        first.push(row(&of, id, now, kind, &workflow(id, now)));
    }
    opened
        .store
        .commit(&Batch { changes: first })
        .await
        .unwrap();
    let numbers: Vec<usize> = (0..runs).collect();
    for some in numbers.chunks(BATCH) {
        let changes = some.iter().map(|number| {
            let back = 29 * 86_400 * i64::try_from(runs - number).unwrap();
            let began = now - SignedDuration::from_secs(back / i64::try_from(runs).unwrap());
            let object = recent(*number, began);
            let id = format!("recent-{number}");
            row(&name, &id, began, "tekton.dev/v1.PipelineRun", &object)
        });
        let changes = changes.collect();
        opened.store.commit(&Batch { changes }).await.unwrap();
    }
    opened.maintenance.close().await;
    runs + WORKFLOWS.len()
}

/// A run of one of few pipelines, of which each tenth fails first and then succeeds.
fn recent(number: usize, began: Timestamp) -> Value {
    let (pipeline, version) = (number % PIPELINES, number / PIPELINES / 2);
    let failed = version.is_multiple_of(10) && (number / PIPELINES).is_multiple_of(2);
    let (status, reason) = match failed {
        true => ("False", "Failed"),
        false => ("True", "Succeeded"),
    };
    let ended = began + SignedDuration::from_secs(60);
    json!({
        "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
        "metadata": {"name": format!("recent-{number}"), "namespace": PARENT,
            "uid": format!("recent-{number}"), "creationTimestamp": began.to_string(),
            "labels": {"tekton.dev/pipeline": format!("recent-{pipeline}"),
                "pipelinesascode.tekton.dev/sha": format!("sha-{pipeline}-{version}")}},
        "spec": {"pipelineRef": {"name": format!("recent-{pipeline}")},
            "params": [{"name": "revision", "value": format!("sha-{pipeline}-{version}")}]},
        "status": {"startTime": began.to_string(), "completionTime": ended.to_string(),
            "conditions": [{"type": "Succeeded", "status": status, "reason": reason,
                "message": format!("stage {} of run {number} exited with 1", pipeline % 7)}]},
    })
}

/// A workflow of Argo whose nodes have a parameter and an image that differ from another's.
/// It ran when it was stored, so that no time of starting is far from that of storing.
fn workflow(id: &str, now: Timestamp) -> Value {
    let at = |minutes| (now - SignedDuration::from_mins(minutes)).to_string();
    let nodes = (0..NODES).map(|number| {
        let node = format!("{id}-{number}");
        let value = if number % 4 == 0 { id } else { "same" };
        let inputs = json!({"parameters": [{"name": "p", "value": value}]});
        let object = json!({"id": node, "name": format!("{id}.task-{number}"),
            "displayName": format!("task-{number}"), "type": "Pod", "phase": "Succeeded",
            "templateName": format!("t-{}", number % 20), "inputs": inputs,
            "startedAt": at(60), "finishedAt": at(59)});
        (node, object)
    });
    let nodes: serde_json::Map<_, _> = nodes.collect();
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": {"name": id, "namespace": PARENT, "uid": id,
            "creationTimestamp": at(60)},
        "spec": {"entrypoint": "main",
            "arguments": {"parameters": [{"name": "target", "value": id}]}},
        "status": {"phase": "Succeeded", "startedAt": at(60),
            "finishedAt": at(0), "nodes": nodes},
    })
}
