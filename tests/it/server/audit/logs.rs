//! Lines of logs: told once they are stored, whatever becomes of their stream.

use std::time::{Duration, Instant};

use hindsight_proto::v1::{AppendLogRequest, SearchLogsRequest};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

use super::{brief, lines, start, start_with};
use crate::{
    logs::{logs_as, message, whole},
    support::{Database, TestServer, each_database, server::refused},
};

const SOON: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// What the audit log says of what has this in its name.
fn told_of(folder: &tempfile::TempDir, part: &str) -> Vec<String> {
    let seen = brief(lines(&folder.path().join("audit.jsonl")));
    seen.into_iter()
        .filter(|line| line.contains(part))
        .collect()
}

/// Waits until the audit log has this.
async fn until_told(folder: &tempfile::TempDir, part: &str) {
    let log = folder.path().join("audit.jsonl");
    let began = Instant::now();
    while !std::fs::read_to_string(&log).unwrap().contains(part) {
        assert!(began.elapsed() < SOON, "`{part}` is not told");
        tokio::time::sleep(PAUSE).await;
    }
}

/// A file with one user, who is the token too.
fn user(folder: &tempfile::TempDir, name: &str, grants: &str) -> String {
    let hash = hindsight_access::auth::token_hash(name);
    let text = format!(
        "[[users]]\nname = '{name}'\nsha256 = ['{hash}']\n\
         grants = [{{parents = ['ci'], {grants}}}]\n"
    );
    let path = folder.path().join("user.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

async fn append_as(
    server: &TestServer,
    user: &str,
    messages: Vec<AppendLogRequest>,
) -> Result<(), Status> {
    let sent = tokio_stream::iter(messages);
    logs_as(server, user).append_log(sent).await.map(drop)
}

#[tokio::test]
async fn lines_of_a_stream_whose_caller_goes_away_are_told() {
    for database in each_database().await {
        let folder = tempfile::tempdir().unwrap();
        let server = start(&database, &folder).await;
        let name = "ci/results/r/logs/run";
        let (line, brought) = mpsc::channel(1);
        let mut appending = logs_as(&server, "ann");
        let call = tokio::spawn(async move {
            let sent = ReceiverStream::new(brought);
            appending.append_log(sent).await.map(drop)
        });
        line.send(message(name, "step", 0, b"a\n")).await.unwrap();
        let began = Instant::now();
        while logs_as(&server, "ann").read_log(whole(name)).await.is_err() {
            assert!(began.elapsed() < SOON, "the line is not stored");
            tokio::time::sleep(PAUSE).await;
        }
        // Its stream is reset, and never comes to its end.
        call.abort();
        until_told(&folder, "/logs/run").await;
        drop(line);
        server.stop().await;
        assert_eq!(
            told_of(&folder, "/logs/"),
            ["ann update ci/results/r/logs/run OK"]
        );
        database.remove().await;
    }
}

#[tokio::test]
async fn who_is_refused_with_the_first_message_of_lines_is_told() {
    let (database, folder) = (Database::sqlite(), tempfile::tempdir().unwrap());
    let server = start(&database, &folder).await;
    let name = "ci/results/r/logs/run";
    let good = message(name, "step", 0, b"a\n");
    let denied = append_as(&server, "bob", vec![good.clone()]).await;
    refused(denied, Code::PermissionDenied, "denied");
    let odd = AppendLogRequest {
        source: None,
        ..good
    };
    let wrong = append_as(&server, "ann", vec![odd]).await;
    refused(wrong, Code::InvalidArgument, "source is missing");
    server.stop().await;
    let expected = [
        "bob update ci/results/r/logs/run PERMISSION_DENIED",
        "ann update ci/results/r/logs/run INVALID_ARGUMENT",
    ];
    assert_eq!(told_of(&folder, "/logs/"), expected);
}

#[tokio::test]
async fn lines_that_were_stored_are_told_as_such_if_a_later_message_is_refused() {
    for database in each_database().await {
        let folder = tempfile::tempdir().unwrap();
        let user = user(&folder, "cat", "role = 'admin'");
        let more = [("auth_tokens_file", user.as_str())];
        let server = start_with(&database, &folder, &more).await;
        let line = |name: &str, first| message(name, "step", first, b"a\n");
        let good = |id: &str| line(&format!("ci/results/r/logs/{id}"), 0);
        let mut odd = good("b-2");
        odd.source.as_mut().unwrap().restart = -1;
        for (id, then, code) in [
            (
                "a-1",
                line("other/results/r/logs/b-1", 0),
                Code::PermissionDenied,
            ),
            ("a-2", odd, Code::InvalidArgument),
            (
                "a-3",
                line("ci/results/r/logs/a-3", 5),
                Code::FailedPrecondition,
            ),
            (
                "a-4",
                line("ci/results/r/logs/b-4", 5),
                Code::FailedPrecondition,
            ),
        ] {
            let refusal = append_as(&server, "cat", vec![good(id), then]).await;
            refused(refusal, code, "");
            let name = format!("ci/results/r/logs/{id}");
            let reading = logs_as(&server, "cat").read_log(whole(&name)).await;
            let first = reading.unwrap().into_inner().message().await.unwrap();
            assert_eq!(first.unwrap().lines.unwrap().text, b"a\n", "{id} is kept");
        }
        server.stop().await;
        let mut seen = told_of(&folder, "/logs/");
        seen.sort();
        let expected = [
            "cat update ci/results/r/logs/a-1 OK",
            "cat update ci/results/r/logs/a-2 OK",
            "cat update ci/results/r/logs/a-3 FAILED_PRECONDITION",
            "cat update ci/results/r/logs/a-3 OK",
            "cat update ci/results/r/logs/a-4 OK",
            "cat update ci/results/r/logs/b-2 INVALID_ARGUMENT",
            "cat update ci/results/r/logs/b-4 FAILED_PRECONDITION",
            "cat update other/results/r/logs/b-1 PERMISSION_DENIED",
        ];
        assert_eq!(seen, expected);
        database.remove().await;
    }
}

#[tokio::test]
async fn a_search_of_logs_by_one_who_may_not_list_records_is_told() {
    let (database, folder) = (Database::sqlite(), tempfile::tempdir().unwrap());
    let user = user(&folder, "dan", r#"verbs = ["get"], resources = ["logs"]"#);
    let more = [
        ("auth_tokens_file", user.as_str()),
        ("audit_denied_reads", "true"),
    ];
    let server = start_with(&database, &folder, &more).await;
    let search = SearchLogsRequest {
        parent: "ci/results/-".to_owned(),
        pattern: "a".to_owned(),
        ..SearchLogsRequest::default()
    };
    let denied = logs_as(&server, "dan").search_logs(search).await;
    refused(denied, Code::PermissionDenied, "denied");
    server.stop().await;
    let expected = ["dan list ci/results/-/records/- PERMISSION_DENIED"];
    assert_eq!(told_of(&folder, ""), expected);
}
