//! Lists of many rows, more than any database calls near, by what is indexed: whichever way leads
//! to them, they are the same rows in the same order.

use std::num::NonZeroU32;

use serde_json::json;

use super::rows::{Ask, Opened, Rows};
use hindsight_filter::model::{Etag, Payload, Record, Resource, RunResult};
use hindsight_filter::{Filter, indexed::Kind, parse_order};
use hindsight_storage::testing::{Database, PostgresDatabase, SqliteFile, postgres_server};

const ROWS: i64 = 11_000;

fn time(us: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_microsecond(1_767_225_600_000_000 + us).unwrap()
}

/// Row `at`, of which two were made at each moment.
fn row(at: i64) -> Record {
    let env = match at % 500 {
        3 => "rare",
        4 => "rarer",
        _ => "common",
    };
    let labels = json!({"tier": if at % 700 == 3 { "gold" } else { "tin" }});
    let object = json!({
        "metadata": {"name": format!("run-{at}"), "labels": labels},
        "spec": {
            "params": [{"name": "env", "value": env}, {"name": "env", "value": format!("v{}", at % 9)}],
            "n": at,
        },
    });
    Record {
        name: format!("p{}/results/r/records/{at}", at % 3)
            .parse()
            .unwrap(),
        uid: at.to_string(),
        etag: Etag::from_text("e"),
        create_time: time(at / 2 * 1_000),
        update_time: time(at * 7_919 % ROWS * 1_000),
        data: Some(Payload::new(
            "tekton.dev/v1.TaskRun".to_owned(),
            object.to_string().into_bytes().into(),
        )),
    }
}

fn results() -> Vec<RunResult> {
    let one = |at: i64| RunResult {
        name: format!("p{at}/results/r").parse().unwrap(),
        uid: at.to_string(),
        etag: Etag::from_text("e"),
        create_time: time(0),
        update_time: time(0),
        annotations: [].into(),
        summary: None,
    };
    (0..3).map(one).collect()
}

const FILTERS: [&str; 12] = [
    "data.spec.params.exists(p, p.name == 'env' && p.value == 'rare')",
    "data.spec.params.exists(p, p.name == 'env' && p.value == 'common') && data.spec.n < 200",
    "data.spec.params.exists(p, p.name == 'env' && p.value in ['rare', 'rarer', 'v1'])",
    "data.spec.params.exists(p, p.name == 'env' && p.value in ['rare', 'rarer'])",
    "data.spec.params.exists(p, p.name == 'env' && p.value.startsWith('rare'))",
    "data.spec.params.exists(p, p.name == 'env' && p.value >= 'v8')",
    "data.spec.n >= 30 && data.spec.n < 40",
    "data.spec.n > 5000 && data.metadata.labels['tier'] == 'gold'",
    "data.spec.params.exists(p, p.name == 'env' && p.value == 'rare') \
     && data.metadata.labels['tier'] == 'gold'",
    "data.spec.params.exists(p, p.name == 'env' && p.value == 'v3') \
     && create_time < timestamp('2026-01-01T00:00:01Z')",
    "data.spec.params.exists(p, p.name == 'env' && p.value == 'nobody')",
    "data.spec.n == 77 || data.spec.n == 10999",
];
const ORDERS: [&str; 3] = ["create_time desc", "create_time asc", "update_time desc"];

#[tokio::test]
async fn many_rows_are_found_by_what_is_indexed() {
    let file = SqliteFile::fresh().await;
    let mut urls = vec![("SQLite", file.url())];
    let made = match postgres_server() {
        Some(server) => Some(PostgresDatabase::fresh(&server).await),
        None => None,
    };
    urls.extend(made.iter().map(|made| ("PostgreSQL", made.url())));
    let rows = Rows::new(results(), (0..ROWS).map(row).collect());
    let indexed = [
        ("data.spec.params[name==\"env\"].value", Kind::Text),
        ("data.spec.n", Kind::Number),
    ];
    for (name, url) in urls {
        let database = Opened::at(name, &url).await;
        rows.fill(&*database.store).await;
        database
            .create_indexes_in(&indexed, NonZeroU32::new(900).unwrap())
            .await;
        for scope in ["-/results/-", "p1/results/-"] {
            for text in FILTERS {
                let filter = Filter::compile(text, Resource::Records).unwrap();
                let told = filter.explain(&|test| database.store.ability(test));
                assert!(told.contains("(indexed)"), "{text}: {told}");
                for order in ORDERS {
                    let ask = Ask {
                        resource: Resource::Records,
                        scope,
                        filter: &filter,
                        order: parse_order(order, Resource::Records).unwrap(),
                        size: NonZeroU32::new(40).unwrap(),
                        page_bytes: 1 << 20,
                    };
                    let got = database.names(&ask).await.unwrap();
                    assert_eq!(got, rows.names(&ask), "{name} {scope} {text} {order}");
                }
            }
        }
        database.close().await;
    }
    file.remove().await;
    if let Some(made) = made {
        made.remove().await;
    }
}
