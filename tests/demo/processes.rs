//! The two programs, as an operator would start them.

use std::{
    fs::File,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use hindsight_client::{Client, Options};
use hindsight_proto::v1alpha2 as pb;
use tokio::process::{Child, Command};

/// The server and the watcher.
#[derive(Debug)]
pub(crate) struct Processes {
    /// Where the server answers.
    pub(crate) url: String,
    server: Child,
    watcher: Child,
    logs: PathBuf,
}

/// A program that was built beside this one.
fn beside(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own
        .parent()
        .and_then(Path::parent)
        .context("the demo runs from target/")?;
    let path = folder.join(name);
    ensure!(
        path.exists(),
        "{} is missing; run `make demo`, which builds it",
        path.display()
    );
    Ok(path)
}

/// Path of the `hindsight` binary that was built beside this one.
pub(crate) fn hindsight() -> anyhow::Result<PathBuf> {
    beside("hindsight")
}

impl Processes {
    /// Starts both and waits until the server answers.
    pub(crate) async fn start(
        folder: &Path,
        db: &str,
        listen: SocketAddr,
        kubeconfig: &Path,
    ) -> anyhow::Result<Self> {
        let listen = free(listen)?;
        let url = format!("http://{listen}");
        let log = |name: &str| File::create(folder.join(name));
        let server = Command::new(hindsight()?)
            .args(["serve", "--db", db, "--listen", &listen.to_string()])
            .args(["--metrics-listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stderr(log("server.log")?)
            .kill_on_drop(true)
            .process_group(0)
            .spawn()?;
        let watcher = Command::new(beside("hindsight-watcher")?)
            .args(["--server", &url, "--collect", "--grace", "1s"])
            .args(["--writes-per-second=1000", "--deletes-per-second=1000"])
            .args(["--job-selector", "hindsight.dev/workflow-uid"])
            .args(["--metrics-listen", "127.0.0.1:0", "--kubeconfig"])
            .arg(kubeconfig)
            .stdin(Stdio::null())
            .stderr(log("watcher.log")?)
            .kill_on_drop(true)
            .process_group(0)
            .spawn()?;
        let mut processes = Self {
            url,
            server,
            watcher,
            logs: folder.to_owned(),
        };
        processes.answering().await?;
        Ok(processes)
    }

    async fn answering(&mut self) -> anyhow::Result<()> {
        let client = Client::new(&Options::new(&self.url))?;
        loop {
            self.check()?;
            let request = pb::ListResultsRequest {
                parent: "-".to_owned(),
                ..Default::default()
            };
            if client.rpc().list_results(request).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// An error if one of them ended, with the end of its log.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        for (name, child) in [("server", &mut self.server), ("watcher", &mut self.watcher)] {
            if let Some(status) = child.try_wait()? {
                let log = std::fs::read_to_string(self.logs.join(format!("{name}.log")))?;
                let lines: Vec<_> = log.lines().rev().take(10).collect();
                let lines: Vec<_> = lines.into_iter().rev().collect();
                bail!("the {name} ended with {status}:\n{}", lines.join("\n"));
            }
        }
        Ok(())
    }

    /// Stores objects as `hindsight import` does.
    pub(crate) async fn import(
        &self,
        folder: &Path,
        objects: &[serde_json::Value],
    ) -> anyhow::Result<()> {
        let path = folder.join("history.json");
        let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
        std::fs::write(&path, list.to_string())?;
        let output = Command::new(hindsight()?)
            .args(["import", "--concurrency", "4", "--server", &self.url])
            .arg(&path)
            .stdin(Stdio::null())
            .output()
            .await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "the import ended with {}: {said}",
            output.status
        );
        Ok(())
    }

    /// What `hindsight list` prints for a filter, and how many rows that is.
    pub(crate) async fn ask(&self, filter: &str) -> anyhow::Result<(usize, String)> {
        let list = ["list", "runs", "-A", "--limit", "3", "--filter", filter];
        let table = self.say(&list).await?;
        Ok((table.lines().skip(1).count(), table))
    }

    /// What a command of `hindsight` prints.
    pub(crate) async fn say(&self, command: &[&str]) -> anyhow::Result<String> {
        let output = Command::new(hindsight()?)
            .args(command)
            .args(["--server", &self.url])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .await?;
        ensure!(
            output.status.success(),
            "`{}` ended with {}",
            command.join(" "),
            output.status
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Asks both to end, and waits until they did.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        for child in [&mut self.watcher, &mut self.server] {
            if let Some(id) = child.id() {
                Command::new("kill")
                    .args(["-TERM", &id.to_string()])
                    .status()
                    .await?;
                let ended = child.wait().await?;
                ensure!(ended.success(), "a program ended with {ended}");
            }
        }
        Ok(())
    }
}

/// `wanted`, or another port if that is taken.
fn free(wanted: SocketAddr) -> anyhow::Result<SocketAddr> {
    let any = SocketAddr::new(wanted.ip(), 0);
    let listener =
        std::net::TcpListener::bind(wanted).or_else(|_taken| std::net::TcpListener::bind(any))?;
    Ok(listener.local_addr()?)
}
