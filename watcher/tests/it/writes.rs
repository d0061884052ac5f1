//! What the watcher writes to the cluster: no faster than agreed, nothing for nothing, and what is
//! refused stops nothing else.

use std::time::{Duration, Instant};

use hindsight_watcher::{config::Config, policy::Policy};
use jiff::SignedDuration;
use kubesim::{Crd, Fault, Sim};
use serde_json::json;

use crate::support::{NAMESPACE, World, collecting, done, patiently, quick, task_run};

const RUNS: usize = 2000;
const BURST: u32 = 10;

fn paced(config: Config, per_second: f64) -> Config {
    Config {
        writes_per_second: Some(per_second),
        writes_burst: BURST.try_into().unwrap(),
        ..config
    }
}

fn patches(sim: &Sim) -> usize {
    sim.calls().verb("patch").count()
}

/// `HINDSIGHT_TEST_RUNS` says with how many.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests are configured by the environment"
)]
async fn a_full_cluster_is_taken_over_at_the_configured_pace_and_stored_at_once() {
    let runs = std::env::var("HINDSIGHT_TEST_RUNS").map_or(RUNS, |text| text.parse().unwrap());
    let mut config = paced(collecting(), 50.0);
    config.policy.collect.as_mut().unwrap().grace = SignedDuration::from_hours(1_000_000);
    let mut world = World::without_watcher(config);
    // One kind may never be seen.
    world.sim.install(Crd::argo_workflow());
    let forbidden = Fault::status(403).resource("workflows");
    world.fault(forbidden.times(u32::MAX));
    for n in 0..runs {
        let mut run = task_run(&format!("build-{n}"));
        run["status"] = done();
        world.sim.load(run).unwrap();
    }
    let began = Instant::now();
    world.start().await;
    patiently(|| world.progress().stored == runs as u64).await;
    let took = began.elapsed();
    let written = patches(&world.sim);
    world.until(|_| patches(&world.sim) >= written + 30).await;
    let written = patches(&world.sim);
    let allowed = f64::from(BURST) + 50.0 * began.elapsed().as_secs_f64() + 1.0;
    println!("{runs} runs stored in {took:?}; {written} writes, {allowed} allowed");
    assert!((written as f64) < allowed, "{written} of {allowed}");
    assert!(written < runs, "stored only after {written} annotations");
    // Each page once, the first ones small: it was never too slow to watch.
    let pages = world.sim.calls().verb("list").resource("taskruns").count();
    let full = runs / 250;
    assert!((full..full + 5).contains(&pages), "{pages} pages");
    // Those that are due go, while most wait for their annotation and a kind is forbidden for good.
    world.stop().await;
    world.config.policy.collect.as_mut().unwrap().grace = SignedDuration::ZERO;
    world.config.deletes_per_second = None;
    world.start().await;
    patiently(|| world.progress().collected == runs as u64).await;
    assert_eq!(world.sim.count("tekton.dev", "taskruns"), 0);
}

#[tokio::test]
async fn a_run_that_is_due_is_deleted_without_being_annotated() {
    let world = World::new(collecting()).await;
    world.finish_all("build", 20);
    world.until(|p| p.collected == 20).await;
    assert_eq!(patches(&world.sim), 0);
}

#[tokio::test]
async fn what_is_refused_is_tried_ever_more_rarely_and_stops_nothing_else() {
    let mut config = collecting();
    config.policy.collect.as_mut().unwrap().grace = SignedDuration::from_hours(1_000_000);
    config.tuning.rare_retry = Duration::from_secs(3600);
    config.tuning.retry.first = Duration::from_secs(3600);
    let mut world = World::new(config).await;
    let forbidden = || Fault::status(403).verb("patch").times(u32::MAX);
    world.fault(forbidden());
    let runs: Vec<String> = (0..50).map(|n| format!("build-{n}")).collect();
    runs.iter().for_each(|name| drop(world.finished(name)));
    world.until(|p| p.stored == 50).await;
    world.until(|_| patches(&world.sim) > 0).await;
    // As many as are at work at once may have begun before the first was refused.
    assert!(patches(&world.sim) <= 16, "{}", patches(&world.sim));
    world.stop().await;
    // What may not be annotated may be collected.
    world.config.policy.collect.as_mut().unwrap().grace = SignedDuration::ZERO;
    world.start().await;
    world.until(|p| p.collected == 50).await;
}

#[tokio::test]
async fn what_was_refused_is_written_once_it_is_allowed() {
    let world = World::new(quick()).await;
    world.fault(Fault::status(403).verb("patch").times(3));
    for name in ["a", "b", "c", "d"] {
        world.finished(name);
    }
    for name in ["a", "b", "c", "d"] {
        world.annotated(name).await;
    }
}

