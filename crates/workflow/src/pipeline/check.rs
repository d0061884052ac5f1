//! What makes a PipelineRun invalid, under the reasons that Tekton gives for it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    run::{PipelineRun, duration, go},
    spec::{Pipeline, Refusal, Task},
    variables::{result, variables},
};
use crate::{
    custom::{Param, check_task},
    graph::cycle,
    spec::Step,
};

/// The values of `spec.status` that a PipelineRun may have.
const ASKED: [&str; 5] = [
    "",
    "Cancelled",
    "CancelledRunFinally",
    "StoppedRunFinally",
    "PipelineRunPending",
];

/// What is wrong with a PipelineRun besides its pipeline.
pub(super) fn run(run: &PipelineRun) -> Result<(), Refusal> {
    let mut problems = Vec::new();
    if !run.spec["pipelineSpec"].is_object() {
        problems.push("spec.pipelineSpec: is missing".to_owned());
    }
    if !ASKED.contains(&run.asks_for()) {
        let (asked, want) = (run.asks_for(), ASKED[1..].join(", "));
        problems.push(format!("spec.status: is `{asked}`; want one of {want}"));
    }
    for field in ["pipeline", "tasks"] {
        let value = &run.spec["timeouts"][field];
        if !value.is_null() && value.as_str().and_then(duration).is_none() {
            problems.push(not_duration(&format!("spec.timeouts.{field}"), value));
        }
    }
    let tasks = &run.spec["timeouts"]["tasks"];
    let is_unlimited = !tasks.is_null() && run.tasks_timeout().is_none();
    if let Some(all) = run.timeout()
        && (is_unlimited || run.tasks_timeout().is_some_and(|tasks| tasks > all))
    {
        let all = go(all);
        problems.push(format!(
            "spec.timeouts.tasks: is longer than the {all} of the PipelineRun"
        ));
    }
    Refusal::invalid(&problems)
}

fn not_duration(path: &str, value: &Value) -> String {
    format!("{path}: {value} is not a duration; write it as in 1h30m")
}

/// What is wrong with the graph of tasks.
pub(super) fn graph(pipeline: &Pipeline) -> Result<(), Refusal> {
    let names: BTreeSet<&str> = pipeline
        .tasks
        .iter()
        .map(|task| task.name.as_str())
        .collect();
    let mut problems = Vec::new();
    let mut steps = BTreeMap::new();
    for (index, task) in pipeline.tasks.iter().enumerate() {
        let path = format!("spec.pipelineSpec.tasks[{index}]");
        for (at, other) in task.run_after.iter().enumerate() {
            if !names.contains(other.as_str()) {
                problems.push(format!("{path}.runAfter[{at}]: there is no task `{other}`"));
            }
        }
        for (at, given) in task.params.iter().enumerate() {
            let unknown = results_in(&given.value.0).find(|(other, _)| !names.contains(other));
            if let Some((other, _)) = unknown {
                let text = format!("{path}.params[{at}].value: there is no task `{other}`");
                problems.push(text);
            }
        }
        let step = Step {
            dependencies: task.after().into_iter().map(str::to_owned).collect(),
            ..Step::default()
        };
        if steps.insert(task.name.clone(), step).is_some() {
            let name = &task.name;
            problems.push(format!("{path}.name: `{name}` is the name of another task"));
        }
    }
    if let Some(circle) = cycle(&steps) {
        let circle = circle.join(" -> ");
        let text = format!("spec.pipelineSpec.tasks: tasks wait for each other: {circle}");
        problems.push(text);
    }
    Refusal::unless_none("PipelineInvalidGraph", &problems)
}

