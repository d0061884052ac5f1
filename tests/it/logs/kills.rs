//! The server is killed between appends: what was acknowledged is there, once.

use std::{
    process::{Child, Stdio},
    time::Duration,
};

use hindsight_client::{Client, Logs, Options};
use hindsight_proto::v1::{DescribeLogRequest, ReadLogRequest};

use super::{message, seal};
use crate::support::{Database, cluster::free_port, process::hindsight};

const NAME: &str = "ci/results/r/logs/run";
const LINES: i64 = 600;
/// A server that does not come back for so long is broken.
const PATIENCE: Duration = Duration::from_secs(120);

fn start(db: &str, port: u16) -> Child {
    hindsight()
        .args([
            "serve",
            "--db",
            db,
            "--metrics-listen",
            "off",
            "--log-level",
            "off",
        ])
        .args(["--listen", &format!("127.0.0.1:{port}")])
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn logs(port: u16) -> Logs {
    let client = Client::new(&Options::new(format!("http://127.0.0.1:{port}"))).unwrap();
    client.logs()
}

#[tokio::test]
async fn a_server_that_is_killed_between_appends_loses_and_doubles_nothing() {
    let played = tokio::time::timeout(PATIENCE, play()).await;
    played.expect("all lines are stored in time");
}

async fn play() {
    let database = Database::sqlite();
    let port = free_port();
    let mut child = start(&database.url(), port);
    let mut next = 0;
    let mut rounds = 0;
    while next < LINES {
        // A writer that goes on where the log says that it ends.
        let request = DescribeLogRequest {
            name: NAME.to_owned(),
            only_stored: true,
        };
        match logs(port).describe_log(request).await {
            Ok(found) => {
                let stored = found
                    .into_inner()
                    .containers
                    .first()
                    .map_or(0, |it| it.lines);
                assert!(
                    stored >= next,
                    "{stored} lines of {next} that were acknowledged"
                );
                next = stored;
            }
            Err(status) if status.code() == tonic::Code::NotFound => assert_eq!(next, 0),
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
        }
        rounds += 1;
        let (begin, kill_at) = (next, 5 + rounds * 7 % 30);
        for at in 0..60 {
            if at == kill_at && rounds < 8 {
                child.kill().unwrap();
                child.wait().unwrap();
                child = start(&database.url(), port);
            }
            let text = format!("line {next}\nline {}\n", next + 1);
            let sent = tokio_stream::iter(vec![message(NAME, "step", next, text.as_bytes())]);
            match logs(port).append_log(sent).await {
                Ok(stored) => next = stored.into_inner().containers[0].lines,
                Err(_) => break,
            }
            if next - begin >= 120 || next >= LINES {
                break;
            }
        }
    }
    let sealed = logs(port)
        .append_log(tokio_stream::iter(vec![seal(NAME, "step")]))
        .await;
    assert!(sealed.unwrap().into_inner().containers[0].sealed);
    let request = ReadLogRequest {
        name: NAME.to_owned(),
        ..ReadLogRequest::default()
    };
    let mut stream = logs(port).read_log(request).await.unwrap().into_inner();
    let mut text = Vec::new();
    while let Some(message) = stream.message().await.unwrap() {
        text.extend_from_slice(&message.lines.unwrap().text);
    }
    let expected: String = (0..next).map(|at| format!("line {at}\n")).collect();
    assert_eq!(String::from_utf8(text).unwrap(), expected);
    child.kill().unwrap();
    child.wait().unwrap();
}
