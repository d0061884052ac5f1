//! Runs of long ago, whose ages have two digits for long, and runs of the last days; and that nothing
//! which they say steers a terminal.

use hindsight_runtime::clock::{Clock as _, SystemClock};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde_json::{Value, json};

use super::objects::{record, release, task_of};
use crate::logs::{append, message, seal};
use crate::support::{
    Database, TestServer,
    objects::{PIPELINE_RUN, TASK_RUN, bytes},
    process::run,
};

/// Commands about runs of long ago, each with a name.
pub(super) const COMMANDS: [(&str, &str); 16] = [
    ("runs", "runs -A"),
    ("runs-wide", "runs -n shop is:top -o wide"),
    (
        "runs-columns",
        "runs -A --columns run,outcome,ended,queue,label:team",
    ),
    ("list-runs", "list runs -A"),
    ("list-records", "list records -n shop -o wide --limit 3"),
    ("list-results", "list results -n shop"),
    ("get-run", "get run release-42 -n shop"),
    ("get-result", "get result shop/results/release-42"),
    ("describe", "describe release-44 -n shop"),
    ("describe-running", "describe release-46 -n shop"),
    ("why", "why release-44 -n shop"),
    ("diff", "diff release-44 -n shop"),
    ("stats", "stats -A --by pipeline"),
    (
        "stats-outcome",
        "stats -A --by outcome,day -m count,succeeded,max(duration)",
    ),
    ("top", "top -A --since 1990-01-01 --once"),
    ("explain", "explain runs -n shop -f data.spec.retries>0"),
];

/// An object in which 2026 is 1990, so that its age has two digits until 2089 and tables keep their widths.
fn old(object: &Value) -> Vec<u8> {
    object.to_string().replace("2026-", "1990-").into_bytes()
}

/// Runs of a pipeline in spring 1990, and one whose texts are long and steer terminals.
pub(super) async fn given_old(server: &TestServer) {
    for (run, hour, revision, reason) in [
        ("release-40", 7, "a0", "Succeeded"),
        ("release-41", 8, "a1", "Succeeded"),
        ("release-42", 9, "b2", "Failed"),
        ("release-43", 10, "b3", "PipelineRunTimeout"),
        ("release-44", 11, "b4", "Failed"),
        ("release-46", 13, "b6", "Running"),
    ] {
        let mut object = release(run, hour, revision, reason);
        object["metadata"]["labels"]["team"] = json!("ops");
        if reason == "Running" {
            object["status"] = json!({"startTime": "2026-03-02T13:00:04Z",
                "conditions": [{"type": "Succeeded", "status": "Unknown", "reason": "Running"}]});
        }
        server
            .given_record(&record(run), PIPELINE_RUN, &old(&object))
            .await;
        let (took, code) = match reason {
            "Succeeded" => (110, 0),
            "Running" => continue,
            _ => (161, 137),
        };
        for (task, at, code) in [("build", (0, 60), 0), ("test", (2, took), code)] {
            let name = format!("shop/results/{run}/records/{run}-{task}");
            let task = task_of(&object, task, at, code);
            server.given_record(&name, TASK_RUN, &old(&task)).await;
        }
    }
    let mut odd = release("odd", 14, "\u{1b}[31mred\u{202e}", "Failed");
    let name = format!("nightly-{}-x7k2p", "of-a-very-long-name".repeat(4));
    odd["metadata"]["name"] = json!(name);
    odd["metadata"]["namespace"] = json!("data-science-and-analytics");
    odd["metadata"]["labels"] = json!({"tekton.dev/pipeline": "nightly-\u{1b}]0;x\u{7}\u{202e}"});
    odd["status"]["conditions"][0]["reason"] = json!("CouldntGetPipelineResultsOfTasks");
    let record = "data-science-and-analytics/results/odd/records/odd";
    server.given_record(record, PIPELINE_RUN, &old(&odd)).await;
}

/// The log of the step that ended the run release-44, as hostile as logs are.
pub(super) async fn given_log(server: &TestServer) {
    let name = "shop/results/release-44/logs/release-44-test";
    let text = b"=== RUN TestCheckout\n\x1b[31mFAIL\x1b[0m \xff \x1b[2J\texpected 11.90, got 10.00\r\nexit status 1\n";
    let messages = vec![
        message(name, "step-prepare", 0, b"nothing to do\n"),
        message(name, "step-run", 0, text),
        seal(name, "step-run"),
    ];
    append(server, messages).await.unwrap();
}

/// A pipeline that became slower, with commits on which it fails and succeeds.
pub(super) async fn given_recent(server: &TestServer) {
    let midnight = SystemClock.now().to_zoned(TimeZone::UTC).start_of_day();
    // Each is more than two days ago, told in days, whatever the hour is.
    let midnight = midnight.unwrap().timestamp() - SignedDuration::from_hours(48);
    for number in 0..60_i64 {
        let is_bad = matches!(number, 50 | 54);
        let reason = if is_bad { "Failed" } else { "Succeeded" };
        let mut object = release(&format!("release-1{number:02}"), 8, "a", reason);
        let start: Timestamp = midnight - SignedDuration::from_hours(6 * (60 - number) - 1);
        let took = if number < 40 { 100 } else { 200 } + (number * 7) % 11;
        object["metadata"]["creationTimestamp"] = json!(start.to_string());
        let sha = &mut object["metadata"]["labels"]["tekton.dev/commit"];
        *sha = json!(format!("{:040x}", 0xc0ffee + number / 2));
        object["status"]["startTime"] = json!(start.to_string());
        let end = start + SignedDuration::from_secs(took);
        object["status"]["completionTime"] = json!(end.to_string());
        let record = record(&format!("release-1{number:02}"));
        server
            .given_record(&record, PIPELINE_RUN, &bytes(&object))
            .await;
    }
}

#[tokio::test]
async fn nothing_that_runs_say_steers_a_terminal() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    given_old(&server).await;
    for (_, line) in COMMANDS {
        let mut arguments: Vec<_> = line.split(' ').collect();
        arguments.extend(["--server", &server.url]);
        let said = run(&arguments).await;
        let steers = |c: char| (c.is_control() && !"\n\t".contains(c)) || c == '\u{202e}';
        assert!(!said.out.contains(steers), "{line}: {said:?}");
    }
    server.stop().await;
    database.remove().await;
}
