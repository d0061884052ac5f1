//! A workflow as text and as a graph, and a workflow that does again what failed.

use std::fmt::{self, Write as _};

use serde_json::{Value, json};

use crate::{GROUP, KIND, VERSION, graph::in_order, object::Workflow};

/// Annotation of a workflow that does another one again: the name of that.
pub const RETRY_OF: &str = "hindsight.dev/retry-of";
/// Annotation beside [`RETRY_OF`]: the UID of that workflow.
pub const RETRY_OF_UID: &str = "hindsight.dev/retry-of-uid";

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepState {
    /// It was not started.
    Waiting,
    /// Its Job was started and has not ended.
    Running,
    /// It has succeeded.
    Complete,
    /// It has failed, or did not end before the workflow did.
    Failed,
    /// Its external object has not ended.
    External,
}

impl fmt::Display for StepState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Waiting => "Waiting",
            Self::Running => "Running",
            Self::Complete => "Complete",
            Self::Failed => "Failed",
            Self::External => "External",
        })
    }
}

/// How far a step of a workflow is.
#[must_use]
pub fn state(workflow: &Workflow, step: &str) -> StepState {
    let status = &workflow.status;
    if status.is_complete(step) {
        return StepState::Complete;
    }
    let message = status
        .failure()
        .and_then(|failure| failure.message.as_deref());
    let is_named = message.is_some_and(|text| text.starts_with(&format!("step \"{step}\":")));
    match status.statuses.contains_key(step) {
        _ if is_named => StepState::Failed,
        true if status.is_failed() => StepState::Failed,
        _ if workflow.target(step).is_some() => StepState::External,
        true => StepState::Running,
        false => StepState::Waiting,
    }
}

/// A workflow in words: all steps, those first that others depend on, and which of these are awaited.
#[must_use]
pub fn describe(workflow: &Workflow) -> String {
    let mut text = String::new();
    let status = &workflow.status;
    let phase = match status.phase.as_str() {
        "" => "Pending",
        phase => phase,
    };
    let mut line = |key: &str, value: String| {
        writeln!(text, "{:<11}{value}", format!("{key}:")).unwrap_or_default();
    };
    line("Name", workflow.name.clone());
    line("Namespace", workflow.namespace.clone());
    line("UID", workflow.uid.clone());
    line(
        "Status",
        format!("{phase} {}", status.progress).trim_end().to_owned(),
    );
    if let Some(start) = status.start_time {
        line("Started", start.to_string());
    }
    if let Some(end) = status.completion_time {
        line("Ended", end.to_string());
    }
    if let Some(failure) = status.failure() {
        let reason = failure.reason.as_deref().unwrap_or_default();
        let message = failure.message.as_deref().unwrap_or_default();
        line("Failure", format!("{reason}: {message}"));
    }
    let spec = match &workflow.spec {
        Ok(spec) => spec,
        Err(why) => {
            line("Steps", why.clone());
            return text;
        }
    };
    text.push_str("Steps:\n");
    let width = spec.steps.keys().map(String::len).max().unwrap_or_default();
    for step in in_order(&spec.steps) {
        let state = state(workflow, step);
        let mut row = format!("  {step:<width$}  {state:<8}");
        if let Some(known) = status.statuses.get(step) {
            let reference = &known.reference;
            write!(
                row,
                "  {} {}/{}",
                reference.kind, reference.namespace, reference.name
            )
            .unwrap_or_default();
        }
        let is_external = spec.steps[step].external_ref.is_some();
        let needs = spec.steps[step].dependencies.iter().map(|name| {
            let is_waited_for = state == StepState::Waiting && !status.is_complete(name);
            match is_waited_for {
                true => format!("{name} (waiting)"),
                false => name.clone(),
            }
        });
        let needs: Vec<String> = needs.collect();
        if !is_external && !needs.is_empty() {
            write!(row, "  after {}", needs.join(", ")).unwrap_or_default();
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

/// The graph of a workflow in the language DOT.
#[must_use]
pub fn graph(workflow: &Workflow) -> String {
    let mut text = format!("digraph \"{}\" {{\n", workflow.name);
    let spec = workflow.spec.iter();
    for (name, step) in spec.flat_map(|spec| &spec.steps) {
        let state = state(workflow, name);
        writeln!(text, "  \"{name}\" [label=\"{name}\\n{state}\"];").unwrap_or_default();
        let is_external = step.external_ref.is_some();
        for before in step.dependencies.iter().filter(|_| !is_external) {
            writeln!(text, "  \"{before}\" -> \"{name}\";").unwrap_or_default();
        }
    }
    text.push_str("}\n");
    text
}

/// A workflow that does what the one in `object` has not done: without the steps that are complete, and
/// without dependencies on them. It fails where that one has not failed.
pub fn retry(object: &Value) -> Result<Value, String> {
    let workflow = Workflow::read(object)?;
    if !workflow.status.is_failed() {
        return Err(format!("`{}` has not failed", workflow.name));
    }
    let mut spec = object.get("spec").cloned().unwrap_or_default();
    if let Some(steps) = spec.get_mut("steps").and_then(Value::as_object_mut) {
        steps.retain(|name, _| !workflow.status.is_complete(name));
        for step in steps.values_mut() {
            let dependencies = step.get_mut("dependencies").and_then(Value::as_array_mut);
            let is_left = |name: &Value| {
                let name = name.as_str().unwrap_or_default();
                !workflow.status.is_complete(name)
            };
            if let Some(dependencies) = dependencies {
                dependencies.retain(is_left);
            }
        }
    }
    let mut metadata = json!({
        "generateName": format!("{}-", workflow.name),
        "namespace": workflow.namespace,
        "annotations": {RETRY_OF: workflow.name, RETRY_OF_UID: workflow.uid},
    });
    if let Some(labels) = object.pointer("/metadata/labels") {
        metadata["labels"] = labels.clone();
    }
    Ok(json!({
        "apiVersion": format!("{GROUP}/{VERSION}"), "kind": KIND, "metadata": metadata, "spec": spec,
    }))
}
