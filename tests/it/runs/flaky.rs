//! Pipelines that succeed and fail on the same code.

use hindsight_proto::v1::{ListFlakyRequest, ListFlakyResponse};
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

const PATH: &str = "/apis/hindsight.dev/v1/parents/shop/results/-/flaky";
const SHA: &str = "pipelinesascode.tekton.dev/sha";

/// Runs of a pipeline, one every six hours until today, each with its version and whether it
/// succeeded.
async fn some(server: &TestServer, pipeline: &str, label: &str, runs: &[(&str, bool)]) {
    let today = SystemClock.now();
    for (number, (version, good)) in (0..).zip(runs) {
        let reason = if *good { "Succeeded" } else { "Failed" };
        let mut object = release(&format!("{pipeline}-{number}"), 8, "a", reason);
        let start = today - SignedDuration::from_hours(6 * (10 - number));
        object["metadata"]["creationTimestamp"] = json!(start.to_string());
        object["metadata"]["labels"]["tekton.dev/pipeline"] = json!(pipeline);
        object["metadata"]["labels"][label] = json!(version);
        object["status"]["startTime"] = json!(start.to_string());
        let end = start + SignedDuration::from_secs(100);
        object["status"]["completionTime"] = json!(end.to_string());
        given(server, &object).await;
    }
}

/// A flaky pipeline, one that is suspected, one that broke, and one with a label of its own.
async fn all(server: &TestServer) {
    let flaky = [
        ("a", true),
        ("b", false),
        ("b", true),
        ("c", false),
        ("c", true),
        ("d", true),
    ];
    some(server, "release", SHA, &flaky).await;
    some(server, "own", "team/rev", &flaky).await;
    let once = [
        ("a", true),
        ("b", false),
        ("b", true),
        ("c", true),
        ("d", true),
    ];
    some(server, "once", "tekton.dev/commit", &once).await;
    let broke = [
        ("a", true),
        ("b", false),
        ("c", true),
        ("d", false),
        ("e", true),
    ];
    some(server, "broke", SHA, &broke).await;
}

async fn list(server: &TestServer, ask: ListFlakyRequest) -> Result<ListFlakyResponse, Status> {
    Ok(server.client().runs().list_flaky(ask).await?.into_inner())
}

fn ask() -> ListFlakyRequest {
    ListFlakyRequest {
        parent: "shop/results/-".to_owned(),
        ..ListFlakyRequest::default()
    }
}

fn told(found: &ListFlakyResponse) -> Vec<(&str, bool, i64, i64)> {
    let told = found.pipelines.iter().map(|it| {
        let series = it.series.as_ref().unwrap();
        (series.pipeline.as_str(), it.flaky, it.episodes, it.runs)
    });
    told.collect()
}

#[tokio::test]
async fn both_outcomes_on_one_version_are_told_with_the_runs() {
    on_each(|server| async move {
        all(&server).await;
        let found = list(&server, ask()).await.unwrap();
        assert_eq!(
            told(&found),
            [("release", true, 2, 6), ("once", false, 1, 5)]
        );
        assert_eq!((found.runs_read, found.incomplete), (22, false));
        let pairs = found.pipelines[0].pairs.iter().map(|pair| {
            let (failed, good) = (pair.failed.as_ref(), pair.succeeded.as_ref());
            let names = [failed, good].map(|point| point.unwrap().record.as_str());
            (pair.version.as_str(), names)
        });
        let record = |number| format!("shop/results/release-{number}/records/release-{number}");
        let pairs: Vec<_> = pairs.collect();
        assert_eq!(
            pairs,
            [
                ("b", [record(1).as_str(), &record(2)]),
                ("c", [record(3).as_str(), &record(4)])
            ]
        );
        let own = ListFlakyRequest {
            version_labels: vec!["team/rev".to_owned()],
            ..ask()
        };
        let found = list(&server, own).await.unwrap();
        assert_eq!(told(&found), [("own", true, 2, 6)]);
        let one = ListFlakyRequest { limit: 1, ..ask() };
        let found = list(&server, one).await.unwrap();
        assert_eq!((told(&found).len(), found.pipelines_left_out), (1, 1));
        let many = ListFlakyRequest {
            version_labels: vec!["a".to_owned(); 21],
            ..ask()
        };
        let says = "version_labels has 21 keys, at most 20 are possible";
        refused(list(&server, many).await, Code::InvalidArgument, says);
    })
    .await;
}

#[tokio::test]
async fn a_browser_and_the_command_line_see_what_is_flaky() {
    on_each(|server| async move {
        all(&server).await;
        let mut http = Http::one(&server.url).await;
        let path = format!("{PATH}?query=pipeline:own&versionLabels=team/rev");
        let told = http.send("GET", &path, &[], "").await.ok();
        assert_eq!(told["pipelines"][0]["series"]["pipeline"], "own");
        assert_eq!(told["pipelines"][0]["pairs"][0]["version"], "b");
        let flaky = ["flaky", "-n", "shop", "--server", &server.url];
        let said = run(&flaky).await;
        said.prints(0, "shop/release");
        said.prints(0, "\trelease-3\t");
        said.prints(0, "suspected");
        let said = run(&[&flaky[..], &["-o", "json"]].concat()).await;
        said.prints(0, r#""flaky":true"#);
        let said = run(&[&flaky[..], &["pipeline:broke"]].concat()).await;
        said.fails(0, "nothing failed and succeeded on one version in 30 days");
    })
    .await;
}
