//! What the tasks of a pipeline wait for.

use std::collections::{BTreeMap, BTreeSet};

use hindsight_run::json;
use serde_json::Value;

use super::{MAX_NODES, MAX_STEPS};

/// What a task of a pipeline waits for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Waits {
    /// Tasks that it is to run after, or whose results it takes.
    pub(super) for_tasks: Vec<String>,
    /// It runs after all others.
    pub(super) finally: bool,
}

/// What the tasks of the PipelineRun wait for, by their names.
pub(super) fn of(object: &Value) -> BTreeMap<String, Waits> {
    let spec = ["/status/pipelineSpec", "/spec/pipelineSpec"];
    let spec = spec.iter().find_map(|path| json::at(object, path));
    let mut found = BTreeMap::new();
    for (key, finally) in [("tasks", false), ("finally", true)] {
        let tasks = spec.and_then(|spec| spec.get(key)?.as_array());
        for task in tasks.into_iter().flatten().take(MAX_NODES) {
            if let Some(name) = task.get("name").and_then(Value::as_str) {
                let for_tasks = waits_for(task);
                found.insert(name.to_owned(), Waits { for_tasks, finally });
            }
        }
    }
    found
}

fn waits_for(task: &Value) -> Vec<String> {
    let mut names = BTreeSet::new();
    let after = task.get("runAfter").and_then(Value::as_array);
    names.extend(after.into_iter().flatten().filter_map(Value::as_str));
    for key in ["params", "when", "matrix"] {
        if let Some(value) = task.get(key) {
            references(value, &mut names);
        }
    }
    names
        .into_iter()
        .take(MAX_STEPS)
        .map(str::to_owned)
        .collect()
}

/// The tasks in `$(tasks.<task>.results...)` of any text in `value`.
fn references<'a>(value: &'a Value, names: &mut BTreeSet<&'a str>) {
    let mut values = vec![value];
    while let Some(value) = values.pop() {
        match value {
            Value::String(text) => {
                for rest in text.split("$(tasks.").skip(1) {
                    names.extend(rest.split_once('.').map(|(name, _)| name));
                }
            }
            Value::Array(items) => values.extend(items),
            Value::Object(members) => values.extend(members.values()),
            _ => {}
        }
    }
}
