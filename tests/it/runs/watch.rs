//! Changes of runs as they come: `WatchRuns` over gRPC and as server-sent events, and
//! `hindsight runs --watch`.

mod command;
mod events;
mod replicas;

use std::{num::NonZeroU32, time::Duration};

use hindsight_client::{Client, Options};
use hindsight_proto::v1::{RunEvent, WatchRunsRequest, run_event::Kind};
use hindsight_storage::resolve::{self, open};
use serde_json::json;
use tonic::{Code, Status, Streaming};

use super::objects::{given, record, release};
use crate::support::{
    Database, TestServer, each_database,
    objects::{PIPELINE_RUN, bytes},
    server::{on_each, refused},
};

/// Everything has to come by then.
const PATIENCE: Duration = Duration::from_secs(60);

fn ask(parent: &str, cursor: &str) -> WatchRunsRequest {
    WatchRunsRequest {
        parent: parent.to_owned(),
        cursor: cursor.to_owned(),
        ..WatchRunsRequest::default()
    }
}

async fn watch(client: &Client, ask: WatchRunsRequest) -> Result<Streaming<RunEvent>, Status> {
    Ok(client.runs().watch_runs(ask).await?.into_inner())
}

async fn message(stream: &mut Streaming<RunEvent>) -> Result<Option<RunEvent>, Status> {
    let message = tokio::time::timeout(PATIENCE, stream.message()).await;
    message.expect("something comes in time")
}

/// The next event, which has to come.
async fn next(stream: &mut Streaming<RunEvent>) -> RunEvent {
    message(stream).await.unwrap().expect("the stream goes on")
}

/// The name of the run in the next event, and the cursor after it.
async fn changed(stream: &mut Streaming<RunEvent>) -> (String, String) {
    let event = next(stream).await;
    assert_eq!(event.kind(), Kind::Changed, "{event:?}");
    (event.run.expect("a change has a run").name, event.cursor)
}

/// The cursor of now.
async fn cursor(server: &TestServer) -> String {
    let mut stream = watch(&server.client(), ask("-/results/-", ""))
        .await
        .unwrap();
    let first = next(&mut stream).await;
    assert_eq!((first.kind(), first.run), (Kind::Bookmark, None));
    first.cursor
}

