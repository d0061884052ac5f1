//! Databases and the release binary as a server over one of them, with the auth that is measured.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use hindsight_client::{Client, Options};
use sqlx::{Connection as _, Executor as _, PgConnection};

/// A database that is gone with the bench.
#[derive(Debug)]
pub struct Database {
    pub label: &'static str,
    pub url: String,
    /// The folder of a SQLite file; the server and the name of a PostgreSQL database.
    place: Result<tempfile::TempDir, (String, String)>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the bench is told by the environment which server to use"
)]
fn postgres() -> Option<String> {
    std::env::var("HINDSIGHT_TEST_POSTGRES").ok()
}

/// A fresh SQLite file, and a fresh PostgreSQL database where there is a server for it.
pub async fn databases() -> Vec<Database> {
    let folder = tempfile::tempdir().unwrap();
    let mut all = vec![Database {
        label: "sqlite",
        url: format!("sqlite:{}", folder.path().join("b.db").display()),
        place: Ok(folder),
    }];
    if let Some(server) = postgres() {
        let name = format!("bench_{}", uuid::Uuid::new_v4().simple());
        let mut connection = PgConnection::connect(&server).await.unwrap();
        let sql = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
        connection.execute(sql).await.unwrap();
        all.push(Database {
            label: "postgres",
            url: format!("{}/{name}", server.rsplit_once('/').unwrap().0),
            place: Err((server, name)),
        });
    }
    all
}

impl Database {
    pub async fn remove(self) {
        if let Err((server, name)) = self.place {
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
}

impl Server {
    pub async fn start(database: &Database, more: &[&str]) -> Self {
        Self::start_in(database, more, &[]).await
    }

    /// The same with more environment.
    pub async fn start_in(database: &Database, more: &[&str], env: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_hindsight"))
            .args(["serve", "--db", &database.url, "--listen", "127.0.0.1:0"])
            .args(["--metrics-listen", "off", "--log-format", "json"])
            .args(more)
            .envs(env.iter().copied())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        tokio::task::spawn_blocking(move || {
            let mut lines = log.lines();
            let url = loop {
                let line = lines.next().expect("the server starts").unwrap();
                let entry: serde_json::Value = serde_json::from_str(&line).unwrap();
                if entry["message"] == "serving" {
                    break format!("http://{}", entry["address"].as_str().unwrap());
                }
            };
            // The rest of the log is read, so that the server never waits for a reader.
            std::thread::spawn(move || lines.for_each(drop));
            Self { child, url }
        })
        .await
        .unwrap()
    }

    /// A connection of its own.
    pub fn client(&self, token: Option<&str>) -> Client {
        client(&self.url, token)
    }

    /// The most memory that it ever held.
    pub fn most_mib(&self) -> u64 {
        self.told("status", "VmHWM:") / 1024
    }

    /// The number in a line of a file of its process.
    pub fn told(&self, file: &str, line: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap();
        let found = text.lines().find_map(|it| it.strip_prefix(line)).unwrap();
        found.split_whitespace().next().unwrap().parse().unwrap()
    }

    pub fn url(&self) -> &str {
        &self.url
    }
}

/// A connection to the server at `url`.
pub fn client(url: &str, token: Option<&str>) -> Client {
    let options = Options {
        token: token.map(str::to_owned),
        ..Options::new(url)
    };
    Client::new(&options).unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
