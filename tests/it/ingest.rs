//! Many records over one stream: what became of each is told with its id, once it is durable.

use std::{collections::BTreeMap, sync::Arc};

use futures::{StreamExt as _, stream};
use hindsight_client::{Batched, Effect, Stored};
use hindsight_proto::{
    v1::{Effect as PbEffect, ResultState, UpsertRequest, upsert_outcome::Outcome},
    v1alpha2 as pb,
};
use hindsight_run::{SummaryPolicy, Upload, View, upload};
use hindsight_watcher::sink::{GrpcSink, Sink as _};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::{
    support::{
        Database, TestServer,
        objects::{TASK_RUN, bytes, task_run},
        server::{on_each, refused},
    },
    wire::visit,
};

fn described(object: &Value) -> Upload {
    upload(&View::new(object), None, &SummaryPolicy::default()).unwrap()
}

async fn store(batched: &Batched, object: &Value) -> Result<Stored, Status> {
    batched.store(&described(object), bytes(object)).await
}

fn did(record: Effect, result: Effect) -> Stored {
    Stored { result, record }
}

fn version(mut object: Value, version: u64) -> Value {
    object["metadata"]["resourceVersion"] = version.to_string().into();
    object
}

/// A record of any type, which says nothing of its result.
fn request(id: u64, name: &str, data_type: &str, value: &[u8]) -> UpsertRequest {
    let data = pb::Any {
        r#type: data_type.to_owned(),
        value: value.to_vec().into(),
    };
    let record = pb::Record {
        name: name.to_owned(),
        data: Some(data),
        ..pb::Record::default()
    };
    UpsertRequest {
        id,
        record: Some(record),
        ..UpsertRequest::default()
    }
}

/// What came back, by id: the effect on the record, or the code of the refusal and its text.
type Told = BTreeMap<u64, Result<PbEffect, (i32, String)>>;

async fn listen(
    answers: &mut Streaming<hindsight_proto::v1::UpsertResponse>,
) -> (Told, Option<Status>) {
    let mut told = Told::new();
    loop {
        match answers.message().await {
            Ok(Some(answer)) => {
                for outcome in answer.outcomes {
                    let was = match outcome.outcome.unwrap() {
                        Outcome::Stored(stored) => Ok(stored.record()),
                        Outcome::Refused(refused) => Err((refused.code, refused.message)),
                    };
                    assert_eq!(told.insert(outcome.id, was), None, "one answer each");
                }
            }
            Ok(None) => return (told, None),
            Err(status) => return (told, Some(status)),
        }
    }
}

/// Sends all of them over one stream.
async fn send(server: &TestServer, requests: Vec<UpsertRequest>) -> Told {
    let mut ingest = server.client().ingest();
    let answers = ingest.upsert(stream::iter(requests)).await.unwrap();
    let (told, end) = listen(&mut answers.into_inner()).await;
    assert!(end.is_none(), "{end:?}");
    told
}

#[tokio::test]
async fn an_upsert_says_what_it_did_to_the_record_and_to_its_result() {
    on_each(|server| async move {
        let batched = server.client().batched();
        let mut run = version(task_run("a", "Succeeded"), 5);
        run["status"]["conditions"][0]["status"] = "Unknown".into();
        let first = store(&batched, &run).await.unwrap();
        assert_eq!(first, did(Effect::Created, Effect::Created));
        let again = store(&batched, &run).await.unwrap();
        assert_eq!(again, did(Effect::Unchanged, Effect::Unchanged));

        let done = version(task_run("a", "Failed"), 9);
        let updated = store(&batched, &done).await.unwrap();
        assert_eq!(updated, did(Effect::Updated, Effect::Updated));
        let name = described(&done).grouping.record.to_string();
        let kept = server.get_record(&name).await.unwrap();
        assert_eq!(kept.data.unwrap().value, bytes(&done));

        // Late: it is unfinished, or finished with an earlier resourceVersion.
        for late in [run, version(task_run("a", "Succeeded"), 7)] {
            let late_effect = store(&batched, &late).await.unwrap();
            assert_eq!(late_effect.record, Effect::Unchanged);
        }
        let there = described(&done);
        let again = batched.store_again(&there, bytes(&done)).await.unwrap();
        assert_eq!(again, did(Effect::Unchanged, Effect::Unchanged));
        let kept = server.get_record(&name).await.unwrap();
        assert_eq!(kept.data.unwrap().value, bytes(&done));
    })
    .await;
}

