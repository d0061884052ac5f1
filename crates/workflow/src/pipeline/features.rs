//! What of Tekton's PipelineRuns is not carried out here.

use serde_json::Value;

use super::variables::{param, result, variables};
use crate::custom::is_custom_task;

const SPEC: &[&str] = &[
    "managedBy",
    "params",
    "pipelineSpec",
    "status",
    "taskRunTemplate",
    "timeouts",
];
const PIPELINE: &[&str] = &["description", "displayName", "params", "results", "tasks"];
const PARAM: &[&str] = &["default", "description", "name", "properties", "type"];
const TASK: &[&str] = &[
    "description",
    "displayName",
    "name",
    "params",
    "retries",
    "runAfter",
    "taskRef",
    "taskSpec",
    "timeout",
];

/// The paths of all fields of the spec of a PipelineRun that are set and not supported, and of values with
/// variables that are not.
pub(super) fn unsupported(spec: &Value) -> Vec<String> {
    let mut found = beyond(spec, SPEC, "spec");
    found.extend(beyond(
        &spec["timeouts"],
        &["pipeline", "tasks"],
        "spec.timeouts",
    ));
    let template = ["podTemplate", "serviceAccountName"];
    found.extend(beyond(
        &spec["taskRunTemplate"],
        &template,
        "spec.taskRunTemplate",
    ));
    for (index, given) in items(&spec["params"]) {
        if variables(&given["value"]).into_iter().any(is_of_run) {
            found.push(format!("spec.params[{index}].value"));
        }
    }
    let pipeline = &spec["pipelineSpec"];
    let path = "spec.pipelineSpec";
    found.extend(beyond(pipeline, PIPELINE, path));
    for (index, declared) in items(&pipeline["params"]) {
        let path = format!("{path}.params[{index}]");
        found.extend(beyond(declared, PARAM, &path));
        if !variables(&declared["default"])
            .iter()
            .all(|of| is_foreign(of) && !is_of_run(of))
        {
            found.push(format!("{path}.default"));
        }
    }
    for (index, task) in items(&pipeline["tasks"]) {
        found.extend(of_task(task, &format!("{path}.tasks[{index}]")));
    }
    for (index, wanted) in items(&pipeline["results"]) {
        let variables = variables(&wanted["value"]);
        if variables.into_iter().any(|of| result(of).is_none()) {
            found.push(format!("{path}.results[{index}].value"));
        }
    }
    found
}

fn of_task(task: &Value, path: &str) -> Vec<String> {
    let mut found = beyond(task, TASK, path);
    let reference = &task["taskRef"];
    let place = format!("{path}.taskRef");
    found.extend(beyond(reference, &["apiVersion", "kind", "name"], &place));
    if reference["kind"] == "ClusterTask" {
        found.push(format!("{place}.kind"));
    }
    if reference["name"]
        .as_str()
        .is_some_and(|name| name.contains("$("))
    {
        found.push(format!("{place}.name"));
    }
    if is_custom_task(task) {
        let fields = ["apiVersion", "kind", "metadata", "spec"];
        // Steps are not only unsupported, but wrong.
        let place = format!("{path}.taskSpec");
        let beyond = beyond(&task["taskSpec"], &fields, &place);
        found.extend(beyond.into_iter().filter(|path| !path.ends_with(".steps")));
    }
    for (index, given) in items(&task["params"]) {
        let is_known = |variable: &&str| {
            param(variable).is_some() || result(variable).is_some() || is_foreign(variable)
        };
        if !variables(&given["value"]).iter().all(is_known) {
            found.push(format!("{path}.params[{index}].value"));
        }
    }
    found
}

/// Whether a variable tells of the run.
fn is_of_run(variable: &str) -> bool {
    variable.starts_with("context.pipeline")
}

/// Whether a variable is none of a pipeline, so that it stays what it is.
fn is_foreign(variable: &str) -> bool {
    let start = variable.split(['.', '[']).next().unwrap_or_default();
    !["params", "tasks", "finally", "workspaces", "artifacts"].contains(&start)
}

/// The paths of fields that are set and not among these.
fn beyond(value: &Value, fields: &[&str], path: &str) -> Vec<String> {
    let members = value.as_object().into_iter().flatten();
    let beyond =
        members.filter(|(field, value)| !fields.contains(&field.as_str()) && is_set(value));
    beyond.map(|(field, _)| format!("{path}.{field}")).collect()
}

fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

fn items(list: &Value) -> impl Iterator<Item = (usize, &Value)> {
    list.as_array().into_iter().flatten().enumerate()
}
