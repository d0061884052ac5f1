//! A server with the runs of the demo.

#[path = "../../demo/showcase.rs"]
mod showcase;

use std::ops::Deref;

use hindsight_proto::v1::ListRunsRequest;
use hindsight_runtime::clock::{Clock as _, SystemClock};
use serde_json::json;

use crate::support::{Database, TestServer, process::run};

pub(crate) use showcase::showcase;

/// A server and its database, which is there as long as this.
pub struct Given {
    server: TestServer,
    _database: Database,
}

impl Deref for Given {
    type Target = TestServer;

    fn deref(&self) -> &TestServer {
        &self.server
    }
}

impl Given {
    pub async fn stop(self) {
        self.server.stop().await;
    }
}

/// A server on SQLite without runs.
pub async fn empty(more: &[(&str, &str)]) -> Given {
    let database = Database::sqlite();
    Given {
        server: TestServer::start_with(&database, more).await,
        _database: database,
    }
}

/// A server on SQLite that has the runs of the demo.
pub async fn seeded() -> Given {
    let server = empty(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.json");
    let items = showcase(SystemClock.now());
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    std::fs::write(&path, list.to_string()).unwrap();
    let path = path.display().to_string();
    let ask = [
        "import",
        "--concurrency",
        "1",
        "--server",
        &server.url,
        &path,
    ];
    let said = run(&ask).await;
    assert_eq!(said.code, 0, "{}", said.err);
    server
}

/// The record of the first run that these words select.
pub async fn record(server: &TestServer, query: &str) -> String {
    let ask = ListRunsRequest {
        parent: "-/results/-".to_owned(),
        query: query.to_owned(),
        ..ListRunsRequest::default()
    };
    let found = server.client().runs().list_runs(ask).await.unwrap();
    found.into_inner().runs[0].record.clone()
}
