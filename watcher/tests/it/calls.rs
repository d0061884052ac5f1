//! How many calls it takes to store a run, and that no write is one too many.

use hindsight_client::{Client, Effect, Options, Stored};
use hindsight_run::{SummaryPolicy, Upload, View, upload};
use serde_json::{Value, json};

use hindsight_watcher::{config::Config, policy::Policy};

use crate::support::{
    NAMESPACE, RpcServer, World, child, collecting, done, pipeline_run, quick, task_run,
};

fn client(server: &RpcServer) -> Client {
    Client::new(&Options::new(format!("http://{}", server.addr))).unwrap()
}

fn finished(mut run: Value, uid: &str) -> (Value, Upload, Vec<u8>) {
    run["metadata"]["uid"] = json!(uid);
    run["status"] = done();
    let sent = upload(&View::new(&run), None, &SummaryPolicy::default()).unwrap();
    let bytes = serde_json::to_vec(&run).unwrap();
    (run, sent, bytes)
}

const NEW: Stored = Stored {
    result: Effect::Created,
    record: Effect::Created,
};
const SAME: Stored = Stored {
    result: Effect::Unchanged,
    record: Effect::Unchanged,
};

#[tokio::test]
async fn a_new_run_takes_two_calls_and_its_children_one_each() {
    let server = RpcServer::start();
    let client = client(&server);
    let (run, sent, bytes) = finished(pipeline_run("nightly"), "p");
    assert_eq!(client.store(&sent, &bytes).await.unwrap(), NEW);
    assert_eq!(server.calls(), ["create_result", "create_record"]);
    let (_, sent, bytes) = finished(child("nightly-a", &run), "a");
    let stored = client.store(&sent, &bytes).await.unwrap();
    assert_eq!(
        (stored.result, stored.record),
        (Effect::Unchanged, Effect::Created)
    );
    assert_eq!(server.calls(), ["create_record"]);
}

#[tokio::test]
async fn a_run_whose_children_came_first_sums_up_the_result_before_its_record_is_there() {
    let server = RpcServer::start();
    let client = client(&server);
    let (run, root, root_bytes) = finished(pipeline_run("nightly"), "p");
    let (_, sent, bytes) = finished(child("nightly-a", &run), "a");
    assert_eq!(client.store(&sent, &bytes).await.unwrap(), NEW);
    assert_eq!(
        server.calls(),
        ["create_record", "create_result", "create_record"]
    );
    assert_eq!(server.rows(&root.grouping.record).0.unwrap().summary, None);
    let stored = client.store(&root, &root_bytes).await.unwrap();
    assert_eq!(
        (stored.result, stored.record),
        (Effect::Updated, Effect::Created)
    );
    let calls = [
        "create_result",
        "get_result",
        "update_result",
        "create_record",
    ];
    assert_eq!(server.calls(), calls);
    let (result, _) = server.rows(&root.grouping.record);
    assert_eq!(result.unwrap().summary, root.summary);
}

#[tokio::test]
async fn storing_twice_writes_nothing_and_a_change_is_written_once() {
    let server = RpcServer::start();
    let client = client(&server);
    let (mut run, sent, bytes) = finished(pipeline_run("nightly"), "p");
    client.store(&sent, &bytes).await.unwrap();
    let rows = server.rows(&sent.grouping.record);
    server.calls();
    assert_eq!(client.store(&sent, &bytes).await.unwrap(), SAME);
    let reads = ["create_result", "get_result", "create_record", "get_record"];
    assert_eq!(server.calls(), reads);
    assert_eq!(client.store_again(&sent, &bytes).await.unwrap(), SAME);
    assert_eq!(server.calls(), ["get_result", "get_record"]);
    assert_eq!(server.rows(&sent.grouping.record), rows);
    run["metadata"]["annotations"] = json!({"signed": "yes"});
    let changed = serde_json::to_vec(&run).unwrap();
    let stored = client.store_again(&sent, &changed).await.unwrap();
    assert_eq!(
        (stored.result, stored.record),
        (Effect::Unchanged, Effect::Updated)
    );
    assert_eq!(
        server.calls(),
        ["get_result", "get_record", "update_record"]
    );
}

/// Writes of the watcher on the run of this name.
fn writes(world: &World, name: &str) -> Vec<String> {
    let write = |verb: &str| !matches!(verb, "get" | "list" | "watch");
    let calls = world.sim.calls().name(name).filter(|call| write(call.verb));
    calls
        .all()
        .iter()
        .map(|call| call.verb.to_string())
        .collect()
}

fn finalizing(config: Config) -> Config {
    let policy = Policy {
        finalizers: true,
        store_incomplete: true,
        ..config.policy
    };
    Config { policy, ..config }
}

#[tokio::test]
async fn a_finished_run_takes_two_writes_to_the_cluster_at_most() {
    for (config, wanted) in [(quick(), 1), (finalizing(quick()), 2)] {
        let world = World::new(config).await;
        world.create(task_run("build"));
        if wanted == 2 {
            world
                .cluster(|sim| {
                    let run = sim.get("tekton.dev", "taskruns", NAMESPACE, "build");
                    run.is_some_and(|run| run["metadata"]["finalizers"].is_array())
                })
                .await;
        }
        world.finish("taskruns", "build");
        world.annotated("build").await;
        // What is written on it later, and its end by others, take none.
        world.annotate("build", "signed", "yes");
        let sink = std::sync::Arc::clone(&world.sink);
        sink.until(|sink| sink.writes() > 1).await;
        world.delete("build");
        world.until(|p| p.in_cluster == 0).await;
        assert_eq!(writes(&world, "build"), vec!["patch"; wanted]);
    }
}

#[tokio::test]
async fn a_run_that_is_collected_takes_three_writes_at_most_and_its_children_two() {
    for (config, on_parent, on_child) in [
        (collecting(), &["delete"][..], &["patch"][..]),
        (
            finalizing(collecting()),
            &["patch", "patch", "delete"][..],
            &["patch", "patch"][..],
        ),
    ] {
        let holds = config.policy.finalizers;
        let world = World::new(config).await;
        let parent = world.sim.create(pipeline_run("nightly")).unwrap();
        world.create(child("nightly-a", &parent));
        let is_held = |sim: &kubesim::Sim, plural| {
            let all = sim.list("tekton.dev", plural);
            all.iter()
                .all(|run| run["metadata"]["finalizers"].is_array())
        };
        world
            .cluster(|sim| !holds || (is_held(sim, "taskruns") && is_held(sim, "pipelineruns")))
            .await;
        world.finish("taskruns", "nightly-a");
        world.annotated("nightly-a").await;
        world.finish("pipelineruns", "nightly");
        world.until(|p| p.in_cluster == 0).await;
        assert_eq!(writes(&world, "nightly"), on_parent);
        assert_eq!(writes(&world, "nightly-a"), on_child);
    }
}
