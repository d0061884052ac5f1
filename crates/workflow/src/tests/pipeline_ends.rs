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

#[test]
fn inline_steps_with_a_result_that_is_not_there_are_not_run() {
    let mut behind = steps("b", &["a"]);
    behind["taskSpec"]["steps"][0]["script"] = json!("rm -r /x/$(tasks.a.results.none)");
    let list = json!([{"name": "a", "taskRef": {"name": "x"}}, behind]);
    let mut world = World::new(&tasks(&list));
    world.settle();
    world.succeed("a");
    let message = "Tasks Completed: 1 (Failed: 0, Cancelled 0), Skipped: 0, Failed Validation: 1 \
                   (task b: taskSpec: there is no `$(tasks.a.results.none)`)";
    assert_eq!(
        world.condition(),
        ("False", "PipelineValidationFailed", message)
    );
    assert_eq!(world.started(), ["a"]);

    let mut world = World::new(&tasks(&list));
    world.settle();
    let list = json!([{"name": "none", "type": "array", "value": ["y"]}]);
    world.end("a", "True", "Succeeded", &list);
    assert!(
        world
            .condition()
            .2
            .ends_with("(task b: taskSpec: `$(tasks.a.results.none)` is no text)"),
        "{:?}",
        world.condition()
    );

    let mut world = World::new(&world.run["spec"].clone());
    world.settle();
    let results = json!([{"name": "none", "value": "y"}]);
    world.end("a", "True", "Succeeded", &results);
    let spec = &world.of("b")["spec"]["taskSpec"];
    assert_eq!(spec["steps"][0]["script"], "rm -r /x/y");
}

#[test]
fn results_of_tasks_that_did_not_succeed_are_none_of_the_pipeline() {
    let mut spec = tasks(&json!([
        {"name": "a", "taskRef": {"name": "x"}}, {"name": "b", "taskRef": {"name": "x"}},
    ]));
    spec["pipelineSpec"]["results"] = json!([
        {"name": "of-a", "value": "$(tasks.a.results.r)"},
        {"name": "of-b", "value": "$(tasks.b.results.r)"},
    ]);
    let mut world = World::new(&spec);
    world.settle();
    let results = json!([{"name": "r", "value": "7"}]);
    world.end("a", FAILED.0, FAILED.1, &results);
    world.end("b", "True", "Succeeded", &results);
    assert_eq!(world.condition().1, "Failed");
    assert_eq!(
        world.run["status"]["results"],
        json!([{"name": "of-b", "value": "7"}])
    );
}

#[test]
fn a_timeout_with_a_fraction_of_a_second_ends_with_the_next_whole_one() {
    let mut spec = tasks(&json!([steps("a", &[])]));
    spec["timeouts"] = json!({"pipeline": "1500ms"});
    let mut world = World::new(&spec);
    let due = world.settle();
    assert_eq!(due, Some("2026-03-01T10:00:02Z".parse().unwrap()));
    world.now = due.unwrap();
    world.settle();
    let message = "PipelineRun \"release\" failed to finish within \"1.5s\"";
    assert_eq!(world.condition(), ("False", "PipelineRunTimeout", message));
}
