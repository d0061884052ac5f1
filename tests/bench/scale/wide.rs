//! Pages without payloads and sums: newest rows as tables show them, pages as large as they may be, and
//! summaries as dashboards ask for them.

use std::time::Instant;

use hindsight_client::Rpc;
use hindsight_proto::{v1, v1alpha2 as pb};
use tonic::Request;

use crate::{
    CALLS,
    cases::ALL,
    corpus::{self, Run},
    data::Database,
    figures::{Figures, Times},
    plain::Plain,
    server::Server,
};

/// What a table shows of a record.
const THIN: &str = "records.name,records.uid,records.create_time,next_page_token";
/// What dashboards ask of a summary.
const SUMS: &str = "total,succeeded,failed,cancelled,avg_duration,max_duration,last_runtime";

/// Measures each against its bound.
pub async fn measure(server: &Server, database: &Database, figures: &mut Figures) {
    let mut rpc = server.rpc().max_decoding_message_size(64 << 20);
    for (name, fields, size, bound) in [
        ("newest 50, without payloads", THIN, 50, 1.0),
        ("newest 50, with payloads", "", 50, 2.0),
        ("newest 10,000, without payloads", THIN, 10_000, 150.0),
    ] {
        let rows = usize::try_from(size).unwrap().min(database.records);
        let mut times = Times::default();
        for call in 0..=CALLS.min(2_000 / rows.min(200)) {
            let began = Instant::now();
            let reply = rpc.list_records(newest(size, fields)).await.unwrap();
            let records = reply.into_inner().records;
            assert_eq!(records.len(), rows, "{name}");
            assert!(
                records
                    .iter()
                    .all(|one| one.data.is_none() != fields.is_empty()),
                "{name}"
            );
            // The first call plans and connects.
            if call > 0 {
                times.add(began.elapsed());
            }
        }
        figures.timed(name, &times, rows, (500, bound));
    }
    rows_of_runs(server, figures).await;
    summaries(&mut rpc, database, figures).await;
}

fn newest(page_size: i32, fields: &'static str) -> Request<pb::ListRecordsRequest> {
    let mut request = Request::new(pb::ListRecordsRequest {
        parent: ALL.to_owned(),
        order_by: "create_time desc".to_owned(),
        page_size,
        ..pb::ListRecordsRequest::default()
    });
    if !fields.is_empty() {
        let fields = fields.parse().unwrap();
        request.metadata_mut().insert("fields", fields);
    }
    request
}

async fn rows_of_runs(server: &Server, figures: &mut Figures) {
    let mut runs = server.client().runs();
    let mut times = Times::default();
    for call in 0..=CALLS {
        let ask = v1::ListRunsRequest {
            parent: ALL.to_owned(),
            page_size: 50,
            ..v1::ListRunsRequest::default()
        };
        let began = Instant::now();
        let reply = runs.list_runs(ask).await.unwrap().into_inner();
        assert_eq!(reply.runs.len(), 50);
        if call > 0 {
            times.add(began.elapsed());
        }
    }
    figures.timed("newest 50, rows of runs", &times, 50, (500, 1.0));
}

/// Sums whose totals are what the database counts.
async fn summaries(rpc: &mut Rpc, database: &Database, figures: &mut Figures) {
    let run = Run::new(database.runs() / 3, database.runs());
    // As much of the corpus as has 128,000 records.
    let days = i64::try_from(90 * 128_000 / database.records.max(128_000)).unwrap();
    let since = format!("create_time >= {}", corpus::day(90 - days));
    let since_us = corpus::day_us(90 - days);
    let namespace = format!("parent = '{}'", run.parent);
    for (name, parent, filter, group, rows, bound) in [
        (
            "summary of a namespace",
            format!("{}/results/-", run.parent),
            "",
            "",
            namespace,
            100.0,
        ),
        (
            "summary of everything",
            ALL.to_owned(),
            "",
            "",
            "1 = 1".to_owned(),
            400.0,
        ),
        (
            "summary of 128,000 records, by day",
            ALL.to_owned(),
            since.as_str(),
            "day",
            format!("create_us >= {since_us}"),
            50.0,
        ),
    ] {
        let mut below = Plain::connect(&database.url).await;
        let count = format!("SELECT count(*) FROM records WHERE {rows}");
        let rows = below.number(count).await;
        below.close().await;
        let mut times = Times::default();
        let mut groups = 0;
        for _ in 0..5 {
            let ask = pb::RecordListSummaryRequest {
                parent: parent.clone(),
                summary: SUMS.to_owned(),
                filter: filter.to_owned(),
                group_by: group.to_owned(),
                order_by: String::new(),
            };
            let began = Instant::now();
            let reply = rpc.get_record_list_summary(ask).await.unwrap().into_inner();
            times.add(began.elapsed());
            groups = reply.summary.len();
            let total: f64 = reply.summary.iter().map(total).sum();
            assert!(
                (total - f64::from(i32::try_from(rows).unwrap())).abs() < 0.5,
                "{name}: {total}"
            );
        }
        figures.timed(
            &format!("{name} ({rows} records)"),
            &times,
            groups,
            (500, bound),
        );
    }
}

fn total(group: &prost_types::Struct) -> f64 {
    match group.fields["total"].kind {
        Some(prost_types::value::Kind::NumberValue(number)) => number,
        ref other => panic!("total: {other:?}"),
    }
}
