//! Which changes of a workflow are allowed.

use serde_json::Value;

use crate::{object::Workflow, validate::check_spec};

/// Everything that is wrong with a change of the object `old` to `new`; nothing when it is allowed. A
/// change that leaves the spec alone is.
pub fn check_change(old: &Value, new: &Value) -> Vec<String> {
    let (before, after) = (present(old, "/spec"), present(new, "/spec"));
    if before == after {
        return Vec::new();
    }
    let workflows = Workflow::read(old).and_then(|old| Ok((old, Workflow::read(new)?)));
    let (was, is) = match workflows {
        Ok(workflows) => workflows,
        Err(why) => return vec![why],
    };
    if was.status.is_finished() {
        return vec![
            "spec: the workflow is finished; its spec does not change any more".to_owned(),
        ];
    }
    let mut problems = Vec::new();
    if present(old, "/spec/selector") != present(new, "/spec/selector") {
        problems.push("spec.selector: does not change".to_owned());
    }
    for (name, status) in &was.status.statuses {
        let state = if status.complete {
            "completed"
        } else {
            "running"
        };
        let step = |object: &Value| object.get("spec")?.get("steps")?.get(name).cloned();
        match (step(old), step(new)) {
            (Some(_), None) => problems.push(format!("cannot delete {state} step \"{name}\"")),
            (before, after) if before != after => {
                problems.push(format!("cannot modify {state} step \"{name}\""));
            }
            _ => {}
        }
    }
    problems.extend(check_spec(&is));
    problems
}

/// What is at a place; null is as good as nothing.
fn present<'v>(object: &'v Value, place: &str) -> Option<&'v Value> {
    object.pointer(place).filter(|value| !value.is_null())
}
