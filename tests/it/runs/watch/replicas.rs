//! A follower that goes on at another server while many write, and one that does not read.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use hindsight_filter::model::{Etag, Payload, Record, RunResult};
use hindsight_proto::v1::{RunEvent, RunRow};
use hindsight_storage::{
    Batch, Change, Store,
    resolve::{Options, open},
};
use jiff::Timestamp;
use serde_json::json;

use super::{ask, cursor, message, next, watch};
use crate::support::{Database, TestServer, database::variable, each_database, objects::TASK_RUN};

/// How many changes are made, unless this variable says another number.
const CHANGES: usize = 5_000;
const VARIABLE: &str = "HINDSIGHT_FEED_CHANGES";
const WRITERS: usize = 4;
/// The most changes of one transaction.
const TOGETHER: usize = 40;

fn at(us: usize) -> Timestamp {
    Timestamp::from_microsecond(1_767_225_600_000_000 + i64::try_from(us).unwrap()).unwrap()
}

fn run(writer: usize, number: usize, us: usize) -> Record {
    let name = format!("run-{writer}-{number}");
    let object = json!({"apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": name, "namespace": "ci", "uid": name}, "spec": {"at": us}});
    Record {
        name: format!("ci/results/r/records/{name}").parse().unwrap(),
        etag: Etag::new(&name, at(us)),
        create_time: at(number),
        update_time: at(us),
        data: Some(Payload::new(
            TASK_RUN.to_owned(),
            serde_json::to_vec(&object).unwrap().into(),
        )),
        uid: name,
    }
}

/// Inserts and replaces records in transactions of random sizes; says how each is in the end.
async fn write(
    store: Arc<dyn Store>,
    writer: usize,
    changes: usize,
) -> BTreeMap<String, Timestamp> {
    let mut own: Vec<usize> = Vec::new();
    let mut done = 0;
    while done < changes {
        let many = fastrand(writer, done) % TOGETHER + 1;
        let mut batch = Batch::default();
        let mut used = HashSet::new();
        for _ in 0..many {
            let us = 1_000_000 + done;
            done += 1;
            let which = fastrand(writer + 7, done) % (own.len() + own.len() / 2 + 1);
            match own.get(which).copied() {
                Some(was) if used.insert(which) => {
                    batch.changes.push(Change::ReplaceRecord {
                        expect: Etag::new(&format!("run-{writer}-{which}"), at(was)),
                        value: run(writer, which, us),
                    });
                    own[which] = us;
                }
                _ => {
                    used.insert(own.len());
                    batch
                        .changes
                        .push(Change::InsertRecord(run(writer, own.len(), us)));
                    own.push(us);
                }
            }
        }
        store.commit(&batch).await.unwrap();
    }
    let named = own.iter().enumerate();
    named
        .map(|(number, us)| (run(writer, number, 0).name.to_string(), at(*us)))
        .collect()
}

/// A number that looks random and is the same in every run.
fn fastrand(seed: usize, step: usize) -> usize {
    let mut z = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ step as u64;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    usize::try_from((z ^ (z >> 31)) >> 8).unwrap()
}

/// What a follower was told.
#[derive(Default)]
struct Told {
    states: HashSet<(String, Timestamp)>,
    last: BTreeMap<String, Timestamp>,
}

impl Told {
    fn take(&mut self, event: RunEvent) {
        let Some(RunRow {
            record,
            update_time: Some(time),
            ..
        }) = event.run
        else {
            return;
        };
        let time = Timestamp::new(time.seconds, time.nanos).unwrap();
        let state = (record.clone(), time);
        assert!(self.states.insert(state), "{record} of {time} comes twice");
        let before = self.last.insert(record.clone(), time);
        assert!(before < Some(time), "{record} goes back");
    }
}

async fn given_result(database: &Database) -> Vec<hindsight_storage::resolve::Opened> {
    let mut stores = Vec::new();
    for _ in 0..WRITERS {
        stores.push(open(&database.url(), &Options::default()).await.unwrap());
    }
    let result = RunResult {
        name: "ci/results/r".parse().unwrap(),
        etag: Etag::new("r", at(0)),
        uid: "r".to_owned(),
        create_time: at(0),
        update_time: at(0),
        annotations: BTreeMap::new(),
        summary: None,
    };
    let given = Change::InsertResult(result).into();
    stores[0].store.commit(&given).await.unwrap();
    stores
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_missed_or_told_twice_over_reconnects_to_other_servers() {
    let changes = variable(VARIABLE).map_or(CHANGES, |many| many.parse().unwrap());
    for database in each_database().await {
        // Long enough for one that does not read.
        let more = [("client_timeout", "30m")];
        let servers = [
            TestServer::start_with(&database, &more).await,
            TestServer::start_with(&database, &more).await,
        ];
        let clients = servers.each_ref().map(TestServer::client);
        let mut place = cursor(&servers[0]).await;
        let start = place.clone();
        let mut slow = watch(&clients[0], ask("-/results/-", &start))
            .await
            .unwrap();
        let stores = given_result(&database).await;
        let mut writers = tokio::task::JoinSet::new();
        for (writer, opened) in stores.iter().enumerate() {
            let store = Arc::clone(&opened.store);
            writers.spawn(write(store, writer, changes / WRITERS));
        }
        let (mut told, mut written) = (Told::default(), BTreeMap::new());
        let mut connections = 0;
        while !writers.is_empty() || told.last != written {
            let client = &clients[connections % 2];
            connections += 1;
            let mut stream = watch(client, ask("-/results/-", &place)).await.unwrap();
            for _ in 0..fastrand(connections, 3) % 600 + 1 {
                while let Some(own) = writers.try_join_next() {
                    written.extend(own.unwrap());
                }
                if writers.is_empty() && told.last == written {
                    break;
                }
                let event = next(&mut stream).await;
                place.clone_from(&event.cursor);
                told.take(event);
            }
        }
        assert!(connections > 2, "it was connected again");
        // One that did not read meanwhile, and one that was away all the time.
        let mut away = watch(&clients[1], ask("-/results/-", &start))
            .await
            .unwrap();
        for stream in [&mut slow, &mut away] {
            let mut told = Told::default();
            while told.last != written {
                told.take(message(stream).await.unwrap().expect("the stream goes on"));
            }
        }
        drop((slow, away));
        for opened in stores {
            opened.maintenance.close().await;
        }
        for server in servers {
            server.stop().await;
        }
        database.remove().await;
    }
}
