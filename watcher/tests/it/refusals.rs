//! What a server says no to: runs that it will never take, and callers that shall come again later.

use std::{sync::Arc, time::Duration};

use hindsight_client::{Client, Options};
use hindsight_watcher::{app::App, config::Config, progress::Handle, sink::GrpcSink};
use serde_json::{Value, json};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::support::{NAMESPACE, RpcServer, World, quick, task_run, within};

/// A watcher that stores on a server by gRPC.
struct Watcher {
    handle: Handle,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Watcher {
    async fn start(world: &World, config: Config, server: &RpcServer) -> Self {
        let options = Options::new(format!("http://{}", server.addr));
        let sink = GrpcSink::new(Client::new(&options).unwrap());
        let app = App::bind(config, world.sim.client(), Arc::new(sink));
        let app = app.await.unwrap();
        let handle = app.handle();
        let shutdown = CancellationToken::new();
        let token = shutdown.clone();
        let task = tokio::spawn(async move { app.run(token).await.unwrap() });
        within(handle.until(|w| w.progress().is_listed)).await;
        Self {
            handle,
            shutdown,
            task,
        }
    }

    async fn stop(mut self) {
        self.shutdown.cancel();
        within(&mut self.task).await.unwrap();
    }

    fn reasons(&self) -> Vec<String> {
        let unstored = self.handle.unstored(10).into_iter();
        unstored.map(|run| run.reason.to_string()).collect()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A run that is patiently tried again, if it might pass.
fn slow_to_come_back() -> Config {
    let mut config = quick();
    config.tuning.rare_retry = Duration::from_secs(3600);
    config
}

fn large(name: &str) -> Value {
    let mut run = task_run(name);
    run["spec"]["params"] = json!([{"name": "text", "value": "x".repeat(50_000)}]);
    run
}

fn events(world: &World) -> Vec<Value> {
    world.sim.list("", "events")
}

/// As servers in Go say it, which say nothing else with this code.
fn too_large(size: usize) -> Option<Status> {
    (size > 40_000).then(|| {
        Status::resource_exhausted(format!(
            "grpc: received message larger than max ({size} vs. 40000)"
        ))
    })
}

#[tokio::test]
async fn a_run_that_is_too_large_for_the_server_is_told_of_once_and_not_sent_over_and_over() {
    let world = World::without_watcher(quick());
    let server = RpcServer::start();
    server.refuse(Some(too_large));
    let watcher = Watcher::start(&world, slow_to_come_back(), &server).await;
    world.create(large("large"));
    world.finish("taskruns", "large");
    world.cluster(|sim| sim.count("", "events") == 1).await;
    assert_eq!(events(&world)[0]["reason"], "NotStored");
    let said = events(&world)[0]["message"].to_string();
    assert!(said.contains("RESOURCE_EXHAUSTED: grpc: received message larger than max"));
    assert!(watcher.reasons()[0].contains("larger than max"));
    // Others are stored meanwhile, and it is not sent again.
    server.calls();
    world.finish_all("small", 20);
    within(watcher.handle.until(|w| w.progress().stored == 20)).await;
    let calls = server.calls();
    assert_eq!(
        calls.iter().filter(|c| **c == "create_record").count(),
        20,
        "{calls:?}"
    );
    assert_eq!(world.sim.count("", "events"), 1);
    watcher.stop().await;
    // Once the server takes more, a new start is enough.
    server.refuse(None);
    let watcher = Watcher::start(&world, slow_to_come_back(), &server).await;
    world.annotated("large").await;
    within(watcher.handle.until(|w| w.unstored(10).is_empty())).await;
    watcher.stop().await;
}

#[tokio::test]
async fn a_server_that_names_a_time_is_left_alone_until_then() {
    let world = World::without_watcher(quick());
    let server = RpcServer::start();
    server.refuse(Some(|_size| {
        let details = ErrorDetails::with_retry_info(Some(Duration::from_secs(1)));
        let code = tonic::Code::ResourceExhausted;
        Some(Status::with_error_details(
            code,
            "10 requests a second",
            details,
        ))
    }));
    let watcher = Watcher::start(&world, quick(), &server).await;
    world.finished("first");
    let is_waiting = |w: &Handle| !w.progress().is_server_up;
    within(watcher.handle.until(is_waiting)).await;
    let told = Instant::now();
    // Neither this run nor another one is sent before.
    world.finished("second");
    server.calls();
    sleep(Duration::from_millis(700)).await;
    let calls = server.calls();
    let is_early = told.elapsed() < Duration::from_secs(1);
    assert!(!is_early || calls.is_empty(), "{calls:?}");
    server.refuse(None);
    world.annotated("first").await;
    world.annotated("second").await;
    assert!(told.elapsed() > Duration::from_millis(900), "{told:?}");
    assert_eq!(world.sim.count("", "events"), 0);
    watcher.stop().await;
}

/// As without a RoleBinding of the watcher.
#[tokio::test]
async fn a_watcher_that_is_denied_tells_once_and_tries_one_run_at_a_time() {
    let world = World::without_watcher(quick());
    let server = RpcServer::start();
    server.refuse(Some(|_size| {
        Some(Status::permission_denied("create records in ci"))
    }));
    for n in 0..200 {
        let mut run = task_run(&format!("build-{n}"));
        run["status"] = crate::support::done();
        world.sim.load(run).unwrap();
    }
    let watcher = Watcher::start(&world, slow_to_come_back(), &server).await;
    within(watcher.handle.until(|w| {
        w.unstored(500)
            .iter()
            .all(|run| run.reason.contains("DENIED"))
    }))
    .await;
    // As many as are at work at once may have begun before the first was denied.
    let calls = server.calls().len();
    assert!(calls <= 3 * 32, "{calls}");
    assert_eq!(world.sim.count("", "events"), 1);
    server.refuse(None);
    within(watcher.handle.until(|w| w.progress().stored == 200)).await;
    watcher.stop().await;
}

#[tokio::test]
async fn a_run_that_is_refused_for_long_is_told_of_whatever_the_reason() {
    let world = World::without_watcher(quick());
    let server = RpcServer::start();
    server.refuse(Some(|size| {
        (size > 40_000).then(|| Status::internal("the rows contradict each other"))
    }));
    let watcher = Watcher::start(&world, quick(), &server).await;
    world.create(large("large"));
    world.finish("taskruns", "large");
    world.finished("small");
    world.annotated("small").await;
    let said = async {
        world.cluster(|sim| sim.count("", "events") == 1).await;
        events(&world)[0].clone()
    };
    let said = within(said).await;
    assert_eq!(said["involvedObject"]["name"], "large");
    assert_eq!(said["metadata"]["namespace"], NAMESPACE);
    assert!(said["message"].to_string().contains("contradict"));
    // It might pass, so it is tried all the same.
    server.refuse(None);
    world.annotated("large").await;
    watcher.stop().await;
}
