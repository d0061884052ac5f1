//! Delegated PipelineRuns, on a simulated cluster where Tekton runs TaskRuns.

use std::time::Duration;

use hindsight_workflow::{
    custom::{Form, check_run, check_task, embedded_spec},
    pipeline::{PipelineRun, child_name},
};
use kubesim::{Crd, Fault, Sim, TaskRunner};
use serde_json::{Value, json};

use crate::{
    custom::{condition, embedded, tekton},
    support::{GROUP, NAMESPACE, WORKFLOWS, World, endless, step},
};

const LOOP: &str = include_str!("../../../tests/fixtures/custom-tasks/pr-loop-example.yaml");
const DOCUMENT: &str = include_str!("../../../docs/delegated-pipelineruns.md");

/// A cluster in which TaskRuns are run, and a controller.
async fn delegating() -> (World, TaskRunner) {
    let mut world = tekton();
    let runner = world.sim.run_tasks();
    world.start().await;
    (world, runner)
}

/// Steps with annotations for the simulator.
pub(crate) fn steps(annotations: &Value) -> Value {
    json!({"steps": [{"image": "busybox"}], "metadata": {"annotations": annotations}})
}

fn delegated(mut object: Value) -> Value {
    object["spec"]["managedBy"] = json!("hindsight.dev/pipelinerun");
    object
}

fn pipeline_run(name: &str, tasks: &Value, more: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"pipelineSpec": {"tasks": tasks}},
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}

pub(crate) fn get(sim: &Sim, name: &str) -> Value {
    sim.get("tekton.dev", "pipelineruns", NAMESPACE, name)
        .unwrap()
}

impl World {
    /// Creates a PipelineRun that is delegated to the controller.
    #[track_caller]
    pub(crate) fn delegate(&self, name: &str, tasks: &Value, more: &Value) {
        let object = delegated(pipeline_run(name, tasks, more));
        self.sim.create(object).unwrap();
    }

    /// Waits until a PipelineRun has ended; returns its status.
    pub(crate) async fn pipeline_ended(&self, name: &str) -> Value {
        let is_done = |sim: &Sim| {
            let run = get(sim, name);
            matches!(condition(&run["status"]).0, "True" | "False")
        };
        self.until(is_done).await;
        get(&self.sim, name)["status"].clone()
    }

    /// The name of the child of a task.
    pub(crate) fn child_of(&self, name: &str, task: &str) -> String {
        child_name(&PipelineRun::read(&get(&self.sim, name)).unwrap(), task)
    }

    fn child(&self, name: &str, plural: &str, task: &str) -> Option<Value> {
        let child = self.child_of(name, task);
        self.sim.get("tekton.dev", plural, NAMESPACE, &child)
    }

    fn ask_pipeline(&self, name: &str, status: &str) {
        let patch = json!({"spec": {"status": status}});
        let merged = self
            .sim
            .merge("tekton.dev", "pipelineruns", NAMESPACE, name, patch, "test");
        merged.unwrap();
    }

    async fn child_is_there(&self, name: &str, plural: &str, task: &str) {
        let child = self.child_of(name, task);
        let is_there = |sim: &Sim| sim.get("tekton.dev", plural, NAMESPACE, &child).is_some();
        self.until(is_there).await;
    }
}

