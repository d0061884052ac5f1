//! A simulated cluster with a server and a watcher beside it, as processes that can be killed.

use std::{
    fs::File,
    path::Path,
    process::{Child, Command, Stdio},
};

use hindsight_client::{Client, Options};
use hindsight_proto::v1alpha2 as pb;
use kubesim::{Crd, Listening, Sim};
use tonic::Status;

use super::{
    cluster::free_port,
    process::{hindsight, watcher},
    s3::Bucket,
};

/// A process that is killed when the test ends.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

impl Process {
    fn start(command: &mut Command, log: &Path) -> Self {
        let log = File::options().create(true).append(true).open(log).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { child }
    }

    /// Whether it has ended by itself.
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// SIGKILL, and the end of it.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What the processes are told.
#[derive(Debug)]
pub struct Scene {
    folder: tempfile::TempDir,
    url: String,
    db: String,
    port: u16,
    kubeconfig: String,
    watching: Vec<String>,
    serving: Vec<String>,
    env: Vec<(&'static str, String)>,
}

impl Scene {
    /// A server on `db`, and a watcher of `cluster` with these further arguments; neither is
    /// started.
    pub fn new(db: String, cluster: &Listening, watching: &[&str]) -> Self {
        let port = free_port();
        Self {
            folder: tempfile::tempdir().unwrap(),
            url: format!("http://127.0.0.1:{port}"),
            db,
            port,
            kubeconfig: cluster.kubeconfig().display().to_string(),
            watching: watching.iter().map(|text| (*text).to_owned()).collect(),
            serving: Vec::new(),
            env: Vec::new(),
        }
    }

    /// The same with a bucket for what is large.
    pub fn with_bucket(mut self, bucket: &Bucket, arguments: &[&str]) -> Self {
        let all = ["--objects-url", "s3://bucket/logs"];
        let all = all.iter().chain(arguments);
        self.serving = all.map(|text| (*text).to_owned()).collect();
        self.env = bucket.env().to_vec();
        self
    }

    /// A client of the server.
    pub fn client(&self) -> Client {
        Client::new(&Options::new(&self.url)).unwrap()
    }

    pub fn server(&self) -> Process {
        let mut command = hindsight();
        command
            .args(["serve", "--db", &self.db, "--metrics-listen", "off"])
            .args(["--listen", &format!("127.0.0.1:{}", self.port)])
            .args(&self.serving)
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        Process::start(&mut command, &self.folder.path().join("server.log"))
    }

    pub fn watcher(&self) -> Process {
        let mut command = Command::new(watcher());
        command
            .env_clear()
            .args(["--server", &self.url, "--kubeconfig", &self.kubeconfig])
            .args(["--metrics-listen", "127.0.0.1:0"])
            .args(&self.watching);
        Process::start(&mut command, &self.folder.path().join("watcher.log"))
    }

    /// The last lines that both have said.
    pub fn log(&self) -> String {
        let read = |name: &str| {
            let text = std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
            let lines: Vec<_> = text.lines().rev().take(20).collect();
            format!(
                "--- {name}\n{}\n",
                lines.into_iter().rev().collect::<Vec<_>>().join("\n")
            )
        };
        read("server.log") + &read("watcher.log")
    }

    /// What watchers have said with this word in it.
    pub fn said(&self, word: &str) -> String {
        let log = self.folder.path().join("watcher.log");
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let lines = text.lines().filter(|line| line.contains(word));
        lines.map(|line| format!("    {line}\n")).collect()
    }

    /// All records that are stored.
    pub async fn records(&self) -> Result<Vec<pb::Record>, Status> {
        let mut rpc = self.client().rpc();
        let (mut all, mut token) = (Vec::new(), String::new());
        loop {
            let request = pb::ListRecordsRequest {
                parent: "-/results/-".to_owned(),
                page_size: 500,
                page_token: token,
                ..pb::ListRecordsRequest::default()
            };
            let reply = rpc.list_records(request).await?.into_inner();
            all.extend(reply.records);
            token = reply.next_page_token;
            if token.is_empty() {
                return Ok(all);
            }
        }
    }
}

/// The kinds that are played.
pub fn kinds() -> Vec<Crd> {
    let mut kinds = Crd::tekton().to_vec();
    kinds.push(Crd::argo_workflow());
    kinds
}

/// How many objects of these are in the cluster.
pub fn left(sim: &Sim) -> usize {
    kinds()
        .iter()
        .map(|kind| sim.count(&kind.group, &kind.plural))
        .sum()
}
