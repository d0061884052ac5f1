//! The server, and PostgreSQL, are killed again and again in the middle of a write load: whatever
//! was acknowledged is there, and nothing is damaged.
//!
//! Each writer has one call under way at a time, so that for each record two states are possible
//! after a kill: the last that was acknowledged, and the one that was asked for and not answered.
//! A few rounds by default; `HINDSIGHT_TEST_KILLS` says how many (`make crash`).

mod archive;
mod load;
mod retention;

use std::{
    collections::BTreeMap,
    process::{Child, Stdio},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use hindsight_client::{Client, Options, Rpc};
use hindsight_proto::v1alpha2 as pb;
use hindsight_storage::{
    fsck::{Depth, Event, Orphans, fsck, orphans},
    objects::{ObjectBackend, Settings},
    snapshot::Snapshot,
};
use jiff::Timestamp;

use crate::support::{
    Database,
    cluster::{Cluster, free_port},
    database::variable,
    process::hindsight,
};
use load::{Dice, Model, Shared, write};

const WRITERS: usize = 8;
/// A server that does not answer after so long is broken.
const PATIENCE: Duration = Duration::from_secs(60);

fn rounds() -> usize {
    variable("HINDSIGHT_TEST_KILLS").map_or(6, |rounds| rounds.parse().unwrap())
}

struct Server {
    child: Child,
    url: String,
}

impl Server {
    async fn start(db: &str, port: u16, objects: &str) -> Self {
        let child = hindsight()
            .args(["serve", "--db", db, "--metrics-listen", "off"])
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .args(["--log-level", "off"])
            .args(["--objects-url", objects, "--objects-above", "1KiB"])
            .args(["--archive-url", &objects.replace("/objects", "/archive")])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self {
            child,
            url: format!("http://127.0.0.1:{port}"),
        };
        server.answers().await;
        server
    }

    fn rpc(&self) -> Rpc {
        Client::new(&Options::new(&self.url)).unwrap().rpc()
    }

    /// Waits until it answers, whatever it and its database have to do before.
    async fn answers(&self) {
        let asking = async {
            let request = pb::ListResultsRequest {
                parent: "-".to_owned(),
                ..pb::ListResultsRequest::default()
            };
            while self.rpc().list_results(request.clone()).await.is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let answered = tokio::time::timeout(PATIENCE, asking).await;
        answered.expect("the server answers");
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Writes until `kill` has killed, after a number of acknowledgements that looks random; gives
/// how many there were. It blocks this thread; the writers have another.
async fn load(
    server: &mut Server,
    models: &mut Vec<Model>,
    seed: u64,
    kill: &impl Fn(&mut Server),
) -> usize {
    let mut dice = Dice(seed);
    let wanted = 1 + usize::try_from(dice.below(250)).unwrap();
    let shared = Arc::new(Shared::default());
    let writing: Vec<_> = models
        .drain(..)
        .enumerate()
        .map(|(writer, model)| {
            let (rpc, seed) = (server.rpc(), dice.below(u64::MAX >> 33));
            tokio::spawn(write(rpc, writer, model, seed, Arc::clone(&shared)))
        })
        .collect();
    while shared.acknowledged.load(Ordering::Relaxed) < wanted {
        shared.news.notified().await;
    }
    // Somewhere within a commit.
    tokio::time::sleep(Duration::from_micros(dice.below(10_000))).await;
    kill(server);
    shared.stop.store(true, Ordering::Relaxed);
    for writer in writing {
        models.push(writer.await.unwrap());
    }
    shared.acknowledged.load(Ordering::Relaxed)
}

async fn stored(server: &Server) -> BTreeMap<String, pb::Record> {
    let (mut all, mut token) = (BTreeMap::new(), String::new());
    loop {
        let request = pb::ListRecordsRequest {
            parent: "-/results/-".to_owned(),
            page_size: 1000,
            page_token: token,
            ..pb::ListRecordsRequest::default()
        };
        let reply = server.rpc().list_records(request).await.unwrap();
        let reply = reply.into_inner();
        all.extend(reply.records.into_iter().map(|r| (r.name.clone(), r)));
        token = reply.next_page_token;
        if token.is_empty() {
            return all;
        }
    }
}

/// Every record is as it was acknowledged, or as it was asked to be.
fn compare(models: &mut [Model], mut stored: BTreeMap<String, pb::Record>, round: usize) {
    for (name, known) in models.iter_mut().flatten() {
        let found = stored.remove(name);
        let value = found
            .as_ref()
            .map(|r| r.data.as_ref().unwrap().value.clone());
        let possible = value == known.is || known.asked.as_ref() == Some(&value);
        assert!(
            possible,
            "round {round}: {name} is {value:?} after {known:?}"
        );
        known.asked = None;
        known.is = value;
        known.etag = found.map(|r| r.etag).unwrap_or_default();
    }
    assert!(stored.is_empty(), "nobody wrote {:?}", stored.keys());
}

/// Finds nothing wrong, and says how many objects there are.
async fn is_clean(db: &str, objects: &str, round: usize) -> u64 {
    let mut found = Vec::new();
    let object_backend = ObjectBackend::open(&Settings {
        url: objects.to_owned(),
        above: 0,
        log_above: 0,
        keep: Some(Duration::ZERO),
        options: BTreeMap::new(),
    });
    let snapshot = Snapshot::open_with(db, Some(&object_backend.unwrap())).await;
    let mut snapshot = snapshot.unwrap();
    let mut take = |event| {
        if let Event::Found(finding) = event {
            found.push(finding);
        }
    };
    let seen = fsck(&mut snapshot, Depth::Full, &mut take).await.unwrap();
    // Whatever a writer left behind, the database knows of it.
    let late = orphans(&mut snapshot, Timestamp::MAX, Orphans::Find, &mut take).await;
    assert_eq!(late.unwrap(), (0, 0), "round {round}");
    snapshot.close().await;
    assert!(found.is_empty(), "round {round}: {found:?}");
    seen.objects
}

/// Kills in every round, and looks at what is left.
async fn kills(db: &str, kill: impl Fn(&mut Server), is_server: bool) {
    let port = free_port();
    let folder = tempfile::tempdir().unwrap();
    let objects = format!("file://{}/objects", folder.path().display());
    let mut server = Server::start(db, port, &objects).await;
    for writer in 0..WRITERS {
        let result = pb::Result {
            name: format!("ci/results/w{writer}"),
            ..pb::Result::default()
        };
        let request = pb::CreateResultRequest {
            parent: "ci".to_owned(),
            result: Some(result),
        };
        server.rpc().create_result(request).await.unwrap();
    }
    let mut models: Vec<Model> = vec![Model::new(); WRITERS];
    let (mut acknowledged, mut unanswered) = (0, 0);
    for round in 0..rounds() {
        let seed = 0x5eed + round as u64 * 7919;
        acknowledged += load(&mut server, &mut models, seed, &kill).await;
        let asked = models.iter().flat_map(BTreeMap::values);
        unanswered += asked.filter(|known| known.asked.is_some()).count();
        let outside = is_clean(db, &objects, round).await;
        assert!(outside > 0, "round {round}: some lie outside");
        if is_server {
            server = Server::start(db, port, &objects).await;
        } else {
            server.answers().await;
        }
        compare(&mut models, stored(&server).await, round);
    }
    assert!(acknowledged > rounds(), "{acknowledged} writes");
    assert!(
        unanswered >= rounds(),
        "every kill left calls without an answer"
    );
    eprintln!(
        "{} kills, {acknowledged} acknowledged writes, {unanswered} without an answer",
        rounds()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_again_and_again_loses_nothing_on_sqlite() {
    let database = Database::sqlite();
    kills(&database.url(), Server::kill, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_again_and_again_loses_nothing_on_postgres() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    kills(&cluster.url(), Server::kill, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_killed_again_and_again_loses_nothing() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    // The server outlives it, and answers again without being told to.
    let kill = |_: &mut Server| {
        cluster.kill();
        cluster.restart();
    };
    kills(&cluster.url(), kill, false).await;
}