#[tokio::test]
async fn many_callers_share_a_stream_and_each_run_is_stored_once() {
    on_each(|server| async move {
        let batched = server.client().batched();
        let runs: Vec<_> = (0..600)
            .map(|n| task_run(&format!("r{n}"), "Failed"))
            .collect();
        let child = |run: &Value| {
            // All in one result that nobody speaks for, and that is not there.
            let mut run = run.clone();
            run["metadata"]["ownerReferences"] =
                json!([{"kind": "PipelineRun", "name": "p", "uid": "uid-p"}]);
            run
        };
        let runs: Vec<_> = runs.iter().map(child).collect();
        let stored: Vec<_> = stream::iter(&runs)
            .map(|run| store(&batched, run))
            .buffer_unordered(200)
            .collect()
            .await;
        assert!(
            stored
                .iter()
                .all(|s| s.as_ref().unwrap().record == Effect::Created)
        );
        let ids = server.ids("ci/results/uid-p", "").await.unwrap();
        assert_eq!(ids.len(), 600);
        let again: Vec<_> = stream::iter(&runs)
            .map(|run| store(&batched, run))
            .buffer_unordered(200)
            .collect()
            .await;
        let unchanged = did(Effect::Unchanged, Effect::Unchanged);
        assert!(again.iter().all(|s| *s.as_ref().unwrap() == unchanged));
    })
    .await;
}

#[tokio::test]
async fn a_request_that_is_refused_leaves_the_others_alone() {
    on_each(|server| async move {
        let run = bytes(&task_run("x", "Failed"));
        let mut speaking = request(7, "ci/results/r/records/g", "t", b"{}");
        speaking.result = Some(ResultState {
            annotations: BTreeMap::new(),
            summary: Some(pb::RecordSummary::default()),
        });
        let told = send(
            &server,
            vec![
                request(1, "ci/results/r/records/a", TASK_RUN, &run),
                UpsertRequest {
                    id: 2,
                    ..UpsertRequest::default()
                },
                request(3, "ci/records/b", TASK_RUN, &run),
                request(4, "ci/results/r/records/c", TASK_RUN, b"{"),
                request(5, "ci/results/r/records/d", "", b""),
                request(6, "ci/results/r/records/e", &"t".repeat(769), b"{}"),
                speaking,
                request(8, "dev/results/r/records/f", "a.log", b"\xff\x00"),
            ],
        )
        .await;
        let says = [
            (2, "record is missing"),
            (3, "record.name: `ci/records/b` is not a record name"),
            (4, "is not JSON"),
            (5, "record.data is missing"),
            (6, "data.type has 769 bytes"),
            (7, "summary.record is empty"),
        ];
        for (id, text) in says {
            let (code, message) = told[&id].clone().unwrap_err();
            assert_eq!(code, 3, "{message}");
            assert!(message.contains(text), "{message}");
        }
        assert_eq!(told[&1], Ok(PbEffect::Created));
        assert_eq!(told[&8], Ok(PbEffect::Created));
        assert_eq!(server.ids("-/results/-", "").await.unwrap().len(), 2);
    })
    .await;
}

#[tokio::test]
async fn requests_about_one_record_are_carried_out_in_their_order() {
    on_each(|server| async move {
        let states = (0..60).map(|n| {
            let value = format!("state {n}");
            request(n, "ci/results/r/records/a", "text", value.as_bytes())
        });
        let others = (100..160).map(|n| {
            let name = format!("ci/results/r/records/b{n}");
            request(n, &name, "text", b"other")
        });
        let mixed = states.zip(others).flat_map(|(a, b)| [a, b]).collect();
        let told = send(&server, mixed).await;
        assert_eq!(told.len(), 120);
        assert_eq!(told[&0], Ok(PbEffect::Created));
        assert!((1..60).all(|id| told[&id] == Ok(PbEffect::Updated)));
        assert!((100..160).all(|id| told[&id] == Ok(PbEffect::Created)));
        let kept = server.get_record("ci/results/r/records/a").await.unwrap();
        assert_eq!(kept.data.unwrap().value, "state 59");
    })
    .await;
}

