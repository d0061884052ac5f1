//! The release binary as a server, on each database.

#[path = "../system.rs"]
pub mod system;

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use hindsight_client::{Client, Options, Rpc};
use sqlx::{Connection as _, Executor as _, PgConnection};

/// A database of one bench.
#[derive(Debug)]
pub enum Database {
    Sqlite(tempfile::TempDir),
    Postgres { server: String, name: String },
}

#[expect(
    clippy::disallowed_methods,
    reason = "the harness is told by the environment"
)]
fn postgres_server() -> Option<String> {
    std::env::var("HINDSIGHT_TEST_POSTGRES").ok()
}

/// A fresh SQLite file, and a fresh database in PostgreSQL if there is one.
pub async fn databases() -> Vec<Database> {
    let mut all = vec![Database::Sqlite(tempfile::tempdir().unwrap())];
    if let Some(server) = postgres_server() {
        let name = format!("bench_{}", uuid::Uuid::new_v4().simple());
        let mut connection = PgConnection::connect(&server).await.unwrap();
        let sql = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
        connection.execute(sql).await.unwrap();
        all.push(Database::Postgres { server, name });
    } else {
        eprintln!("without PostgreSQL: HINDSIGHT_TEST_POSTGRES is not set (use `make bench`)");
    }
    all
}

impl Database {
    pub fn label(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Postgres { .. } => "postgres",
        }
    }

    pub fn url(&self) -> String {
        match self {
            Self::Sqlite(folder) => format!("sqlite:{}", folder.path().join("b.db").display()),
            Self::Postgres { server, name } => {
                format!("{}/{name}", server.rsplit_once('/').unwrap().0)
            }
        }
    }

    pub async fn remove(self) {
        if let Self::Postgres { server, name } = self {
            let mut connection = PgConnection::connect(&server).await.unwrap();
            let sql = sqlx::AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)"));
            connection.execute(sql).await.unwrap();
        }
    }
}

#[derive(Debug)]
pub struct Server {
    child: Child,
    url: String,
    label: &'static str,
}

impl Server {
    pub async fn start(database: &Database) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_hindsight"))
            .args(["serve", "--db", &database.url(), "--listen", "127.0.0.1:0"])
            .args(["--metrics-listen", "127.0.0.1:0", "--log-format", "json"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let label = database.label();
        let (child, url) = tokio::task::spawn_blocking(move || {
            let mut lines = log.lines();
            let url = loop {
                let line = lines.next().expect("the server starts").unwrap();
                let entry: serde_json::Value = serde_json::from_str(&line).unwrap();
                let field = |name: &str| entry["fields"][name].as_str().or(entry[name].as_str());
                if field("message") == Some("serving") {
                    break format!("http://{}", field("address").unwrap());
                }
            };
            // The rest of the log is read, so that the server never waits for a reader.
            std::thread::spawn(move || lines.for_each(drop));
            (child, url)
        })
        .await
        .unwrap();
        Self { child, url, label }
    }

    pub fn label(&self) -> &'static str {
        self.label
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn client(&self) -> Client {
        Client::new(&Options::new(self.url())).unwrap()
    }

    pub fn rpc(&self) -> Rpc {
        self.client().rpc()
    }

    pub fn rss_kib(&self) -> u64 {
        system::memory_kib(self.id(), "VmRSS:")
    }

    /// `hindsight import FILE`, and what it printed.
    pub async fn import(&self, file: &Path) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hindsight"));
        command
            .arg("import")
            .arg(file)
            .args(["--server", &self.url]);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    pub async fn stop(self) {
        system::stop(self.child).await;
    }
}
