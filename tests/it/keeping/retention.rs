//! Retention and holds by commands and by a server, with what the audit log and the metrics say.

use hindsight_proto::v1 as pb;
use serde_json::{Value, json};
use tonic::Code;

use crate::support::{
    Database, TestServer, each_database,
    http::Http,
    process::{Said, run},
    schema::faults,
};

const PIPELINE_RUN: &str = "tekton.dev/v1.PipelineRun";
const FILE: &str = "run_at = '30 3 * * * Europe/Berlin'\n[[policies]]\nname = 'failed'\n\
    outcomes = ['failed']\nkeep_for = '90d'\n[default]\nkeep_for = '30d'\n";

/// A run that ended in 2020, or goes on.
fn object(name: &str, reason: Option<&str>) -> Vec<u8> {
    let status = if reason == Some("Failed") {
        "False"
    } else {
        "True"
    };
    let mut object = json!({"kind": "PipelineRun", "metadata": {"name": name, "namespace": "ci"},
        "status": {"conditions": [{"type": "Succeeded", "status": "Unknown", "reason": "Running"}]}});
    if let Some(reason) = reason {
        object["status"] = json!({"completionTime": "2020-01-01T00:00:00Z", "conditions": [
            {"type": "Succeeded", "status": status, "reason": reason}]});
    }
    serde_json::to_vec(&object).unwrap()
}

async fn given(server: &TestServer) {
    for (name, reason) in [
        ("good", Some("Succeeded")),
        ("bad", Some("Failed")),
        ("held", Some("Succeeded")),
        ("running", None),
    ] {
        let object = object(name, reason);
        let name = format!("ci/results/{name}/records/{name}");
        server.given_record(&name, PIPELINE_RUN, &object).await;
    }
}

struct Files(tempfile::TempDir);

impl Files {
    fn of(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("retention.toml"), text).unwrap();
        Self(folder)
    }

    fn file(&self) -> String {
        self.0.path().join("retention.toml").display().to_string()
    }

    fn log(&self) -> String {
        self.0.path().join("audit.jsonl").display().to_string()
    }

    fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    }

    async fn retention(&self, database: &Database, more: &[&str]) -> Said {
        let (url, file, log) = (database.url(), self.file(), self.log());
        let fixed = ["--db", &url, "--retention-file", &file, "--audit-log", &log];
        let mut arguments = vec!["retention", more[0]];
        arguments.extend(fixed);
        arguments.extend(&more[1..]);
        run(&arguments).await
    }
}

async fn hold(server: &TestServer, arguments: &[&str]) -> Said {
    let mut all = vec!["hold"];
    all.extend(arguments);
    all.extend(["--server", &server.url]);
    run(&all).await
}

fn results(said: &Said) -> Vec<String> {
    let lines = said
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    let mut all: Vec<_> = lines
        .map(|line| format!("{} {}", text(&line, "result"), text(&line, "policy")))
        .collect();
    all.sort();
    all
}