#[tokio::test]
async fn a_run_that_is_too_large_is_refused_alone() {
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &[("max_message_bytes", "1MiB")]).await;
    let batched = server.client().batched();
    let sized = |name: &str, size: usize| {
        let mut run = task_run(name, "Failed");
        run["spec"]["script"] = "x".repeat(size).into();
        run
    };
    let runs: Vec<_> = (0..40)
        .map(|n| sized(&format!("r{n}"), if n == 20 { 2 << 20 } else { 10 << 10 }))
        .collect();
    let stored: Vec<_> = stream::iter(&runs)
        .map(|run| store(&batched, run))
        .buffered(40)
        .collect()
        .await;
    for (n, stored) in stored.into_iter().enumerate() {
        if n == 20 {
            refused(stored, Code::ResourceExhausted, "too large");
        } else {
            assert_eq!(stored.unwrap().record, Effect::Created, "{n}");
        }
    }
    server.stop().await;
}

/// A stop in the middle of a stream: what was answered is there, and the rest is told to come
/// again.
#[tokio::test]
async fn a_server_that_stops_answers_what_it_took() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let (requests, sending) = mpsc::channel(8);
    let mut ingest = server.client().ingest();
    let answers = ingest.upsert(ReceiverStream::new(sending)).await.unwrap();
    let mut answers = answers.into_inner();
    let sender = tokio::spawn(async move {
        let mut sent = 0;
        loop {
            let name = format!("ci/results/r/records/{sent}");
            if requests
                .send(request(sent, &name, "t", b"{}"))
                .await
                .is_err()
            {
                return sent;
            }
            sent += 1;
        }
    });
    let first = answers.message().await.unwrap().unwrap();
    let ((mut told, end), ()) = tokio::join!(listen(&mut answers), server.stop());
    for outcome in first.outcomes {
        assert_eq!(told.insert(outcome.id, Ok(PbEffect::Created)), None);
    }
    refused(Err::<(), _>(end.unwrap()), Code::Unavailable, "stopping");
    let sent = sender.await.unwrap();
    assert!(told.len() as u64 <= sent, "{} of {sent}", told.len());

    let server = TestServer::start(&database).await;
    let kept = server.ids("ci/results/r", "").await.unwrap();
    for (id, outcome) in told {
        assert_eq!(outcome, Ok(PbEffect::Created));
        assert!(kept.contains(&id.to_string()), "{id} was acknowledged");
    }
    server.stop().await;
}

/// The runs of one trigger event are stored by several replicas at once.
#[tokio::test]
async fn the_run_that_began_first_speaks_for_a_result_whoever_comes_first() {
    on_each(|server| async move {
        let run = |n: u64| {
            let mut run = task_run(&format!("e{n}"), "Failed");
            run["metadata"]["labels"]["triggers.tekton.dev/triggers-eventid"] = "event".into();
            run["status"]["startTime"] = format!("2026-03-01T10:00:{n:02}Z").into();
            run
        };
        let clients: Vec<_> = (0..4).map(|_| server.client().batched()).collect();
        let clients = Arc::new(clients);
        let stored: Vec<_> = stream::iter((10..40).rev())
            .map(|n| {
                let clients = Arc::clone(&clients);
                async move { store(&clients[usize::try_from(n % 4).unwrap()], &run(n)).await }
            })
            .buffer_unordered(30)
            .collect()
            .await;
        assert!(stored.iter().all(Result::is_ok), "{stored:?}");
        let result = server.get_result("ci/results/event").await.unwrap();
        let summary = result.summary.unwrap();
        assert_eq!(summary.record, "ci/results/event/records/uid-e10");
        assert_eq!(server.ids("ci/results/event", "").await.unwrap().len(), 30);
    })
    .await;
}

#[tokio::test]
async fn a_watcher_that_is_told_to_make_plain_calls_opens_no_stream() {
    on_each(|server| async move {
        let sink = GrpcSink::new(server.client()).with_plain_calls();
        let run = task_run("plain", "Succeeded");
        let upload = described(&run);
        sink.store(&upload, &bytes(&run)).await.unwrap();
        sink.store_again(&upload, &bytes(&run)).await.unwrap();
        let stored = sink.stored(&upload.grouping.record).await.unwrap();
        assert_eq!(stored, Some(bytes(&run)));
        let page = visit(&server.admin, "/metrics").await;
        assert!(
            page.contains("method=\"CreateRecord\",code=\"OK\"} 1"),
            "{page}"
        );
        assert!(!page.contains("Upsert"), "{page}");
    })
    .await;
}
