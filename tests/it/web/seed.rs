//! A server with the runs of the demo.

#[path = "../../demo/showcase.rs"]
mod showcase;

use std::ops::Deref;

use hindsight_proto::v1::{ListRunsRequest, RunRow};
use hindsight_runtime::clock::{Clock as _, SystemClock};
use serde_json::json;

use crate::support::{Database, TestServer, each_database, process::run};

pub(crate) use showcase::showcase;

/// A server and its database, which is there as long as this.
pub struct Given {
    server: TestServer,
    database: Database,
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
        self.database.remove().await;
    }
}

/// A server on SQLite without runs.
pub async fn empty(more: &[(&str, &str)]) -> Given {
    on(Database::sqlite(), more).await
}

async fn on(database: Database, more: &[(&str, &str)]) -> Given {
    Given {
        server: TestServer::start_with(&database, more).await,
        database,
    }
}

/// A server on each database that has the runs of the demo.
pub async fn each_seeded() -> Vec<Given> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.json");
    let items = showcase(SystemClock.now());
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    std::fs::write(&path, list.to_string()).unwrap();
    let path = path.display().to_string();
    let mut all = Vec::new();
    for database in each_database().await {
        let server = on(database, &[]).await;
        let ask = [
            "import",
            "--concurrency",
            "1",
            "--timeout",
            "120",
            "--server",
            &server.url,
            &path,
        ];
        let said = run(&ask).await;
        assert_eq!(said.code, 0, "{}", said.err);
        all.push(server);
    }
    all
}

/// The first run that these words select.
pub async fn first(server: &TestServer, query: &str) -> RunRow {
    let ask = ListRunsRequest {
        parent: "-/results/-".to_owned(),
        query: query.to_owned(),
        ..ListRunsRequest::default()
    };
    let found = server.client().runs().list_runs(ask).await.unwrap();
    found.into_inner().runs.swap_remove(0)
}

/// The record of the first run that these words select.
pub async fn record(server: &TestServer, query: &str) -> String {
    first(server, query).await.record
}