#[tokio::test]
async fn t61_07_and_t61_10_an_embedded_workflow_runs_between_tasks_of_a_delegated_pipeline_run() {
    let (world, _runner) = delegating().await;
    let mut print = step(&[]);
    print["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"] =
        json!(["$(params.words[*])", "$(params.revision)"]);
    let mut task_spec = embedded(&json!({"print": print, "after": step(&["print"])}));
    task_spec["metadata"] = json!({"labels": {"team": "build"}});
    let results = json!([{"name": "revision", "type": "string", "value": "7"}]).to_string();
    let tasks = json!([
        {"name": "first", "taskRef": {"name": "clone"}},
        {"name": "number", "taskSpec": {
            "steps": [{"image": "busybox"}], "results": [{"name": "revision"}],
            "metadata": {"annotations": {"kubesim.dev/results": results}},
        }},
        {"name": "build", "runAfter": ["first"], "retries": 1, "timeout": "1h0m0s",
            "params": [
                {"name": "words", "value": "$(params.words[*])"},
                {"name": "revision", "value": "v-$(tasks.number.results.revision)"},
            ],
            "taskSpec": task_spec},
        {"name": "last", "taskSpec": {"steps": [{"image": "busybox"}]},
            "params": [{"name": "built", "value": "$(tasks.build.results.workflow)"}]},
    ]);
    let mut object = delegated(pipeline_run(
        "pr",
        &tasks,
        &json!({"params": [{"name": "words", "value": ["a", "b"]}]}),
    ));
    object["spec"]["pipelineSpec"]["results"] =
        json!([{"name": "built", "value": "$(tasks.build.results.workflow)"}]);
    world.sim.create(object).unwrap();
    let status = world.pipeline_ended("pr").await;
    let message = "Tasks Completed: 4 (Failed: 0, Cancelled 0), Skipped: 0";
    assert_eq!(condition(&status), ("True", "Succeeded", message));

    let run = world.child("pr", "customruns", "build").unwrap();
    assert!(check_run(Form::CustomRun, &run["spec"]).is_empty());
    assert_eq!(run["spec"]["customSpec"], embedded_spec(&tasks[2]).unwrap());
    assert_eq!(run["spec"]["retries"], 1);
    let workflow = world.attempt(Form::CustomRun, &world.child_of("pr", "build"), 0);
    let job = world.job(&workflow, "print").unwrap();
    assert_eq!(
        job["spec"]["template"]["spec"]["containers"][0]["args"],
        json!(["a", "b", "v-7"])
    );
    assert_eq!(
        status["results"],
        json!([{"name": "built", "value": workflow}])
    );
    // All are stored in the result of the PipelineRun.
    let uid = get(&world.sim, "pr")["metadata"]["uid"].clone();
    let result = format!("{NAMESPACE}/results/{}", uid.as_str().unwrap());
    let last = world.child("pr", "taskruns", "last").unwrap();
    for object in [&world.workflow(&workflow), &job, &run, &last] {
        let annotations = &object["metadata"]["annotations"];
        assert_eq!(annotations["results.tekton.dev/result"], result.as_str());
    }
    assert_eq!(last["spec"]["params"][0]["value"], workflow.as_str());
    assert_eq!(
        world.events("pr"),
        [
            ("Started".to_owned(), "Normal".to_owned()),
            ("Succeeded".to_owned(), "Normal".to_owned()),
        ]
    );
}

#[tokio::test]
async fn pipeline_runs_that_are_not_delegated_are_never_touched() {
    let (world, _runner) = delegating().await;
    let tasks = json!([{"name": "a", "taskRef": {"name": "clone"}}]);
    for (name, by) in [
        ("plain", Value::Null),
        ("tekton", json!("tekton.dev/pipeline")),
        ("others", json!("kueue.x-k8s.io/multikueue")),
    ] {
        let object = pipeline_run(name, &tasks, &json!({"managedBy": by}));
        world.sim.create(object).unwrap();
    }
    world.delegate("ours", &tasks, &json!({}));
    world.pipeline_ended("ours").await;
    for name in ["plain", "tekton", "others"] {
        assert!(get(&world.sim, name)["status"].is_null());
        assert!(world.child(name, "taskruns", "a").is_none());
        assert_eq!(world.sim.calls().name(name).count(), 0);
    }
}

#[tokio::test]
async fn t61_08_two_users_may_embed_the_same_names_at_once() {
    let (world, _runner) = delegating().await;
    let tasks = json!([{"name": "build", "taskSpec": embedded(&json!({"one": step(&[])}))}]);
    for name in ["alice", "bob"] {
        world.delegate(name, &tasks, &json!({}));
    }
    for name in ["alice", "bob"] {
        assert_eq!(condition(&world.pipeline_ended(name).await).0, "True");
    }
    assert_eq!(world.sim.count(GROUP, WORKFLOWS), 2);
}

