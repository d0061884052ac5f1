//! The digest that a version has in common with the workflows that were compiled from it.
//!
//! A Workflow of Argo that Kubeflow Pipelines 2 makes names no version. It has the components that are reached from the
//! root, and what containers and importers run, as arguments `components-*`, `implementations-*` and `kubernetes-*`
//! (before 2.3: as annotations). The compiler adds dependencies that follow from inputs, passes retry policies on to tasks
//! of nested pipelines, and keeps one of several components that run the same container. So dependencies are completed
//! on both sides, and retries of nested tasks and declarations of components that are no pipelines have no part in it.

use std::collections::{BTreeMap, BTreeSet};

use hindsight_run::{Kind, View, json};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The label that has the digest, of the record of a version.
pub const CONTENT_LABEL: &str = "hindsight.dev/pipeline-content";

/// How many bytes of the digest are kept, so that its text is a value of a label.
const KEPT: usize = 16;

/// The prefix of annotations that older releases keep what newer ones keep as arguments.
const ANNOTATIONS: &str = "pipelines.kubeflow.org/";

/// The argument that has the root.
const ROOT: &str = "components-root";

/// What is compared, as canonical texts.
#[derive(Debug, Default)]
struct Content {
    root: String,
    /// The pipelines below the root, by the names of their components.
    nested: BTreeMap<String, String>,
    /// What containers and importers run.
    executors: BTreeSet<String>,
    /// What Kubernetes is told about components, by their names.
    kubernetes: BTreeMap<String, String>,
}

/// The digest of a version, by its pipeline spec and its platform spec in their normal form; none without a root.
#[must_use]
pub fn of_version(pipeline: &Value, platform: Option<&Value>) -> Option<String> {
    let name = pipeline.pointer("/pipelineInfo/name")?.as_str()?;
    let root = pipeline.get("root")?;
    let components = pipeline.get("components");
    let executors = pipeline.pointer("/deploymentSpec/executors");
    let kubernetes = platform
        .and_then(|platform| platform.pointer("/platforms/kubernetes/deploymentSpec/executors"));
    let mut content = Content {
        root: canonical(&compiled(root, false)),
        ..Content::default()
    };
    let mut seen = BTreeSet::new();
    let mut above = vec![root];
    while let Some(dag) = above.pop() {
        for task in tasks(dag) {
            let name = task.pointer("/componentRef/name").and_then(Value::as_str);
            let Some((name, component)) =
                name.and_then(|name| Some((name, components?.get(name)?)))
            else {
                continue;
            };
            if !seen.insert(name) {
                continue;
            }
            if component.get("dag").is_some() {
                let text = canonical(&compiled(component, true));
                content.nested.insert(name.to_owned(), text);
                above.push(component);
                continue;
            }
            let label = component.get("executorLabel").and_then(Value::as_str);
            let label = label.unwrap_or_default();
            let executor = executors.and_then(|executors| executors.get(label));
            let runs = executor.and_then(|executor| {
                let container = executor.get("container");
                container.or_else(|| executor.get("importer"))
            });
            content.executors.extend(runs.map(canonical));
            if let Some(told) = kubernetes.and_then(|kubernetes| kubernetes.get(label)) {
                content.kubernetes.insert(name.to_owned(), canonical(told));
            }
        }
    }
    Some(content.digest(name))
}

/// Whether an object is a Workflow of Argo that was compiled from a version.
#[must_use]
pub fn is_compiled(object: &Value) -> bool {
    let view = View::new(object);
    is_workflow(&view) && parts(object, &view).contains_key(ROOT)
}

fn is_workflow(view: &View<'_>) -> bool {
    view.known_kind() == Kind::named("argoproj.io", "Workflow")
}

/// The digest of the version that a Workflow of Argo was compiled from; none of another object, or another workflow.
#[must_use]
pub fn of_workflow(object: &Value) -> Option<String> {
    let view = View::new(object);
    if !is_workflow(&view) {
        return None;
    }
    let compiled_parts = parts(object, &view);
    let parsed = |text: &str| json::parse(text.as_bytes()).ok();
    let root = compiled_parts.get(ROOT)?;
    let mut content = Content {
        root: canonical(&compiled(&parsed(root)?, false)),
        ..Content::default()
    };
    for (name, text) in &compiled_parts {
        let (kind, name) = name.split_once('-')?;
        match (kind, parsed(text)?) {
            ("components", component) if name != "root" && component.get("dag").is_some() => {
                let text = canonical(&compiled(&component, true));
                content.nested.insert(name.to_owned(), text);
            }
            ("implementations", runs) => {
                content.executors.insert(canonical(&runs));
            }
            ("kubernetes", told) => {
                content.kubernetes.insert(name.to_owned(), canonical(&told));
            }
            _ => {}
        }
    }
    Some(content.digest(pipeline_name(object)?))
}

