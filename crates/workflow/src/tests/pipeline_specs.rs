//! Delegated PipelineRuns: which are refused, and what becomes of their parameters.

use serde_json::{Value, json};

use super::pipelines::{World, steps, tasks};

/// Reason and message of a PipelineRun that is refused.
#[track_caller]
fn refusal(spec: &Value) -> (String, String) {
    let mut world = World::new(spec);
    world.settle();
    assert!(world.children.is_empty());
    assert_eq!(world.events, ["Failed"]);
    assert!(world.run["status"]["completionTime"].is_string());
    let (status, reason, message) = world.condition();
    assert_eq!(status, "False");
    (reason.to_owned(), message.to_owned())
}

#[test]
fn what_is_not_supported_is_refused_with_its_path() {
    let mut task = steps("a", &[]);
    for (field, value) in [
        (
            "when",
            json!([{"input": "a", "operator": "in", "values": ["a"]}]),
        ),
        ("matrix", json!({"params": [{"name": "a", "value": ["b"]}]})),
        ("onError", json!("continue")),
        ("workspaces", json!([{"name": "source"}])),
        ("pipelineRef", json!({"name": "other"})),
    ] {
        let mut task = task.clone();
        task[field] = value;
        let (reason, message) = refusal(&tasks(&json!([task])));
        assert_eq!(reason, "UnsupportedFeature");
        let path = format!("spec.pipelineSpec.tasks[0].{field}: is not supported");
        assert!(message.starts_with(&path), "{message}");
    }
    task["taskRef"] = json!({"resolver": "git", "params": [{"name": "url", "value": "x"}]});
    let mut spec = tasks(&json!([task]));
    spec["pipelineRef"] = json!({"name": "x", "bundle": "y"});
    spec["workspaces"] = json!([{"name": "source", "emptyDir": {}}]);
    spec["taskRunSpecs"] = json!([{"pipelineTaskName": "a"}]);
    spec["timeouts"] = json!({"finally": "1m"});
    spec["pipelineSpec"]["finally"] = json!([steps("last", &[])]);
    spec["pipelineSpec"]["params"] = json!([{"name": "a", "enum": ["x"]}]);
    let (_, message) = refusal(&spec);
    let paths: Vec<&str> = message
        .split("; ")
        .map(|text| text.split_once(':').unwrap().0)
        .collect();
    assert_eq!(
        paths,
        [
            "spec.pipelineRef",
            "spec.workspaces",
            "spec.taskRunSpecs",
            "spec.timeouts.finally",
            "spec.pipelineSpec.finally",
            "spec.pipelineSpec.params[0].enum",
            "spec.pipelineSpec.tasks[0].taskRef.resolver",
            "spec.pipelineSpec.tasks[0].taskRef.params",
        ]
    );
    for value in ["$(tasks.a.status)", "x$(workspaces.source.path)"] {
        let mut task = steps("b", &[]);
        task["params"] = json!([{"name": "p", "value": value}]);
        let (reason, message) = refusal(&tasks(&json!([steps("a", &[]), task])));
        assert_eq!(reason, "UnsupportedFeature");
        assert!(message.starts_with("spec.pipelineSpec.tasks[1].params[0].value: "));
    }
}

#[test]
fn variables_where_they_are_not_filled_in_are_refused_with_their_path() {
    let known = "$(context.pipelineRun.name)";
    let mut spec = tasks(&json!([steps("a", &[])]));
    spec["params"] = json!([{"name": "a", "value": "x"}, {"name": "b", "value": ["y", known]}]);
    spec["pipelineSpec"]["params"] = json!([
        {"name": "c", "default": "$(date) $(context.taskRun.name)"}, {"name": "d", "default": known},
    ]);
    spec["pipelineSpec"]["results"] = json!([
        {"name": "r", "value": format!("$(tasks.a.results.r) of {known}")},
        {"name": "s", "value": "$(tasks.a.results.r)-$(params.a)"},
        {"name": "t", "value": "$(tasks.a.results.r)"},
    ]);
    let (reason, message) = refusal(&spec);
    assert_eq!(reason, "UnsupportedFeature");
    let why = "is not supported in delegated PipelineRuns";
    let paths = [
        "spec.params[1].value",
        "spec.pipelineSpec.params[1].default",
        "spec.pipelineSpec.results[0].value",
        "spec.pipelineSpec.results[1].value",
    ];
    assert_eq!(
        message,
        paths.map(|path| format!("{path}: {why}")).join("; ")
    );
}

