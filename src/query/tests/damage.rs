//! Payloads that changed in the database since they were stored, while filters look at them.

use std::num::NonZeroU32;

use super::rows::{Ask, Opened, Rows};
use hindsight_filter::model::Resource;
use hindsight_filter::{
    Filter, Order,
    samples::known::{record, result},
};
use hindsight_runtime::error::report;
use hindsight_storage::testing::{Database, SqliteFile};

const STORED: &str = r#"{"tool":"one"}"#;

/// The names that `filter` finds, or the complaint, after `spoilt` took the place of the payload.
async fn found(spoilt: &str, filter: &str) -> Result<Vec<String>, String> {
    let file = SqliteFile::fresh().await;
    let database = Opened::at("SQLite", &file.url()).await;
    let name = "ci/results/r-1/records/u-1";
    let rows = Rows::new(
        vec![result()],
        vec![record(name, "note", STORED.as_bytes())],
    );
    rows.fill(&*database.store).await;
    assert_eq!(file.spoil(spoilt).await, 1, "it is kept as it is");
    let filter = Filter::compile(filter, Resource::Records).unwrap();
    let ask = Ask {
        resource: Resource::Records,
        scope: "-/results/-",
        filter: &filter,
        order: Order::newest_first(),
        size: NonZeroU32::new(10).unwrap(),
        page_bytes: 1 << 20,
    };
    let names = database.names(&ask).await.map_err(|error| report(&error));
    database.close().await;
    names
}

#[tokio::test]
async fn a_damaged_payload_is_not_given_out() {
    let whole = found(STORED, "data.tool == 'one'").await.unwrap();
    assert_eq!(whole, ["ci/results/r-1/records/u-1"]);
    let other = STORED.replace("one", "two");
    let why = found(&other, "data.tool == 'two'").await.unwrap_err();
    assert!(
        why.contains("SHA-256 differs") && why.contains("u-1"),
        "{why}"
    );
}

#[tokio::test]
async fn a_damaged_payload_is_not_taken_for_one_without_fields() {
    let torn = STORED.replace('}', "!");
    for filter in ["data.tool == 'one'", "!has(data.tool)"] {
        let why = found(&torn, filter).await.unwrap_err();
        assert!(why.contains("SHA-256 differs"), "{filter}: {why}");
    }
}