#[tokio::test]
async fn t61_09_tasks_by_reference_are_what_they_were() {
    let (world, _runner) = delegating().await;
    world.create("template", &json!({"steps": {"one": step(&[])}}));
    let named =
        json!({"apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow", "name": "template"});
    let tasks = json!([
        {"name": "own", "taskRef": {"name": "clone", "kind": "Task"}},
        {"name": "custom", "taskRef": named},
    ]);
    world.delegate("pr", &tasks, &json!({}));
    let status = world.pipeline_ended("pr").await;
    assert_eq!(condition(&status).0, "True", "{status}");
    let run = world.child("pr", "customruns", "custom").unwrap();
    assert_eq!(run["spec"]["customRef"], named);
    let own = world.child("pr", "taskruns", "own").unwrap();
    assert_eq!(own["spec"]["taskRef"], tasks[0]["taskRef"]);
}

#[tokio::test]
async fn t61_12_a_controller_that_never_answers_is_waited_for_until_the_timeout() {
    let (world, _runner) = delegating().await;
    let silent =
        json!({"apiVersion": "custom.tekton.dev/v1alpha1", "kind": "TaskLoop", "spec": {}});
    let tasks = json!([
        {"name": "silent", "taskSpec": silent},
        {"name": "long", "taskSpec": embedded(&json!({"one": endless(&[])}))},
        {"name": "last", "runAfter": ["silent"], "taskSpec": {"steps": [{"image": "busybox"}]}},
    ]);
    world.delegate("pr", &tasks, &json!({"timeouts": {"pipeline": "2s"}}));
    let status = world.pipeline_ended("pr").await;
    let message = "PipelineRun \"pr\" failed to finish within \"2s\"";
    assert_eq!(condition(&status), ("False", "PipelineRunTimeout", message));
    let long = world.child_of("pr", "long");
    let ours = world.done(Form::CustomRun, &long).await;
    assert_eq!(
        condition(&ours),
        (
            "False",
            "CustomRunCancelled",
            "CustomRun cancelled as the PipelineRun it belongs to has timed out."
        )
    );
    world.until(|sim| sim.count(GROUP, WORKFLOWS) == 0).await;
    let name = world.child_of("pr", "silent");
    let told = |sim: &Sim| {
        let child = sim.get("tekton.dev", "customruns", NAMESPACE, &name);
        child.is_some_and(|child| child["spec"]["status"] == "RunCancelled")
    };
    world.until(told).await;
    assert!(world.child("pr", "customruns", "silent").unwrap()["status"].is_null());
    assert!(world.child("pr", "taskruns", "last").is_none());
}

#[tokio::test]
async fn t61_17_the_example_of_the_proposal_runs_in_its_order() {
    let (world, _runner) = delegating().await;
    let example: Value = serde_saphyr::from_str(LOOP).unwrap();
    world.sim.create(delegated(example.clone())).unwrap();
    let name = "pr-loop-example";
    world.child_is_there(name, "customruns", "loop-task").await;
    let first = world.child(name, "taskruns", "first-task").unwrap();
    assert_eq!(condition(&first["status"]).0, "True");
    let task = &example["spec"]["pipelineSpec"]["tasks"][1];
    let run = world.child(name, "customruns", "loop-task").unwrap();
    assert_eq!(run["spec"]["customSpec"], task["taskSpec"]);
    assert_eq!(run["spec"]["params"], task["params"]);
    assert!(world.child(name, "taskruns", "last-task").is_none());

    // The controller of loops answers.
    for (status, reason) in [("Unknown", "Running"), ("True", "Succeeded")] {
        let conditions = json!([{"type": "Succeeded", "status": status, "reason": reason}]);
        let patch = json!({"status": {"conditions": conditions}});
        let child = world.child_of(name, "loop-task");
        let merged = world.sim.merge(
            "tekton.dev",
            "customruns",
            NAMESPACE,
            &child,
            patch,
            "loops",
        );
        merged.unwrap();
    }
    assert_eq!(condition(&world.pipeline_ended(name).await).0, "True");
    let last = world.child(name, "taskruns", "last-task").unwrap();
    assert_eq!(
        last["spec"]["taskSpec"],
        example["spec"]["pipelineSpec"]["tasks"][2]["taskSpec"]
    );
}

