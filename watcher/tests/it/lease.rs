//! Of several replicas one works; which one may change at any time.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use hindsight_watcher::{
    app::{App, Error},
    config::{Config, LeaseConfig},
    progress::Handle,
};
use kubesim::{Fault, Mix, Plan, Player};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::{NAMESPACE, World, collecting, eventually, is_done, quick, task_run, within};

struct Replica {
    handle: Handle,
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), Error>>,
}

impl Replica {
    async fn start(world: &World, config: Config) -> Self {
        let sink = Arc::clone(&world.sink);
        let app = App::bind(config, world.sim.client(), sink).await.unwrap();
        let handle = app.handle();
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(app.run(shutdown.clone()));
        Self {
            handle,
            shutdown,
            task,
        }
    }

    async fn leads(&self) {
        within(self.handle.until(|w| w.progress().is_leading)).await;
    }

    async fn stop(self) {
        self.shutdown.cancel();
        within(self.task).await.unwrap().unwrap();
    }

    async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }
}

/// A replica with a lease that lasts so many seconds.
fn replica(config: Config, identity: &str, seconds: u64) -> Config {
    Config {
        lease: Some(LeaseConfig {
            namespace: Some(NAMESPACE.to_owned()),
            name: "watcher".to_owned(),
            identity: identity.to_owned(),
            duration: Duration::from_secs(seconds),
            renew_deadline: Duration::from_secs(seconds) / 2,
            retry: Duration::from_millis(20),
        }),
        ..config
    }
}

fn lease(world: &World) -> Value {
    let lease = world
        .sim
        .get("coordination.k8s.io", "leases", NAMESPACE, "watcher");
    lease.unwrap()["spec"].clone()
}

fn write_lease(world: &World, spec: Value) {
    let patch = json!({"spec": spec});
    world.merge("coordination.k8s.io", "leases", "watcher", patch);
}

fn lost(ended: Result<(), Error>) -> String {
    match ended.unwrap_err() {
        Error::Lease { why, .. } => why,
        other => other.to_string(),
    }
}

#[tokio::test]
async fn one_of_two_works_and_hands_over_when_it_ends() {
    let world = World::without_watcher(quick());
    let first = Replica::start(&world, replica(quick(), "first", 3600)).await;
    first.leads().await;
    let second = Replica::start(&world, replica(quick(), "second", 3600)).await;
    world.finish_all("a", 10);
    within(first.handle.until(|w| w.progress().stored == 10)).await;
    assert!(!second.handle.progress().is_leading);
    assert_eq!(second.handle.progress().in_cluster, 0);
    let held = lease(&world);
    assert_eq!(held["holderIdentity"], "first");
    assert_eq!(
        (&held["leaseDurationSeconds"], &held["leaseTransitions"]),
        (&json!(3600), &json!(0))
    );
    first.stop().await;
    // It need not wait an hour.
    second.leads().await;
    world.finish_all("b", 10);
    within(second.handle.until(|w| w.progress().stored == 20)).await;
    assert_eq!(world.sink.writes(), 20);
    assert_eq!(lease(&world)["leaseTransitions"], 1);
    second.stop().await;
}

#[tokio::test]
async fn the_other_takes_over_when_the_holder_dies() {
    let world = World::without_watcher(collecting());
    let first = Replica::start(&world, replica(collecting(), "first", 1)).await;
    first.leads().await;
    let second = Replica::start(&world, replica(collecting(), "second", 1)).await;
    let uid = world.finished("a");
    within(first.handle.until(|w| w.progress().collected == 1)).await;
    first.kill().await;
    let later = world.finished("b");
    second.leads().await;
    within(second.handle.until(|w| w.progress().collected == 1)).await;
    assert!(is_done(&world.copy(&uid)) && is_done(&world.copy(&later)));
    assert_eq!(world.sink.writes(), 2);
    second.stop().await;
}

#[tokio::test]
async fn whoever_loses_the_lease_ends_at_once() {
    let world = World::without_watcher(quick());
    let watcher = Replica::start(&world, replica(quick(), "first", 3600)).await;
    watcher.leads().await;
    // Work that cannot be ended in order.
    world.sink.away(true);
    world.finished("a");
    within(watcher.handle.until(|w| !w.progress().is_server_up)).await;
    write_lease(&world, json!({"holderIdentity": "second"}));
    let why = lost(within(watcher.task).await.unwrap());
    assert!(why.contains("`second` has it"), "{why}");
    assert!(!watcher.handle.progress().is_leading);
    assert_eq!(lease(&world)["holderIdentity"], "second");
}

