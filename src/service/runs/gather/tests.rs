//! What is gathered for a tree.

use hindsight_filter::model::{Etag, Payload};
use serde_json::json;

use super::*;

const RUN: &str = "shop/results/r/records/run";

fn record(name: &str, object: &Value) -> Record {
    Record {
        name: name.parse().unwrap(),
        uid: "u".to_owned(),
        etag: Etag::new("u", Timestamp::UNIX_EPOCH),
        create_time: Timestamp::UNIX_EPOCH,
        update_time: Timestamp::UNIX_EPOCH,
        data: Some(Payload::new(
            "tekton.dev/v1.PipelineRun".to_owned(),
            object.to_string().into(),
        )),
    }
}

/// A run that names so many tasks.
fn run(tasks: usize) -> Value {
    let children = (0..tasks).map(|task| json!({"kind": "TaskRun", "name": format!("run-{task}")}));
    json!({"kind": "PipelineRun", "metadata": {"name": "run", "uid": "run"},
        "status": {"childReferences": children.collect::<Vec<_>>()}})
}

#[test]
fn what_the_run_names_takes_memory_before_anything_below_it_is_read() {
    let root = Part::of(RUN, &run(1_000));
    let mut gathered = Gathered::beside(&root, None);
    assert!(gathered.bytes() > 500_000, "{}", gathered.bytes());
    let before = gathered.bytes();
    let other = "shop/results/r/records/other";
    assert!(gathered.add(vec![record(other, &run(0))]));
    assert_eq!((gathered.parts.len(), gathered.rows), (1, 1));
    assert!(gathered.bytes() > before);
}

#[test]
fn only_as_many_leaves_are_kept_as_there_is_room_for() {
    let row = || RecordColumns::of(record(RUN, &run(0)));
    let mut brief = Brief {
        leaves: Vec::new(),
        most: 3,
    };
    assert!(brief.add(vec![row(), row()]));
    assert!(brief.add(vec![row()]));
    assert!(!brief.add(vec![row()]));
    assert_eq!(brief.leaves.len(), 3);
}