#[tokio::test]
async fn what_is_not_supported_fails_at_once() {
    let (world, _runner) = delegating().await;
    let tasks = json!([
        {"name": "a", "taskRef": {"name": "clone"}},
        {"name": "b", "taskRef": {"name": "clone"}, "matrix": {"params": [{"name": "p", "value": ["x"]}]}},
    ]);
    world.delegate("pr", &tasks, &json!({}));
    let status = world.pipeline_ended("pr").await;
    let message = "spec.pipelineSpec.tasks[1].matrix: is not supported in delegated PipelineRuns";
    assert_eq!(condition(&status), ("False", "UnsupportedFeature", message));
    assert_eq!(world.sim.count("tekton.dev", "taskruns"), 0);
    world.until(|_| world.events("pr").len() == 1).await;
    assert_eq!(
        world.events("pr")[0],
        ("Failed".to_owned(), "Warning".to_owned())
    );
}

#[tokio::test]
async fn a_pipeline_run_is_cancelled_with_its_children_and_one_that_fails_stops() {
    let (world, _runner) = delegating().await;
    let tasks = json!([
        {"name": "steps", "taskSpec": steps(&json!({"kubesim.dev/outcome": "run"}))},
        {"name": "jobs", "taskSpec": embedded(&json!({"one": endless(&[])}))},
        {"name": "last", "runAfter": ["steps"], "taskRef": {"name": "clone"}},
    ]);
    world.delegate("cancelled", &tasks, &json!({}));
    world
        .child_is_there("cancelled", "customruns", "jobs")
        .await;
    world.ask_pipeline("cancelled", "Cancelled");
    let status = world.pipeline_ended("cancelled").await;
    let message = "PipelineRun \"cancelled\" was cancelled";
    assert_eq!(condition(&status), ("False", "Cancelled", message));
    let name = world.child_of("cancelled", "steps");
    let is_cancelled = |sim: &Sim| {
        let child = sim.get("tekton.dev", "taskruns", NAMESPACE, &name).unwrap();
        condition(&child["status"]).1 == "TaskRunCancelled"
    };
    world.until(is_cancelled).await;
    world.until(|sim| sim.count(GROUP, WORKFLOWS) == 0).await;

    let tasks = json!([
        {"name": "steps", "taskSpec": steps(&json!({"kubesim.dev/outcome": "fail"}))},
        {"name": "last", "runAfter": ["steps"], "taskRef": {"name": "clone"}},
    ]);
    world.delegate("failing", &tasks, &json!({}));
    let status = world.pipeline_ended("failing").await;
    let message = "Tasks Completed: 1 (Failed: 1, Cancelled 0), Skipped: 1";
    assert_eq!(condition(&status), ("False", "Failed", message));
    assert_eq!(
        status["skippedTasks"],
        json!([{"name": "last", "reason": "PipelineRun was stopping"}])
    );
}

#[tokio::test]
async fn a_child_that_the_cluster_refuses_fails_the_pipeline_run() {
    let (world, _runner) = delegating().await;
    let refused = Fault::status(422).verb("create").resource("taskruns");
    world.sim.faults().plan(refused.times(1));
    let tasks = json!([{"name": "a", "taskRef": {"name": "clone"}}]);
    world.delegate("pr", &tasks, &json!({}));
    let status = world.pipeline_ended("pr").await;
    assert_eq!(condition(&status).1, "CreateRunFailed");
}

