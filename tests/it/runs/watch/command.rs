//! `hindsight runs --watch`.

use std::process::Stdio;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use super::{PATIENCE, given, release};
use crate::support::{Database, TestServer, process::run};

/// The command, which is read line by line.
struct Watching {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watching {
    fn start(server: &TestServer, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_hindsight"))
            .env_clear()
            .args(["runs", "-A", "--watch", "--server", &server.url])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    async fn line(&mut self) -> String {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
        let line = line.expect("a line comes in time").unwrap();
        line.expect("the command goes on")
    }
}

#[tokio::test]
async fn the_list_is_printed_and_then_each_change() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    given(&server, &release("one", 8, "a", "Succeeded")).await;
    let mut lines = Watching::start(&server, &["-o", "jsonl"]);
    let mut values = Watching::start(&server, &["--columns", "name,status"]);
    let name = |line: String| {
        let run: Value = serde_json::from_str(&line).unwrap();
        run["name"].as_str().unwrap().to_owned()
    };
    assert_eq!(name(lines.line().await), "one");
    assert_eq!(values.line().await, "name\tstatus");
    assert_eq!(values.line().await, "one\tsucceeded");
    let mut hostile = release("two", 9, "a", "Failed");
    hostile["metadata"]["name"] = "two\u{1b}[31m\nthree".into();
    given(&server, &hostile).await;
    assert_eq!(name(lines.line().await), "two\u{1b}[31m\nthree");
    let line = values.line().await;
    assert!(
        line.starts_with("two") && line.ends_with("\tfailed"),
        "{line}"
    );
    assert!(!line.contains('\u{1b}'), "{line}");

    let interrupted = lines.child.id().unwrap().to_string();
    let sent = Command::new("kill")
        .args(["-INT", &interrupted])
        .status()
        .await;
    assert!(sent.unwrap().success());
    let status = lines.child.wait().await.unwrap();
    assert!(!status.success(), "shells call it 130: {status:?}");
    drop(values);
    server.stop().await;
}

#[tokio::test]
async fn documents_have_an_end() {
    let server = "http://127.0.0.1:1";
    let said = run(&["runs", "--watch", "-o", "json", "--server", server]).await;
    said.fails(2, "use -o jsonl");
}