#[tokio::test]
async fn a_lease_that_cannot_be_renewed_is_lost_before_it_is_over() {
    let world = World::without_watcher(quick());
    let watcher = Replica::start(&world, replica(quick(), "first", 1)).await;
    watcher.leads().await;
    let before = lease(&world)["renewTime"].clone();
    // A few failures in a row are no reason to end.
    world.fault(Fault::status(503).resource("leases").times(3));
    within(world.sim.until(|_| lease(&world)["renewTime"] != before)).await;
    world.fault(Fault::status(503).resource("leases").times(u32::MAX));
    let began = tokio::time::Instant::now();
    let why = lost(within(watcher.task).await.unwrap());
    assert!(
        why.contains("could not be renewed") && why.contains("503"),
        "{why}"
    );
    let took = began.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn a_lease_that_is_renewed_is_not_taken_however_late_its_clock_is() {
    let world = World::without_watcher(quick());
    let first = Replica::start(&world, replica(quick(), "first", 3600)).await;
    first.leads().await;
    first.kill().await;
    write_lease(&world, json!({"leaseDurationSeconds": 1}));
    let second = Replica::start(&world, replica(quick(), "second", 1)).await;
    for n in 0..15 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        // Somebody whose clock stands still renews it.
        let renewed = json!({"acquireTime": format!("2020-01-01T00:00:00.{n:06}Z")});
        write_lease(&world, renewed);
        assert!(!second.handle.progress().is_leading);
    }
    second.leads().await;
    second.stop().await;
}

/// Two watchers that both believe to lead: with and without one of them dying.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_that_work_at_once_do_no_harm() {
    let world = World::without_watcher(collecting());
    let first = Replica::start(&world, collecting()).await;
    let second = Replica::start(&world, collecting()).await;
    let plan = Plan {
        seed: 11,
        runs: 150,
        rate: 300.0,
        concurrency: 30,
        namespaces: vec![NAMESPACE.to_owned()],
        mix: Mix {
            pipeline_runs: 2,
            task_runs: 3,
            custom_runs: 1,
            workflows: 0,
        },
        life: Duration::from_millis(20),
        ..Plan::default()
    };
    let playing = Player::new(&world.sim, plan).start();
    within(playing.until(|p| p.finished >= 60)).await;
    // One of the same name as one that both know.
    first.kill().await;
    let again = world.create(task_run("again"));
    let account = within(playing.over()).await;
    assert_eq!(account.lost, 0);
    world
        .cluster(|sim| {
            sim.count("tekton.dev", "taskruns") == 1
                && ["pipelineruns", "customruns"]
                    .iter()
                    .all(|plural| sim.count("tekton.dev", plural) == 0)
        })
        .await;
    let finished = playing.finished();
    assert!(finished.iter().all(|run| is_done(&world.copy(&run.uid))));
    assert_eq!(world.sink.records().len(), finished.len());
    assert_eq!(crate::support::uid(&world.run("again").unwrap()), again);
    second.stop().await;
    assert_eq!(deleted_twice(&world), Vec::<String>::new());
}

/// The names of what the API server has deleted more than once. No name is used twice.
fn deleted_twice(world: &World) -> Vec<String> {
    let calls = world.sim.calls().verb("delete").status(200);
    let mut names = BTreeSet::new();
    let all = calls.all().iter();
    let twice = all.filter(|call| !names.insert((call.resource.clone(), call.name.clone())));
    twice.map(|call| call.name.clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_another_one_takes_in_the_middle_of_collecting_ends_that_and_it_goes_on() {
    const RUNS: usize = 300;
    let world = World::without_watcher(collecting());
    let first = Replica::start(&world, replica(collecting(), "first", 3600)).await;
    first.leads().await;
    let second = Replica::start(&world, replica(collecting(), "second", 3600)).await;
    world.finish_all("build", RUNS);
    within(first.handle.until(|w| w.progress().collected >= 5)).await;
    // Somebody gives it to the other one, as a holder does whose clock is far ahead.
    write_lease(&world, json!({"holderIdentity": "second"}));
    let why = lost(within(first.task).await.unwrap());
    assert!(why.contains("`second` has it"), "{why}");
    second.leads().await;
    let done = |sim: &kubesim::Sim| sim.count("tekton.dev", "taskruns") == 0;
    world.cluster(done).await;
    assert_eq!(world.sink.records().len(), RUNS);
    second.stop().await;
    // All calls are over by now.
    let collected = world.sim.calls().verb("delete").status(200).count();
    assert_eq!(collected, RUNS);
    assert_eq!(deleted_twice(&world), Vec::<String>::new());
}

#[tokio::test]
async fn a_lease_that_is_read_as_it_was_is_not_taken_from_its_holder() {
    let world = World::without_watcher(quick());
    let before = world.sim.version();
    let first = Replica::start(&world, replica(quick(), "first", 3600)).await;
    first.leads().await;
    // Nobody reads the lease meanwhile.
    first.kill().await;
    write_lease(&world, json!({"holderIdentity": ""}));
    let given_back = world.sim.version();
    write_lease(&world, json!({"holderIdentity": "first"}));
    for version in [before, given_back] {
        let stale = Fault::stale(version).resource("leases").verb("get");
        world.fault(stale);
    }
    let second = Replica::start(&world, replica(quick(), "second", 3600)).await;
    eventually(|| world.sim.faults().pending() == 0).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!second.handle.progress().is_leading);
    assert_eq!(lease(&world)["holderIdentity"], "first");
    second.stop().await;
}
