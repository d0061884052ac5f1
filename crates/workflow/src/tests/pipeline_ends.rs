//! Delegated PipelineRuns: what is not started any more, and what results become.

use serde_json::{Value, json};

use super::pipelines::{World, steps, tasks};

const FAILED: (&str, &str) = ("False", "Failed");

fn skipped(world: &World) -> Value {
    world.run["status"]["skippedTasks"].clone()
}

/// The run of a task is deleted.
fn delete(world: &mut World, task: &str) {
    let name = world.of(task)["metadata"]["name"].clone();
    world
        .children
        .retain(|child| child["metadata"]["name"] != name);
    world.settle();
}

#[test]
fn a_child_that_is_gone_is_not_created_again_once_nothing_starts_any_more() {
    let list = json!([steps("a", &[]), steps("b", &[]), steps("c", &["b"])]);
    let mut world = World::new(&tasks(&list));
    world.settle();
    delete(&mut world, "b");
    assert_eq!(world.started(), ["a", "b"]);
    world.end("a", FAILED.0, FAILED.1, &json!([]));
    delete(&mut world, "b");
    assert_eq!(world.started(), ["a"]);
    let message = "Tasks Completed: 1 (Failed: 1, Cancelled 0), Skipped: 2";
    assert_eq!(world.condition(), ("False", "Failed", message));
    let reason = "PipelineRun was stopping";
    assert_eq!(
        skipped(&world),
        json!([{"name": "b", "reason": reason}, {"name": "c", "reason": reason}])
    );
}

#[test]
fn once_it_is_stopped_what_is_gone_is_skipped_until_the_stop_is_withdrawn() {
    let list = json!([steps("a", &[]), steps("b", &[])]);
    for (asked, reason) in [
        (
            "CancelledRunFinally",
            "PipelineRun was gracefully cancelled",
        ),
        ("StoppedRunFinally", "PipelineRun was gracefully stopped"),
    ] {
        let mut world = World::new(&tasks(&list));
        world.settle();
        world.run["spec"]["status"] = json!(asked);
        delete(&mut world, "b");
        assert_eq!(world.started(), ["a"]);
        assert_eq!(skipped(&world), json!([{"name": "b", "reason": reason}]));
        world.run["spec"]["status"] = json!("");
        world.settle();
        assert_eq!(world.started(), ["a", "b"]);
        assert_eq!(skipped(&world), Value::Null);
    }
}
