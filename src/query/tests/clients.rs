//! What clients of Tekton Results ask, on every database: the run that is meant and no other.

use std::num::NonZeroU32;

use serde_json::{Value, json};

use super::rows::{Ask, Opened, Rows};
use hindsight_filter::model::{Record, Resource, RunResult};
use hindsight_filter::{
    Filter, Order,
    samples::{
        clients,
        known::{record, result, task_run},
    },
};
use hindsight_storage::testing::{Database, PostgresDatabase, SqliteFile, postgres_server};

const RUN: &str = "ci/results/r-1/records/u-1";
const RESULT: &str = "ci/results/r-1";

/// The run that is known, and others that differ from it in one thing each.
fn records() -> Vec<Record> {
    let change = |pointer: &str, value: Value| {
        let mut run = task_run();
        *run.pointer_mut(pointer).unwrap() = value;
        run
    };
    let others = [
        change("/kind", json!("PipelineRun")),
        change("/metadata/name", json!("evening-test")),
        change("/metadata/namespace", json!("qa")),
        change("/metadata/uid", json!("u-9")),
        change("/metadata/labels", json!({})),
        change(
            "/metadata/labels",
            json!({"app": "other", "tier": 5, "x1": "a"}),
        ),
        change("/metadata/annotations", json!({"foo": "note"})),
        change("/metadata/creationTimestamp", json!("2020-03-01T09:00:00Z")),
        change("/spec", json!({})),
        change("/status", json!({})),
        change("/status/startTime", json!("2020-03-01T09:09:01Z")),
        change("/status/completionTime", json!("2020-01-02T09:00:02Z")),
        change("/status/conditions", json!([])),
        change("/status/conditions/0/status", json!("True")),
        json!("no run at all"),
    ];
    let run = task_run().to_string();
    let task = "tekton.dev/v1.TaskRun";
    let mut records = vec![record(RUN, task, run.as_bytes())];
    for (number, other) in others.iter().enumerate() {
        let name = format!("ci/results/r-1/records/v-{number}");
        records.push(record(&name, task, other.to_string().as_bytes()));
    }
    for (name, data_type) in [
        ("qa/results/r-2/records/u-1", task),
        ("ci/results/r-1/records/p", "tekton.dev/v1.PipelineRun"),
        (
            "ci/results/r-1/records/l",
            "results.tekton.dev/v1alpha3.Log",
        ),
    ] {
        records.push(record(name, data_type, run.as_bytes()));
    }
    records
}

fn results() -> Vec<RunResult> {
    let mut bare = result();
    bare.name = "qa/results/r-2".parse().unwrap();
    bare.uid = "other".to_owned();
    bare.annotations.clear();
    bare.summary = None;
    vec![result(), bare]
}

async fn answers(database: &Opened, rows: &Rows, resource: Resource, text: &str) -> Vec<String> {
    let filter = Filter::compile(text, resource).unwrap_or_else(|error| panic!("{error}"));
    let ask = Ask {
        resource,
        scope: "-/results/-",
        filter: &filter,
        order: Order::newest_first(),
        size: NonZeroU32::new(5).unwrap(),
        page_bytes: 1 << 20,
    };
    let got = database.names(&ask).await.unwrap();
    assert_eq!(got, rows.names(&ask), "{}: {text}", database.name);
    got
}

async fn all_are_answered(database: &Opened) {
    let rows = Rows::new(results(), records());
    rows.fill(&*database.store).await;
    let of_run = [
        clients::COMMAND_LINE,
        clients::DASHBOARDS,
        clients::TESTED,
        clients::DOCUMENTED,
    ];
    let not_of_run = [clients::NOT_OF_THE_RUN, clients::UNKNOWN_OF_THE_RUN];
    let ask = async |resource, text: &str, name: &str, found: bool| {
        let all = answers(database, &rows, resource, text).await;
        let has = all.iter().any(|one| one == name);
        assert_eq!(has, found, "{}: {text} gave {all:?}", database.name);
        // One that chooses every row would show nothing.
        let every = rows.records.len().max(rows.results.len());
        assert!(all.len() < every, "{}: {text} chose all", database.name);
    };
    for text in of_run.concat() {
        ask(Resource::Records, text, RUN, true).await;
    }
    for text in not_of_run.concat() {
        ask(Resource::Records, text, RUN, false).await;
    }
    for text in clients::OF_THE_RESULT {
        ask(Resource::Results, text, RESULT, true).await;
    }
    for text in clients::NOT_OF_THE_RESULT {
        ask(Resource::Results, text, RESULT, false).await;
    }
}

#[tokio::test]
async fn filters_of_known_clients_choose_the_rows_they_mean_on_every_database() {
    let file = SqliteFile::fresh().await;
    let database = Opened::at("SQLite", &file.url()).await;
    all_are_answered(&database).await;
    database.close().await;
    file.remove().await;
    if let Some(server) = postgres_server() {
        let made = PostgresDatabase::fresh(&server).await;
        let database = Opened::at("PostgreSQL", &made.url()).await;
        all_are_answered(&database).await;
        database.close().await;
        made.remove().await;
    }
}
