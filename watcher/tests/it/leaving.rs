//! Runs whose labels change, so that they are watched no longer.

use std::time::Duration;

use hindsight_run::Kind;
use hindsight_watcher::{config::Config, policy::Policy};
use kubesim::{Fault, Sim};
use serde_json::{Value, json};

use crate::support::{NAMESPACE, World, quick, within};

const OURS: &str = "hindsight.dev/stored";

fn job(labels: Value) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "etl", "namespace": NAMESPACE, "labels": labels},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": []}}},
    })
}

/// Jobs of one team are watched.
fn of_team_a(config: Config) -> Config {
    let job = Kind::named("batch", "Job").unwrap();
    let mut config = config;
    config.kinds.push(job);
    config.selectors.push((job, "team in (a)".to_owned()));
    config
}

fn patch_job(world: &World, patch: Value) {
    let patched = world
        .sim
        .merge("batch", "jobs", NAMESPACE, "etl", patch, "somebody");
    patched.unwrap();
}

fn the_job(sim: &Sim) -> Option<Value> {
    sim.get("batch", "jobs", NAMESPACE, "etl")
}

fn finalizers_of(run: &Value) -> Vec<Value> {
    let all = run["metadata"]["finalizers"].as_array();
    all.cloned().unwrap_or_default()
}

fn finished_job() -> Value {
    json!({"status": {"completionTime": "2026-03-01T10:05:00Z", "conditions": [
        {"type": "Complete", "status": "True", "lastTransitionTime": "2026-03-01T10:05:00Z"}]}})
}

async fn watching_jobs(config: Config) -> World {
    World::new(of_team_a(config)).await
}

#[tokio::test]
async fn a_run_whose_labels_are_no_longer_watched_loses_its_finalizer() {
    let policy = Policy {
        finalizers: true,
        ..quick().policy
    };
    let world = watching_jobs(Config { policy, ..quick() }).await;
    world.create(job(json!({"team": "a"})));
    let has_ours = |sim: &Sim| the_job(sim).is_some_and(|job| finalizers_of(&job) == [json!(OURS)]);
    world.cluster(has_ours).await;
    patch_job(&world, json!({"metadata": {"labels": {"team": null}}}));
    world
        .cluster(|sim| the_job(sim).is_some_and(|job| finalizers_of(&job).is_empty()))
        .await;
    world.sim.delete("batch", "jobs", NAMESPACE, "etl").unwrap();
    world.cluster(|sim| the_job(sim).is_none()).await;
}

#[tokio::test]
async fn a_run_whose_labels_change_is_not_closed_and_its_end_is_stored_when_they_are_back() {
    let mut config = quick();
    config.policy.store_incomplete = true;
    let world = watching_jobs(config).await;
    let uid = world.create(job(json!({"team": "a"})));
    within(world.sink.until(|sink| sink.writes() == 1)).await;
    world.sim.clear_calls();
    patch_job(&world, json!({"metadata": {"labels": {"team": "b"}}}));
    // It was looked for.
    let sim = &world.sim;
    world
        .until(|_| sim.calls().verb("get").resource("jobs").count() > 0)
        .await;
    patch_job(&world, finished_job());
    patch_job(&world, json!({"metadata": {"labels": {"team": "a"}}}));
    world.until(|p| p.stored == 1).await;
    assert!(world.copy(&uid)["status"]["completionTime"].is_string());
    let result = world.result(&uid);
    assert!(!result.annotations.contains_key("hindsight.dev/closed"));
}

#[tokio::test]
async fn a_run_that_leaves_what_is_watched_and_is_finished_is_stored() {
    let world = watching_jobs(quick()).await;
    let uid = world.create(job(json!({"team": "a"})));
    world.until(|p| p.in_cluster == 1).await;
    // It ends before anybody has looked for it.
    let slow = Fault::slow(Duration::from_millis(300));
    world.fault(slow.verb("get").resource("jobs"));
    patch_job(&world, json!({"metadata": {"labels": {"team": "b"}}}));
    patch_job(&world, finished_job());
    world.until(|p| p.stored == 1 && p.in_cluster == 0).await;
    assert!(world.copy(&uid)["status"]["completionTime"].is_string());
    assert_eq!(world.progress().lost, 0);
}
