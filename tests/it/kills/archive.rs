//! A pass that moves records to files is killed again and again: every record is in a list once, as it was stored.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::Duration,
};

use bytes::Bytes;
use hindsight_archive::Reader;
use hindsight_proto::v1alpha2 as pb;

use super::{Server, is_clean, load::Dice, retention::given, rounds};
use crate::support::{
    Database,
    cluster::{Cluster, free_port},
    process::hindsight,
};

/// Results that a round may move at most.
const OF_ROUND: usize = 8;
/// Rounds on one database: each looks at all that is there.
const OF_DATABASE: usize = 20;
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

/// How many rounds each database has, one after the other, about as many each.
fn databases() -> impl Iterator<Item = usize> {
    let databases = rounds().div_ceil(OF_DATABASE);
    (0..databases).map(move |at| (rounds() + at) / databases)
}

async fn kills(db: &str, rounds: usize, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("retention.toml"), POLICIES).unwrap();
    let objects = format!("file://{}/objects", folder.display());
    let server = Server::start(db, free_port(), &objects).await;
    given(&server, rounds * OF_ROUND).await;
    let all = listed(&server).await;
    assert!(all.values().all(|row| row.0 == 1));
    let mut dice = Dice(0xa5c1 + seed);
    let (mut cut, mut moved) = (0, 0);
    for round in 0..rounds {
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
        let outside = is_clean(db, &objects, round).await;
        assert!(outside > 0, "round {round}: some lie outside");
        let now = listed(&server).await;
        assert!(now == all, "round {round}: lists changed");
    }
    assert!(cut > rounds / 2 && moved > 0, "{cut} cut, {moved} moved");
    let end = pass(db, &objects, folder).wait_with_output().unwrap();
    assert!(end.status.success(), "{end:?}");
    assert!(listed(&server).await == all);
    let verified = command(&["archive", "verify"], db, &objects, folder);
    let verified = verified.wait_with_output().unwrap();
    // Files that were cut off while they were written are not there, and no result names them.
    let said = String::from_utf8_lossy(&verified.stdout).into_owned();
    let results = format!("{} results of the database: 0 damaged", rounds * OF_ROUND);
    assert!(said.contains(&results), "{verified:?}");
    eprintln!("{rounds} passes killed, {cut} of them midway");
    rewrites(db, &objects, folder, &server, all, (rounds, seed)).await;
}

/// Restores, compactions and purges are killed. What is purged is gone whole or there whole, and is gone once the
/// command was given again.
async fn rewrites(
    db: &str,
    objects: &str,
    folder: &Path,
    server: &Server,
    mut all: BTreeMap<String, (usize, Vec<u8>)>,
    (rounds, seed): (usize, u64),
) {
    let mut dice = Dice(0x0dd5 + seed);
    let mut spans = [400_000_u64, 400_000, 20_000];
    let mut purges = 0;
    for round in 0..rounds {
        let names: Vec<String> = results_of(&all).into_iter().collect();
        let any = |dice: &mut Dice| {
            let at = dice.below(names.len() as u64);
            names[usize::try_from(at).unwrap()].clone()
        };
        let one = any(&mut dice);
        let commands: [&[&str]; 2] = [
            &["archive", "restore", &one],
            &["retention", "run", "--yes"],
        ];
        for (what, span) in commands.into_iter().zip(&mut spans) {
            // Of a restore and a pass, each is cut off once in a round, at whatever it was doing.
            while !cut_off(command(what, db, objects, folder), &mut dice, span).await {}
            is_clean(db, objects, round).await;
            assert!(listed(server).await == all, "round {round}: after {what:?}");
        }
        if round % 3 != 0 {
            continue;
        }
        let name = any(&mut dice);
        let purge = ["purge", "--yes", "--result", &name];
        let is_cut = cut_off(
            command(&purge, db, objects, folder),
            &mut dice,
            &mut spans[2],
        )
        .await;
        purges += usize::from(is_cut);
        let now = listed(server).await;
        let before = all.clone();
        all.retain(|record, _| !record.starts_with(&format!("{name}/")));
        assert!(
            now == all || is_cut && now == before,
            "round {round}: {name} is in part"
        );
        let again = command(&purge, db, objects, folder)
            .wait_with_output()
            .unwrap();
        // Nothing is left of one that ended.
        assert!(matches!(again.status.code(), Some(0 | 3)), "{again:?}");
        assert!(
            listed(server).await == all,
            "round {round}: after the purge"
        );
        for file in files_below(&folder.join("archive")) {
            let reader = Reader::open(Bytes::from(std::fs::read(&file).unwrap())).unwrap();
            let rows = (0..reader.groups()).flat_map(|group| reader.group(group).unwrap());
            let mut results = rows.map(|row| row.record.name.result().to_string());
            assert!(results.all(|result| result != name), "{file:?} has {name}");
        }
    }
    let verified = command(&["archive", "verify"], db, objects, folder);
    let verified = verified.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(said.contains(": 0 damaged"), "{verified:?}");
    eprintln!("killed midway: {rounds} restores, {rounds} passes, {purges} purges");
}

/// Kills a command within a time, in microseconds, and says whether that cut it off. The time follows how long such
/// commands take.
async fn cut_off(mut child: Child, dice: &mut Dice, span: &mut u64) -> bool {
    tokio::time::sleep(Duration::from_micros(dice.below(*span))).await;
    let cut = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    *span = if cut {
        *span * 5 / 4
    } else {
        (*span / 2).max(1_000)
    };
    cut
}

fn results_of(all: &BTreeMap<String, (usize, Vec<u8>)>) -> BTreeSet<String> {
    let result = |record: &String| record.split("/records/").next().unwrap().to_owned();
    all.keys().map(result).collect()
}

fn files_below(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let below = entries.flat_map(|path| match path.is_dir() {
        true => files_below(&path),
        false => vec![path],
    });
    below.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_killed_again_and_again_loses_and_doubles_no_record_on_sqlite() {
    for (seed, rounds) in (0..).zip(databases()) {
        let database = Database::sqlite();
        kills(&database.url(), rounds, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_killed_again_and_again_loses_and_doubles_no_record_on_postgres() {
    for (seed, rounds) in (0..).zip(databases()) {
        let Some(cluster) = Cluster::start() else {
            return;
        };
        kills(&cluster.url(), rounds, seed).await;
    }
}