/// What a workflow keeps of the version that it was compiled from, by the names of arguments.
fn parts<'a>(object: &'a Value, view: &View<'a>) -> BTreeMap<&'a str, &'a str> {
    let list = object.pointer("/spec/arguments/parameters");
    let list = list.and_then(Value::as_array).into_iter().flatten();
    let arguments = list.filter_map(|one| Some((one.get("name")?.as_str()?, one.get("value")?)));
    let annotations = view.annotations().into_iter().flatten();
    let annotations =
        annotations.filter_map(|(key, value)| Some((key.strip_prefix(ANNOTATIONS)?, value)));
    let is_part = |name: &str| {
        let kinds = ["components-", "implementations-", "kubernetes-"];
        kinds.iter().any(|kind| name.starts_with(kind))
    };
    arguments
        .chain(annotations)
        .filter(|(name, _)| is_part(name))
        .filter_map(|(name, value)| Some((name, value.as_str()?)))
        .collect()
}

/// The name of the pipeline that the drivers of a workflow are told, or else the one that the workflow is named after.
fn pipeline_name(object: &Value) -> Option<&str> {
    let templates = object.pointer("/spec/templates").and_then(Value::as_array);
    let told = templates.into_iter().flatten().find_map(|template| {
        let args = template.pointer("/container/args")?.as_array()?;
        let mut args = args.iter().skip_while(|arg| *arg != "--pipeline_name");
        args.nth(1)?.as_str()
    });
    told.or_else(|| {
        let generate = object.pointer("/metadata/generateName")?.as_str()?;
        generate.strip_suffix('-')
    })
}

/// The tasks of a component that is a pipeline.
fn tasks(component: &Value) -> impl Iterator<Item = &Value> {
    let tasks = component.pointer("/dag/tasks").and_then(Value::as_object);
    tasks.into_iter().flatten().map(|(_, task)| task)
}

/// A component as the compiler leaves it, as far as it is compared.
fn compiled(component: &Value, is_nested: bool) -> Value {
    let mut component = component.clone();
    let tasks = component.pointer_mut("/dag/tasks");
    for (_, task) in tasks.and_then(Value::as_object_mut).into_iter().flatten() {
        let waits = waits_for(task);
        if let Some(task) = task.as_object_mut() {
            task.insert("dependentTasks".to_owned(), waits);
            if is_nested {
                task.remove("retryPolicy");
            }
        }
    }
    component
}

/// The tasks that a task waits for: those that it names, and those whose outputs it takes.
fn waits_for(task: &Value) -> Value {
    let named = task.get("dependentTasks").and_then(Value::as_array);
    let named = named.into_iter().flatten();
    let inputs = |of: &str, output: &'static str| {
        let inputs = task.pointer(of).and_then(Value::as_object);
        let inputs = inputs.into_iter().flatten();
        inputs.filter_map(move |(_, input)| input.pointer(output))
    };
    let parameters = inputs("/inputs/parameters", "/taskOutputParameter/producerTask");
    let artifacts = inputs("/inputs/artifacts", "/taskOutputArtifact/producerTask");
    let names = named.chain(parameters).chain(artifacts);
    let names: BTreeSet<&str> = names.filter_map(Value::as_str).collect();
    names.into_iter().collect()
}

/// A value as a text that is the same whatever defaults are left out and whether numbers are written as strings.
fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

/// Appends a value; nothing of null, false, zero, and what is empty or has only such members.
fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null | Value::Bool(false) => {}
        Value::Bool(true) => out.push('t'),
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            if number != 0.0 {
                write_text(&number.to_string(), out);
            }
        }
        Value::String(text) if text.is_empty() => {}
        Value::String(text) => write_text(text, out),
        Value::Array(items) if items.is_empty() => {}
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            let begin = out.len();
            out.push('{');
            let empty = out.len();
            for (key, member) in members {
                let before = out.len();
                write_text(key, out);
                let named = out.len();
                write(member, out);
                if out.len() == named {
                    out.truncate(before);
                }
            }
            match out.len() == empty {
                true => out.truncate(begin),
                false => out.push('}'),
            }
        }
    }
}

/// Appends a text so that what comes next is no part of it.
fn write_text(text: &str, out: &mut String) {
    out.push_str(&text.len().to_string());
    out.push(':');
    out.push_str(text);
}

impl Content {
    fn digest(&self, name: &str) -> String {
        let mut hash = Sha256::new();
        let mut feed = |text: &str| {
            hash.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(text);
        };
        feed(name);
        feed(&self.root);
        for of in [&self.nested, &self.kubernetes] {
            feed(&of.len().to_string());
            for (name, text) in of {
                feed(name);
                feed(text);
            }
        }
        for executor in &self.executors {
            feed(executor);
        }
        let bytes = hash.finalize();
        let bytes = bytes.iter().take(KEPT);
        bytes.map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests;