#[tokio::test]
async fn a_run_whose_annotations_alone_are_refused_is_given_up_and_collected() {
    let world = World::new(quick()).await;
    let refused = Fault::status(422)
        .verb("patch")
        .name("full")
        .times(u32::MAX);
    world.fault(refused);
    world.finished("full");
    world.until(|_| patches(&world.sim) >= 1).await;
    for n in 0..5 {
        let name = format!("build-{n}");
        world.finished(&name);
        world.annotated(&name).await;
    }
    assert_eq!(world.sim.calls().verb("patch").name("full").count(), 1);
}

#[tokio::test]
async fn deletes_that_are_refused_are_tried_rarely_and_the_runs_are_annotated() {
    let mut config = collecting();
    config.threadiness = 2.try_into().unwrap();
    config.tuning.rare_retry = Duration::from_secs(3600);
    config.tuning.retry.first = Duration::from_secs(3600);
    let world = World::new(config).await;
    world.fault(Fault::status(403).verb("delete").times(u32::MAX));
    world.finish_all("build", 20);
    world.all_annotated("build", 20).await;
    let deletes = world.sim.calls().verb("delete").count();
    assert!((1..=2).contains(&deletes), "{deletes}");
}

#[tokio::test]
async fn an_api_server_that_names_a_time_is_left_alone_until_then() {
    let world = World::new(quick()).await;
    let busy = Fault::status(429).verb("patch").retry_after(1);
    world.fault(busy);
    world.finished("a");
    world.until(|_| patches(&world.sim) >= 1).await;
    let told = Instant::now();
    for name in ["b", "c"] {
        world.finished(name);
    }
    world.until(|p| p.stored == 3).await;
    for name in ["a", "b", "c"] {
        world.annotated(name).await;
    }
    assert!(told.elapsed() > Duration::from_millis(900), "{told:?}");
}

/// An earlier watcher was told to serve it, and put its finalizer on.
#[tokio::test]
async fn a_delete_does_not_wait_for_a_finalizer_on_a_run_that_is_left_alone() {
    let world = World::new(quick()).await;
    let mut run = task_run("foreign");
    run["spec"]["managedBy"] = json!("elsewhere.example");
    run["metadata"]["finalizers"] = json!(["results.tekton.dev/taskrun"]);
    world.create(run);
    world.delete("foreign");
    world
        .cluster(|sim| sim.count("tekton.dev", "taskruns") == 0)
        .await;
    world.until(|p| p.in_cluster == 0).await;
}

#[tokio::test]
async fn finished_runs_get_no_finalizer_while_they_can_be_stored_at_once() {
    let policy = Policy {
        finalizers: true,
        ..quick().policy
    };
    let world = World::new(Config { policy, ..quick() }).await;
    // The server has answered.
    world.finished("first");
    world.annotated("first").await;
    world.sim.clear_calls();
    for n in 0..20 {
        let mut run = task_run(&format!("build-{n}"));
        run["status"] = done();
        world.sim.load(run).unwrap();
    }
    world.all_annotated("build", 20).await;
    assert_eq!(patches(&world.sim), 20);
}

#[tokio::test]
async fn a_run_whose_nodes_are_elsewhere_is_never_collected_nor_its_owner() {
    let world = World::new(collecting()).await;
    world.sim.install(Crd::argo_workflow());
    let workflow = |name: &str, offloaded: &str| {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "status": {"phase": "Succeeded", "startedAt": "2026-03-01T10:00:00Z",
                "finishedAt": "2026-03-01T10:00:09Z", "offloadNodeStatusVersion": offloaded},
        })
    };
    let owner = world.sim.create(workflow("owner", "")).unwrap();
    let mut part = workflow("part", "fnv:123");
    part["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": "owner",
        "uid": owner["metadata"]["uid"], "controller": true}]);
    world.create(part);
    world.create(workflow("large", "fnv:456"));
    world.create(workflow("small", ""));
    world.until(|p| p.stored == 4 && p.collected == 1).await;
    // Whatever is due is collected by now.
    world.finished("build");
    world.until(|p| p.collected == 2).await;
    let left = world.sim.list("argoproj.io", "workflows");
    let mut names: Vec<&str> = left
        .iter()
        .filter_map(|run| run["metadata"]["name"].as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["large", "owner", "part"]);
}

/// Tekton Results' watcher is the same manager to the API server.
#[tokio::test]
async fn annotations_of_the_same_manager_are_kept() {
    let world = World::new(quick()).await;
    world.create(task_run("build"));
    let log =
        json!({"metadata": {"annotations": {"results.tekton.dev/log": "ci/results/a/logs/b"}}});
    let manager = "tekton-results-watcher";
    world
        .sim
        .merge("tekton.dev", "taskruns", NAMESPACE, "build", log, manager)
        .unwrap();
    world.finish("taskruns", "build");
    world.annotated("build").await;
    let run = world.run("build").unwrap();
    let log = &run["metadata"]["annotations"]["results.tekton.dev/log"];
    assert_eq!(log, "ci/results/a/logs/b");
}
