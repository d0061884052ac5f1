//! What counts without a restart, in the program as it is run.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use crate::support::process::hindsight;

const PATIENCE: Duration = Duration::from_secs(30);

struct Program {
    child: Child,
    lines: Receiver<String>,
}

impl Program {
    fn start(config: &std::path::Path) -> Self {
        let mut command = hindsight();
        command
            .arg("serve")
            .arg("--config")
            .arg(config)
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    fn until(&self, says: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("`{says}` is not said"));
            if line.contains(says) {
                return line;
            }
        }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a_changed_file_counts_at_once_where_it_can_and_says_where_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("h.toml");
    let write = |more: &str| {
        let db = folder.path().join("h.db");
        let text = format!(
            "db = 'sqlite:{}'\nlisten = '127.0.0.1:0'\nmetrics_listen = 'off'\n{more}",
            db.display()
        );
        // At once, as editors and Kubernetes replace a file.
        std::fs::write(folder.path().join("new"), text).unwrap();
        std::fs::rename(folder.path().join("new"), &path).unwrap();
    };
    write("log_level = 'info'\n");
    let program = Program::start(&path);
    program.until("serving");
    write("log_level = 'info,hindsight=debug'\nscan_budget = 7\n");
    let line = program.until("takes effect after a restart");
    assert!(line.contains("`scan_budget`"), "{line}");
    program.until("configuration reloaded");
    write("log_level = 'loud'\n");
    let line = program.until("invalid configuration");
    assert!(line.contains("`loud` is not a valid level"), "{line}");
    write("log_level = 'info'\n");
    program.until("configuration reloaded");
    program.signal("-HUP");
    program.until("configuration reloaded");
    program.signal("-TERM");
    program.until("stopped");
}
