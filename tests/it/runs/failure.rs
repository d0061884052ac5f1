//! Why a run failed, since when, and what changed.

use hindsight_proto::v1::{ExplainFailureRequest, FailureExplanation, RunPoint};
use serde_json::json;
use tonic::{Code, Status};

use super::objects::{given, history, record, release};
use super::seeds::given_log;
use crate::support::{
    http::Http,
    server::{TestServer, on_each, refused},
};

async fn why(server: &TestServer, run: &str) -> Result<FailureExplanation, Status> {
    let request = ExplainFailureRequest {
        name: record(run),
        log_lines: 2,
        ..ExplainFailureRequest::default()
    };
    let reply = server.client().runs().explain_failure(request).await?;
    Ok(reply.into_inner())
}

fn named(point: &Option<RunPoint>) -> &str {
    point.as_ref().map_or("-", |point| point.name.as_str())
}

#[tokio::test]
async fn a_failure_is_told_with_what_changed_when_it_began() {
    on_each(|server| async move {
        history(&server).await;
        let found = why(&server, "release-44").await.unwrap();
        let (leaf, step) = (found.leaf.as_ref().unwrap(), found.step.as_ref().unwrap());
        assert_eq!(
            (found.path.as_str(), leaf.kind.as_str()),
            ("test", "TaskRun")
        );
        assert_eq!(
            leaf.record,
            "shop/results/release-44/records/release-44-test"
        );
        assert_eq!(
            (step.exit_code, step.reason.as_str()),
            (Some(137), "OOMKilled")
        );
        assert_eq!(found.series, "pipeline release");
        assert_eq!(named(&found.last_success), "release-41");
        assert_eq!(named(&found.first_failure), "release-42");
        assert_eq!((found.runs_since, found.failed_since), (4, 3));
        let changes: Vec<_> = found
            .changes
            .iter()
            .map(|change| {
                let (before, after) = (change.before.as_ref(), change.after.as_ref());
                let at = format!("{} {}", change.task, change.path);
                (at, before.unwrap().as_str(), after.unwrap().as_str())
            })
            .collect();
        let digest = |task: &str| format!("{task} status.steps[run].imageID");
        let (old, new) = ("golang@sha256:release-41", "golang@sha256:release-42");
        assert_eq!(
            changes,
            [
                (" spec.params[revision].value".to_owned(), "a1", "b2"),
                (digest("build"), old, new),
                (digest("test"), old, new),
                ("test steps[run]".to_owned(), "110", "161"),
                ("test took".to_owned(), "110", "161"),
            ]
        );
    })
    .await;
}

#[tokio::test]
async fn a_failure_is_told_with_the_end_of_the_log_of_its_step() {
    on_each(|server| async move {
        history(&server).await;
        assert_eq!(why(&server, "release-44").await.unwrap().log, None);
        given_log(&server).await;
        let log = why(&server, "release-44").await.unwrap().log.unwrap();
        assert_eq!(log.name, "shop/results/release-44/logs/release-44-test");
        assert_eq!(
            (log.source.unwrap().container.as_str(), log.lines),
            ("step-run", 3)
        );
        let tail = log.tail.iter();
        let tail: Vec<_> = tail.map(|line| (line.line, line.text.as_str())).collect();
        let steering = "\u{1b}[31mFAIL\u{1b}[0m \u{fffd} \u{1b}[2J\texpected 11.90, got 10.00\r";
        assert_eq!(tail, [(1, steering), (2, "exit status 1")]);
        let request = ExplainFailureRequest {
            name: record("release-44"),
            log_lines: 101,
            ..ExplainFailureRequest::default()
        };
        let asked = server.client().runs().explain_failure(request).await;
        refused(asked, Code::InvalidArgument, "log_lines 101");
    })
    .await;
}

#[tokio::test]
async fn a_run_that_did_not_fail_has_no_failure() {
    on_each(|server| async move {
        history(&server).await;
        for run in ["release-45", "release-46"] {
            refused(
                why(&server, run).await,
                Code::InvalidArgument,
                "did not fail",
            );
        }
        refused(why(&server, "gone").await, Code::NotFound, "gone");
        let mut first = release("first", 6, "a", "Failed");
        first["metadata"]["labels"]["tekton.dev/pipeline"] = json!("new");
        given(&server, &first).await;
        let found = why(&server, "first").await.unwrap();
        assert_eq!(
            (named(&found.last_success), named(&found.first_failure)),
            ("-", "first")
        );
        assert_eq!((found.runs_since, found.failed_since), (1, 1));
        assert_eq!((found.path.as_str(), found.step), ("", None));
    })
    .await;
}

#[tokio::test]
async fn a_browser_asks_why() {
    on_each(|server| async move {
        history(&server).await;
        let mut http = Http::one(&server.url).await;
        let path = format!(
            "/apis/hindsight.dev/v1/parents/{}/failure?limit=1",
            record("release-42")
        );
        let told = http.send("GET", &path, &[], "").await.ok();
        assert_eq!(told["changes"].as_array().unwrap().len(), 1);
        assert_eq!(told["changesLeftOut"], "4");
        assert_eq!(told["lastSuccess"]["name"], "release-41");
    })
    .await;
}
