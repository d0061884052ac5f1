//! Logs in Loki.

use hindsight_proto::v1::{DescribeLogRequest, ReadLogRequest, SearchLogsRequest};
use serde_json::json;
use tonic::Code;

use super::{BEGAN_NS, describe, given, task_run};
use crate::{
    logs::{append, get_log, logs, message, read, whole},
    support::{
        Database, TestServer,
        database::each_database,
        http::Http,
        loki::{Act, Loki},
        server::refused,
    },
};

async fn start(database: &Database, loki: &Loki, more: &[(&str, &str)]) -> TestServer {
    let all = [&[("logs_loki_url", loki.url.as_str())], more].concat();
    TestServer::start_with(database, &all).await
}

/// Lines of two steps, each a millisecond after the one before.
fn steps(count: i64) -> Vec<(i64, &'static str, String)> {
    let line = |at: i64| {
        let container = if at % 2 == 0 { "step-two" } else { "step-one" };
        (BEGAN_NS + at * 1_000_000, container, format!("line {at}"))
    };
    (0..count).map(line).collect()
}

#[tokio::test]
async fn a_log_that_is_not_stored_is_read_from_loki_in_every_way() {
    for database in each_database().await {
        let loki = Loki::start().await;
        loki.has("uid=\"u-1\"", steps(6));
        let server = start(&database, &loki, &[]).await;
        let log = given(&server, "ci", &task_run("u-1", "build")).await;
        let text = "[one] line 1\n[one] line 3\n[one] line 5\n\n[two] line 0\n[two] line 2\n[two] line 4\n\n";
        let (got, _) = get_log(&server, &log).await.unwrap();
        assert_eq!(
            String::from_utf8(got).unwrap(),
            text,
            "the order of the steps"
        );
        let mut http = Http::one(&server.url).await;
        for version in ["v1alpha2", "v1alpha3"] {
            let path = format!("/apis/results.tekton.dev/{version}/parents/{log}");
            let reply = http.send("GET", &path, &[], "").await;
            assert_eq!((reply.status, reply.text().as_str()), (200, text));
        }

        let found = describe(&server, &log).await.unwrap();
        let names: Vec<_> = found
            .containers
            .iter()
            .map(|it| (it.source.clone().unwrap().container, it.lines, it.sealed))
            .collect();
        let expected = [
            ("step-one".to_owned(), 3, true),
            ("step-two".to_owned(), 3, true),
        ];
        assert_eq!(names, expected);
        assert!(found.containers.iter().all(|it| it.is_elsewhere));
        assert_eq!(found.containers[0].first_time.unwrap().nanos, 1_000_000);

        let tail = ReadLogRequest {
            tail: 1,
            ..whole(&log)
        };
        let (text, numbers) = read(&server, tail).await.unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "line 5\nline 4\n");
        assert_eq!(numbers, [2, 2]);
        let one = ReadLogRequest {
            containers: vec!["step-two".to_owned()],
            first_line: 1,
            limit: 1,
            ..whole(&log)
        };
        assert_eq!(read(&server, one).await.unwrap().0, b"line 2\n");

        let request = SearchLogsRequest {
            parent: "ci/results/-".to_owned(),
            pattern: "line 3".to_owned(),
            ..SearchLogsRequest::default()
        };
        let page = logs(&server).search_logs(request).await.unwrap();
        let matches = page.into_inner().matches;
        assert_eq!((matches.len(), matches[0].line), (1, 1));

        // What is stored comes first.
        append(&server, vec![message(&log, "step-one", 0, b"stored\n")])
            .await
            .unwrap();
        assert_eq!(get_log(&server, &log).await.unwrap().0, b"[one] stored\n\n");
        server.stop().await;
        database.remove().await;
    }
}

#[tokio::test]
async fn loki_is_asked_as_it_is_configured() {
    let (database, loki) = (Database::sqlite(), Loki::start().await);
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "s3cret\n").unwrap();
    let more = [
        ("logs_loki_token_file", token.to_str().unwrap()),
        ("logs_loki_tenant", "builds"),
    ];
    let server = start(&database, &loki, &more).await;
    let log = given(&server, "ci", &task_run("u-1", "build")).await;
    refused(
        get_log(&server, &log).await,
        Code::NotFound,
        "does not exist",
    );
    let got = loki.got();
    assert_eq!(got.len(), 1);
    assert_eq!(got[0].path, "/proxy/loki/api/v1/query_range");
    assert_eq!(got[0].headers["authorization"], "Bearer s3cret");
    assert_eq!(got[0].headers["x-scope-orgid"], "builds");
    assert_eq!(
        got[0].query,
        "{kubernetes_namespace_name=\"ci\"} | json container=\"kubernetes.container_name\", \
         pod=\"kubernetes.pod_name\", message=\"message\", \
         uid=\"kubernetes.labels.tekton_dev_taskRunUID\" | uid=\"u-1\" | line_format \"{{.message}}\""
    );
    server.stop().await;

    let query = "{ns=\"${namespace}\", run=\"${record}\"} |= \"${name}\"";
    let server = start(&database, &loki, &[("logs_loki_query", query)]).await;
    refused(
        get_log(&server, &log).await,
        Code::NotFound,
        "does not exist",
    );
    let last = loki.got().pop().unwrap();
    assert_eq!(last.query, "{ns=\"ci\", run=\"u-1\"} |= \"build\"");
    server.stop().await;
}

