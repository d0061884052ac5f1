//! Pairs of a version and of the workflow that Kubeflow makes of it.

use serde_json::{Value, json};

use super::{of_version, of_workflow};
use crate::spec::Documents;

const PLATFORM: &str = "/platforms/kubernetes/deploymentSpec/executors/exec-train/secretAsEnv/0";

/// A pipeline of one container, with defaults that the compiler leaves out.
fn plain() -> Value {
    json!({
        "pipelineInfo": {"name": "hello"}, "schemaVersion": "2.1.0", "sdkVersion": "kfp-2.17.0",
        "components": {"comp-say": {"executorLabel": "exec-say"}, "comp-unused": {"executorLabel": "exec-unused"}},
        "deploymentSpec": {"executors": {
            "exec-say": {"container": {"image": "python:3.11", "command": ["echo"], "args": ["hello", ""], "env": [],
                "resources": {"cpuLimit": 2.0, "accelerator": {"count": 1, "type": "gpu"}}}},
            "exec-unused": {"container": {"image": "busybox"}},
        }},
        "root": {"dag": {"tasks": {"say": {
            "componentRef": {"name": "comp-say"}, "taskInfo": {"name": "say"}, "cachingOptions": {"enableCache": false},
            "retryPolicy": {"maxRetryCount": 2},
        }}}},
    })
}

fn workflow(name: &str, parameters: &[(&str, Value)]) -> Value {
    let parameters = parameters.iter();
    let parameters =
        parameters.map(|(name, value)| json!({"name": name, "value": value.to_string()}));
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": {"name": "run-1", "labels": {"pipeline/runid": "1"}},
        "spec": {
            "arguments": {"parameters": parameters.collect::<Vec<_>>()},
            "templates": [
                {"name": "root", "dag": {"tasks": []}},
                {"name": "driver", "container": {"command": ["driver"], "args": ["--type", "DAG", "--pipeline_name", name]}},
            ],
        },
    })
}

