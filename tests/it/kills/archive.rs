//! A pass that moves records to files is killed again and again: every record is in a list once, as it was stored.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Stdio},
    time::Duration,
};

use hindsight_proto::v1alpha2 as pb;

use super::{Server, is_clean, load::Dice, retention::given, rounds};
use crate::support::{
    Database,
    cluster::{Cluster, free_port},
    process::hindsight,
};

/// Results that a round may move at most.
const OF_ROUND: usize = 8;
const POLICIES: &str = "run_at = '0 3 * * * UTC'\nbatch = 1\npause = '2ms'\n[default]\n\
    keep_for = 'forever'\narchive_after = '30d'\n";

fn command(what: &[&str], db: &str, objects: &str, folder: &Path) -> Child {
    let mut command = hindsight();
    command
        .args(what)
        .args(["--db", db, "--objects-url", objects])
        .arg("--archive-url")
        .arg(format!("file://{}/archive", folder.display()));
    if what[0] == "retention" {
        command
            .arg("--retention-file")
            .arg(folder.join("retention.toml"));
    }
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn pass(db: &str, objects: &str, folder: &Path) -> Child {
    let what = ["retention", "run", "--yes", "-o", "jsonl"];
    command(&what, db, objects, folder)
}

/// How often lists of pages give each record, and its payload.
async fn listed(server: &Server) -> BTreeMap<String, (usize, Vec<u8>)> {
    let (mut all, mut token) = (BTreeMap::<String, (usize, Vec<u8>)>::new(), String::new());
    loop {
        let request = pb::ListRecordsRequest {
            parent: "-/results/-".to_owned(),
            page_size: 50,
            page_token: token,
            ..pb::ListRecordsRequest::default()
        };
        let reply = server.rpc().list_records(request).await.unwrap();
        let reply = reply.into_inner();
        for record in reply.records {
            let row = all.entry(record.name).or_default();
            row.0 += 1;
            row.1 = record.data.unwrap().value.to_vec();
        }
        token = reply.next_page_token;
        if token.is_empty() {
            return all;
        }
    }
}

async fn kills(db: &str) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("retention.toml"), POLICIES).unwrap();
    let objects = format!("file://{}/objects", folder.display());
    let server = Server::start(db, free_port(), &objects).await;
    given(&server, rounds() * OF_ROUND).await;
    let all = listed(&server).await;
    assert!(all.values().all(|row| row.0 == 1));
    let mut dice = Dice(0xa5c1);
    let (mut cut, mut moved) = (0, 0);
    for round in 0..rounds() {
        let mut passing = pass(db, &objects, folder);
        let mut lines = BufReader::new(passing.stdout.take().unwrap()).lines();
        if round % 2 == 0 {
            // While a file is written, or before.
            tokio::time::sleep(Duration::from_micros(dice.below(250_000))).await;
        } else {
            let wanted = 1 + usize::try_from(dice.below(OF_ROUND as u64 - 2)).unwrap();
            let read = tokio::task::spawn_blocking(move || lines.by_ref().take(wanted).count());
            moved += read.await.unwrap();
            tokio::time::sleep(Duration::from_micros(dice.below(5_000))).await;
        }
        cut += usize::from(passing.try_wait().unwrap().is_none());
        passing.kill().unwrap();
        passing.wait().unwrap();
        is_clean(db, &objects, round).await;
        let now = listed(&server).await;
        assert!(now == all, "round {round}: lists changed");
    }
    assert!(cut > rounds() / 2 && moved > 0, "{cut} cut, {moved} moved");
    let end = pass(db, &objects, folder).wait_with_output().unwrap();
    assert!(end.status.success(), "{end:?}");
    assert!(listed(&server).await == all);
    let verified = command(&["archive", "verify"], db, &objects, folder);
    let verified = verified.wait_with_output().unwrap();
    // Files that were cut off while they were written are not there, and no result names them.
    let said = String::from_utf8_lossy(&verified.stdout).into_owned();
    let results = format!("{} results of the database: 0 damaged", rounds() * OF_ROUND);
    assert!(said.contains(&results), "{verified:?}");
    eprintln!("{} passes killed, {cut} of them midway", rounds());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_killed_again_and_again_loses_and_doubles_no_record_on_sqlite() {
    let database = Database::sqlite();
    kills(&database.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_killed_again_and_again_loses_and_doubles_no_record_on_postgres() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    kills(&cluster.url()).await;
}