#[tokio::test]
async fn the_log_of_a_pipeline_run_is_put_together_of_its_task_runs() {
    let (database, loki) = (Database::sqlite(), Loki::start().await);
    loki.has("uid=\"u-1\"", steps(2));
    loki.has("uid=\"u-2\"", steps(2));
    let server = start(&database, &loki, &[]).await;
    let run = json!({
        "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
        "metadata": {"name": "release", "namespace": "ci", "uid": "release"},
        "status": {"startTime": "2026-03-02T09:00:00Z", "completionTime": "2026-03-02T09:59:00Z"},
    });
    let log = given(&server, "ci", &run).await;
    let mut second = task_run("u-2", "test");
    second["status"]["startTime"] = json!("2026-03-02T09:30:00Z");
    given(&server, "ci", &second).await;
    given(&server, "ci", &task_run("u-1", "build")).await;
    // Its lines are all after the window of the second one begins, by its start.
    let (text, _) = get_log(&server, &log).await.unwrap();
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "[build : one] line 1\n\n[build : two] line 0\n\n"
    );
    assert_eq!(describe(&server, &log).await.unwrap().containers, []);
    server.stop().await;
}

#[tokio::test]
async fn many_lines_come_in_pages_without_a_lost_or_doubled_one() {
    let (database, loki) = (Database::sqlite(), Loki::start().await);
    // Some share a time, also over the end of a page.
    let line = |at: i64| {
        let shared = at - at % 7;
        (BEGAN_NS + shared, "step-one", format!("line {at}"))
    };
    loki.has("uid=\"u-1\"", (0..3_500).map(line).collect());
    // More than a page at one time.
    let same = |at: i64| (BEGAN_NS + 5, "step-one", format!("line {at}"));
    loki.has("uid=\"u-2\"", (0..2_500).map(same).collect());
    // Lines of which a thousand are more than an answer may have.
    let wide = |at: i64| {
        (
            BEGAN_NS + at,
            "step-one",
            format!("{at} {}", "x".repeat(60_000)),
        )
    };
    loki.has("uid=\"u-3\"", (0..300).map(wide).collect());
    let server = start(&database, &loki, &[]).await;
    for (uid, count) in [("u-1", 3_500), ("u-2", 2_500), ("u-3", 300)] {
        let log = given(&server, "ci", &task_run(uid, "build")).await;
        let (text, numbers) = read(&server, whole(&log)).await.unwrap();
        assert_eq!(numbers.len(), count, "{uid}");
        let text = String::from_utf8(text).unwrap();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim_start_matches("line ");
            let number = line.split(' ').next().unwrap();
            assert_eq!(number, at.to_string(), "{uid}");
        }
    }
    assert!(loki.got().iter().any(|got| got.limit < 1000));
    server.stop().await;
}

#[tokio::test]
async fn a_log_of_more_bytes_than_are_read_ends_with_a_line_that_says_so() {
    let (database, loki) = (Database::sqlite(), Loki::start().await);
    loki.has("uid=\"u-1\"", steps(5_000));
    let server = start(&database, &loki, &[("logs_home_bytes", "2KiB")]).await;
    let log = given(&server, "ci", &task_run("u-1", "build")).await;
    let (text, _) = get_log(&server, &log).await.unwrap();
    let text = String::from_utf8(text).unwrap();
    let says = "has more of this log; 2048 bytes of one are read (logs_home_bytes)";
    assert!(text.contains(says) && text.len() < 5_000, "{text}");
    let found = describe(&server, &log).await.unwrap();
    assert_eq!(found.containers.iter().map(|it| it.holes).sum::<i64>(), 1);
    assert!(found.containers.iter().all(|it| !it.sealed));
    server.stop().await;
}

