//! Which specs are valid.

use crate::{
    GROUP, KIND, MAX_STEPS, graph, job,
    object::Workflow,
    selector,
    spec::{ObjectReference, Spec, Step},
};

/// Everything that is wrong with the spec of a workflow; nothing when it is valid. Each text names the step
/// and the value.
pub fn check_spec(workflow: &Workflow) -> Vec<String> {
    let spec = match &workflow.spec {
        Ok(spec) => spec,
        Err(why) => return vec![why.clone()],
    };
    let mut problems = Vec::new();
    if let Some(seconds) = spec.active_deadline_seconds.filter(|seconds| *seconds < 1) {
        problems.push(format!(
            "spec.activeDeadlineSeconds: {seconds} is not a deadline; want 1 or more"
        ));
    }
    if spec.steps.len() > MAX_STEPS {
        let count = spec.steps.len();
        problems.push(format!(
            "spec.steps: {count} steps are too many; want at most {MAX_STEPS}"
        ));
        return problems;
    }
    for (name, step) in &spec.steps {
        let mut found = Vec::new();
        if !is_step_name(name) {
            found.push(
                "not a name of a step; want at most 63 of a-z, 0-9 and -, with a letter or digit at both \
                 ends"
                    .to_owned(),
            );
        }
        check_step(workflow, spec, name, step, &mut found);
        let found = found.into_iter();
        problems.extend(found.map(|problem| format!("step \"{name}\": {problem}")));
    }
    if let Some(circle) = graph::cycle(&spec.steps).filter(|circle| circle.len() > 1) {
        let first = circle.first().copied().unwrap_or_default();
        problems.push(format!(
            "spec.steps: the dependencies are a cycle: {} -> {first}",
            circle.join(" -> ")
        ));
    }
    check_selector(workflow, spec, &mut problems);
    problems
}

fn check_step(workflow: &Workflow, spec: &Spec, name: &str, step: &Step, found: &mut Vec<String>) {
    match (&step.job_template, &step.external_ref) {
        (None, None) => {
            found.push("neither jobTemplate nor externalRef is set; want one of them".to_owned());
        }
        (Some(_), Some(_)) => {
            found.push("jobTemplate and externalRef are both set; want one of them".to_owned());
        }
        (Some(template), None) => {
            let spec = &template.spec.0;
            if !spec.is_object() {
                found.push("jobTemplate.spec is missing".to_owned());
            }
            if spec.get("selector").is_some_and(|value| !value.is_null()) {
                found.push("jobTemplate.spec.selector is set; it is generated".to_owned());
            }
            if spec
                .get("manualSelector")
                .is_some_and(|value| value == true)
            {
                found.push("jobTemplate.spec.manualSelector is true; want false".to_owned());
            }
        }
        (None, Some(target)) => check_target(workflow, target, found),
    }
    if step.dependencies.len() > MAX_STEPS {
        let count = step.dependencies.len();
        found.push(format!(
            "{count} dependencies are too many; want at most {MAX_STEPS}"
        ));
        return;
    }
    let mut known = std::collections::BTreeSet::new();
    for dependency in &step.dependencies {
        if dependency == name {
            found.push("depends on itself".to_owned());
        } else if !spec.steps.contains_key(dependency) {
            found.push(format!("depends on \"{dependency}\", which is not a step"));
        }
        if !known.insert(dependency) {
            found.push(format!("depends on \"{dependency}\" twice"));
        }
    }
}

/// Whether the kind of a reference is that of workflows.
pub(crate) fn is_workflow(target: &ObjectReference) -> bool {
    let group = target.api_version.split_once('/').map(|(group, _)| group);
    target.kind == KIND && (group == Some(GROUP) || target.api_version.is_empty())
}

/// Whether the kind of a reference is that of Jobs.
pub(crate) fn is_job(target: &ObjectReference) -> bool {
    target.kind == "Job" && matches!(target.api_version.as_str(), "" | "batch/v1")
}

fn check_target(workflow: &Workflow, target: &ObjectReference, found: &mut Vec<String>) {
    if !is_workflow(target) && !is_job(target) {
        let (kind, version) = (&target.kind, &target.api_version);
        found.push(format!(
            "externalRef is to a \"{kind}\" of \"{version}\"; want a Workflow of {GROUP}/v1alpha1 or a Job \
             of batch/v1"
        ));
    }
    if target.name.is_empty() {
        found.push("externalRef.name is missing".to_owned());
    }
    let is_here = target.namespace.is_empty() || target.namespace == workflow.namespace;
    if is_workflow(target) && is_here && target.name == workflow.name {
        found.push("externalRef is to the workflow itself".to_owned());
    }
}

fn check_selector(workflow: &Workflow, spec: &Spec, problems: &mut Vec<String>) {
    let Some(selector) = &spec.selector else {
        return;
    };
    let found = selector::problems(selector);
    if !found.is_empty() {
        problems.extend(found);
        return;
    }
    let jobs = spec.steps.iter();
    for (name, _) in jobs.filter(|(_, step)| step.job_template.is_some()) {
        if !selector::matches(selector, &job::labels(workflow, spec, name)) {
            problems.push(format!(
                "step \"{name}\": the labels of its Job do not match spec.selector"
            ));
        }
    }
}

/// Whether a text may be the name of a step, which becomes the value of a label and part of a name.
pub(crate) fn is_step_name(name: &str) -> bool {
    let edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    (1..=63).contains(&bytes.len())
        && bytes.iter().all(|byte| edge(*byte) || *byte == b'-')
        && bytes.first().copied().is_some_and(edge)
        && bytes.last().copied().is_some_and(edge)
}
