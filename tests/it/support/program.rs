//! A program that serves until it is told to stop, and what it says meanwhile.

use std::{process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStderr, Command},
    time::timeout,
};

/// Everything has to be over by then; it takes a tenth of this on two busy cores.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program, which does not outlive its test.
#[derive(Debug)]
pub struct Program {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
    pub url: String,
}

impl Program {
    /// Starts this command of it on a free port, and waits until it serves.
    pub async fn start(command: &str, arguments: &[&str]) -> Self {
        let mut all = vec![command, "--listen", "127.0.0.1:0"];
        all.extend(arguments);
        let mut program = Self::silent(&all).await;
        let line = program.until("serving address=").await;
        let (_, address) = line.rsplit_once("address=").unwrap();
        program.url = format!("http://{address}");
        program
    }

    /// Starts it with these arguments, and waits for nothing. It is at no address.
    pub async fn silent(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_hindsight"))
            .env_clear()
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = String::new();
        Self { child, log, url }
    }

    /// The next line that says this.
    pub async fn until(&mut self, says: &str) -> String {
        let mut said = Vec::new();
        let line = timeout(PATIENCE, async {
            loop {
                let line = self.log.next_line().await.unwrap();
                let line = line.unwrap_or_else(|| panic!("`{says}` is not said: {said:#?}"));
                if line.contains(says) {
                    return line;
                }
                said.push(line);
            }
        });
        line.await.unwrap()
    }

    /// SIGTERM; the exit code, and what it said after that.
    pub async fn terminate(mut self) -> (Option<i32>, Vec<String>) {
        let id = self.child.id().unwrap().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().await;
        assert!(sent.unwrap().success());
        let mut said = Vec::new();
        let end = timeout(PATIENCE, async {
            while let Some(line) = self.log.next_line().await.unwrap() {
                said.push(line);
            }
            self.child.wait().await.unwrap()
        });
        (end.await.unwrap().code(), said)
    }
}
