//! What `hindsight.v1.Runs/Suggest` tells of recent runs.

use hindsight_proto::v1::{SuggestRequest, SuggestResponse, suggest_request::Kind};
use serde_json::{Value, json};
use tonic::{Code, Status};

use super::objects::{given, history, release};
use crate::support::{
    http::Http,
    objects::{PIPELINE_RUN, bytes},
    server::{TestServer, on_each, refused},
};

async fn suggest(
    server: &TestServer,
    kind: Kind,
    prefix: &str,
    more: impl FnOnce(&mut SuggestRequest),
) -> Result<SuggestResponse, Status> {
    let mut request = SuggestRequest {
        parent: "shop/results/-".to_owned(),
        kind: kind.into(),
        prefix: prefix.to_owned(),
        ..SuggestRequest::default()
    };
    more(&mut request);
    let reply = server.client().runs().suggest(request).await?;
    Ok(reply.into_inner())
}

async fn values(server: &TestServer, kind: Kind, prefix: &str) -> Vec<String> {
    let found = suggest(server, kind, prefix, |_| {}).await.unwrap();
    assert!(!found.incomplete);
    found.values
}

#[tokio::test]
async fn what_recent_runs_have_is_told_by_its_beginning() {
    on_each(|server| async move {
        history(&server).await;
        let mut elsewhere = release("release-9", 8, "a", "Failed");
        elsewhere["metadata"]["labels"] = json!({"tekton.dev/pipeline": "nightly", "team": "web"});
        let name = "data/results/x/records/x";
        server
            .given_record(name, PIPELINE_RUN, &bytes(&elsewhere))
            .await;
        let names = values(&server, Kind::Name, "release-4").await;
        assert_eq!(
            names[..3],
            ["release-46", "release-45-test", "release-45-build"]
        );
        assert_eq!(names.len(), 19);
        assert!(values(&server, Kind::Name, "Release").await.is_empty());
        let named = suggest(&server, Kind::Name, "release-45", |_| {})
            .await
            .unwrap();
        assert_eq!(
            (named.values.len(), named.runs_read),
            (3, 3),
            "no other is read"
        );
        assert_eq!(values(&server, Kind::Pipeline, "").await, ["release"]);
        assert_eq!(
            values(&server, Kind::LabelKey, "tekton.dev/pipelineT").await,
            ["tekton.dev/pipelineTask"]
        );
        let tasks = |request: &mut SuggestRequest| {
            request.label_key = "tekton.dev/pipelineTask".to_owned();
        };
        let found = suggest(&server, Kind::LabelValue, "", tasks).await.unwrap();
        assert_eq!(found.values, ["test", "build"]);
        assert_eq!(found.runs_read, 19);
        let everywhere = |request: &mut SuggestRequest| request.parent = "-/results/-".to_owned();
        let found = suggest(&server, Kind::Namespace, "", everywhere)
            .await
            .unwrap();
        assert_eq!(found.values, ["data", "shop"]);
        let few = |request: &mut SuggestRequest| request.limit = 2;
        let found = suggest(&server, Kind::Name, "", few).await.unwrap();
        assert_eq!((found.values.len(), found.incomplete), (2, true));
    })
    .await;
}

#[tokio::test]
async fn records_that_are_no_runs_are_not_told() {
    on_each(|server| async move {
        let blob = json!({"kind": "Blob", "metadata": {"name": "release-blob"}});
        let name = "shop/results/x/records/x";
        server.given_record(name, "t", &bytes(&blob)).await;
        given(&server, &release("release-1", 8, "a", "Failed")).await;
        assert_eq!(values(&server, Kind::Name, "release").await, ["release-1"]);
    })
    .await;
}

#[tokio::test]
async fn wrong_questions_say_what_is_wrong() {
    on_each(|server| async move {
        let none = suggest(&server, Kind::Unspecified, "", |_| {}).await;
        refused(none, Code::InvalidArgument, "kind is missing; want NAME");
        let none = suggest(&server, Kind::LabelValue, "", |_| {}).await;
        refused(none, Code::InvalidArgument, "label_key is missing");
        let key = |request: &mut SuggestRequest| request.label_key = "team".to_owned();
        let other = suggest(&server, Kind::Name, "", key).await;
        refused(other, Code::InvalidArgument, "LABEL_VALUE alone");
        let long = suggest(&server, Kind::Name, &"x".repeat(513), |_| {}).await;
        refused(
            long,
            Code::InvalidArgument,
            "prefix has 513 bytes, at most 512",
        );
        let many = |request: &mut SuggestRequest| request.limit = 1_001;
        let many = suggest(&server, Kind::Name, "", many).await;
        refused(many, Code::InvalidArgument, "limit 1001 is out of range");
    })
    .await;
}

#[tokio::test]
async fn it_is_answered_over_rest() {
    on_each(|server| async move {
        history(&server).await;
        let mut http = Http::one(&server.url).await;
        let path = "/apis/hindsight.dev/v1/parents/shop/results/-/suggestions\
                    ?kind=PIPELINE&prefix=rel";
        let reply = http.send("GET", path, &[], "").await;
        let told: Value = serde_json::from_str(&reply.text()).unwrap();
        assert_eq!((reply.status, &told["values"]), (200, &json!(["release"])));
    })
    .await;
}
