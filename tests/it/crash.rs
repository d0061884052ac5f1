//! The server, the watcher and PostgreSQL are killed in the middle of it all, and started again:
//! no run is missing, none is doubled, and none was collected without being stored.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use hindsight_proto::v1alpha2 as pb;
use hindsight_run::View;
use kubesim::{Plan, Player, Playing, Sim};
use serde_json::Value;

use crate::support::{
    Database,
    cluster::Cluster,
    scene::{Process, Scene, kinds, left},
};

const RUNS: usize = 150;
/// Everything has to be over by then; it takes a tenth of this on two busy cores.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs the whole play on `db`; `strike` is called three times in the middle of it.
async fn play(db: String, strike: impl AsyncFn(usize, &Scene, &mut [Process; 2])) {
    let sim = Sim::new();
    sim.install_all(kinds());
    let listening = sim.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let scene = Scene::new(db, &listening, &["--collect", "--grace", "0s"]);
    let mut processes = [scene.server(), scene.watcher()];
    let plan = Plan {
        runs: RUNS,
        rate: 60.0,
        seed: 42,
        ..Plan::default()
    };
    let playing = Player::new(&sim, plan).start();
    for blow in 0..3 {
        playing
            .until(|progress| progress.finished >= (blow + 1) * RUNS / 5)
            .await;
        strike(blow, &scene, &mut processes).await;
    }
    let progress = playing.over().await;
    assert_eq!(
        (progress.finished, progress.lost),
        (RUNS, 0),
        "the play itself went well"
    );
    let empty = tokio::time::timeout(PATIENCE, sim.until(|sim| left(sim) == 0)).await;
    assert!(
        empty.is_ok(),
        "{} objects are left in the cluster\n{}",
        left(&sim),
        scene.log()
    );
    let records = scene.records().await.unwrap();
    check(&playing, &records);
    stored_before_collected(&sim, &records);
}

/// Every delete came after the final state was stored.
fn stored_before_collected(sim: &Sim, records: &[pb::Record]) {
    let calls = sim.calls().verb("delete").status(200);
    let deletes: BTreeMap<(&str, &str), jiff::Timestamp> = calls
        .all()
        .iter()
        .map(|call| ((call.namespace.as_str(), call.name.as_str()), call.at))
        .collect();
    let mut compared = 0;
    for record in records {
        let value = &record.data.as_ref().unwrap().value;
        let object: Value = serde_json::from_slice(value).unwrap();
        let text = |key: &str| object["metadata"][key].as_str().unwrap();
        // Children have no delete of their own: they go with their owner.
        let Some(deleted) = deletes.get(&(text("namespace"), text("name"))) else {
            continue;
        };
        let stored = record.update_time.unwrap();
        let stored = jiff::Timestamp::new(stored.seconds, stored.nanos).unwrap();
        assert!(
            stored <= *deleted,
            "{} was stored at {stored} and deleted at {deleted}",
            record.name
        );
        compared += 1;
    }
    assert!(compared >= RUNS, "{compared} deletes were compared");
}

fn check(playing: &Playing, records: &[pb::Record]) {
    let finished = playing.finished();
    let wanted: BTreeMap<&str, &kubesim::Finished> =
        finished.iter().map(|run| (run.uid.as_str(), run)).collect();
    let mut seen = BTreeSet::new();
    for record in records {
        let data = record.data.as_ref().unwrap();
        let object: Value = serde_json::from_slice(&data.value).unwrap();
        let uid = object["metadata"]["uid"].as_str().unwrap();
        assert!(record.name.ends_with(uid), "{} holds {uid}", record.name);
        assert!(seen.insert(uid.to_owned()), "{uid} is doubled");
        assert!(
            View::new(&object).finish().done,
            "{} was stored in an unfinished state",
            record.name
        );
        let run = wanted.get(uid).expect("only what was played is stored");
        assert_eq!(object["metadata"]["name"], run.name.as_str());
    }
    let missing: Vec<_> = wanted.keys().filter(|uid| !seen.contains(**uid)).collect();
    assert!(missing.is_empty(), "missing: {missing:?}");
    assert!(seen.len() > RUNS, "children of pipeline runs are there too");
}

/// Kills the server, then the watcher, then both.
async fn server_and_watcher(blow: usize, scene: &Scene, processes: &mut [Process; 2]) {
    let [server, watcher] = processes;
    if blow != 1 {
        server.kill();
        *server = scene.server();
    }
    if blow != 0 {
        watcher.kill();
        *watcher = scene.watcher();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_of_server_and_watcher_lose_and_double_nothing_on_sqlite() {
    let database = Database::sqlite();
    play(database.url(), server_and_watcher).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_of_server_watcher_and_database_lose_and_double_nothing_on_postgres() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    play(cluster.url(), async |blow, scene, processes| {
        cluster.kill();
        cluster.restart();
        server_and_watcher(blow, scene, processes).await;
    })
    .await;
}