#[tokio::test]
async fn a_plan_lists_what_a_run_deletes_and_what_is_held_stays() {
    for database in each_database().await {
        let server = TestServer::start(&database).await;
        given(&server).await;
        let said = hold(
            &server,
            &["add", "held", "-n", "ci", "--reason", "an audit"],
        )
        .await;
        assert_eq!(
            (said.code, said.out.as_str()),
            (0, "ci/results/held held\n"),
            "{said:?}"
        );
        let said = hold(&server, &["list", "-n", "ci", "-o", "json"]).await;
        let listed: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(listed[0]["result"], "ci/results/held");
        assert_eq!(listed[0]["reason"], "an audit");

        let files = Files::of(FILE);
        let plan = files.retention(&database, &["plan", "-o", "jsonl"]).await;
        assert_eq!(plan.code, 0, "{plan:?}");
        let wanted = ["ci/results/bad failed", "ci/results/good default"];
        assert_eq!(results(&plan), wanted);
        assert!(plan.err.contains("1 more are held"), "{plan:?}");
        let document = files.retention(&database, &["plan", "-o", "json"]).await;
        let document: Value = serde_json::from_str(&document.out).unwrap();
        let schemas: Value =
            serde_json::from_str(include_str!("../../../docs/cli.schema.json")).unwrap();
        let found = faults(&schemas, &schemas["$defs"]["retention"], &document);
        assert_eq!(found, [""; 0]);
        let bytes = object("good", Some("Succeeded")).len();
        assert_eq!(
            document["policies"]["default"],
            json!({"results": 1, "records": 1, "bytes": bytes})
        );
        assert_eq!(server.ids("ci/results/-", "").await.unwrap().len(), 4);
        assert_eq!(files.lines(), Vec::<Value>::new(), "nothing was deleted");

        let said = files.retention(&database, &["run"]).await;
        said.fails(2, "add --yes to go on");
        let done = files
            .retention(&database, &["run", "--yes", "-o", "jsonl"])
            .await;
        assert_eq!(done.code, 0, "{done:?}");
        assert_eq!(done.out, plan.out, "what was planned");
        let mut left = server.ids("ci/results/-", "").await.unwrap();
        left.sort();
        assert_eq!(left, ["held", "running"]);
        let lines = files.lines();
        assert_eq!(lines.len(), 4, "{lines:?}");
        let good = lines
            .iter()
            .filter(|line| line["name"] == "ci/results/good");
        let good: Vec<_> = good.collect();
        assert_eq!(
            [&good[0]["outcome"], &good[1]["outcome"]],
            ["PENDING", "OK"]
        );
        for line in good {
            assert_eq!(line["verb"], "delete");
            assert_eq!(line["policy"], "default");
            assert_eq!(line["bytes"], json!(bytes));
            assert!(
                line["uid"].is_string() && line["before"].is_string(),
                "{line}"
            );
        }

        let said = hold(&server, &["remove", "ci/results/held"]).await;
        assert_eq!(said.code, 0, "{said:?}");
        let done = files.retention(&database, &["run", "--yes"]).await;
        assert!(done.out.contains("ci/results/held"), "{done:?}");
        server.stop().await;
        database.remove().await;
    }
}

#[tokio::test]
async fn nothing_goes_that_the_audit_log_does_not_take() {
    for database in each_database().await {
        let server = TestServer::start(&database).await;
        given(&server).await;
        let before = server.ids("ci/results/-", "").await.unwrap();
        let (files, url) = (Files::of(FILE), database.url());
        let file = files.file();
        let common = ["--db", &url, "--retention-file", &file];
        let full = ["retention", "run", "--yes", "--audit-log", "/dev/full"];
        let said = run(&[&full[..], &common].concat()).await;
        said.fails(1, "writing the audit log");
        assert_eq!(server.ids("ci/results/-", "").await.unwrap(), before);
        server.stop().await;
        database.remove().await;
    }
}

