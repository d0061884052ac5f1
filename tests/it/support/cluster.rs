//! A PostgreSQL of one test, which the test may kill.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use super::database::variable;

/// A throwaway cluster; stopped and removed with this value.
#[derive(Debug)]
pub struct Cluster {
    folder: tempfile::TempDir,
    bin: PathBuf,
    user: String,
    port: u16,
}

impl Cluster {
    /// Makes and starts a cluster, if `tests/with-postgres` says where PostgreSQL is.
    pub fn start() -> Option<Self> {
        let bin = variable("HINDSIGHT_TEST_PG_BIN");
        let Some((bin, user)) = bin.zip(variable("HINDSIGHT_TEST_PG_USER")) else {
            assert!(
                variable("HINDSIGHT_FORBID_SKIP").is_none(),
                "run this under tests/with-postgres"
            );
            eprintln!("skipped: HINDSIGHT_TEST_PG_BIN is not set");
            return None;
        };
        let bin = PathBuf::from(bin);
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let cluster = Self {
            folder,
            bin,
            user,
            port,
        };
        let owned = Command::new("chown")
            .arg(&cluster.user)
            .arg(cluster.folder.path())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(owned.success(), "the folder of the cluster has its owner");
        cluster.run("initdb", &["-A", "trust", "-U", "postgres", "--no-sync"]);
        cluster.restart();
        Some(cluster)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let output = self.output(program, arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    fn output(&self, program: &str, arguments: &[&str]) -> Output {
        command_of(&self.user, &self.bin.join(program))
            .arg("-D")
            .arg(self.data())
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Starts it again after it was killed; it recovers from its log first.
    pub fn restart(&self) {
        let options = format!("-p {} -k '' -h 127.0.0.1", self.port);
        let log = self.folder.path().join("data").join("server.log");
        let log = log.display().to_string();
        let start = ["-o", &options, "-l", &log, "-w", "-t", "60", "start"];
        // Children of a killed server hold its memory until they notice; a new one refuses to
        // start before.
        let patience = Instant::now() + Duration::from_secs(60);
        loop {
            let output = self.output("pg_ctl", &start);
            if output.status.success() {
                return;
            }
            assert!(Instant::now() < patience, "{output:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Kills it without a chance to write anything.
    pub fn kill(&self) {
        let pid = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        let pid = pid.lines().next().unwrap().to_owned();
        assert!(
            Command::new("kill")
                .args(["-KILL", &pid])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Ends it and all its connections at once.
    pub fn stop(&self) {
        self.run("pg_ctl", &["-m", "immediate", "-w", "stop"]);
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.data().join("postmaster.pid").exists() {
            // What is left of a failed test is not worth a second failure.
            drop(self.output("pg_ctl", &["-m", "immediate", "-w", "stop"]));
        }
    }
}

/// A program that this user runs: servers of databases refuse to run as root, and only root may become another user.
pub fn command_of(user: &str, program: &Path) -> Command {
    let mut command = if variable("USER").as_deref() == Some(user) || !is_root() {
        Command::new(program)
    } else {
        let mut command = Command::new("setpriv");
        command
            .arg(format!("--reuid={user}"))
            .args(["--clear-groups", "--"])
            .arg(program);
        command
    };
    command.current_dir("/");
    command
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout.starts_with(b"0\n")
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}
