//! What differs between two runs.

use hindsight_proto::v1::{DiffRunsRequest, Difference, RunDiff, difference::Category};
use serde_json::{Value, json};
use tonic::{Code, Status};

use super::objects::{given, record, release};
use crate::support::{
    http::Http,
    server::{TestServer, on_each, refused},
};

async fn diff(server: &TestServer, a: &str, b: &str) -> Result<RunDiff, Status> {
    let request = DiffRunsRequest {
        a: record(a),
        b: if b.is_empty() {
            String::new()
        } else {
            record(b)
        },
        ..DiffRunsRequest::default()
    };
    let reply = server.client().runs().diff_runs(request).await?;
    Ok(reply.into_inner())
}

async fn three(server: &TestServer) {
    for (run, hour, revision, reason) in [
        ("release-1", 8, "a1", "Succeeded"),
        ("release-2", 9, "b2", "Failed"),
        ("release-3", 10, "c3", "Failed"),
        ("release-4", 11, "d4", "Succeeded"),
    ] {
        given(server, &release(run, hour, revision, reason)).await;
    }
}

#[tokio::test]
async fn a_run_is_compared_with_the_last_success_before_it() {
    on_each(|server| async move {
        three(&server).await;
        let found = diff(&server, "release-3", "").await.unwrap();
        assert_eq!(found.b, record("release-1"));
        let revision = Difference {
            category: Category::Param.into(),
            task: String::new(),
            path: "spec.params[revision].value".to_owned(),
            before: Some("a1".to_owned()),
            after: Some("c3".to_owned()),
            ratio: None,
            cut: false,
        };
        assert_eq!((found.differences, found.equal), (vec![revision], 2));
        let same = diff(&server, "release-2", "release-2").await.unwrap();
        assert_eq!((same.differences.len(), same.equal), (0, 3));
    })
    .await;
}

#[tokio::test]
async fn a_run_that_has_nothing_to_be_compared_with_says_so() {
    on_each(|server| async move {
        three(&server).await;
        let first = diff(&server, "release-1", "").await;
        let why = "no successful run of pipeline release started before \
                   `shop/results/release-1/records/release-1`; name b";
        refused(first, Code::NotFound, why);
        refused(diff(&server, "gone", "").await, Code::NotFound, "gone");
        let mut bare = release("bare", 8, "a1", "Succeeded");
        bare["metadata"]["labels"] = json!({});
        bare["spec"] = json!({});
        given(&server, &bare).await;
        let bare = diff(&server, "bare", "").await;
        refused(bare, Code::InvalidArgument, "names no pipeline or task");
    })
    .await;
}

#[tokio::test]
async fn a_browser_asks_for_some_differences_alone() {
    on_each(|server| async move {
        three(&server).await;
        let mut http = Http::one(&server.url).await;
        let path = format!(
            "/apis/hindsight.dev/v1/parents/{}/diff",
            record("release-2")
        );
        let told = http.send("GET", &path, &[], "").await.ok();
        assert_eq!(told["differences"][0]["category"], "PARAM");
        let references = format!("{path}?categories=REFERENCE");
        let told = http.send("GET", &references, &[], "");
        let told = told.await.ok();
        assert_eq!(
            (&told["differences"], &told["equal"]),
            (&Value::Null, &json!("1"))
        );
        let told = http.send("GET", &format!("{path}?limit=-1"), &[], "").await;
        assert_eq!(told.status, 400);
    })
    .await;
}
