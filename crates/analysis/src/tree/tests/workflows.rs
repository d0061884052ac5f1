//! Workflows of Argo.

use std::io::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::{Compression, write::GzEncoder};
use serde_json::{Map, Value, json};

use super::{critical, drawn, objects::at, tree};

/// A node that ran from one second to another.
fn node(kind: &str, name: &str, (from, to): (i64, i64), inside: &str, children: &[&str]) -> Value {
    json!({"id": name, "name": name, "displayName": name, "type": kind, "phase": "Succeeded",
        "startedAt": at(from), "finishedAt": at(to), "boundaryID": inside, "children": children})
}

fn workflow(nodes: Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": {"name": "train", "namespace": "ml", "uid": "w", "creationTimestamp": at(0)},
        "spec": {"entrypoint": "main"},
        "status": {"phase": "Succeeded", "startedAt": at(0), "finishedAt": at(100), "nodes": nodes},
    })
}

/// A DAG of a task, two attempts of another, a task for each of two items, and steps in the end.
fn nodes() -> Value {
    let mut failed = node("Pod", "fit(0)", (10, 30), "train", &[]);
    failed["phase"] = json!("Failed");
    failed["message"] = json!("Error (exit code 7)");
    failed["outputs"] = json!({"exitCode": "7"});
    let list = [
        node("DAG", "train", (0, 100), "", &["prepare"]),
        node("Pod", "prepare", (0, 10), "train", &["fit"]),
        node("Retry", "fit", (10, 60), "train", &["fit(0)", "fit(1)"]),
        failed,
        node("Pod", "fit(1)", (30, 60), "train", &["score"]),
        node(
            "TaskGroup",
            "score",
            (60, 80),
            "train",
            &["score(0:a)", "score(1:b)"],
        ),
        node("Pod", "score(0:a)", (60, 80), "train", &["publish"]),
        node("Pod", "score(1:b)", (60, 70), "train", &["publish"]),
        node("Steps", "publish", (80, 100), "train", &["publish[0]"]),
        node("StepGroup", "publish[0]", (80, 90), "publish", &["upload"]),
        node("Pod", "upload", (80, 90), "publish", &["publish[1]"]),
        node("StepGroup", "publish[1]", (90, 100), "publish", &["notify"]),
        node("Pod", "notify", (90, 100), "publish", &[]),
    ];
    let members = list.map(|node| (node["id"].as_str().unwrap().to_owned(), node));
    Value::Object(members.into_iter().collect::<Map<_, _>>())
}

const DRAWN: [&str; 13] = [
    "train Success",
    "  prepare Success",
    "  fit Success < prepare",
    "    fit(0) Failure",
    "    fit(1) Success",
    "  score Success < fit",
    "    score(0:a) Success",
    "    score(1:b) Success",
    "  publish Success < score",
    "    publish[0] Success",
    "      upload Success",
    "    publish[1] Success < publish[0]",
    "      notify Success",
];

#[test]
fn what_comes_next_is_no_part_of_a_node() {
    let tree = tree(&workflow(nodes()), &[]);
    assert_eq!(drawn(&tree), DRAWN);
    assert_eq!(
        critical(&tree),
        ["prepare", "fit(1)", "score(0:a)", "upload", "notify"]
    );
    assert!((tree.critical_seconds - 80.0).abs() < 1e-9);
    let failed = tree
        .nodes
        .iter()
        .find(|node| node.name == "fit(0)")
        .unwrap();
    assert_eq!(failed.failed_step().unwrap().exit_code, Some(7));
    let attempts = tree
        .nodes
        .iter()
        .filter(|node| node.name.starts_with("fit("));
    assert_eq!(
        attempts.map(|node| node.attempt).collect::<Vec<_>>(),
        [1, 2]
    );
    assert!(tree.gaps.is_empty());
}

fn compressed(text: &[u8]) -> Value {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    let mut workflow = workflow(Value::Null);
    workflow["status"]["compressedNodes"] = STANDARD.encode(encoder.finish().unwrap()).into();
    workflow
}

#[test]
fn nodes_that_are_kept_compressed_are_the_same() {
    let found = tree(&compressed(nodes().to_string().as_bytes()), &[]);
    assert_eq!(drawn(&found), DRAWN);
}

#[test]
fn nodes_that_cannot_be_read_are_told() {
    let mut text = compressed(b"");
    text["status"]["compressedNodes"] = json!("?");
    let mut offloaded = workflow(Value::Null);
    offloaded["status"]["offloadNodeStatusVersion"] = json!("fnv:1");
    for (object, note) in [
        (text, "status.compressedNodes: not base64"),
        (
            compressed(b"[]"),
            "status.compressedNodes: not a JSON object",
        ),
        (
            compressed(&vec![b' '; 33 << 20]),
            "status.compressedNodes: more than 32 MiB",
        ),
        (
            offloaded,
            "the nodes of the workflow are in a database of Argo (status.offloadNodeStatusVersion)",
        ),
    ] {
        let found = tree(&object, &[]);
        assert_eq!(
            (drawn(&found).len(), found.notes.as_slice()),
            (1, &[note.to_owned()][..])
        );
    }
}

#[test]
fn circles_of_a_workflow_are_below_it_and_reported() {
    let list = json!({
        "a": node("Pod", "a", (0, 10), "b", &["b"]),
        "b": node("Retry", "b", (0, 10), "a", &["a"]),
        "c": node("Pod", "c", (0, 10), "c", &["c"]),
    });
    let found = tree(&workflow(list), &[]);
    assert_eq!(found.nodes.len(), 4);
    assert_eq!(found.cycles, ["b > a", "c > c"]);
}

#[test]
fn of_several_attempts_the_last_is_why_a_workflow_failed() {
    let mut list = nodes();
    for id in ["fit", "fit(1)"] {
        list[id]["phase"] = json!("Failed");
    }
    let mut workflow = workflow(list);
    workflow["status"]["phase"] = json!("Failed");
    let found = tree(&workflow, &[]);
    assert_eq!(found.path(found.failed_leaf().unwrap()), "fit/fit(1)");
}

#[test]
fn a_template_that_nothing_leads_to_is_the_workflow_itself() {
    let list = json!({
        "1": node("DAG", "other name", (0, 9), "", &["2"]),
        "2": node("Pod", "a", (0, 5), "", &["3"]),
        "3": node("Pod", "b", (5, 9), "", &[]),
    });
    let found = tree(&workflow(list.clone()), &[]);
    assert_eq!(
        drawn(&found),
        ["train Success", "  a Success", "  b Success < a"]
    );
    let mut two = list;
    two["4"] = node("DAG", "train.onExit", (9, 10), "", &[]);
    assert_eq!(tree(&workflow(two), &[]).nodes.len(), 5);
}