#[tokio::test]
async fn a_server_deletes_at_its_start_tells_so_and_counts_it() {
    for database in each_database().await {
        let server = TestServer::start(&database).await;
        given(&server).await;
        server.stop().await;
        let files = Files::of(FILE);
        let (file, log) = (files.file(), files.log());
        let more = [
            ("retention_file", file.as_str()),
            ("audit_log", log.as_str()),
        ];
        let server = TestServer::start_with(&database, &more).await;
        let metrics = async || {
            let mut http = Http::one(&format!("http://{}", server.admin)).await;
            http.send("GET", "/metrics", &[], "").await.text()
        };
        while metrics()
            .await
            .contains("hindsight_retention_last_pass_timestamp_seconds 0\n")
        {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let text = metrics().await;
        for line in [
            "hindsight_retention_deleted_runs_total{policy=\"default\"} 2",
            "hindsight_retention_deleted_runs_total{policy=\"failed\"} 1",
            "hindsight_retention_failures_total 0",
        ] {
            assert!(text.contains(line), "no `{line}` in {text}");
        }
        assert_eq!(server.ids("ci/results/-", "").await.unwrap(), ["running"]);
        let lines = files.lines();
        assert_eq!(lines.len(), 6, "{lines:?}");
        assert!(
            lines
                .iter()
                .all(|line| line["caller"] == "hindsight:retention"),
            "{lines:?}"
        );
        server.stop().await;
        database.remove().await;
    }
}

#[tokio::test]
async fn holds_are_told_by_rpc_and_their_mistakes_refused() {
    for database in each_database().await {
        let files = Files::of(FILE);
        let log = files.log();
        let server = TestServer::start_with(&database, &[("audit_log", &log)]).await;
        server.given_result("ci/results/r").await;
        let mut holds = server.client().holds();
        let ask = |reason: &str, seconds: Option<i64>| pb::CreateHoldRequest {
            result: "ci/results/r".to_owned(),
            reason: reason.to_owned(),
            expire_time: seconds.map(|seconds| prost_types::Timestamp { seconds, nanos: 0 }),
        };
        for (wrong, says) in [
            (ask(" ", None), "reason"),
            (ask("a", Some(1)), "expire_time"),
        ] {
            let refused = holds.create_hold(wrong).await.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument);
            assert!(refused.message().contains(says), "{refused:?}");
        }
        let made = holds
            .create_hold(ask("an audit", Some(4_000_000_000)))
            .await;
        let made = made.unwrap().into_inner();
        assert_eq!(made.reason, "an audit");
        let again = holds.create_hold(ask("another", None)).await.unwrap_err();
        assert_eq!(again.code(), Code::AlreadyExists);
        let request = pb::ListHoldsRequest {
            parent: "-".to_owned(),
            page_size: 1,
            page_token: String::new(),
        };
        let page = holds
            .list_holds(request.clone())
            .await
            .unwrap()
            .into_inner();
        assert_eq!(page.holds, [made]);
        let next = pb::ListHoldsRequest {
            page_token: page.next_page_token,
            ..request.clone()
        };
        let page = holds.list_holds(next).await.unwrap().into_inner();
        assert_eq!((page.holds.len(), page.next_page_token.as_str()), (0, ""));
        let request = pb::ListHoldsRequest {
            page_token: "odd".to_owned(),
            ..request
        };
        let odd = holds.list_holds(request).await.unwrap_err();
        assert_eq!(odd.code(), Code::InvalidArgument);
        let delete = || pb::DeleteHoldRequest {
            result: "ci/results/r".to_owned(),
        };
        holds.delete_hold(delete()).await.unwrap();
        let gone = holds.delete_hold(delete()).await.unwrap_err();
        assert_eq!(gone.code(), Code::NotFound);
        let lines = files.lines();
        let of_hold: Vec<_> = lines
            .iter()
            .filter(|line| line["name"] == "ci/results/r/hold")
            .map(|line| format!("{} {}", line["verb"], line["outcome"]))
            .collect();
        let wanted = [
            "\"create\" \"INVALID_ARGUMENT\"",
            "\"create\" \"INVALID_ARGUMENT\"",
            "\"create\" \"OK\"",
            "\"create\" \"ALREADY_EXISTS\"",
            "\"delete\" \"OK\"",
            "\"delete\" \"NOT_FOUND\"",
        ];
        assert_eq!(of_hold, wanted);
        server.stop().await;
        database.remove().await;
    }
}

#[tokio::test]
async fn a_file_with_a_mistake_keeps_a_server_from_starting() {
    let files = Files::of(
        "run_at = '30 3 * * * UTC'\n[[policies]]\nname = 'p'\nkeep_for = '7d'\n[default]\nkeep_for = '7d'\n",
    );
    let (database, file) = (Database::sqlite(), files.file());
    let url = database.url();
    let common = ["--db", &url, "--retention-file", &file];
    let serve = [&["serve", "--listen", "127.0.0.1:0"][..], &common].concat();
    let said = run(&serve).await;
    said.fails(2, "policy `p`: it has neither `when` nor `outcomes`");
    let said = run(&[&["retention", "plan"][..], &common].concat()).await;
    said.fails(2, "it has neither `when` nor `outcomes`");
    let said = run(&["retention", "plan", "--db", &url]).await;
    said.fails(2, "retention_file is not set");
    database.remove().await;
}

#[tokio::test]
async fn a_config_map_of_the_agent_is_converted_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("map.yaml");
    let path = at.display().to_string();
    let map = |policies: &str| {
        format!(
            "kind: ConfigMap\ndata:\n  runAt: \"5 5 * * 0\"\n  defaultRetention: \"30\"\n  policies: |\n{policies}"
        )
    };
    let good = "    - name: short\n      selector: {matchNamespaces: [ci]}\n      retention: 7d\n";
    std::fs::write(&at, map(good)).unwrap();
    let said = run(&["retention", "convert", &path, "--zone", "Europe/Berlin"]).await;
    said.prints(0, "run_at = \"5 5 * * 0 Europe/Berlin\"");
    assert!(said.out.contains("parent in [\"ci\"]"), "{said:?}");
    std::fs::write(&at, map(&good.replace("matchNamespaces", "matchNamespace"))).unwrap();
    run(&["retention", "convert", &path])
        .await
        .fails(2, "matchNamespace");
}
