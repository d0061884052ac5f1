//! Custom tasks within pipelines, on a simulated Tekton.

use std::time::Duration;

use hindsight_workflow::custom::{Form, check_run, check_task, embedded_spec};
use kubesim::PipelineRunner;
use serde_json::{Value, json};

use crate::{
    custom::{condition, embedded, started},
    support::{GROUP, NAMESPACE, WORKFLOWS, World, endless, step},
};

const LOOP: &str = include_str!("../../../tests/fixtures/custom-tasks/pr-loop-example.yaml");
const RUN: &str = include_str!("../../../tests/fixtures/custom-tasks/simpletasklooprun.yaml");

const DOCUMENT: &str = include_str!("../../../docs/custom-tasks.md");

fn fixture(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

/// A cluster in which PipelineRuns are run, and a controller.
async fn pipelines() -> (World, PipelineRunner) {
    let world = started().await;
    let runner = world.sim.run_pipelines();
    (world, runner)
}

#[track_caller]
fn pipeline_run(world: &World, name: &str, tasks: &Value, more: &Value) {
    let mut object = json!({
        "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"pipelineSpec": {"tasks": tasks}},
    });
    for (field, value) in more.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    world.sim.create(object).unwrap();
}

async fn ended(world: &World, name: &str) -> Value {
    let status = |sim: &kubesim::Sim| {
        let run = sim
            .get("tekton.dev", "pipelineruns", NAMESPACE, name)
            .unwrap();
        run["status"].clone()
    };
    world
        .until(|sim| matches!(condition(&status(sim)).0, "True" | "False"))
        .await;
    status(&world.sim)
}

fn child(world: &World, plural: &str, name: &str) -> Option<Value> {
    world.sim.get("tekton.dev", plural, NAMESPACE, name)
}

#[tokio::test]
async fn t61_03_t61_07_and_t61_10_an_embedded_workflow_runs_between_tasks_and_gets_their_params() {
    let (world, _runner) = pipelines().await;
    let mut print = step(&[]);
    print["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"] =
        json!(["$(params.words[*])", "$(params.revision)"]);
    let mut task_spec = embedded(&json!({"print": print, "after": step(&["print"])}));
    task_spec["metadata"] = json!({"labels": {"team": "build"}});
    let tasks = json!([
        {"name": "first", "taskRef": {"name": "clone"}},
        {"name": "build", "runAfter": ["first"], "retries": 1, "timeout": "1h0m0s",
            "params": [
                {"name": "words", "value": "$(params.words[*])"},
                {"name": "revision", "value": "v-$(params.revision)"},
            ],
            "taskSpec": task_spec},
        {"name": "last", "taskSpec": {"steps": [{"image": "busybox"}]},
            "params": [{"name": "built", "value": "$(tasks.build.results.workflow)"}]},
    ]);
    for (index, task) in tasks.as_array().unwrap().iter().enumerate() {
        assert!(check_task(&format!("tasks[{index}]"), task).is_empty());
    }
    let params = json!([
        {"name": "words", "value": ["a", "b"]}, {"name": "revision", "value": "7"},
    ]);
    pipeline_run(&world, "pr", &tasks, &json!({"params": params}));
    let status = ended(&world, "pr").await;
    assert_eq!(condition(&status).0, "True", "{status}");

    let run = world.run(Form::CustomRun, "pr-build");
    assert!(check_run(Form::CustomRun, &run["spec"]).is_empty());
    assert_eq!(run["spec"]["customSpec"], embedded_spec(&tasks[1]).unwrap());
    assert_eq!(run["spec"]["params"][0]["value"], json!(["a", "b"]));
    let workflow = world.attempt(Form::CustomRun, "pr-build", 0);
    let job = world.job(&workflow, "print").unwrap();
    assert_eq!(
        job["spec"]["template"]["spec"]["containers"][0]["args"],
        json!(["a", "b", "v-7"])
    );
    // All are stored in the result of the PipelineRun.
    let uid = status_uid(&world, "pr");
    let result = format!("{NAMESPACE}/results/{uid}");
    for object in [world.workflow(&workflow), job] {
        let annotations = &object["metadata"]["annotations"];
        assert_eq!(annotations["results.tekton.dev/result"], result.as_str());
    }
    // Nothing starts before what it needs, and what comes after has its results.
    let order = |plural: &str, name: &str, field: &str| {
        child(&world, plural, name).unwrap()["status"][field]
            .clone()
            .to_string()
    };
    assert!(
        order("taskruns", "pr-first", "completionTime")
            <= order("customruns", "pr-build", "startTime")
    );
    assert!(
        order("customruns", "pr-build", "completionTime")
            <= order("taskruns", "pr-last", "startTime")
    );
    let last = child(&world, "taskruns", "pr-last").unwrap();
    assert_eq!(last["spec"]["params"][0]["value"], workflow.as_str());
}

fn status_uid(world: &World, name: &str) -> String {
    let run = child(world, "pipelineruns", name).unwrap();
    run["metadata"]["uid"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn t61_09_tasks_by_reference_are_what_they_were() {
    let (world, _runner) = pipelines().await;
    world.create("template", &json!({"steps": {"one": step(&[])}}));
    let named =
        json!({"apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow", "name": "template"});
    let tasks = json!([
        {"name": "own", "taskRef": {"name": "clone", "kind": "Task"}},
        {"name": "custom", "taskRef": named},
    ]);
    pipeline_run(&world, "pr", &tasks, &json!({}));
    let status = ended(&world, "pr").await;
    assert_eq!(condition(&status).0, "True");
    let run = world.run(Form::CustomRun, "pr-custom");
    assert_eq!(run["spec"]["customRef"], named);
    let own = child(&world, "taskruns", "pr-own").unwrap();
    assert_eq!(own["spec"]["taskRef"], tasks[0]["taskRef"]);
}

#[tokio::test]
async fn t61_12_a_pipeline_run_waits_for_a_controller_that_never_answers_until_its_timeout() {
    let (world, _runner) = pipelines().await;
    let silent =
        json!({"apiVersion": "custom.tekton.dev/v1alpha1", "kind": "TaskLoop", "spec": {}});
    let tasks = json!([
        {"name": "silent", "taskSpec": silent},
        {"name": "long", "taskSpec": embedded(&json!({"one": endless(&[])}))},
        {"name": "last", "runAfter": ["silent"], "taskSpec": {"steps": []}},
    ]);
    pipeline_run(
        &world,
        "pr",
        &tasks,
        &json!({"timeouts": {"pipeline": "2s"}}),
    );
    let status = ended(&world, "pr").await;
    assert_eq!(
        (condition(&status).0, condition(&status).1),
        ("False", "PipelineRunTimeout")
    );
    let theirs = world.run(Form::CustomRun, "pr-silent");
    assert_eq!(theirs["spec"]["status"], "RunCancelled");
    assert!(theirs["status"].is_null());
    assert!(child(&world, "taskruns", "pr-last").is_none());
    // Ours is told of it, and ends.
    let ours = world.done(Form::CustomRun, "pr-long").await;
    assert_eq!(
        condition(&ours),
        (
            "False",
            "CustomRunCancelled",
            "CustomRun cancelled as the PipelineRun it belongs to has ended."
        )
    );
    world.until(|sim| sim.count(GROUP, WORKFLOWS) == 0).await;
}

#[tokio::test]
async fn t61_14_and_t61_17_the_example_of_the_proposal_is_one_object_and_runs() {
    let (world, _runner) = pipelines().await;
    let example = fixture(LOOP);
    world.sim.create(example.clone()).unwrap();
    let loops = |sim: &kubesim::Sim| {
        sim.get(
            "tekton.dev",
            "customruns",
            NAMESPACE,
            "pr-loop-example-loop-task",
        )
    };
    world.until(|sim| loops(sim).is_some()).await;
    let run = loops(&world.sim).unwrap();
    let task = &example["spec"]["pipelineSpec"]["tasks"][1];
    assert_eq!(run["spec"]["customSpec"], task["taskSpec"]);
    assert_eq!(
        run["spec"]["params"][0]["value"],
        task["params"][0]["value"]
    );
    assert!(child(&world, "taskruns", "pr-loop-example-last-task").is_none());
    let whole = child(&world, "pipelineruns", "pr-loop-example").unwrap();
    assert_eq!(
        whole["spec"]["pipelineSpec"],
        example["spec"]["pipelineSpec"]
    );

    // The controller of loops answers.
    let done = json!({"status": {"conditions": [{"type": "Succeeded", "status": "True"}]}});
    world
        .sim
        .merge(
            "tekton.dev",
            "customruns",
            NAMESPACE,
            "pr-loop-example-loop-task",
            done,
            "loops",
        )
        .unwrap();
    assert_eq!(condition(&ended(&world, "pr-loop-example").await).0, "True");
    assert!(child(&world, "taskruns", "pr-loop-example-last-task").is_some());
}

#[tokio::test]
async fn t61_17_the_run_of_the_proposal_is_well_formed_and_left_to_its_controller() {
    let world = started().await;
    let example = fixture(RUN);
    assert!(check_run(Form::Run, &example["spec"]).is_empty());
    world.sim.create(example).unwrap();
    world.ask(
        Form::Run,
        "ours",
        &json!({"spec": embedded(&json!({"one": step(&[])}))}),
    );
    world.done(Form::Run, "ours").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let run = world.run(Form::Run, "simpletasklooprun");
    assert!(run["status"].is_null());
    assert_eq!(
        run["spec"]["params"][0]["value"],
        json!(["jump", "land", "roll"])
    );
}

#[tokio::test]
async fn t61_15_the_example_of_the_document_runs() {
    let (world, _runner) = pipelines().await;
    let (_, example) = DOCUMENT.split_once("```yaml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let example = fixture(example);
    for task in example["spec"]["pipelineSpec"]["tasks"].as_array().unwrap() {
        assert!(check_task("task", task).is_empty());
    }
    world.sim.create(example).unwrap();
    let status = ended(&world, "release").await;
    assert_eq!(condition(&status).0, "True", "{status}");
    let workflow = world.attempt(Form::CustomRun, "release-build", 0);
    let job = world.job(&workflow, "compile").unwrap();
    assert_eq!(
        job["spec"]["template"]["spec"]["containers"][0]["command"],
        json!(["make", "linux", "darwin"])
    );
    for heading in [
        "Read the spec yourself",
        "Validate at reconcile",
        "Act on your own kind alone",
    ] {
        assert!(DOCUMENT.contains(heading), "{heading}");
    }
}