#[tokio::test]
async fn what_loki_does_wrong_is_unavailable_and_names_it_without_the_token() {
    let (database, loki) = (Database::sqlite(), Loki::start().await);
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "s3cret").unwrap();
    let more = [
        ("logs_loki_token_file", token.to_str().unwrap()),
        ("logs_home_timeout", "300ms"),
    ];
    let server = start(&database, &loki, &more).await;
    let log = given(&server, "ci", &task_run("u-1", "build")).await;
    for (act, says) in [
        (Act::Refuse(500, "boom"), "status 500: boom"),
        (
            Act::Refuse(401, "the token s3cret is wrong"),
            "it refuses the token (status 401)",
        ),
        (Act::Refuse(302, ""), "status 302"),
        (Act::Refuse(200, "<html>"), "its answer is none of Loki"),
        (Act::Hang, "no whole answer within 300ms"),
        (Act::Truncate, "its answer breaks off"),
    ] {
        loki.does(act.clone());
        let calls = [
            get_log(&server, &log).await.map(drop),
            read(&server, whole(&log)).await.map(drop),
            describe(&server, &log).await.map(drop),
        ];
        for call in calls {
            let said = format!("{:?}", call.clone().unwrap_err());
            assert!(!said.contains("s3cret"), "{said}");
            let name = format!("Loki at {}", loki.url);
            refused(call.clone(), Code::Unavailable, &name);
            refused(call, Code::Unavailable, says);
        }
    }
    // What is stored needs no other system.
    let request = DescribeLogRequest {
        name: log.clone(),
        only_stored: true,
    };
    let found = logs(&server).describe_log(request).await.unwrap();
    assert_eq!(found.into_inner().containers, []);
    append(&server, vec![message(&log, "step-one", 0, b"stored\n")])
        .await
        .unwrap();
    assert_eq!(get_log(&server, &log).await.unwrap().0, b"[one] stored\n\n");
    server.stop().await;
}

#[tokio::test]
async fn names_that_clients_write_do_not_reach_into_a_query() {
    let (database, loki) = (Database::sqlite(), Loki::start().await);
    loki.has("", steps(2));
    let server = start(&database, &loki, &[]).await;
    for (at, uid) in [
        "x\"} or {kubernetes_namespace_name=\"other",
        ".*",
        "a|b",
        "../u",
    ]
    .iter()
    .enumerate()
    {
        let mut object = task_run("plain", "build");
        object["metadata"]["uid"] = json!(uid);
        let record = format!("ci/results/r/records/run-{at}");
        let value = object.to_string();
        server
            .given_record(&record, "tekton.dev/v1.TaskRun", value.as_bytes())
            .await;
        let log = format!("ci/results/r/logs/run-{at}");
        refused(
            get_log(&server, &log).await,
            Code::NotFound,
            "does not exist",
        );
    }
    assert_eq!(loki.got().len(), 0, "nothing was asked");

    // A namespace of a cluster is not that of another one.
    let parent = "cluster/east/namespace/ci";
    let log = given(&server, parent, &task_run("u-9", "build")).await;
    refused(
        get_log(&server, &log).await,
        Code::NotFound,
        "does not exist",
    );
    assert_eq!(loki.got().len(), 0, "nothing was asked");
    server.stop().await;
}

#[tokio::test]
async fn secrets_are_left_out_of_lines_of_loki() {
    let (database, loki) = (Database::sqlite(), Loki::start().await);
    let line = "login with password=hunter2 done".to_owned();
    loki.has("uid=\"u-1\"", vec![(BEGAN_NS, "step-one", line)]);
    let more = [("logs_redact", r"password=\S+")];
    let server = start(&database, &loki, &more).await;
    let log = given(&server, "ci", &task_run("u-1", "build")).await;
    let (text, _) = get_log(&server, &log).await.unwrap();
    assert_eq!(
        String::from_utf8(text).unwrap(),
        "[one] login with *** done\n\n"
    );
    let request = SearchLogsRequest {
        parent: "ci/results/r".to_owned(),
        pattern: "hunter2".to_owned(),
        ..SearchLogsRequest::default()
    };
    let page = logs(&server).search_logs(request).await.unwrap();
    assert_eq!(page.into_inner().matches, []);
    server.stop().await;
}

#[tokio::test]
async fn a_followed_run_that_goes_on_is_not_looked_for_elsewhere() {
    let (database, loki) = (Database::sqlite(), Loki::start().await);
    loki.has("uid=\"u-1\"", steps(2));
    let server = start(&database, &loki, &[]).await;
    let ended = given(&server, "ci", &task_run("u-1", "build")).await;
    let follow = |log: &str| ReadLogRequest {
        follow: true,
        ..whole(log)
    };
    let (text, _) = read(&server, follow(&ended)).await.unwrap();
    assert_eq!(
        text, b"line 1\nline 0\n",
        "it has ended, and so does the stream"
    );
    let asked = loki.got().len();
    let mut object = task_run("u-2", "build");
    let status = object["status"].as_object_mut().unwrap();
    status.remove("completionTime");
    status.remove("conditions");
    let log = given(&server, "ci", &object).await;
    let mut stream = logs(&server)
        .read_log(follow(&log))
        .await
        .unwrap()
        .into_inner();
    append(&server, vec![message(&log, "step-one", 0, b"live\n")])
        .await
        .unwrap();
    let first = stream.message().await.unwrap().unwrap();
    assert_eq!(first.lines.unwrap().text, b"live\n");
    assert_eq!(loki.got().len(), asked);
    drop(stream);
    server.stop().await;
}
