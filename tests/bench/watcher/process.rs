//! The release binary of the watcher, and what the system says of its memory and time.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use kubesim::Listening;

use crate::server::{
    Server,
    system::{self, memory_kib},
};

#[derive(Debug)]
pub struct Watcher {
    child: Child,
    metrics: String,
}

fn program() -> PathBuf {
    let path = PathBuf::from(env!("CARGO_BIN_EXE_hindsight")).with_file_name("hindsight-watcher");
    assert!(
        path.exists(),
        "{} is missing: cargo build --release -p hindsight-watcher",
        path.display()
    );
    path
}

impl Watcher {
    /// Starts one, and waits until it has seen all that is there.
    pub async fn start(cluster: &Listening, server: &Server, arguments: &[&str]) -> Self {
        let mut child = Command::new(program())
            .env_clear()
            .arg("--kubeconfig")
            .arg(cluster.kubeconfig())
            .args(["--server", server.url(), "--log-format", "json"])
            // The simulated cluster stands anything; what is measured is the watcher.
            .args(["--writes-per-second=100000", "--deletes-per-second=100000"])
            .args(["--metrics-listen", "127.0.0.1:0"])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let watcher = tokio::task::spawn_blocking(move || {
            let metrics = loop {
                let line = log.next().expect("the watcher starts").unwrap();
                if let Some((_, rest)) = line.split_once("metrics on http://") {
                    break rest.split_once('/').unwrap().0.to_owned();
                }
            };
            // The rest of the log is read, so that the watcher never waits for a reader.
            std::thread::spawn(move || log.for_each(drop));
            Self { child, metrics }
        });
        let watcher = watcher.await.unwrap();
        while !watcher.get("/readyz").await.starts_with("HTTP/1.0 200") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        watcher
    }

    async fn get(&self, path: &str) -> String {
        let (address, path) = (self.metrics.clone(), path.to_owned());
        let asking = tokio::task::spawn_blocking(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        });
        asking.await.unwrap()
    }

    /// How many stores the server has confirmed.
    pub async fn stored(&self) -> u64 {
        let text = self.get("/metrics").await;
        let mut lines = text.lines();
        lines
            .find_map(|line| line.strip_prefix("hindsight_watcher_stores_total "))
            .map_or(0, |count| count.parse().unwrap())
    }

    pub fn rss_kib(&self) -> u64 {
        memory_kib(self.child.id(), "VmRSS:")
    }

    /// The most that was ever resident.
    pub fn peak_mib(&self) -> u64 {
        memory_kib(self.child.id(), "VmHWM:") / 1024
    }

    /// Seconds of processors that it took.
    pub fn cpu(&self) -> f64 {
        cpu(self.child.id())
    }

    pub async fn stop(self) {
        system::stop(self.child).await;
    }
}

/// Seconds of processors that a process took.
pub fn cpu(process: u32) -> f64 {
    system::used(process, false).as_secs_f64()
}
