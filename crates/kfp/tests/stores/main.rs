//! What every store of pipelines does, on each of them.

mod changes;
mod lists;
mod packages;

use std::sync::Arc;

use hindsight_kfp::{
    Database,
    model::{NewPipeline, NewVersion, Spec, Tags},
    store::PipelineStore,
};
use hindsight_storage::{
    resolve::{Options, Schema, open},
    testing::{Database as _, PostgresDatabase, SqliteFile, postgres_server},
};
use jiff::Timestamp;
use serde_json::json;

/// Runs a case on SQLite, and on PostgreSQL if there is a server.
async fn on_databases<W: Future<Output = ()>>(case: impl Fn(Arc<dyn PipelineStore>) -> W) {
    let options = Options {
        schema: Schema::Migrate,
        ..Options::default()
    };
    let file = SqliteFile::fresh().await;
    let opened = open(&file.url(), &options).await.unwrap();
    case(Arc::new(Database::new(opened.pipelines))).await;
    opened.maintenance.close().await;
    file.remove().await;
    let Some(server) = postgres_server() else {
        return;
    };
    let database = PostgresDatabase::fresh(&server).await;
    let opened = open(&database.url(), &options).await.unwrap();
    case(Arc::new(Database::new(opened.pipelines))).await;
    opened.maintenance.close().await;
    database.remove().await;
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn tags(pairs: &[(&str, &str)]) -> Tags {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn pipeline(name: &str) -> NewPipeline {
    NewPipeline {
        namespace: String::new(),
        name: name.to_owned(),
        display_name: format!("{name} shown"),
        description: String::new(),
        tags: Tags::new(),
        original_id: None,
        now: at(1_700_000_000),
    }
}

fn version(name: &str) -> NewVersion {
    NewVersion {
        name: name.to_owned(),
        display_name: name.to_owned(),
        description: String::new(),
        tags: Tags::new(),
        package_url: String::new(),
        code_source_url: String::new(),
        spec: spec("hello"),
        original_id: None,
        now: at(1_700_000_000),
    }
}

fn spec(name: &str) -> Spec {
    Spec {
        pipeline: json!({
            "pipelineInfo": {"name": name},
            "root": {"dag": {}},
            "schemaVersion": "2.1.0",
        }),
        platform: None,
    }
}