#[tokio::test]
async fn changes_are_told_to_those_who_asked_for_them() {
    on_each(|server| async move {
        given(&server, &release("before", 7, "a", "Succeeded")).await;
        let start = cursor(&server).await;
        let client = server.client();
        let failed = WatchRunsRequest {
            query: "failed".to_owned(),
            label_keys: vec!["tekton.dev/pipeline".to_owned()],
            ..ask("shop/results/-", &start)
        };
        let by_payload = WatchRunsRequest {
            filter: "data.spec.params[0].value == 'b'".to_owned(),
            ..ask("-/results/-", &start)
        };
        let mut failed = watch(&client, failed).await.unwrap();
        let mut by_payload = watch(&client, by_payload).await.unwrap();
        let mut all = watch(&client, ask("-/results/-", &start)).await.unwrap();
        let mut of_one = watch(&client, ask("shop/results/two", &start))
            .await
            .unwrap();
        given(&server, &release("one", 8, "a", "Succeeded")).await;
        server
            .given_record("shop/results/n/records/n", "note", b"{}")
            .await;
        given(&server, &release("two", 9, "b", "Failed")).await;
        given(&server, &release("three", 10, "b", "Succeeded")).await;
        let (name, after_one) = changed(&mut all).await;
        assert_eq!(name, "one");
        assert_eq!(changed(&mut all).await.0, "two");
        assert_eq!(changed(&mut all).await.0, "three");
        let event = next(&mut failed).await;
        let run = event.run.unwrap();
        assert_eq!(
            (run.name.as_str(), run.outcome.as_str()),
            ("two", "FAILURE")
        );
        assert_eq!(run.labels["tekton.dev/pipeline"], "release");
        assert_eq!(changed(&mut by_payload).await.0, "two");
        assert_eq!(changed(&mut by_payload).await.0, "three");
        assert_eq!(changed(&mut of_one).await.0, "two");
        let name = record("one");
        let data = hindsight_proto::v1alpha2::Any {
            r#type: PIPELINE_RUN.to_owned(),
            value: bytes(&release("one", 8, "a", "Failed")).into(),
        };
        let update = hindsight_proto::v1alpha2::UpdateRecordRequest {
            record: Some(hindsight_proto::v1alpha2::Record {
                name: name.clone(),
                data: Some(data),
                ..Default::default()
            }),
            ..Default::default()
        };
        server.rpc().update_record(update).await.unwrap();
        assert_eq!(changed(&mut failed).await.0, "one");
        // From the middle; the record that changed since comes once, where it changed last.
        let mut rest = watch(&client, ask("-/results/-", &after_one))
            .await
            .unwrap();
        for name in ["two", "three", "one"] {
            assert_eq!(changed(&mut rest).await.0, name);
        }
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_followed_is_refused() {
    for database in each_database().await {
        let server = TestServer::start(&database).await;
        let start = cursor(&server).await;
        for name in ["one", "two", "three"] {
            given(&server, &release(name, 8, "a", "Succeeded")).await;
        }
        let client = server.client();
        let mut all = watch(&client, ask("-/results/-", &start)).await.unwrap();
        for _ in 0..3 {
            changed(&mut all).await;
        }
        drop(all);
        let opened = open(&database.url(), &resolve::Options::default())
            .await
            .unwrap();
        let before = jiff::Timestamp::from_second(9_000_000_000).unwrap();
        let removed = opened.maintenance.prune_feed(before, NonZeroU32::MAX).await;
        assert!(removed.unwrap() > 0);
        opened.maintenance.close().await;
        // The server has what was told last until it sees that its last follower is gone.
        let late = loop {
            match watch(&client, ask("-/results/-", &start)).await {
                Ok(_still_there) => tokio::time::sleep(Duration::from_millis(20)).await,
                late => break late,
            }
        };
        refused(late, Code::OutOfRange, "list again");
        let target =
            format!("/apis/hindsight.dev/v1/parents/-/results/-/runs/changes?cursor={start}");
        let mut http = crate::support::http::Http::one(&server.url).await;
        let gone = http.send("GET", &target, &[], "").await;
        assert_eq!(gone.status, 410, "{}", gone.text());
        let odd = watch(&client, ask("-/results/-", "1.odd")).await;
        refused(odd, Code::InvalidArgument, "cursor");
        let mut wrong = ask("-/results/-", "");
        wrong.filter = "nonsense(".to_owned();
        refused(watch(&client, wrong).await, Code::InvalidArgument, "");
        server.stop().await;
        database.remove().await;
    }
}

#[tokio::test]
async fn a_cursor_of_another_key_is_expired() {
    let database = Database::sqlite();
    let keys = ["a", "b"].map(|letter| letter.repeat(32));
    let start =
        async |key: &str| TestServer::start_with(&database, &[("page_token_key", key)]).await;
    let server = start(&keys[0]).await;
    let place = cursor(&server).await;
    drop(
        watch(&server.client(), ask("-/results/-", &place))
            .await
            .unwrap(),
    );
    server.stop().await;
    let server = start(&keys[1]).await;
    let late = watch(&server.client(), ask("-/results/-", &place)).await;
    refused(late, Code::OutOfRange, "list again");
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_stops_ends_streams_with_a_cursor() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let client = server.client();
    let mut stream = watch(&client, ask("-/results/-", "")).await.unwrap();
    next(&mut stream).await;
    given(&server, &release("one", 8, "a", "Succeeded")).await;
    changed(&mut stream).await;
    server.tell_to_stop();
    let last = next(&mut stream).await;
    assert_eq!(last.kind(), Kind::Bookmark);
    assert_eq!(message(&mut stream).await.unwrap(), None, "it ends with OK");
    server.stop().await;
    let server = TestServer::start(&database).await;
    let mut rest = watch(&server.client(), ask("-/results/-", &last.cursor))
        .await
        .unwrap();
    given(&server, &release("two", 8, "a", "Succeeded")).await;
    assert_eq!(changed(&mut rest).await.0, "two");
    drop(rest);
    server.stop().await;
}

#[tokio::test]
async fn a_stream_ends_when_its_caller_may_no_longer_list() {
    let database = Database::sqlite();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.toml");
    let hash = hindsight_access::auth::token_hash("reader");
    let write = |verbs: serde_json::Value| {
        let users = format!(
            "[[users]]\nname = 'reader'\nsha256 = ['{hash}']\n[[users.grants]]\n\
             parents = ['shop']\nverbs = {verbs}\nresources = ['records']\n"
        );
        std::fs::write(&path, users).unwrap();
    };
    write(json!(["list"]));
    let file = path.display().to_string();
    let more = [("auth", "tokens"), ("auth_tokens_file", file.as_str())];
    let server = TestServer::start_with(&database, &more).await;
    let mut options = Options::new(&server.url);
    options.token = Some("reader".to_owned());
    let client = Client::new(&options).unwrap();
    let everywhere = watch(&client, ask("-/results/-", "")).await;
    refused(everywhere, Code::PermissionDenied, "");
    let mut stream = watch(&client, ask("shop/results/-", "")).await.unwrap();
    next(&mut stream).await;
    write(json!(["get"]));
    let ended = message(&mut stream).await;
    refused(ended, Code::PermissionDenied, "");
    server.stop().await;
}