#[test]
fn members_of_a_tasks_own_object_are_not_those_of_the_pipelines() {
    let mut task = steps("a", &[]);
    task["params"] = json!([
        {"name": "repo", "value": {"url": "own"}},
        {"name": "result", "value": "$(tasks.b.results.r[*])"},
    ]);
    task["taskSpec"]["params"] = json!([{"name": "declared", "properties": {"url": {}}}]);
    let args = ["repo.url", "result.url", "declared.url"].map(|own| format!("$(params.{own})"));
    task["taskSpec"]["steps"][0]["args"] = json!(args);
    task["taskSpec"]["steps"][0]["script"] = json!("$(params.repo.tag) $(params.other.url)");
    let mut spec = tasks(&json!([task, {"name": "b", "taskRef": {"name": "x"}}]));
    let theirs = json!({"url": "theirs"});
    spec["params"] = json!([
        {"name": "repo", "value": theirs}, {"name": "result", "value": theirs},
        {"name": "declared", "value": theirs}, {"name": "other", "value": theirs},
        {"name": "repo.tag", "value": "t"},
    ]);
    let mut world = World::new(&spec);
    world.settle();
    let step = &world.run["status"]["pipelineSpec"]["tasks"][0]["taskSpec"]["steps"][0];
    assert_eq!(step["args"], json!(args));
    assert_eq!(step["script"], "t theirs");
}

#[test]
fn what_is_empty_is_as_good_as_not_there() {
    let mut spec = tasks(&json!([steps("a", &[])]));
    spec["workspaces"] = json!([]);
    spec["taskRunTemplate"] = json!({});
    spec["pipelineSpec"]["finally"] = Value::Null;
    let mut world = World::new(&spec);
    world.settle();
    assert_eq!(world.started(), ["a"]);
}

#[test]
fn t61_05_and_t61_06_wrong_pipelines_fail_under_tektons_reasons() {
    let param = |value: &Value| {
        let mut task = steps("a", &[]);
        task["params"] = json!([{"name": "p", "value": value}]);
        json!([task])
    };
    let custom = json!({"kind": "Workflow", "steps": []});
    for (list, reason, start) in [
        (
            json!([steps("a", &["b"]), steps("b", &["a"])]),
            "PipelineInvalidGraph",
            "spec.pipelineSpec.tasks: tasks wait for each other: a -> b",
        ),
        (
            json!([steps("a", &["c"])]),
            "PipelineInvalidGraph",
            "spec.pipelineSpec.tasks[0].runAfter[0]: there is no task `c`",
        ),
        (
            json!([steps("a", &[]), steps("a", &[])]),
            "PipelineInvalidGraph",
            "spec.pipelineSpec.tasks[1].name: `a` is the name of another task",
        ),
        (
            param(&json!("$(tasks.z.results.r)")),
            "PipelineInvalidGraph",
            "spec.pipelineSpec.tasks[0].params[0].value: there is no task `z`",
        ),
        (
            param(&json!("$(params.none)")),
            "PipelineValidationFailed",
            "spec.pipelineSpec.tasks[0].params[0].value: `$(params.none)` is not a parameter",
        ),
        (
            param(&json!("$(context.pipelineRun.color)")),
            "PipelineValidationFailed",
            "spec.pipelineSpec.tasks[0].params[0].value: there is no `$(context.pipelineRun.color)`",
        ),
        (
            json!([steps("A b", &[])]),
            "PipelineValidationFailed",
            "spec.pipelineSpec.tasks[0].name: `A b` is not the name of a task",
        ),
        (
            json!([{"name": "a", "taskSpec": custom}]),
            "PipelineValidationFailed",
            "spec.pipelineSpec.tasks[0].taskSpec.apiVersion: is missing",
        ),
        (
            json!([{"name": "a"}]),
            "PipelineValidationFailed",
            "spec.pipelineSpec.tasks[0].taskRef, spec.pipelineSpec.tasks[0].taskSpec: neither is set",
        ),
        (
            json!([{"name": "a", "taskRef": {"name": "b"}, "timeout": "soon"}]),
            "PipelineValidationFailed",
            "spec.pipelineSpec.tasks[0].timeout: \"soon\" is not a duration",
        ),
        (
            json!("none"),
            "PipelineValidationFailed",
            "spec.pipelineSpec: invalid type",
        ),
    ] {
        let found = refusal(&tasks(&list));
        assert_eq!(found.0, reason, "{found:?}");
        assert!(found.1.starts_with(start), "{found:?}");
    }
    let mut named = tasks(
        &json!([steps("a", &[]), {"name": "b", "taskRef": {"name": "x"},
        "params": [{"name": "p", "value": "$(tasks.a.results.none)"}]}]),
    );
    assert_eq!(refusal(&named).0, "InvalidTaskResultReference");
    named["pipelineSpec"]["tasks"][1]["params"] = json!([]);
    named["pipelineSpec"]["results"] = json!([{"name": "r", "value": "$(tasks.a.results.none)"}]);
    assert_eq!(refusal(&named).0, "InvalidPipelineResultReference");
    named["timeouts"] = json!({"tasks": "2h"});
    assert_eq!(
        refusal(&named).1,
        "spec.timeouts.tasks: is longer than the 1h0m0s of the PipelineRun"
    );
}

