//! Custom tasks of Tekton from the cluster to the store: a workflow that a pipeline embeds, and the examples of
//! TEP-0061, which belong to other controllers.

use std::{collections::BTreeMap, time::Duration};

use hindsight_client::{Client, Options};
use hindsight_proto::v1alpha2 as pb;
use kubesim::{Crd, Jobs, Listening, Sim};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{Database, program::Program};

/// Everything has to be over by then; it takes a tenth of this on two busy cores.
const PATIENCE: Duration = Duration::from_secs(60);

const LOOP: &str = include_str!("../fixtures/custom-tasks/pr-loop-example.yaml");
const RUN: &str = include_str!("../fixtures/custom-tasks/simpletasklooprun.yaml");

/// What Tekton makes of the custom task of the example.
const LOOPING: &str = "pr-loop-example-loop-task";

const KINDS: [(&str, &str); 6] = [
    ("tekton.dev", "pipelineruns"),
    ("tekton.dev", "taskruns"),
    ("tekton.dev", "customruns"),
    ("tekton.dev", "runs"),
    ("hindsight.dev", "workflows"),
    ("batch", "jobs"),
];

fn embedding() -> Value {
    let step = |dependencies: Value| {
        json!({"dependencies": dependencies, "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}],
        }}}}})
    };
    json!({
        "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
        "metadata": {"name": "release", "namespace": "ci"},
        "spec": {"pipelineSpec": {"tasks": [
            {"name": "clone", "taskRef": {"name": "clone"}},
            {"name": "build", "runAfter": ["clone"], "taskSpec": {
                "apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow",
                "spec": {"steps": {"compile": step(json!([])), "test": step(json!(["compile"]))}},
            }},
        ]}},
    })
}

async fn until(sim: &Sim, holds: impl FnMut(&Sim) -> bool) {
    timeout(PATIENCE, sim.until(holds)).await.unwrap();
}

/// The controller of loops says that a run of its has succeeded.
fn answer(sim: &Sim, plural: &str, name: &str) {
    let now = "2026-03-01T10:00:00Z";
    let status = json!({"status": {"startTime": now, "completionTime": now, "conditions": [
        {"type": "Succeeded", "status": "True", "reason": "Succeeded", "lastTransitionTime": now},
    ]}});
    sim.merge("tekton.dev", plural, "ci", name, status, "loops")
        .unwrap();
}

/// All objects, when the watcher has stored the end of each.
async fn stored(sim: &Sim, count: usize) -> Vec<Value> {
    let all = |sim: &Sim| -> Vec<Value> {
        let lists = KINDS.iter().map(|(group, plural)| sim.list(group, plural));
        lists.flatten().collect()
    };
    let is_stored =
        |object: &Value| object["metadata"]["annotations"]["results.tekton.dev/stored"] == "true";
    until(sim, |sim| {
        let all = all(sim);
        all.len() == count && all.iter().all(is_stored)
    })
    .await;
    all(sim)
}

async fn select(program: &Program, filter: &str) -> Vec<pb::Record> {
    let mut rpc = Client::new(&Options::new(&program.url)).unwrap().rpc();
    let request = pb::ListRecordsRequest {
        parent: "-/results/-".to_owned(),
        filter: filter.to_owned(),
        ..pb::ListRecordsRequest::default()
    };
    rpc.list_records(request)
        .await
        .unwrap()
        .into_inner()
        .records
}

/// The embedded specs can be asked for.
async fn check_filters(program: &Program) {
    for (filter, name) in [
        (
            r#"data_type == "tekton.dev/v1beta1.CustomRun" && data.spec.customSpec.kind == "PipelineLoop" && data.spec.customSpec.spec.iterateParam == "message""#,
            LOOPING,
        ),
        (
            r#"data_type == "tekton.dev/v1alpha1.Run" && data.spec.spec.spec.taskRef.name == "simpletask" && data.spec.params.exists(p, p.name == "word")"#,
            "simpletasklooprun",
        ),
        (
            r#"data_type == "tekton.dev/v1beta1.CustomRun" && data.spec.customSpec.kind == "Workflow" && data.status.results.exists(r, r.name == "workflow")"#,
            "release-build",
        ),
        (
            r#"pipelinerun.spec.pipelineSpec.tasks.exists(t, t.taskSpec.kind == "PipelineLoop")"#,
            "pr-loop-example",
        ),
    ] {
        let found = select(program, filter).await;
        let names = found.iter().map(|record| {
            let data = record.data.clone().unwrap();
            let object: Value = serde_json::from_slice(&data.value).unwrap();
            object["metadata"]["name"].as_str().unwrap().to_owned()
        });
        assert_eq!(names.collect::<Vec<_>>(), [name], "{filter}");
    }
}