fn plain_parts() -> [(&'static str, Value); 3] {
    [
        ("components-ab12", json!({"executorLabel": "exec-say"})),
        (
            "implementations-ab12",
            json!({"args": ["hello", ""], "command": ["echo"], "image": "python:3.11",
                "resources": {"accelerator": {"count": "1", "type": "gpu"}, "cpuLimit": 2}}),
        ),
        (
            "components-root",
            json!({"dag": {"tasks": {"say": {"cachingOptions": {}, "componentRef": {"name": "comp-say"},
                "retryPolicy": {"maxRetryCount": 2}, "taskInfo": {"name": "say"}}}}}),
        ),
    ]
}

/// A pipeline in a pipeline: of an importer, and of two components that run the same container.
fn nested() -> Value {
    let container = json!({"image": "trainer:1", "command": ["sh", "-c", "train <data"]});
    let task = |component: &str| json!({"componentRef": {"name": component}});
    let mut train = task("comp-train");
    train["inputs"] = json!({"artifacts": {"data": {"taskOutputArtifact":
        {"producerTask": "fetch", "outputArtifactKey": "artifact"}}}});
    let mut again = task("comp-again");
    again["inputs"] = json!({"parameters": {"loss": {"taskOutputParameter":
        {"producerTask": "train", "outputParameterKey": "loss"}}}});
    again["dependentTasks"] = json!(["fetch"]);
    let mut inner = task("comp-inner");
    inner["retryPolicy"] = json!({"maxRetryCount": 3});
    json!({
        "pipelineInfo": {"name": "nested"}, "schemaVersion": "2.1.0",
        "components": {
            "comp-inner": {"dag": {"tasks": {"fetch": task("comp-fetch"), "train": train, "again": again}}},
            "comp-fetch": {"executorLabel": "exec-fetch"},
            "comp-train": {"executorLabel": "exec-train"},
            "comp-again": {"executorLabel": "exec-again",
                "inputDefinitions": {"parameters": {"loss": {"parameterType": "NUMBER_DOUBLE"}}}},
        },
        "deploymentSpec": {"executors": {
            "exec-fetch": {"importer": {"artifactUri": {"constant": "s3://data"}, "reimport": false}},
            "exec-train": {"container": container.clone()},
            "exec-again": {"container": container},
        }},
        "root": {
            "dag": {"tasks": {"inner": inner}},
            "inputDefinitions": {"parameters": {"rate": {"parameterType": "NUMBER_DOUBLE", "defaultValue": 0.5}}},
        },
    })
}

fn platform() -> Value {
    json!({"platforms": {"kubernetes": {"deploymentSpec": {"executors":
        {"exec-train": {"secretAsEnv": [{"secretName": "token", "optional": false}]}}}}}})
}

/// What the compiler makes of it: tasks have all their dependencies, and those of the nested pipeline its retries.
fn nested_parts() -> Vec<(&'static str, Value)> {
    let retry = json!({"maxRetryCount": 3});
    let task = |component: &str, more: Value| {
        let mut task = json!({"componentRef": {"name": component}, "retryPolicy": retry});
        if let (Value::Object(task), Value::Object(more)) = (&mut task, more) {
            task.extend(more);
        }
        task
    };
    let data = json!({"artifacts": {"data": {"taskOutputArtifact":
        {"outputArtifactKey": "artifact", "producerTask": "fetch"}}}});
    let loss = json!({"parameters": {"loss": {"taskOutputParameter":
        {"outputParameterKey": "loss", "producerTask": "train"}}}});
    let waits = json!({"dependentTasks": ["fetch"], "inputs": data});
    let waits_for_both = json!({"dependentTasks": ["fetch", "train"], "inputs": loss});
    vec![
        ("components-cd34", json!({"executorLabel": "exec-again"})),
        (
            "implementations-cd34",
            json!({"command": ["sh", "-c", "train <data"], "image": "trainer:1"}),
        ),
        (
            "components-comp-fetch",
            json!({"executorLabel": "exec-fetch"}),
        ),
        (
            "implementations-comp-fetch",
            json!({"artifactUri": {"constant": "s3://data"}}),
        ),
        (
            "kubernetes-comp-train",
            json!({"secretAsEnv": [{"optional": false, "secretName": "token"}]}),
        ),
        (
            "components-comp-inner",
            json!({"dag": {"tasks": {"again": task("comp-again", waits_for_both),
                "fetch": task("comp-fetch", json!({})), "train": task("comp-train", waits)}}}),
        ),
        (
            "components-root",
            json!({"dag": {"tasks": {"inner": task("comp-inner", json!({}))}},
                "inputDefinitions": {"parameters": {"rate": {"defaultValue": 0.5, "parameterType": "NUMBER_DOUBLE"}}}}),
        ),
    ]
}

/// The digest of a version, whose documents are read as an upload is.
fn digest(pipeline: &Value, platform: Option<&Value>) -> String {
    let documents = Documents::of(pipeline, platform).unwrap();
    of_version(documents.pipeline(), documents.platform()).unwrap()
}

#[test]
fn a_workflow_has_the_digest_of_the_version_that_it_was_compiled_from() {
    let found = of_workflow(&workflow("hello", &plain_parts()));
    assert_eq!(found, Some(digest(&plain(), None)));
    let found = of_workflow(&workflow("nested", &nested_parts()));
    assert_eq!(found, Some(digest(&nested(), Some(&platform()))));
}

#[test]
fn a_workflow_of_before_2_3_has_it_in_annotations() {
    let mut old = workflow("hello", &[]);
    for (name, value) in plain_parts() {
        let name = name.replace("ab12", "comp-say");
        let key = format!("pipelines.kubeflow.org/{name}");
        old["metadata"]["annotations"][key] = json!(value.to_string());
    }
    assert_eq!(of_workflow(&old), Some(digest(&plain(), None)));
}

#[test]
fn a_workflow_without_drivers_is_named_after_its_pipeline() {
    let mut bare = workflow("hello", &plain_parts());
    bare["spec"]["templates"] = json!([]);
    assert_eq!(of_workflow(&bare), None);
    bare["metadata"]["generateName"] = json!("hello-");
    assert_eq!(of_workflow(&bare), Some(digest(&plain(), None)));
}

#[test]
fn another_content_has_another_digest() {
    let changes = [
        ("/pipelineInfo/name", json!("other")),
        (
            "/root/inputDefinitions/parameters/rate/defaultValue",
            json!(0.6),
        ),
        ("/root/dag/tasks/inner/retryPolicy/maxRetryCount", json!(4)),
        (
            "/components/comp-inner/dag/tasks/fetch/componentRef/name",
            json!("comp-train"),
        ),
        (
            "/components/comp-inner/dag/tasks/again/dependentTasks",
            json!(["fetch", "train", "x"]),
        ),
        (
            "/deploymentSpec/executors/exec-train/container/image",
            json!("trainer:2"),
        ),
        (
            "/deploymentSpec/executors/exec-again/container/command/2",
            json!("train"),
        ),
        (
            "/deploymentSpec/executors/exec-fetch/importer/reimport",
            json!(true),
        ),
    ];
    let mut seen = vec![
        digest(&nested(), Some(&platform())),
        digest(&nested(), None),
    ];
    for (at, value) in changes {
        let mut changed = nested();
        *changed.pointer_mut(at).unwrap() = value;
        seen.push(digest(&changed, Some(&platform())));
    }
    let mut secret = platform();
    secret.pointer_mut(PLATFORM).unwrap()["secretName"] = json!("other");
    seen.push(digest(&nested(), Some(&secret)));
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), all);
}

#[test]
fn what_no_task_uses_and_how_the_sdk_is_called_have_no_part_in_it() {
    let mut same = plain();
    same["sdkVersion"] = json!("kfp-2.0.0");
    same["components"]["comp-unused"]["executorLabel"] = json!("exec-say");
    same["deploymentSpec"]["executors"]["exec-unused"]["container"]["image"] = json!("alpine");
    assert_eq!(digest(&same, None), digest(&plain(), None));
}

#[test]
fn other_objects_have_none() {
    let mut other = workflow("hello", &plain_parts());
    other["kind"] = json!("CronWorkflow");
    assert_eq!(of_workflow(&other), None);
    assert_eq!(of_workflow(&workflow("hello", &plain_parts()[..2])), None);
    let mut broken = workflow("hello", &plain_parts());
    broken["spec"]["arguments"]["parameters"][1]["value"] = json!("{");
    assert_eq!(of_workflow(&broken), None);
    assert_eq!(
        of_version(&json!({"pipelineInfo": {"name": "x"}}), None),
        None
    );
}

#[test]
fn components_that_contain_each_other_are_read_once() {
    let task = |name: &str| json!({"dag": {"tasks": {"next": {"componentRef": {"name": name}}}}});
    let mut circle = plain();
    circle["root"] = task("comp-a");
    circle["components"] = json!({"comp-a": task("comp-b"), "comp-b": task("comp-a")});
    let parts = [
        ("components-comp-a", task("comp-b")),
        ("components-comp-b", task("comp-a")),
        ("components-root", task("comp-a")),
    ];
    let found = of_workflow(&workflow("hello", &parts));
    assert_eq!(found, Some(digest(&circle, None)));
}
