//! The watcher reads on, whatever fails: kinds that it may not see or that are broken, a server that
//! is slow, connections that say nothing.

use std::{sync::Arc, time::Duration};

use hindsight_watcher::{
    app::{App, Error},
    config::{Config, SpoolConfig},
    policy::{Collect, Policy},
};
use kubesim::{Crd, Fault};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{
    NAMESPACE, World, collecting, eventually, is_done, pipeline_run, quick, within,
};

/// For as long as the test takes.
const FOR_GOOD: u32 = 1_000_000;

/// A finished PipelineRun that names an Argo Workflow as its child; its UID.
fn parent_of_workflow(world: &World, name: &str) -> String {
    let uid = world.create(pipeline_run(name));
    let child = json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": "etl"}]);
    world.finish_pipeline(name, child);
    uid
}

/// Runs are collected though workflows are not shown; those that name one wait until they are.
async fn goes_on_beside(faults: impl IntoIterator<Item = Fault>) {
    let mut config = collecting();
    config.tuning.ready_for = Duration::from_millis(50);
    let mut world = World::without_watcher(config);
    world.sim.install(Crd::argo_workflow());
    for fault in faults {
        world.fault(fault.times(FOR_GOOD));
    }
    world.start().await;
    world.until(|p| p.is_listed).await;
    let kept = parent_of_workflow(&world, "kept");
    let free = world.finish_all("a", 5);
    world.until(|p| p.collected == 5).await;
    assert!(world.all_done(&free));
    within(world.sink.until(|sink| sink.copy(&kept).is_some())).await;
    // It waits without being read again and again.
    world.until(|p| p.waiting == 0).await;
    world.sim.clear_calls();
    world.finish_all("b", 5);
    world.until(|p| p.collected == 10).await;
    assert_eq!(world.sim.count("tekton.dev", "pipelineruns"), 1);
    let reads = world.sim.calls().resource("pipelineruns").verb("get");
    assert_eq!(reads.count(), 0);
    // Once the kind is shown, and the child is not there, nothing keeps the parent.
    world.sim.faults().clear();
    world.until(|p| p.collected == 11).await;
    assert_eq!(world.progress().lost, 0);
}

#[tokio::test]
async fn a_kind_that_is_forbidden_for_good_stops_nothing_else() {
    let forbidden = |verb| Fault::status(403).verb(verb).resource("workflows");
    goes_on_beside([forbidden("list"), forbidden("watch")]).await;
}

#[tokio::test]
async fn a_kind_whose_list_fails_for_good_stops_nothing_else() {
    goes_on_beside([Fault::status(500).verb("list").resource("workflows")]).await;
}

#[tokio::test]
async fn a_kind_that_discovery_does_not_tell_of_is_listed_all_the_same() {
    let mut world = World::without_watcher(quick());
    let discovery = Fault::status(403).resource("/apis/tekton.dev/v1");
    world.fault(discovery.times(FOR_GOOD));
    world.start().await;
    world.until(|p| p.is_listed).await;
    let uid = world.finished("build");
    world.annotated("build").await;
    assert!(is_done(&world.copy(&uid)));
}

#[tokio::test]
async fn a_watch_that_is_refused_for_a_moment_is_not_listed_anew() {
    let world = World::new(quick()).await;
    let before = lists(&world);
    let refused = Fault::status(403).verb("watch").resource("taskruns");
    world.fault(refused.times(2));
    world.sim.faults().drop_watches();
    let uid = world.finished("build");
    world.annotated("build").await;
    assert!(is_done(&world.copy(&uid)));
    assert_eq!(lists(&world), before);
}

