//! The program as a process that does not outlive its test.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::support::within;

/// A process that does not outlive its test.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn start(kubeconfig: &Path, args: &[&str]) -> Self {
        let mut command = program();
        command
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(args)
            .stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    pub(crate) fn id(&self) -> String {
        self.0.id().to_string()
    }

    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Asks it to end; its exit code.
    pub(crate) async fn terminate(mut self) -> Option<i32> {
        let pid = self.id();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
        within(async {
            loop {
                if let Some(status) = self.0.try_wait().unwrap() {
                    return status.code();
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended, and that is well.
        self.0.kill().unwrap_or_default();
    }
}

pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hindsight-watcher"));
    command.env_clear();
    command
}
