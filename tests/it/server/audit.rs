//! The audit log: a line for every write and delete, also for those that were refused.

mod logs;

use hindsight_client::{Client, Options};
use hindsight_proto::{v1::upsert_outcome::Outcome, v1alpha2 as pb};
use serde_json::{Value, json};

use super::{ask, users};
use crate::support::{Database, TestServer, each_database};

fn lines(path: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The line without its time, which is checked to be one.
fn told(mut line: Value) -> Value {
    let time = line.as_object_mut().unwrap().remove("time").unwrap();
    time.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    line
}

async fn start(database: &Database, folder: &tempfile::TempDir) -> TestServer {
    start_with(database, folder, &[]).await
}

async fn start_with(
    database: &Database,
    folder: &tempfile::TempDir,
    more: &[(&str, &str)],
) -> TestServer {
    let users = users(
        folder,
        &[("ann", "admin"), ("bob", "readonly"), ("eve", "none")],
    );
    let log = folder.path().join("audit.jsonl").display().to_string();
    let all = [
        ("auth", "tokens"),
        ("auth_tokens_file", users.as_str()),
        ("audit_log", log.as_str()),
    ];
    TestServer::start_with(database, &[&all[..], more].concat()).await
}

/// Who, what and what came of it, of each line.
fn brief(lines: Vec<Value>) -> Vec<String> {
    let text = |line: &Value, key: &str| line[key].as_str().unwrap_or("-").to_owned();
    let brief = |line: &Value| ["caller", "verb", "name", "outcome"].map(|key| text(line, key));
    lines.iter().map(|line| brief(line).join(" ")).collect()
}

#[tokio::test]
async fn every_change_is_told_with_who_and_the_etags_before_and_after() {
    for database in each_database().await {
        let folder = tempfile::tempdir().unwrap();
        let server = start(&database, &folder).await;
        let named = r#"{"name":"ci/results/r"}"#;
        let created = ask(&server, "ann", "POST", "ci/results", &[], named)
            .await
            .ok();
        let again = ask(&server, "ann", "POST", "ci/results", &[], named).await;
        assert_eq!(again.status, 409);
        let change = r#"{"annotations":{"a":"b"}}"#;
        let updated = ask(&server, "ann", "PATCH", "ci/results/r", &[], change)
            .await
            .ok();
        let stale = [("etag", created["etag"].as_str().unwrap())];
        let refused = ask(&server, "ann", "PATCH", "ci/results/r", &stale, change).await;
        assert_eq!(refused.status, 400);
        let denied = ask(&server, "bob", "DELETE", "ci/results/r", &[], "").await;
        assert_eq!(denied.status, 403);
        let elsewhere = r#"{"name":"ci/results/r/records/x"}"#;
        let denied = ask(
            &server,
            "bob",
            "POST",
            "ci/results/r/records",
            &[],
            elsewhere,
        )
        .await;
        assert_eq!(denied.status, 403);
        let unknown = ask(&server, "who", "DELETE", "ci/results/r", &[], "").await;
        assert_eq!(unknown.status, 401, "nobody in particular is not told");
        ask(&server, "ann", "GET", "ci/results/r", &[], "")
            .await
            .ok();
        ask(&server, "ann", "DELETE", "ci/results/r", &[], "")
            .await
            .ok();
        let gone = ask(&server, "ann", "DELETE", "ci/results/r", &[], "").await;
        assert_eq!(gone.status, 404);
        server.stop().await;

        let line = |verb: &str, outcome: &str, etags: Value| {
            let mut line = json!({
                "request": "abc-1", "caller": "ann", "verb": verb, "name": "ci/results/r",
                "outcome": outcome,
            });
            let Value::Object(etags) = etags else {
                panic!()
            };
            line.as_object_mut().unwrap().extend(etags);
            line
        };
        let refused = |verb: &str, name: &str| {
            json!({
                "request": "abc-1", "caller": "bob", "verb": verb, "name": name,
                "outcome": "PERMISSION_DENIED",
            })
        };
        let (first, second) = (&created["etag"], &updated["etag"]);
        let expected = [
            line("create", "OK", json!({"after": first})),
            line("create", "ALREADY_EXISTS", json!({})),
            line("update", "OK", json!({"before": first, "after": second})),
            line("update", "FAILED_PRECONDITION", json!({})),
            refused("delete", "ci/results/r"),
            refused("create", "ci/results/r/records/x"),
            line("delete", "OK", json!({"before": second})),
            line("delete", "NOT_FOUND", json!({})),
        ];
        let seen: Vec<_> = lines(&folder.path().join("audit.jsonl"))
            .into_iter()
            .map(told)
            .collect();
        assert_eq!(seen, expected);
        database.remove().await;
    }
}

/// Sends so many records as this user; how many were stored.
async fn streamed(server: &TestServer, user: &str, count: u64) -> usize {
    let client = Client::new(&Options {
        token: Some(user.into()),
        ..Options::new(&server.url)
    });
    let requests = (0..count).map(|n| hindsight_proto::v1::UpsertRequest {
        id: n,
        record: Some(pb::Record {
            name: format!("ci/results/r/records/{n}"),
            data: Some(pb::Any {
                r#type: "t".into(),
                value: "{}".into(),
            }),
            ..Default::default()
        }),
        ..Default::default()
    });
    let mut stream = client.unwrap().ingest();
    let answers = stream
        .upsert(futures::stream::iter(requests.collect::<Vec<_>>()))
        .await;
    let mut answers = answers.unwrap().into_inner();
    let mut stored = 0;
    while let Some(answer) = answers.message().await.unwrap() {
        stored += answer
            .outcomes
            .iter()
            .filter(|one| matches!(one.outcome, Some(Outcome::Stored(_))))
            .count();
    }
    stored
}

#[tokio::test]
async fn a_stream_of_records_is_told_record_by_record() {
    let (database, folder) = (Database::sqlite(), tempfile::tempdir().unwrap());
    let server = start(&database, &folder).await;
    assert_eq!(streamed(&server, "ann", 20).await, 20);
    assert_eq!(streamed(&server, "bob", 2).await, 0);
    server.stop().await;
    let seen = lines(&folder.path().join("audit.jsonl"));
    let (seen, refused) = seen.split_at(21);
    for (n, line) in refused.iter().enumerate() {
        let expected = json!({
            "caller": "bob", "verb": "create", "name": format!("ci/results/r/records/{n}"),
            "outcome": "PERMISSION_DENIED",
        });
        assert_eq!(told(line.clone()), expected);
    }
    assert_eq!(refused.len(), 2);
    for line in seen {
        assert_eq!(
            (&line["caller"], &line["verb"], &line["outcome"]),
            (&json!("ann"), &json!("create"), &json!("OK"))
        );
        assert!(line["after"].is_string());
    }
}

#[tokio::test]
async fn a_log_that_was_moved_away_is_begun_anew() {
    let (database, folder) = (Database::sqlite(), tempfile::tempdir().unwrap());
    let server = start(&database, &folder).await;
    let (log, old) = (folder.path().join("audit.jsonl"), folder.path().join("old"));
    ask(
        &server,
        "ann",
        "POST",
        "ci/results",
        &[],
        r#"{"name":"ci/results/a"}"#,
    )
    .await
    .ok();
    std::fs::rename(&log, &old).unwrap();
    ask(
        &server,
        "ann",
        "POST",
        "ci/results",
        &[],
        r#"{"name":"ci/results/b"}"#,
    )
    .await
    .ok();
    server.stop().await;
    assert_eq!((lines(&old).len(), lines(&log).len()), (1, 1));
}

#[tokio::test]
async fn a_log_that_ends_within_a_line_goes_on_with_a_new_one() {
    let (database, folder) = (Database::sqlite(), tempfile::tempdir().unwrap());
    let log = folder.path().join("audit.jsonl");
    std::fs::write(&log, "{\"time\":\"2026-").unwrap();
    let server = start(&database, &folder).await;
    for name in ["ci/results/a", "ci/results/b"] {
        let body = json!({ "name": name }).to_string();
        let made = ask(&server, "ann", "POST", "ci/results", &[], &body).await;
        made.ok();
    }
    server.stop().await;
    let text = std::fs::read_to_string(&log).unwrap();
    let whole = |line: &&str| serde_json::from_str::<Value>(line).is_ok();
    assert_eq!(text.lines().count(), 3, "{text}");
    assert_eq!(text.lines().filter(whole).count(), 2, "{text}");
}

#[tokio::test]
async fn a_change_that_is_refused_on_its_way_to_the_store_is_told_too() {
    for database in each_database().await {
        let folder = tempfile::tempdir().unwrap();
        let server = start(&database, &folder).await;
        let summary = r#"{"name":"ci/results/r","summary":{"record":"?","type":"t"}}"#;
        let elsewhere =
            r#"{"name":"ci/results/r","summary":{"record":"dev/results/r/records/a","type":"t"}}"#;
        let typed = |value: &str| {
            format!(
                r#"{{"name":"ci/results/r/records/a","data":{{"type":"tekton.dev/v1.TaskRun","value":"{value}"}}}}"#
            )
        };
        let (number, text) = (typed("Nw=="), typed("e30="));
        let asked = [
            ("POST", "ci/results", "", summary, 400),
            ("POST", "ci/results", "", elsewhere, 400),
            ("POST", "ci/results", "", r#"{"name":"ci/results/r"}"#, 200),
            (
                "PATCH",
                "ci/results/r",
                "",
                r#"{"summary":{"record":"?"}}"#,
                400,
            ),
            ("PATCH", "ci/results/none", "", "{}", 404),
            ("PATCH", "ci/results/r", "etag=stale", "{}", 400),
            ("POST", "ci/results/r/records", "", number.as_str(), 400),
            ("POST", "ci/results/r/records", "", text.as_str(), 200),
            ("PATCH", "ci/results/r/records/none", "", "{}", 404),
            ("PATCH", "ci/results/r/records/a", "etag=stale", "{}", 400),
            ("PATCH", "ci/results/r/records/a", "", number.as_str(), 400),
            (
                "PATCH",
                "ci/results/r/records/a",
                "update_mask=colour",
                "{}",
                400,
            ),
            ("DELETE", "ci/results/r/records/none", "", "", 404),
        ];
        for (verb, path, query, body, status) in asked {
            let query: Vec<_> = query.split_once('=').into_iter().collect();
            let reply = ask(&server, "ann", verb, path, &query, body).await;
            assert_eq!(
                reply.status,
                status,
                "{verb} {path} {body}: {}",
                reply.text()
            );
        }
        server.stop().await;
        let seen = brief(lines(&folder.path().join("audit.jsonl")));
        let expected = [
            "ann create ci/results/r INVALID_ARGUMENT",
            "ann create ci/results/r INVALID_ARGUMENT",
            "ann create ci/results/r OK",
            "ann update ci/results/r INVALID_ARGUMENT",
            "ann update ci/results/none NOT_FOUND",
            "ann update ci/results/r FAILED_PRECONDITION",
            "ann create ci/results/r/records/a INVALID_ARGUMENT",
            "ann create ci/results/r/records/a OK",
            "ann update ci/results/r/records/none NOT_FOUND",
            "ann update ci/results/r/records/a FAILED_PRECONDITION",
            "ann update ci/results/r/records/a INVALID_ARGUMENT",
            "ann update ci/results/r/records/a INVALID_ARGUMENT",
            "ann delete ci/results/r/records/none NOT_FOUND",
        ];
        assert_eq!(seen, expected);
        database.remove().await;
    }
}

#[tokio::test]
async fn a_change_over_the_budget_is_told() {
    let (database, folder) = (Database::sqlite(), tempfile::tempdir().unwrap());
    let server = start_with(&database, &folder, &[("caller_max_rate", "1")]).await;
    let mut statuses = Vec::new();
    while statuses.last() != Some(&429) {
        let body = r#"{"name":"ci/results/r"}"#;
        let reply = ask(&server, "ann", "POST", "ci/results", &[], body).await;
        statuses.push(reply.status);
        assert!(statuses.len() < 1000);
    }
    server.stop().await;
    let seen = brief(lines(&folder.path().join("audit.jsonl")));
    assert_eq!(seen.len(), statuses.len());
    assert_eq!(
        seen.last().unwrap(),
        "ann create ci/results/r RESOURCE_EXHAUSTED"
    );
}

#[tokio::test]
async fn reads_that_are_denied_are_told_where_that_is_wanted() {
    for (wanted, count) in [("false", 0), ("true", 3)] {
        let (database, folder) = (Database::sqlite(), tempfile::tempdir().unwrap());
        let server = start_with(&database, &folder, &[("audit_denied_reads", wanted)]).await;
        let get = |user, path| ask(&server, user, "GET", path, &[], "");
        assert_eq!(get("eve", "ci/results/r").await.status, 403);
        assert_eq!(get("eve", "-/results").await.status, 403);
        assert_eq!(get("eve", "ci/results/-/records").await.status, 403);
        assert_eq!(get("nobody", "ci/results").await.status, 401);
        assert_eq!(get("ann", "ci/results/r").await.status, 404);
        server.stop().await;
        let seen = brief(lines(&folder.path().join("audit.jsonl")));
        let expected = [
            "eve get ci/results/- PERMISSION_DENIED",
            "eve list -/results/- PERMISSION_DENIED",
            "eve list ci/results/-/records/- PERMISSION_DENIED",
        ];
        assert_eq!(seen, expected[..count]);
    }
}

#[tokio::test]
async fn a_record_of_a_stream_that_makes_no_sense_is_told() {
    let (database, folder) = (Database::sqlite(), tempfile::tempdir().unwrap());
    let server = start(&database, &folder).await;
    let client = Client::new(&Options {
        token: Some("ann".into()),
        ..Options::new(&server.url)
    });
    let record = |name: &str, value: &'static str| hindsight_proto::v1::UpsertRequest {
        record: Some(pb::Record {
            name: format!("ci/results/r/records/{name}"),
            data: Some(pb::Any {
                r#type: "tekton.dev/v1.TaskRun".into(),
                value: value.into(),
            }),
            ..Default::default()
        }),
        ..Default::default()
    };
    let mut empty = record("empty", "");
    empty.record.as_mut().unwrap().data = None;
    let requests = [record("text", "7"), empty];
    let mut stream = client.unwrap().ingest();
    let answers = stream.upsert(futures::stream::iter(requests)).await;
    let mut answers = answers.unwrap().into_inner();
    while answers.message().await.unwrap().is_some() {}
    server.stop().await;
    let mut seen = brief(lines(&folder.path().join("audit.jsonl")));
    seen.sort();
    let expected = [
        "ann create ci/results/r/records/empty INVALID_ARGUMENT",
        "ann create ci/results/r/records/text INVALID_ARGUMENT",
    ];
    assert_eq!(seen, expected);
}
