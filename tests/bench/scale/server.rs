//! The release binary as a server over one database.

#[path = "../system.rs"]
#[expect(dead_code, reason = "other benches count processor time")]
mod system;

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    time::Duration,
};

use hindsight_client::{Client, Options, Rpc};

use crate::data::Database;

#[derive(Debug)]
pub struct Server {
    child: Child,
    pub url: String,
}

impl Server {
    pub async fn start(database: &Database) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_hindsight"))
            .args(["serve", "--db", &database.url, "--listen", "127.0.0.1:0"])
            .args(["--metrics-listen", "127.0.0.1:0", "--log-format", "json"])
            .args(["--scan-budget", "10000000"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
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
        Self { child, url }
    }

    pub fn rpc(&self) -> Rpc {
        self.client().rpc()
    }

    pub fn client(&self) -> Client {
        let options = Options {
            deadline: Duration::from_secs(120),
            ..Options::new(&self.url)
        };
        Client::new(&options).unwrap()
    }

    /// Forgets how much memory it took at most.
    pub fn forget_peak(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").unwrap();
    }

    /// The most memory it took since, in MiB.
    pub fn peak_mib(&self) -> u64 {
        system::memory_kib(self.child.id(), "VmHWM:") / 1024
    }

    pub async fn stop(self) {
        system::stop(self.child).await;
    }
}