/// What is wrong with a pipeline, but for its graph and references to results.
pub(super) fn rules(pipeline: &Pipeline) -> Result<(), Refusal> {
    let mut problems = Vec::new();
    if pipeline.tasks.is_empty() {
        problems.push("spec.pipelineSpec.tasks: is missing".to_owned());
    }
    let declared = pipeline.params.iter().map(|param| param.name.as_str());
    problems.extend(twice(declared, "spec.pipelineSpec.params"));
    for (index, task) in pipeline.tasks.iter().enumerate() {
        rules_of_task(
            task,
            &format!("spec.pipelineSpec.tasks[{index}]"),
            &mut problems,
        );
    }
    let results = pipeline.results.iter().map(|result| result.name.as_str());
    problems.extend(twice(results, "spec.pipelineSpec.results"));
    for (index, Param { value, .. }) in pipeline.results.iter().enumerate() {
        let path = format!("spec.pipelineSpec.results[{index}].value");
        let is_known = |name: &str| pipeline.tasks.iter().any(|task| task.name == name);
        if results_in(&value.0).next().is_none() {
            problems.push(format!("{path}: has no result of a task"));
        }
        if let Some((task, _)) = results_in(&value.0).find(|(task, _)| !is_known(task)) {
            problems.push(format!("{path}: there is no task `{task}`"));
        }
    }
    Refusal::invalid(&problems)
}

fn rules_of_task(task: &Task, path: &str, problems: &mut Vec<String>) {
    if !is_label(&task.name) {
        let name = &task.name;
        problems.push(format!(
            "{path}.name: `{name}` is not the name of a task; want a DNS label"
        ));
    }
    problems.extend(check_task(path, &task.value()));
    let reference = &task.task_ref.0;
    if !task.is_custom() && reference.is_object() && reference["name"].as_str().is_none() {
        problems.push(format!("{path}.taskRef.name: is missing"));
    }
    if let Some(timeout) = &task.timeout
        && duration(timeout).is_none()
    {
        problems.push(not_duration(
            &format!("{path}.timeout"),
            &timeout.as_str().into(),
        ));
    }
    let params = task.params.iter().map(|param| param.name.as_str());
    problems.extend(twice(params, &format!("{path}.params")));
}

/// What is wrong with references to results of tasks whose steps are inline, which declare their results.
pub(super) fn results(pipeline: &Pipeline) -> Result<(), Refusal> {
    let undeclared = |value: &Value| {
        results_in(value).find_map(|(name, result)| {
            let task = pipeline.tasks.iter().find(|task| task.name == name)?;
            let declared = task.task_spec.0["results"].as_array();
            let mut declared = declared.into_iter().flatten();
            let has_steps = task.task_spec.0.is_object() && !task.is_custom();
            // An object may be referred to by a member.
            let is_it = |of: &Value| {
                let rest = of["name"].as_str().and_then(|of| result.strip_prefix(of));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            (has_steps && !declared.any(is_it))
                .then(|| format!("`{name}` has no result `{result}`"))
        })
    };
    let mut problems = Vec::new();
    for (index, task) in pipeline.tasks.iter().enumerate() {
        for (at, given) in task.params.iter().enumerate() {
            let path = format!("spec.pipelineSpec.tasks[{index}].params[{at}].value");
            problems.extend(undeclared(&given.value.0).map(|why| format!("{path}: {why}")));
        }
    }
    Refusal::unless_none("InvalidTaskResultReference", &problems)?;
    let results = pipeline.results.iter().enumerate();
    let problems: Vec<String> = results
        .filter_map(|(index, result)| {
            let why = undeclared(&result.value.0)?;
            Some(format!("spec.pipelineSpec.results[{index}].value: {why}"))
        })
        .collect();
    Refusal::unless_none("InvalidPipelineResultReference", &problems)
}

/// The tasks and names of results in a value.
fn results_in(value: &Value) -> impl Iterator<Item = (&str, &str)> {
    let found = variables(value).into_iter().filter_map(result);
    found.map(|(task, place)| (task, place.name))
}

fn twice<'t>(names: impl Iterator<Item = &'t str>, path: &str) -> Vec<String> {
    let mut known = BTreeSet::new();
    let names = names.enumerate().filter(|(_, name)| !known.insert(*name));
    names
        .map(|(index, name)| format!("{path}[{index}].name: `{name}` is there twice"))
        .collect()
}

fn is_label(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_edge = !name.starts_with('-') && !name.ends_with('-');
    (1..=63).contains(&name.len()) && is_edge && name.bytes().all(is_inner)
}
