//! Namespaces whose logs may not be read, in the cluster or at the server, delay no logs of others.

use std::time::Duration;

use hindsight_watcher::config::Logs;

use super::{begin, finish, finished, logs, pod, reading, sealed, write};
use crate::support::{World, eventually, task_run};

/// A namespace that is denied, with so many runs.
const DENIED: &str = "denied";
const RUNS: usize = 8;
/// How many logs are read at once.
const READERS: usize = 2;
const NEVER: Duration = Duration::from_secs(3_600);

/// Runs of the denied namespace that ended, each with a pod.
fn given(world: &World) {
    world.sim.namespace(DENIED);
    for n in 0..RUNS {
        let name = format!("denied-{n}");
        let mut run = task_run(&name);
        run["metadata"]["namespace"] = DENIED.into();
        run["status"] = finished(&name);
        let run = world.sim.load(run).unwrap();
        let name = format!("{name}-pod");
        let mut pod = pod(&run, &name, &["step-a"]);
        pod["metadata"]["namespace"] = DENIED.into();
        let sim = &world.sim;
        sim.create(pod).unwrap();
        sim.start_container(DENIED, &name, "step-a").unwrap();
        sim.write_log(DENIED, &name, "step-a", "late\n").unwrap();
        sim.end_container(DENIED, &name, "step-a", 0).unwrap();
    }
}

/// A run of another namespace is stored.
async fn another_is_stored(world: &World) {
    begin(world, "build");
    write(world, "build", "one\n");
    finish(world, "build");
    assert_eq!(sealed(world, "build").await, ["one"]);
}

/// The logs of the denied namespace are stored in the end.
async fn all_are_stored(world: &World) {
    for n in 0..RUNS {
        let stored = || logs(world).of(&format!("denied-{n}-pod"), "step-a", 0);
        eventually(|| stored().sealed).await;
        assert_eq!(stored().texts(), ["late"]);
    }
}

/// A watcher whose requests for logs of the namespace the cluster denies.
async fn denied_by_the_cluster(rare_retry: Duration) -> World {
    let mut config = reading(Logs::Finished);
    config.logs_followed = READERS.try_into().unwrap();
    config.tuning.rare_retry = rare_retry;
    let mut world = World::without_watcher(config);
    let policy = world.sim.policy();
    policy.allow("watcher", "*", "tekton.dev", "*", "*");
    policy.allow("watcher", "list", "", "pods", "*");
    policy.allow("watcher", "watch", "", "pods", "*");
    policy
        .allow("watcher", "get", "", "pods/log", crate::support::NAMESPACE)
        .enforce();
    world.user = Some("watcher");
    given(&world);
    world.start().await;
    eventually(|| refused(&world) > 0).await;
    world
}

fn refused(world: &World) -> usize {
    world.sim.calls().resource("pods").status(403).count()
}

#[tokio::test]
async fn logs_that_the_cluster_denies_keep_no_reader() {
    let world = denied_by_the_cluster(Duration::from_millis(100)).await;
    eventually(|| refused(&world) >= RUNS).await;
    another_is_stored(&world).await;
    let policy = world.sim.policy();
    policy.allow("watcher", "get", "", "pods/log", DENIED);
    all_are_stored(&world).await;
}

#[tokio::test]
async fn logs_that_the_cluster_denies_are_put_off_for_a_namespace() {
    let world = denied_by_the_cluster(NEVER).await;
    another_is_stored(&world).await;
    // As many as are read at once.
    assert!(refused(&world) <= READERS, "{}", refused(&world));
}

#[tokio::test]
async fn logs_that_the_server_denies_are_asked_for_once_for_a_namespace() {
    let mut config = reading(Logs::Follow);
    config.tuning.rare_retry = NEVER;
    let mut world = World::without_watcher(config);
    logs(&world).deny(Some(DENIED));
    given(&world);
    world.start().await;
    eventually(|| logs(&world).denials() > 0).await;
    another_is_stored(&world).await;
    // As many as are asked for at once.
    assert!(logs(&world).denials() <= 4, "{}", logs(&world).denials());
}

#[tokio::test]
async fn logs_that_the_server_denied_are_stored_once_it_does_not() {
    let mut world = World::without_watcher(reading(Logs::Follow));
    logs(&world).deny(Some(DENIED));
    given(&world);
    world.start().await;
    eventually(|| logs(&world).denials() > 0).await;
    logs(&world).deny(None);
    all_are_stored(&world).await;
}
