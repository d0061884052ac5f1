//! The batched path: many records over one stream, each answered when it is durable.

use futures::{StreamExt as _, stream};
use hindsight_client::{Batched, Effect};
use hindsight_proto::v1alpha2 as pb;
use hindsight_run::{Grouping, Upload};

use crate::{
    corpus::{self, Run},
    count,
    cpu::Used,
    digest,
    measure::{self, Figures, Timed},
    server::{Database, Server},
};

/// Records of one bench; callers that wait for theirs at the same time.
pub const RECORDS: usize = 20_000;
const CALLERS: usize = 512;
/// How many streams they share.
const STREAMS: usize = 2;

/// Records after which the rate of a large store is measured.
const LARGE: usize = 300_000;

/// Upserts everything twice: first nothing is there, then everything is.
pub async fn run(server: &Server, database: &Database, figures: &mut Figures) {
    let runs = corpus::runs(RECORDS);
    for (name, effect) in [
        ("upsert_new", Effect::Created),
        ("upsert_unchanged", Effect::Unchanged),
    ] {
        let before = Used::now(server, database);
        let timed = upsert(server, &runs, 0, effect).await;
        figures.timed(server.label(), name, &timed, CALLERS);
        let used = Used::now(server, database).per_call(before, RECORDS);
        figures.cpu(server.label(), name, used);
        assert_eq!(count(server.rpc()).await, RECORDS, "every upsert is a row");
    }
    let wanted = digest(runs.iter().map(|run| run.value.as_slice()));
    assert_eq!(stored(server).await, wanted, "the bytes come back as sent");
    figures.value(
        server.label(),
        "rss_after_upserts_mib",
        server.rss_kib() / 1024,
    );
}

/// Upserts new records until there are so many, and measures the rate after the first 300,000. Making
/// records is not part of it.
pub async fn growth(server: &Server, records: usize, figures: &mut Figures) {
    assert!(records > LARGE, "more than {LARGE} records are wanted");
    let (mut took, mut large) = (0.0, (0, 0.0));
    for first in (0..records).step_by(RECORDS) {
        let runs = corpus::some(first..(first + RECORDS).min(records));
        let timed = upsert(server, &runs, first, Effect::Created).await;
        let seconds = runs.len() as f64 / timed.per_second();
        took += seconds;
        if first >= LARGE {
            large = (large.0 + runs.len(), large.1 + seconds);
        }
        let there = first + runs.len();
        if there.is_multiple_of(5 * RECORDS) {
            println!("  {there} records, {:.0}/s", (5 * RECORDS) as f64 / took);
            took = 0.0;
        }
    }
    assert_eq!(count(server.rpc()).await, records, "every upsert is a row");
    let rate = (large.0 as f64 / large.1).round() as u64;
    figures.value(server.label(), "upserts_per_second_after_300000", rate);
}

/// Upserts records, of which the first is the one with the number `first`.
async fn upsert(server: &Server, runs: &[Run], first: usize, effect: Effect) -> Timed {
    let clients: Vec<_> = (0..STREAMS).map(|_| server.client().batched()).collect();
    let mut timed = Timed::start(runs.len());
    let mut calls = stream::iter((first..).zip(runs))
        .map(|(n, run)| {
            let client = &clients[n % STREAMS];
            measure::call(store(client, n, run, effect))
        })
        .buffer_unordered(CALLERS);
    while let Some(((), took)) = calls.next().await {
        timed.add(took);
    }
    drop(calls);
    timed.finish();
    timed
}

/// Ten records share a result, which none of them speaks for.
async fn store(client: &Batched, n: usize, run: &Run, effect: Effect) {
    let name = format!("team-{}/results/g{}/records/r{n}", n / 10 % 10, n / 10);
    let upload = Upload {
        grouping: Grouping {
            record: name.parse().unwrap(),
            is_root: false,
            notes: Vec::new(),
        },
        data_type: "tekton.dev/v1.TaskRun".to_owned(),
        annotations: std::collections::BTreeMap::new(),
        summary: None,
    };
    let stored = if effect == Effect::Created {
        client.store(&upload, run.value.clone()).await
    } else {
        client.store_again(&upload, run.value.clone()).await
    };
    assert_eq!(stored.unwrap().record, effect);
}

/// The checksum of everything that is stored.
async fn stored(server: &Server) -> [u8; 32] {
    let mut rpc = server.rpc();
    let mut request = pb::ListRecordsRequest {
        parent: "-/results/-".to_owned(),
        page_size: 1000,
        ..pb::ListRecordsRequest::default()
    };
    let mut sum = [0_u8; 32];
    loop {
        let page = rpc
            .list_records(request.clone())
            .await
            .unwrap()
            .into_inner();
        let values = page
            .records
            .iter()
            .map(|r| &r.data.as_ref().unwrap().value[..]);
        for (into, byte) in sum.iter_mut().zip(digest(values)) {
            *into ^= byte;
        }
        if page.next_page_token.is_empty() {
            return sum;
        }
        request.page_token = page.next_page_token;
    }
}
