//! Pipelines that became slower.

use hindsight_proto::v1::{
    ListRegressionsRequest, ListRegressionsResponse, Regression, regression::Kind,
};
use hindsight_runtime::clock::{Clock as _, SystemClock};
use jiff::SignedDuration;
use serde_json::json;
use tonic::{Code, Status};

use super::objects::{given, release};
use crate::support::{
    http::Http,
    process::run,
    server::{TestServer, on_each, refused},
};

const PATH: &str = "/apis/hindsight.dev/v1/parents/shop/results/-/regressions";

/// Runs of a pipeline, four a day until today; from the `slow`th on they take twice as long.
async fn some(server: &TestServer, pipeline: &str, slow: i64, parent_run: Option<&str>) {
    let today = SystemClock.now();
    for number in 0..60_i64 {
        let mut object = release(&format!("{pipeline}-{number}"), 8, "a", "Succeeded");
        let start = today - SignedDuration::from_hours(6 * (60 - number) - 1);
        let base = if number < slow { 100 } else { 200 };
        let took = base + (number * 7) % 11;
        object["metadata"]["creationTimestamp"] = json!(start.to_string());
        object["metadata"]["labels"]["tekton.dev/pipeline"] = json!(pipeline);
        if let Some(run) = parent_run {
            object["metadata"]["labels"]["tekton.dev/pipelineRun"] = json!(run);
        }
        object["status"]["startTime"] = json!(start.to_string());
        let end = start + SignedDuration::from_secs(took);
        object["status"]["completionTime"] = json!(end.to_string());
        given(server, &object).await;
    }
}

fn ask(query: &str) -> ListRegressionsRequest {
    ListRegressionsRequest {
        parent: "shop/results/-".to_owned(),
        query: query.to_owned(),
        ..ListRegressionsRequest::default()
    }
}

async fn list(
    server: &TestServer,
    ask: ListRegressionsRequest,
) -> Result<ListRegressionsResponse, Status> {
    let reply = server.client().runs().list_regressions(ask).await?;
    Ok(reply.into_inner())
}

fn pipelines(found: &[Regression]) -> Vec<&str> {
    let series = found.iter().map(|it| it.series.as_ref().unwrap());
    series.map(|series| series.pipeline.as_str()).collect()
}

#[tokio::test]
async fn a_slower_pipeline_is_told_with_the_run_where_it_began() {
    on_each(|server| async move {
        some(&server, "release", 40, None).await;
        some(&server, "steady", 100, None).await;
        some(&server, "part", 45, Some("release-1")).await;
        let found = list(&server, ask("")).await.unwrap();
        assert_eq!((found.runs_read, found.incomplete), (120, false));
        let [it] = found.regressions.as_slice() else {
            panic!("{found:?}")
        };
        let series = it.series.as_ref().unwrap();
        let texts = [&series.parent, &series.namespace, &series.kind];
        assert_eq!(texts, ["shop", "shop", "PipelineRun"]);
        assert_eq!(
            (series.pipeline.as_str(), it.kind()),
            ("release", Kind::Slower)
        );
        let began = it.began.as_ref().unwrap();
        assert_eq!(began.name, "release-40");
        assert_eq!(began.record, "shop/results/release-40/records/release-40");
        assert!(began.start_time.is_some());
        assert_eq!((&it.ended, it.runs_since), (&None, 20));
        let (before, after) = (it.before.unwrap(), it.after.unwrap());
        assert!((100.0..111.0).contains(&before.p50_seconds), "{before:?}");
        assert!((200.0..211.0).contains(&after.p50_seconds), "{after:?}");
        assert!(after.p95_seconds > after.p50_seconds, "{after:?}");
        let ratio = after.p50_seconds / before.p50_seconds;
        assert!((it.ratio - ratio).abs() < 1e-9, "{it:?}");

        let parts = ListRegressionsRequest {
            parts: true,
            ..ask("")
        };
        let found = list(&server, parts.clone()).await.unwrap();
        assert_eq!(pipelines(&found.regressions), ["part", "release"]);
        let one = ListRegressionsRequest { limit: 1, ..parts };
        let found = list(&server, one).await.unwrap();
        assert_eq!(pipelines(&found.regressions), ["part"]);
        assert_eq!(found.regressions_left_out, 1);
        for (more, read) in [
            (ask("pipeline:steady"), 60),
            (ListRegressionsRequest { days: 4, ..ask("") }, 32),
        ] {
            let found = list(&server, more).await.unwrap();
            assert_eq!((found.regressions.len(), found.runs_read), (0, read));
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_out_of_range_is_refused() {
    on_each(|server| async move {
        let days = ListRegressionsRequest {
            days: 91,
            ..ask("")
        };
        let limit = ListRegressionsRequest {
            limit: 1_001,
            ..ask("")
        };
        for (wrong, says) in [
            (days, "days 91 is out of range: want 1 to 90, or 0 for 30"),
            (limit, "want 1 to 1000, or 0 for 50"),
            (ask("pipline:x"), "did you mean `pipeline`?"),
        ] {
            refused(list(&server, wrong).await, Code::InvalidArgument, says);
        }
    })
    .await;
}

#[tokio::test]
async fn a_browser_and_the_command_line_see_what_became_slower() {
    on_each(|server| async move {
        some(&server, "release", 40, None).await;
        let mut http = Http::one(&server.url).await;
        let path = format!("{PATH}?query=pipeline:release&days=30");
        let told = http.send("GET", &path, &[], "").await.ok();
        assert_eq!(told["regressions"][0]["kind"], "SLOWER");
        assert_eq!(told["regressions"][0]["began"]["name"], "release-40");
        let slow = ["slow", "-n", "shop", "--server", &server.url];
        let said = run(&slow).await;
        said.prints(0, "shop/release");
        said.prints(0, "\trelease-40\t");
        let said = run(&[&slow[..], &["-o", "json"]].concat()).await;
        said.prints(0, r#""kind":"SLOWER""#);
        let said = run(&[&slow[..], &["pipeline:other"]].concat()).await;
        said.fails(0, "nothing became slower in 30 days in namespace shop");
    })
    .await;
}
