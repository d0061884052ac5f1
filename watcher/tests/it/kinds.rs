//! Kinds come and go; each is watched while it is there.

use hindsight_proto::run::{KINDS, Outcome};
use hindsight_watcher::config::Config;
use kubesim::{Crd, Fault};
use serde_json::json;

use crate::support::{NAMESPACE, World, quick, within};

fn workflow(name: &str) -> serde_json::Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"entrypoint": "main"},
        "status": {"phase": "Failed", "startedAt": "2026-03-01T10:00:00Z",
            "finishedAt": "2026-03-01T10:00:09Z", "nodes": {"n": {"phase": "Failed"}}},
    })
}

#[tokio::test]
async fn a_kind_that_is_installed_later_is_noticed() {
    let world = World::new(quick()).await;
    world.sim.install(Crd::argo_workflow());
    let uid = world.create(workflow("etl"));
    world.until(|p| p.stored == 1).await;
    assert_eq!(
        world.copy(&uid)["status"]["nodes"]["n"]["phase"],
        json!("Failed")
    );
    let result = world
        .sink
        .result(&format!("{NAMESPACE}/results/{uid}"))
        .unwrap();
    assert_eq!(result.summary.unwrap().status, Outcome::Failure as i32);
    assert_eq!(result.data_type, "argoproj.io/v1alpha1.Workflow");
}

#[tokio::test]
async fn a_kind_that_is_taken_away_takes_its_runs_along_and_may_come_back() {
    let world = World::new(quick()).await;
    world.sim.install(Crd::argo_workflow());
    world.create(workflow("etl"));
    world.until(|p| p.stored == 1).await;
    world.sim.uninstall(&Crd::argo_workflow());
    world.until(|p| p.in_cluster == 0).await;
    world.finished("build");
    world.annotated("build").await;
    world.sim.install(Crd::argo_workflow());
    world.create(workflow("etl"));
    world.until(|p| p.stored == 3).await;
    assert_eq!(world.progress().lost, 0);
}

#[tokio::test]
async fn a_cluster_without_any_kind_is_fine() {
    let mut world = World::without_watcher(quick());
    for crd in Crd::tekton() {
        world.sim.uninstall(&crd);
    }
    world.start().await;
    world.until(|p| p.is_listed).await;
    assert_eq!(world.progress().in_cluster, 0);
}

#[tokio::test]
async fn two_kinds_of_one_name_are_two_kinds() {
    let world = World::new(quick()).await;
    world.sim.install(Crd::argo_workflow());
    world.sim.install(Crd::hindsight_workflow());
    let argo = world.create(workflow("etl"));
    let ours = world.create(json!({
        "apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow",
        "metadata": {"name": "etl", "namespace": NAMESPACE},
        "spec": {},
    }));
    let done = json!({"status": {"conditions": [{"type": "Complete", "status": "True"}]}});
    world
        .sim
        .merge("hindsight.dev", "workflows", NAMESPACE, "etl", done, "x")
        .unwrap();
    world.until(|p| p.stored == 2).await;
    assert_eq!(
        world.copy(&argo)["apiVersion"],
        json!("argoproj.io/v1alpha1")
    );
    assert_eq!(
        world.copy(&ours)["apiVersion"],
        json!("hindsight.dev/v1alpha1")
    );
}

#[tokio::test]
async fn only_the_wanted_kinds_and_namespace_are_watched() {
    let kinds = KINDS.iter().filter(|kind| kind.kind == "TaskRun").collect();
    let config = Config {
        kinds,
        namespace: Some(NAMESPACE.to_owned()),
        ..quick()
    };
    let world = World::new(config).await;
    world.sim.namespace("other");
    let mut elsewhere = crate::support::task_run("elsewhere");
    elsewhere["metadata"]["namespace"] = json!("other");
    world.create(elsewhere);
    let done = json!({"status": crate::support::done()});
    world
        .sim
        .merge("tekton.dev", "taskruns", "other", "elsewhere", done, "x")
        .unwrap();
    world.create(crate::support::pipeline_run("nightly"));
    world.finish("pipelineruns", "nightly");
    let here = world.finished("here");
    within(world.sink.until(|sink| sink.writes() == 1)).await;
    world.annotated("here").await;
    assert_eq!(
        world.sink.records(),
        [format!("{NAMESPACE}/results/{here}/records/{here}")]
    );
}

#[tokio::test]
async fn long_lists_are_read_in_pages() {
    let mut config = quick();
    config.tuning.page_size = 7;
    let mut world = World::without_watcher(config);
    for n in 0..40 {
        world.finished(&format!("build-{n}"));
    }
    world.start().await;
    world.until(|p| p.stored == 40 && p.is_listed).await;
    let lists = world
        .sim
        .calls()
        .filter(|c| c.verb == "list" && c.resource == "taskruns");
    assert_eq!(lists.count(), 6);
}

#[tokio::test]
async fn a_kind_that_may_not_be_seen_keeps_nobody_else_waiting() {
    let mut world = World::without_watcher(quick());
    world.sim.install(Crd::argo_workflow());
    let forbidden = Fault::status(403)
        .verb("list")
        .resource("workflows")
        .times(5);
    world.sim.faults().plan(forbidden);
    let uid = world.create(workflow("etl"));
    world.start().await;
    world.until(|p| p.is_listed).await;
    world.finished("build");
    world.annotated("build").await;
    // Once it may be seen, it is.
    world.until(|p| p.stored == 2).await;
    assert!(world.sink.copy(&uid).is_some());
}
