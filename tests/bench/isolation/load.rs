//! Callers: many who ask for little, and one who asks for much.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use hindsight_client::Client;
use hindsight_proto::{v1::AggregateRequest, v1alpha2 as pb};
use hindsight_run::{Grouping, Upload};
use serde_json::json;
use tokio::task::JoinSet;

/// Records that are there.
pub const RECORDS: usize = 5_000;

fn name(n: usize) -> String {
    format!("team-{}/results/r{}/records/{n}", n % 10, n / 10)
}

/// Stores TaskRuns of some 3 KB.
pub async fn fill(client: &Client) {
    let stream = client.batched();
    let mut calls = JoinSet::new();
    for n in 0..RECORDS {
        let stream = stream.clone();
        calls.spawn(async move {
            let object = json!({
                "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
                "metadata": {"name": format!("build-{n}"), "namespace": format!("team-{}", n % 10),
                    "uid": format!("00000000-0000-4000-8000-{n:012x}"),
                    "creationTimestamp": "2026-05-01T10:00:00Z"},
                "spec": {"params": [{"name": "revision", "value": format!("rev-{}", n % 10)}],
                    "script": format!("run --number {n} ").repeat(150)},
                "status": {"startTime": "2026-05-01T10:00:02Z",
                    "completionTime": "2026-05-01T10:01:02Z",
                    "conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded"}]},
            });
            let upload = Upload {
                grouping: Grouping {
                    record: name(n).parse().unwrap(),
                    is_root: false,
                    notes: Vec::new(),
                },
                data_type: "tekton.dev/v1.TaskRun".to_owned(),
                annotations: std::collections::BTreeMap::new(),
                summary: None,
            };
            let value = serde_json::to_vec(&object).unwrap();
            stream.store(&upload, value).await.unwrap();
        });
        while calls.len() >= 256 {
            calls.join_next().await.unwrap().unwrap();
        }
    }
    calls.join_all().await;
}

/// How many records the clients read in `span`, each as fast as it can, by name.
pub async fn gets(clients: &[Client], span: Duration) -> f64 {
    let mut calls = JoinSet::new();
    let began = Instant::now();
    for (caller, client) in clients.iter().enumerate() {
        let mut rpc = client.rpc();
        calls.spawn(async move {
            let mut count = 0_u32;
            while began.elapsed() < span {
                let n = (caller * 997 + count as usize * 31) % RECORDS;
                let request = pb::GetRecordRequest { name: name(n) };
                let record = rpc.get_record(request).await.unwrap().into_inner();
                assert!(record.data.is_some());
                count += 1;
            }
            count
        });
    }
    let counts = calls.join_all().await;
    f64::from(counts.iter().sum::<u32>()) / began.elapsed().as_secs_f64()
}

/// How long calls of callers took who each begin one every `pace`: a record, then a page.
pub async fn little(clients: &[Client], pace: Duration, span: Duration) -> Vec<Duration> {
    let mut calls = JoinSet::new();
    for (caller, client) in clients.iter().enumerate() {
        let mut rpc = client.rpc();
        calls.spawn(async move {
            let mut took = Vec::new();
            let mut ticks = tokio::time::interval(pace);
            let began = Instant::now();
            while began.elapsed() < span {
                ticks.tick().await;
                let n = (caller * 997 + took.len() * 31) % RECORDS;
                let asked = Instant::now();
                if took.len() % 2 == 0 {
                    let request = pb::GetRecordRequest { name: name(n) };
                    rpc.get_record(request).await.unwrap();
                } else {
                    let request = pb::ListRecordsRequest {
                        parent: format!("team-{}/results/-", n % 10),
                        ..pb::ListRecordsRequest::default()
                    };
                    let page = rpc.list_records(request).await.unwrap().into_inner();
                    assert_eq!(page.records.len(), 50);
                }
                took.push(asked.elapsed());
            }
            took
        });
    }
    calls.join_all().await.concat()
}

/// Keeps `callers` busy with scans, sums and large pages until `over`; how many were answered.
pub async fn much(client: &Client, callers: usize, over: &Arc<AtomicBool>) -> u64 {
    let mut calls = JoinSet::new();
    for caller in 0..callers {
        let (client, over) = (client.clone(), Arc::clone(over));
        calls.spawn(async move {
            let mut count = 0;
            while !over.load(Ordering::Relaxed) {
                match caller % 3 {
                    0 => {
                        let request = pb::ListRecordsRequest {
                            parent: "-/results/-".to_owned(),
                            filter: "data.spec.script.contains('nothing like it')".to_owned(),
                            ..pb::ListRecordsRequest::default()
                        };
                        client.rpc().list_records(request).await.unwrap();
                    }
                    1 => {
                        let request = AggregateRequest {
                            parent: "-/results/-".to_owned(),
                            group_by: vec!["param(revision)".to_owned()],
                            ..AggregateRequest::default()
                        };
                        client.queries().aggregate(request).await.unwrap();
                    }
                    _ => {
                        let request = pb::ListRecordsRequest {
                            parent: "-/results/-".to_owned(),
                            page_size: 2_000,
                            ..pb::ListRecordsRequest::default()
                        };
                        client.rpc().list_records(request).await.unwrap();
                    }
                }
                count += 1;
            }
            count
        });
    }
    calls.join_all().await.into_iter().sum()
}