#[test]
fn parameters_are_checked_against_what_is_declared() {
    let declared = json!([
        {"name": "text"}, {"name": "list", "type": "array"},
        {"name": "object", "properties": {"a": {}, "b": {}}, "default": {"a": "1"}},
    ]);
    let given = json!([
        {"name": "text", "value": "t"}, {"name": "list", "value": ["x", "y"]},
        {"name": "object", "value": {"b": "2"}},
    ]);
    let mut spec = tasks(&json!([steps("a", &[])]));
    spec["pipelineSpec"]["params"] = declared;
    assert_eq!(refusal(&spec).0, "ParameterMissing");
    spec["params"] = given;
    let mut wrong = spec.clone();
    wrong["params"][1]["value"] = json!("x");
    assert_eq!(refusal(&wrong).0, "ParameterTypeMismatch");
    let mut wrong = spec.clone();
    wrong["params"][2]["value"] = json!({"c": "2"});
    assert_eq!(refusal(&wrong).0, "ObjectParameterMissKeys");
    let mut wrong = spec.clone();
    wrong["pipelineSpec"]["tasks"][0]["params"] =
        json!([{"name": "p", "value": "$(params.list[2])"}]);
    assert_eq!(refusal(&wrong).0, "ParamArrayIndexingInvalid");
    let mut wrong = spec.clone();
    wrong["pipelineSpec"]["tasks"][0]["params"] =
        json!([{"name": "p", "value": "all: $(params.list[*])"}]);
    let (reason, message) = refusal(&wrong);
    assert_eq!(reason, "PipelineValidationFailed");
    assert!(message.contains("is within a text"), "{message}");
}

#[test]
fn t61_10_parameters_and_what_is_known_of_the_run_are_filled_in() {
    let mut task = steps("a", &[]);
    task["retries"] = json!(2);
    task["params"] = json!([
        {"name": "whole", "value": "$(params.list[*])"},
        {"name": "items", "value": ["first", "$(params.list[*])", "v$(params[\"dotted.name\"])"]},
        {"name": "item", "value": "$(params.list[1])-$(params.object.key)"},
        {"name": "object", "value": {"k": "$(params.text)"}},
        {"name": "run", "value": "$(context.pipelineRun.namespace)/$(context.pipelineRun.name)/$(context.pipelineRun.uid)/$(context.pipeline.name)"},
        {"name": "foreign", "value": "$(date) $HOME $(context.taskRun.name) $("},
        {"name": "number", "value": 7},
    ]);
    task["taskSpec"]["params"] = json!([{"name": "text", "default": "own"}]);
    task["taskSpec"]["steps"][0]["args"] = json!([
        "$(params.list[*])",
        "$(params.text)",
        "$(params.object.key)",
        "$(params.none)"
    ]);
    let mut spec = tasks(&json!([task]));
    spec["pipelineSpec"]["params"] = json!([{"name": "text", "default": "t"}]);
    spec["params"] = json!([
        {"name": "list", "value": ["x", "y"]}, {"name": "object", "value": {"key": "o"}},
        {"name": "dotted.name", "value": "d"},
    ]);
    let mut world = World::new(&spec);
    world.settle();
    let made = &world.of("a")["spec"];
    let expected = json!([
        {"name": "whole", "value": ["x", "y"]},
        {"name": "items", "value": ["first", "x", "y", "vd"]},
        {"name": "item", "value": "y-o"},
        {"name": "object", "value": {"k": "t"}},
        {"name": "run", "value": "ci/release/pr-uid/release"},
        {"name": "foreign", "value": "$(date) $HOME $(context.taskRun.name) $("},
        {"name": "number", "value": "7"},
    ]);
    assert_eq!(made["params"], expected);
    assert_eq!(
        made["taskSpec"]["steps"][0]["args"],
        json!(["x", "y", "$(params.text)", "o", "$(params.none)"])
    );
    assert_eq!(made["retries"], 2);
    let noted = &world.run["status"]["pipelineSpec"]["tasks"][0]["params"];
    assert_eq!(*noted, expected);
}