#[tokio::test]
async fn kinds_that_are_installed_later_are_followed_then() {
    let mut world = World::without_controller();
    world.config.kind_poll = Duration::from_millis(50);
    world.start().await;
    world.create("flow", &json!({"steps": {"one": step(&[])}}));
    world.ended("flow").await;
    world.sim.install_all(Crd::tekton());
    let _runner = world.sim.run_tasks();
    world.delegate(
        "pr",
        &json!([{"name": "a", "taskRef": {"name": "clone"}}]),
        &json!({}),
    );
    assert_eq!(condition(&world.pipeline_ended("pr").await).0, "True");
}

#[tokio::test]
async fn switched_off_none_is_carried_out() {
    let mut world = tekton();
    world.config.pipeline_runs = false;
    world.start().await;
    world.delegate(
        "pr",
        &json!([{"name": "a", "taskRef": {"name": "clone"}}]),
        &json!({}),
    );
    world.create("flow", &json!({"steps": {"one": step(&[])}}));
    world.ended("flow").await;
    assert!(get(&world.sim, "pr")["status"].is_null());
    assert_eq!(world.sim.calls().resource("pipelineruns").count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_each_task_has_one_child() {
    let (mut world, _runner) = delegating().await;
    world.start().await;
    let tasks = json!([
        {"name": "a", "taskRef": {"name": "clone"}},
        {"name": "b", "taskSpec": embedded(&json!({"one": step(&[])}))},
        {"name": "c", "runAfter": ["a"], "taskRef": {"name": "clone"},
            "params": [{"name": "p", "value": "$(tasks.b.results.workflow)"}]},
        {"name": "d", "runAfter": ["c"], "taskRef": {"name": "clone"}},
    ]);
    let names: Vec<String> = (0..24).map(|number| format!("pr-{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        world.delegate(name, &tasks, &json!({}));
        let faults = world.sim.faults();
        match number % 6 {
            0 => faults.drop_watches(),
            1 => faults.plan(
                Fault::lost_answer()
                    .verb("create")
                    .resource("taskruns")
                    .times(2),
            ),
            2 => faults.plan(
                Fault::lost_answer()
                    .verb("update")
                    .resource("pipelineruns")
                    .times(2),
            ),
            3 => faults.plan(Fault::status(500).resource("taskruns").times(3)),
            4 => world.sim.compact(),
            _ => {
                world.kill().await;
                world.start().await;
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    world.sim.faults().clear();
    for name in &names {
        let status = world.pipeline_ended(name).await;
        assert_eq!(condition(&status).0, "True", "{status}");
    }
    for (plural, count) in [("taskruns", 3), ("customruns", 1)] {
        let created = world
            .sim
            .calls()
            .verb("create")
            .resource(plural)
            .status(201);
        assert!(created.count() <= count * names.len());
        assert_eq!(world.sim.count("tekton.dev", plural), count * names.len());
    }
}

#[tokio::test]
async fn the_example_of_the_document_runs() {
    let (world, _runner) = delegating().await;
    let (_, example) = DOCUMENT.split_once("```yaml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let example: Value = serde_saphyr::from_str(example).unwrap();
    for task in example["spec"]["pipelineSpec"]["tasks"].as_array().unwrap() {
        assert!(check_task("task", task).is_empty());
    }
    world.sim.create(example).unwrap();
    let status = world.pipeline_ended("release").await;
    assert_eq!(condition(&status).0, "True", "{status}");
    let workflow = world.attempt(Form::CustomRun, &world.child_of("release", "build"), 0);
    let job = world.job(&workflow, "compile").unwrap();
    assert_eq!(
        job["spec"]["template"]["spec"]["containers"][0]["command"],
        json!(["make", "linux", "darwin"])
    );
    assert_eq!(
        status["results"],
        json!([{"name": "workflow", "value": workflow}])
    );
}