/// A cluster with the kinds of Tekton and ours.
fn cluster() -> Sim {
    let sim = Sim::new();
    sim.install_all(Crd::tekton());
    sim.install_all([Crd::tekton_run(), Crd::hindsight_workflow()]);
    sim.namespace("ci");
    sim
}

/// Server, watcher and workflow controller of a cluster.
async fn all_in_one(database: &Database, listening: &Listening) -> Program {
    let (db, cluster) = (database.url(), listening.kubeconfig().display().to_string());
    Program::start(
        "all-in-one",
        &[
            "--db",
            &db,
            "--metrics-listen=off",
            "--watcher-kubeconfig",
            &cluster,
            "--watcher-job-selector",
            "hindsight.dev/workflow-uid",
            "--workflows",
            "--workflow-kubeconfig",
            &cluster,
        ],
    )
    .await
}

/// Of the records within a result: all that a PipelineRun with an embedded workflow came to.
fn check_types(records: &[pb::Record], result: &str) {
    let mut types: BTreeMap<String, u32> = BTreeMap::new();
    for record in records
        .iter()
        .filter(|record| record.name.starts_with(result))
    {
        let data = record.data.clone().unwrap();
        *types.entry(data.r#type).or_default() += 1;
    }
    let expected = [
        ("batch/v1.Job", 2),
        ("hindsight.dev/v1alpha1.Workflow", 1),
        ("tekton.dev/v1.PipelineRun", 1),
        ("tekton.dev/v1.TaskRun", 1),
        ("tekton.dev/v1beta1.CustomRun", 1),
    ];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(types, expected.into());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delegated_pipeline_run_is_carried_out_and_all_of_it_is_in_one_result() {
    let sim = cluster();
    let listening = sim.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let (_jobs, _tasks) = (sim.run_jobs(Jobs::default()), sim.run_tasks());
    let database = Database::sqlite();
    let program = all_in_one(&database, &listening).await;
    let mut object = embedding();
    object["spec"]["managedBy"] = json!("hindsight.dev/pipelinerun");
    let uid = sim.create(object).unwrap()["metadata"]["uid"].clone();
    stored(&sim, 6).await;
    let release = sim
        .get("tekton.dev", "pipelineruns", "ci", "release")
        .unwrap();
    assert_eq!(
        release["status"]["conditions"][0]["reason"], "Succeeded",
        "{release}"
    );
    let records = select(&program, "").await;
    assert_eq!(records.len(), 6);
    check_types(&records, &format!("ci/results/{}/", uid.as_str().unwrap()));
    let (code, said) = program.terminate().await;
    assert_eq!(code, Some(0), "{said:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t61_14_and_t61_17_embedded_tasks_are_recorded_and_can_be_asked_for() {
    let sim = cluster();
    let listening = sim.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let (_jobs, _pipelines) = (sim.run_jobs(Jobs::default()), sim.run_pipelines());
    let database = Database::sqlite();
    let program = all_in_one(&database, &listening).await;
    sim.create(embedding()).unwrap();
    for example in [LOOP, RUN] {
        sim.create(serde_saphyr::from_str(example).unwrap())
            .unwrap();
    }
    answer(&sim, "runs", "simpletasklooprun");
    until(&sim, |sim| {
        sim.get("tekton.dev", "customruns", "ci", LOOPING).is_some()
    })
    .await;
    answer(&sim, "customruns", LOOPING);

    // PipelineRun, TaskRun, CustomRun, Workflow and two Jobs; then the examples.
    let objects = stored(&sim, 6 + 4 + 1).await;
    let release = sim
        .get("tekton.dev", "pipelineruns", "ci", "release")
        .unwrap();
    assert_eq!(
        release["status"]["conditions"][0]["status"], "True",
        "{release}"
    );
    let result = format!(
        "ci/results/{}/",
        release["metadata"]["uid"].as_str().unwrap()
    );
    let records = select(&program, "").await;
    assert_eq!(records.len(), objects.len());
    check_types(&records, &result);

    check_filters(&program).await;
    let (code, said) = program.terminate().await;
    assert_eq!(code, Some(0), "{said:#?}");
}
