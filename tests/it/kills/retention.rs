//! A pass of retention is killed again and again: a result goes whole, once, and not without its line in the
//! audit log.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::{Child, Stdio},
    time::Duration,
};

use hindsight_proto::v1alpha2 as pb;
use serde_json::{Value, json};

use super::{Server, is_clean, load::Dice, rounds, stored};
use crate::support::{
    Database,
    cluster::{Cluster, free_port},
    process::hindsight,
};

/// Results that a round may delete at most, and records of each.
const OF_ROUND: usize = 12;
const RECORDS: usize = 3;
const POLICIES: &str =
    "run_at = '0 3 * * * UTC'\nbatch = 1\npause = '1ms'\n[default]\nkeep_for = '30d'\n";

/// A run that ended in 2020; every other one does not compress, so that it lies outside.
fn object(name: &str, number: usize) -> Vec<u8> {
    let mut dice = Dice(number as u64);
    let noise: String = (0..number % 2 * 500)
        .map(|_| format!("{:08x}", dice.below(1 << 31)))
        .collect();
    let object = json!({"kind": "TaskRun", "metadata": {"name": name, "namespace": "ci"},
        "spec": {"script": noise}, "status": {"completionTime": "2020-01-01T00:00:00Z",
        "conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded"}]}});
    serde_json::to_vec(&object).unwrap()
}

pub(super) async fn given(server: &Server, results: usize) {
    for result in 0..results {
        let name = format!("ci/results/r{result}");
        let request = pb::CreateResultRequest {
            parent: "ci".to_owned(),
            result: Some(pb::Result {
                name: name.clone(),
                ..pb::Result::default()
            }),
        };
        server.rpc().create_result(request).await.unwrap();
        for record in 0..RECORDS {
            let number = result * RECORDS + record;
            let data = pb::Any {
                r#type: "tekton.dev/v1.TaskRun".to_owned(),
                value: object(&format!("t{number}"), number).into(),
            };
            let request = pb::CreateRecordRequest {
                parent: name.clone(),
                record: Some(pb::Record {
                    name: format!("{name}/records/t{number}"),
                    data: Some(data),
                    ..pb::Record::default()
                }),
            };
            server.rpc().create_record(request).await.unwrap();
        }
    }
}

/// A pass as a process of its own.
fn pass(db: &str, objects: &str, folder: &Path) -> Child {
    let mut command = hindsight();
    command
        .args(["retention", "run", "--yes", "-o", "jsonl", "--db", db])
        .args(["--objects-url", objects])
        .arg("--retention-file")
        .arg(folder.join("retention.toml"))
        .arg("--audit-log")
        .arg(folder.join("audit.jsonl"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// The results of which the audit log has lines with this outcome, and how many. The last line may have been cut.
fn told(folder: &Path, outcome: &str) -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(folder.join("audit.jsonl")).unwrap_or_default();
    let mut told = BTreeMap::new();
    for line in text.lines() {
        if let Ok(line) = serde_json::from_str::<Value>(line)
            && line["outcome"] == outcome
        {
            *told
                .entry(line["name"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
    }
    told
}

/// The results that are there, each of which has all of its records.
async fn whole(server: &Server, round: usize) -> BTreeSet<String> {
    let mut records: BTreeMap<String, usize> = BTreeMap::new();
    for name in stored(server).await.keys() {
        let (result, _) = name.split_once("/records/").unwrap();
        *records.entry(result.to_owned()).or_default() += 1;
    }
    for (name, count) in &records {
        assert_eq!(*count, RECORDS, "round {round}: {name} is there in part");
    }
    records.into_keys().collect()
}

async fn kills(db: &str) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("retention.toml"), POLICIES).unwrap();
    let objects = format!("file://{}/objects", folder.display());
    let server = Server::start(db, free_port(), &objects).await;
    given(&server, rounds() * OF_ROUND).await;
    let all = whole(&server, 0).await;
    assert_eq!(all.len(), rounds() * OF_ROUND);
    let mut dice = Dice(0x5eed);
    let (mut left, mut midway) = (all.clone(), 0);
    for round in 0..rounds() {
        let before = told(folder, "OK").values().sum::<usize>();
        let mut passing = pass(db, &objects, folder);
        let wanted = 1 + usize::try_from(dice.below(OF_ROUND as u64 - 2)).unwrap();
        while told(folder, "OK").values().sum::<usize>() < before + wanted {
            assert_eq!(
                passing.try_wait().unwrap(),
                None,
                "round {round}: it was to be killed"
            );
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        // Somewhere within a commit.
        tokio::time::sleep(Duration::from_micros(dice.below(3_000))).await;
        passing.kill().unwrap();
        passing.wait().unwrap();
        let outside = is_clean(db, &objects, round).await;
        assert!(outside > 0, "round {round}: some lie outside");
        let now = whole(&server, round).await;
        assert!(now.is_subset(&left), "round {round}: what went came back");
        midway += usize::from(now.len() < left.len());
        let (begun, done) = (told(folder, "PENDING"), told(folder, "OK"));
        for gone in all.difference(&now) {
            assert!(
                begun.contains_key(gone),
                "round {round}: {gone} went without a line"
            );
        }
        for name in done.keys() {
            assert!(!now.contains(name), "round {round}: {name} did not go");
        }
        left = now;
    }
    assert!(
        midway > 0 && !left.is_empty(),
        "{midway} passes were killed midway"
    );

    let end = pass(db, &objects, folder).wait_with_output().unwrap();
    assert!(end.status.success(), "{end:?}");
    assert_eq!(whole(&server, rounds()).await, BTreeSet::new());
    let (begun, done) = (told(folder, "PENDING"), told(folder, "OK"));
    assert_eq!(
        begun.keys().collect::<Vec<_>>(),
        all.iter().collect::<Vec<_>>()
    );
    assert!(done.values().all(|lines| *lines == 1), "{done:?}");
    // What a kill cut off after it was done and before it was told.
    assert!(done.len() + rounds() >= all.len(), "{done:?}");
    eprintln!("{} passes killed, {midway} of them after deletes", rounds());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pass_killed_again_and_again_deletes_whole_results_once_on_sqlite() {
    let database = Database::sqlite();
    kills(&database.url()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pass_killed_again_and_again_deletes_whole_results_once_on_postgres() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    kills(&cluster.url()).await;
}
