//! The page of a run with many children, which begins before it is whole.

use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use super::{
    page,
    seed::{Given, empty},
};
use crate::support::{
    http::Http,
    objects::{PIPELINE_RUN, bytes},
};

const CHILDREN: usize = 401;
const TARGET: &str = "/ui/run/ci/results/wide/records/wide";

async fn with_children(count: usize) -> Given {
    let server = empty(&[]).await;
    let children = (0..count).map(|number| {
        json!({"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "name": format!("wide-1-{number}"),
            "pipelineTaskName": format!("shard-{number}")})
    });
    let run = json!({
        "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
        "metadata": {"name": "wide-1", "namespace": "ci", "uid": "8c5a6e8a-4a3b-4c39-9b1b-5f2b8f0f7a10",
            "creationTimestamp": "2026-03-02T08:00:00Z"},
        "status": {"startTime": "2026-03-02T08:00:01Z", "completionTime": "2026-03-02T08:05:00Z",
            "conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded"}],
            "childReferences": children.collect::<Vec<Value>>()},
    });
    let name = "ci/results/wide/records/wide";
    server.given_record(name, PIPELINE_RUN, &bytes(&run)).await;
    server
}

#[tokio::test]
async fn the_page_of_a_wide_run_begins_before_it_is_whole() {
    let server = with_children(CHILDREN).await;
    let mut http = Http::one(&server.url).await;
    let begun = page(&mut http, TARGET).await;
    // A refresh asks for all of it at once, with a tag to ask again by.
    let whole = http
        .send("GET", TARGET, &[("hx-request", "true")], "")
        .await;
    assert_eq!((begun.status, whole.status), (200, 200));
    assert!(begun.header("etag").is_none() && begun.header("content-length").is_none());
    for name in [
        "content-security-policy",
        "cache-control",
        "content-type",
        "vary",
    ] {
        assert_eq!(begun.header(name), whole.header(name), "{name}");
    }
    let html = begun.text();
    assert_eq!(html, whole.text());
    assert!(html.contains("<title>wide-1 · Hindsight</title>"));

    let gzip = [("accept-encoding", "gzip")];
    let packed = http.send("GET", TARGET, &gzip, "").await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let mut plain = String::new();
    GzDecoder::new(packed.body.as_ref())
        .read_to_string(&mut plain)
        .unwrap();
    assert_eq!(plain, html);

    let tag = whole.header("etag").unwrap();
    let known = http
        .send("GET", TARGET, &[("if-none-match", tag)], "")
        .await;
    assert_eq!((known.status, known.body.len()), (304, 0));
    let head = http.send("HEAD", TARGET, &[], "").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    server.stop().await;
}

#[tokio::test]
async fn a_run_with_few_children_has_one_answer() {
    let server = with_children(CHILDREN - 1).await;
    let whole = page(&mut Http::one(&server.url).await, TARGET).await;
    assert!(whole.header("etag").is_some() && whole.header("content-length").is_some());
    server.stop().await;
}
