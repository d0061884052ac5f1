//! What a server says at its start about writes that may be lost.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use crate::support::{Database, each_database, process::hindsight};

/// What a server logs until it serves.
fn start(database: &Database, level: &str) -> String {
    let mut server = hindsight()
        .args(["serve", "--db", &database.url(), "--db-synchronous", level])
        .args(["--listen", "127.0.0.1:0", "--metrics-listen", "off"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    for line in BufReader::new(server.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        said.push_str(&line);
        said.push('\n');
        if line.contains("serving") {
            break;
        }
    }
    server.kill().unwrap();
    server.wait().unwrap();
    said
}

#[tokio::test]
async fn a_server_whose_acknowledged_writes_may_be_lost_says_so_at_its_start() {
    const SAYS: &str = "acknowledged writes may be lost: synchronous";
    for database in each_database().await {
        let weak = match database {
            Database::Sqlite { .. } => "normal",
            Database::Postgres { .. } => "off",
        };
        let said = start(&database, weak);
        assert!(said.contains(SAYS) && said.contains("serving"), "{said}");
        assert!(said.contains("WARN"), "{said}");
        let said = start(&database, "durable");
        assert!(!said.contains(SAYS) && said.contains("serving"), "{said}");
        database.remove().await;
    }
}
