//! Text that statements, patterns or paths would take for something else, at every place where a
//! filter or an order can have text.

use std::{collections::BTreeMap, num::NonZeroU32};

use serde_json::json;

use super::rows::{Ask, Opened, Rows};
use hindsight_filter::model::{Etag, Payload, Record, Resource, RunResult, Summary};
use hindsight_filter::{Filter, parse_order, samples::quoted};
use hindsight_storage::testing::{Database, PostgresDatabase, SqliteFile, postgres_server};

const TEXTS: [&str; 34] = [
    "",
    "'",
    "''",
    "\"",
    "\"\"",
    "`",
    "\\",
    "\\'",
    "\\\\",
    "%",
    "_",
    "\\%",
    "*",
    "?",
    "$1",
    "$$",
    ":a",
    "@a",
    "#",
    "--",
    "/*",
    "*/",
    ";",
    "(",
    ")",
    "[0]",
    "$.a",
    "{}",
    "a,b",
    "=",
    "\0",
    "\u{1}\u{2}",
    "' OR '1'='1",
    "'); DROP TABLE records; --",
];

/// Where a filter of records can have text; `~` stands for it.
const RECORD_FILTERS: [&str; 24] = [
    "parent == ~",
    "uid == ~",
    "uid != ~",
    "uid < ~",
    "uid >= ~",
    "uid in [~]",
    "uid in [~, 'other']",
    "!(uid in [~])",
    "name == ~",
    "name in [~, 'x0']",
    "name.startsWith(~)",
    "result_name == ~",
    "data_type == ~",
    "data_type.contains(~)",
    "data_type.endsWith(~)",
    "data.metadata.name == ~",
    "data.metadata.name.startsWith(~)",
    "data.metadata.name.endsWith(~)",
    "data.metadata.name.contains(~)",
    "data.metadata.labels[~] == ~",
    "data.metadata.labels[~] in [~]",
    "has(data.metadata.labels[~])",
    "!has(data.metadata.labels[~])",
    "data.spec.x == ~ || data.spec[~] == 1",
];

/// The same of results.
const RESULT_FILTERS: [&str; 10] = [
    "parent == ~",
    "uid.contains(~)",
    "annotations[~] == ~",
    "annotations[~] != ~",
    "annotations[~].startsWith(~)",
    "has(annotations[~])",
    "~ in annotations",
    "~ in summary.annotations",
    "summary.annotations[~] in [~, 'x']",
    "summary.type == ~",
];

fn rows() -> Rows {
    let mut results = Vec::new();
    let mut records = Vec::new();
    for (number, text) in TEXTS.iter().enumerate() {
        let time = jiff::Timestamp::UNIX_EPOCH;
        let map = BTreeMap::from([((*text).to_owned(), (*text).to_owned())]);
        let record = Record {
            name: format!("p/results/r{number}/records/x{number}")
                .parse()
                .unwrap(),
            uid: (*text).to_owned(),
            etag: Etag::from_text("e"),
            create_time: time,
            update_time: time,
            data: Some(Payload::new(
                (*text).to_owned(),
                json!({
                    "metadata": {"name": text, "labels": map},
                    "spec": {"x": text, *text: 1},
                })
                .to_string()
                .into_bytes()
                .into(),
            )),
        };
        results.push(RunResult {
            name: record.name.result().clone(),
            uid: (*text).to_owned(),
            etag: Etag::from_text("e"),
            create_time: time,
            update_time: time,
            annotations: map.clone(),
            summary: Some(Summary {
                record: record.name.clone(),
                data_type: (*text).to_owned(),
                start_time: None,
                end_time: None,
                status: 1,
                annotations: map,
            }),
        });
        records.push(record);
    }
    Rows::new(results, records)
}

async fn agrees(rows: &Rows, database: &Opened) {
    rows.fill(&*database.store).await;
    let of_records = RECORD_FILTERS.iter().map(|form| (Resource::Records, form));
    let of_results = RESULT_FILTERS.iter().map(|form| (Resource::Results, form));
    for (resource, form) in of_records.chain(of_results) {
        for text in TEXTS {
            let written = form.replace('~', &quoted(text));
            let filter = Filter::compile(&written, resource).unwrap_or_else(|e| panic!("{e}"));
            let column = match resource {
                Resource::Records => "data.metadata.labels",
                Resource::Results => "annotations",
            };
            let order = format!("{column}[{}] desc", quoted(text));
            let ask = Ask {
                resource,
                scope: "-/results/-",
                filter: &filter,
                order: parse_order(&order, resource).unwrap_or_else(|e| panic!("{e}")),
                size: NonZeroU32::new(100).unwrap(),
                page_bytes: 1 << 20,
            };
            let got = database.names(&ask).await.unwrap();
            assert_eq!(got, rows.names(&ask), "{}: {written}", database.name);
        }
    }
}

#[tokio::test]
async fn no_text_of_a_filter_is_taken_for_anything_else() {
    let rows = rows();
    let file = SqliteFile::fresh().await;
    let database = Opened::at("SQLite", &file.url()).await;
    agrees(&rows, &database).await;
    database.close().await;
    file.remove().await;
    if let Some(server) = postgres_server() {
        let made = PostgresDatabase::fresh(&server).await;
        let database = Opened::at("PostgreSQL", &made.url()).await;
        agrees(&rows, &database).await;
        database.close().await;
        made.remove().await;
    }
}
