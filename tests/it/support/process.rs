//! The program as its users run it: processes, their output, and their end.

use std::{
    ffi::OsStr,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

pub fn hindsight() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hindsight"));
    command.env_clear().stdin(Stdio::null());
    command
}

/// The `hindsight-watcher` binary, built beside it.
pub fn watcher() -> PathBuf {
    let path = PathBuf::from(env!("CARGO_BIN_EXE_hindsight")).with_file_name("hindsight-watcher");
    assert!(
        path.exists(),
        "{} is missing: cargo build -p hindsight-watcher",
        path.display()
    );
    path
}

/// What a finished command printed.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    /// It ended with this code, and printed this among other things.
    #[track_caller]
    pub fn prints(&self, code: i32, text: &str) {
        let (found, out) = (self.code, &self.out);
        assert!(found == code && out.contains(text), "no `{text}`: {self:?}");
    }

    /// It ended with this code, and said this on standard error among other things.
    #[track_caller]
    pub fn fails(&self, code: i32, text: &str) {
        let (found, err) = (self.code, &self.err);
        assert!(found == code && err.contains(text), "no `{text}`: {self:?}");
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Runs `hindsight` to its end without blocking the server of this process.
pub async fn run<S: AsRef<OsStr>>(arguments: &[S]) -> Said {
    let mut command = hindsight();
    command.args(arguments);
    tokio::task::spawn_blocking(move || command.output().unwrap().into())
        .await
        .unwrap()
}