fn lists(world: &World) -> usize {
    world.sim.calls().verb("list").resource("taskruns").count()
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_read_however_slow_the_server_is_and_never_listed_anew() {
    const RUNS: usize = 300;
    let mut config = quick();
    config.threadiness = std::num::NonZeroUsize::new(4).unwrap();
    config.tuning.hold_bytes = 1 << 20;
    // Only so many calls are remembered.
    config.tuning.kind_poll = Duration::from_hours(1);
    let world = World::new(config).await;
    let before = lists(&world);
    world.sink.take(Duration::from_mins(1));
    let began = tokio::time::Instant::now();
    let mut uids = Vec::new();
    for n in 0..RUNS {
        let name = format!("build-{n}");
        uids.push(world.finished(&name));
        world.delete(&name);
    }
    let seen = |handle: &hindsight_watcher::progress::Handle| {
        let known = |uid: &String| handle.state(uid).is_some();
        uids.iter().all(known)
    };
    world.handle().until(seen).await;
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    // Hours later.
    world.handle().until(|w| w.progress().in_cluster == 0).await;
    let took = began.elapsed();
    assert!(took > Duration::from_hours(1), "{took:?}");
    assert!(world.all_done(&uids));
    assert_eq!(world.progress().lost, 0);
    assert_eq!(lists(&world), before);
}

#[tokio::test(start_paused = true)]
async fn a_list_waits_for_a_slow_server_only_so_long_before_the_watch_begins() {
    const RUNS: usize = 500;
    let mut config = quick();
    config.threadiness = std::num::NonZeroUsize::new(4).unwrap();
    config.tuning.hold_bytes = 64 << 10;
    config.tuning.kind_poll = Duration::from_hours(1);
    let patience = config.tuning.list_patience;
    let mut world = World::without_watcher(config);
    world.finish_all("build", RUNS);
    world.sink.take(Duration::from_secs(10));
    let began = tokio::time::Instant::now();
    world.start().await;
    world.handle().until(|w| w.progress().is_listed).await;
    let took = began.elapsed();
    assert!(took < patience + Duration::from_secs(5), "{took:?}");
    world
        .handle()
        .until(|w| w.progress().stored == RUNS as u64)
        .await;
    let again = world.sim.calls().verb("list").resource("taskruns");
    let first = again.all().iter().filter(|call| call.status == Some(200));
    // Pages of 10, 40, 160, 250 and what is left of that.
    assert_eq!(first.count(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_list_and_a_watch_that_get_no_answer_are_asked_for_again() {
    for verb in ["list", "watch"] {
        let mut world = World::without_watcher(quick());
        let silent = Fault::slow(Duration::from_hours(24 * 365));
        world.fault(silent.verb(verb).resource("taskruns"));
        let began = tokio::time::Instant::now();
        world.start().await;
        let uid = world.finished("build");
        world.handle().until(|w| w.progress().stored == 1).await;
        assert!(is_done(&world.copy(&uid)));
        let took = began.elapsed();
        assert!(took < Duration::from_mins(2), "{verb}: {took:?}");
    }
}

#[tokio::test]
async fn a_pause_counts_though_namespaces_may_be_seen_no_longer() {
    let collect = Collect {
        namespaces: true,
        ..collecting().policy.collect.unwrap()
    };
    let config = Config {
        policy: Policy {
            collect: Some(collect),
            ..collecting().policy
        },
        ..collecting()
    };
    let world = World::new(config).await;
    world.finished("before");
    world.until(|p| p.collected == 1).await;
    for verb in ["list", "watch"] {
        let forbidden = Fault::status(403).verb(verb).resource("namespaces");
        world.fault(forbidden.times(FOR_GOOD));
    }
    world.sim.faults().drop_watches();
    let refused = || world.sim.calls().resource("namespaces").status(403).count();
    eventually(|| refused() > 0).await;
    let pause = json!({"metadata": {"annotations": {"hindsight.dev/pause": "true"}}});
    world
        .sim
        .merge("", "namespaces", "", NAMESPACE, pause, "x")
        .unwrap();
    world.finished("paused");
    world.annotated("paused").await;
    world.until(|p| p.waiting == 0).await;
    assert_eq!(world.progress().collected, 1);
    let go_on = json!({"metadata": {"annotations": {"hindsight.dev/pause": null}}});
    world
        .sim
        .merge("", "namespaces", "", NAMESPACE, go_on, "x")
        .unwrap();
    world.sim.faults().clear();
    world.until(|p| p.collected == 2).await;
}

#[tokio::test]
async fn an_orderly_stop_names_what_is_lost_with_it() {
    let config = Config {
        shutdown_grace: Duration::from_millis(50),
        ..quick()
    };
    let world = World::without_watcher(config.clone());
    let sink = Arc::clone(&world.sink);
    let app = App::bind(config, world.sim.client(), sink).await.unwrap();
    let handle = app.handle();
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(app.run(shutdown.clone()));
    within(handle.until(|w| w.progress().is_listed)).await;
    world.sink.away(true);
    for n in 0..10 {
        world.finished(&format!("gone-{n}"));
        world.delete(&format!("gone-{n}"));
    }
    // What is told of it is told after all of that.
    world.finished("there");
    within(handle.until(|w| w.unstored(20).len() == 11)).await;
    shutdown.cancel();
    let ended = within(running).await.unwrap();
    assert!(matches!(ended, Err(Error::Lost { count: 10 })), "{ended:?}");
    assert_eq!(handle.progress().lost, 10);
    let lost = handle.lost(20);
    assert!(lost.iter().all(|run| run.name.starts_with("gone-")));
}

#[tokio::test]
async fn a_replica_that_stands_by_stores_what_is_in_its_spool() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = quick();
    config.spool = Some(SpoolConfig {
        dir: dir.path().to_owned(),
        limit: 1 << 20,
    });
    let mut world = World::new(config).await;
    world.sink.away(true);
    let mut uids = Vec::new();
    for n in 0..10 {
        uids.push(world.finished(&format!("build-{n}")));
        world.delete(&format!("build-{n}"));
    }
    // What is told of it is told after all of that is on disk.
    world.create(crate::support::task_run("last"));
    world.until(|p| p.in_cluster == 11).await;
    let kept = || crate::spool::files(dir.path()).len();
    assert_eq!(kept(), 10);
    world.kill().await;
    // Another one leads from now on.
    world.create(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "watcher", "namespace": NAMESPACE},
        "spec": {"holderIdentity": "another", "leaseDurationSeconds": 3600},
    }));
    world.config.lease = Some(hindsight_watcher::config::LeaseConfig {
        namespace: Some(NAMESPACE.to_owned()),
        name: "watcher".to_owned(),
        identity: "me".to_owned(),
        duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry: Duration::from_millis(10),
    });
    world.start().await;
    world.sink.away(false);
    world.until(|p| p.stored == 10).await;
    eventually(|| kept() == 0).await;
    assert!(world.all_done(&uids));
    assert!(!world.progress().is_leading);
    assert_eq!(world.progress().lost, 0);
    world.stop().await;
}
