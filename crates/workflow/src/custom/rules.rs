//! The rules of TEP-0061: which runs of custom tasks, and which tasks of pipelines, are well-formed. What a
//! custom task itself says is for its controller to judge.

use serde_json::{Map, Value};

use super::form::Form;

/// Everything that is wrong with the spec of a run; nothing when it is well-formed. Each text begins with the
/// path of the field that it is about.
#[must_use]
pub fn check_run(form: Form, spec: &Value) -> Vec<String> {
    let Some(fields) = spec.as_object().filter(|fields| !fields.is_empty()) else {
        return vec!["spec: is missing".to_owned()];
    };
    let (reference, embedded) = (form.reference(), form.embedded());
    let mut problems = Vec::new();
    match (present(fields, reference), present(fields, embedded)) {
        (None, None) => problems.push(format!(
            "spec.{reference}, spec.{embedded}: neither is set; want one of them"
        )),
        (Some(_), Some(_)) => problems.push(format!(
            "spec.{reference}, spec.{embedded}: both are set; want one of them"
        )),
        _ => {}
    }
    for field in [reference, embedded] {
        if let Some(task) = present(fields, field) {
            for part in ["apiVersion", "kind"] {
                if text(task, part).is_empty() {
                    problems.push(format!("spec.{field}.{part}: is missing"));
                }
            }
        }
    }
    problems
}

/// Whether a task of a pipeline is a custom task: it has an API version, or a kind that is not Tekton's own.
#[must_use]
pub fn is_custom_task(task: &Value) -> bool {
    let own = ["", "Task", "ClusterTask"];
    ["taskRef", "taskSpec"].iter().any(|field| {
        let part = &task[*field];
        !text(part, "apiVersion").is_empty() || !own.contains(&text(part, "kind"))
    })
}

/// Everything that is wrong with a task of a pipeline as far as custom tasks are concerned; nothing when it
/// is well-formed. Each text begins with `path` and what follows it.
#[must_use]
pub fn check_task(path: &str, task: &Value) -> Vec<String> {
    let nothing = Map::new();
    let fields = task.as_object().unwrap_or(&nothing);
    let mut problems = Vec::new();
    match (present(fields, "taskRef"), present(fields, "taskSpec")) {
        (None, None) => problems.push(format!(
            "{path}.taskRef, {path}.taskSpec: neither is set; want one of them"
        )),
        (Some(_), Some(_)) => problems.push(format!(
            "{path}.taskRef, {path}.taskSpec: both are set; want one of them"
        )),
        _ => {}
    }
    if !is_custom_task(task) {
        return problems;
    }
    for field in ["taskRef", "taskSpec"] {
        let Some(part) = present(fields, field) else {
            continue;
        };
        let (version, kind) = (text(part, "apiVersion"), text(part, "kind"));
        if kind.is_empty() {
            problems.push(format!("{path}.{field}.kind: is missing"));
        }
        if version.is_empty() {
            problems.push(format!("{path}.{field}.apiVersion: is missing"));
        } else if !is_group_version(version) {
            problems.push(format!(
                "{path}.{field}.apiVersion: `{version}` is not an API version; want group/version"
            ));
        }
        if part.get("steps").is_some_and(|steps| !steps.is_null()) {
            problems.push(format!(
                "{path}.{field}.steps: is set beside apiVersion or kind; a custom task has no steps"
            ));
        }
    }
    problems
}

/// The embedded custom task of a task of a pipeline as its run gets it: the spec as it is written, and nothing
/// that belongs to a Task. `None` where none is embedded.
#[must_use]
pub fn embedded_spec(task: &Value) -> Option<Value> {
    let part = task.get("taskSpec").filter(|_| is_custom_task(task))?;
    let fields = ["apiVersion", "kind", "metadata", "spec"].into_iter();
    let fields = fields.filter_map(|field| Some((field.to_owned(), part.get(field)?.clone())));
    Some(Value::Object(fields.collect()))
}

fn present<'v>(fields: &'v Map<String, Value>, field: &str) -> Option<&'v Value> {
    fields.get(field).filter(|value| !value.is_null())
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

fn is_group_version(text: &str) -> bool {
    let mut parts = text.split('/');
    let is_part = |part: Option<&str>| part.is_some_and(|part| !part.is_empty());
    is_part(parts.next()) && is_part(parts.next()) && parts.next().is_none()
}
