//! The batched client and a server that knows nothing of streams.

use std::error::Error as _;

use futures::{StreamExt as _, stream};
use hindsight_client::{Client, Effect, Options, Stored};
use hindsight_run::{SummaryPolicy, View, upload};
use serde_json::json;
use tonic::{Code, Status};

use crate::support::RpcServer;

#[tokio::test]
async fn a_server_without_streams_gets_plain_calls() {
    let server = RpcServer::start();
    let options = Options::new(format!("http://{}", server.addr));
    let batched = Client::new(&options).unwrap().batched();
    let runs: Vec<_> = (0..20)
        .map(|n| {
            let run = json!({"apiVersion": "tekton.dev/v1", "kind": "TaskRun",
                "metadata": {"name": "a", "namespace": "ci", "uid": format!("uid-{n}")}});
            (
                upload(&View::new(&run), None, &SummaryPolicy::default()).unwrap(),
                run.to_string(),
            )
        })
        .collect();
    for effect in [Effect::Created, Effect::Unchanged] {
        let stored: Vec<_> = stream::iter(&runs)
            .map(|(upload, value)| batched.store(upload, value.clone()))
            .buffered(10)
            .collect()
            .await;
        for stored in stored {
            let (record, result) = (effect, effect);
            assert_eq!(stored.unwrap(), Stored { result, record });
        }
    }
    assert_eq!(server.records(), 20);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable_until_it_is() {
    let mut server = RpcServer::start();
    server.kill();
    let options = Options::new(format!("http://{}", server.addr));
    let batched = Client::new(&options).unwrap().batched();
    let run = json!({"apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": "a", "namespace": "ci", "uid": "uid"}});
    let described = upload(&View::new(&run), None, &SummaryPolicy::default()).unwrap();
    // A connection that breaks has several codes, but says why.
    let is_away = |status: &Status| status.code() == Code::Unavailable || status.source().is_some();
    let away = batched.store(&described, run.to_string()).await;
    assert!(is_away(away.as_ref().unwrap_err()), "{away:?}");
    server.up();
    // The connection may still be on its way back.
    let stored = async {
        loop {
            match batched.store(&described, run.to_string()).await {
                Err(status) if status.code() == Code::Unavailable => tokio::task::yield_now().await,
                other => return other.unwrap(),
            }
        }
    };
    let stored = tokio::time::timeout(std::time::Duration::from_secs(30), stored).await;
    assert_eq!(stored.unwrap().record, Effect::Created);
}
