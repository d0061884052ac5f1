//! Servers that are killed, servers that share a database, and changes that were removed.

use std::{
    collections::{BTreeSet, HashMap},
    num::NonZeroU32,
    time::Duration,
};

use hindsight_client::{Client, Options};
use hindsight_storage::resolve::{self, Opened, open};
use serde_json::json;

use super::{File, given, metrics, nothing_is_missed, played, run, sends};
use crate::support::{
    TestServer, each_database,
    objects::{TASK_RUN, bytes},
    program::Program,
    receiver::{Act, Receiver},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_between_send_and_answer_sends_again() {
    for database in each_database().await {
        let receiver = Receiver::start(|number, _| match number {
            0 => Act::Hang,
            _ => Act::status(202),
        })
        .await;
        let file = File::of(&[("one", &receiver.url(), "timeout = '60s'\nconcurrency = 1")]);
        let (url, path) = (database.url(), file.path());
        let server = TestServer::start_with(&database, &[("events_file", path.as_str())]).await;
        sends(&server, "one").await;
        server.stop().await;
        let arguments = [
            "--db",
            &url,
            "--metrics-listen",
            "off",
            "--events-file",
            &path,
        ];
        let program = Program::start("serve", &arguments).await;
        let rpc = || Client::new(&Options::new(&program.url)).unwrap().rpc();
        let result = hindsight_proto::v1alpha2::CreateResultRequest {
            result: Some(hindsight_proto::v1alpha2::Result {
                name: "ci/results/r".to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        };
        rpc().create_result(result).await.unwrap();
        for name in ["a", "b"] {
            let object = run("TaskRun", name, Some("Succeeded"));
            let create = hindsight_proto::v1alpha2::CreateRecordRequest {
                record: Some(hindsight_proto::v1alpha2::Record {
                    name: super::record(name),
                    data: Some(hindsight_proto::v1alpha2::Any {
                        r#type: TASK_RUN.to_owned(),
                        value: bytes(&object).into(),
                    }),
                    ..Default::default()
                }),
                ..Default::default()
            };
            rpc().create_record(create).await.unwrap();
        }
        let sent = receiver.until(|all| !all.is_empty()).await;
        // SIGKILL.
        drop(program);
        let server = TestServer::start_with(&database, &[("events_file", path.as_str())]).await;
        let taken = receiver.until_taken(4).await;
        assert_eq!(
            taken[0].id(),
            sent[0].id(),
            "what was not answered comes again"
        );
        assert_eq!(taken[0].bytes, sent[0].bytes);
        nothing_is_missed(&taken, &["a", "b"].map(str::to_owned).into());
        server.stop().await;
        database.remove().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_servers_sends_and_another_goes_on() {
    for database in each_database().await {
        let receiver = Receiver::start(|_, _| Act::Slow(Duration::from_millis(5))).await;
        let file = File::of(&[("one", &receiver.url(), "")]);
        let path = file.path();
        let more = [("events_file", path.as_str())];
        let first = TestServer::start_with(&database, &more).await;
        sends(&first, "one").await;
        let second = TestServer::start_with(&database, &more).await;
        let names: BTreeSet<_> = (0..30).map(|number| format!("run-{number}")).collect();
        let (half, rest): (Vec<_>, Vec<_>) = names.iter().partition(|name| name.len() < 6);
        for name in &half {
            played(&second, name).await;
        }
        receiver.until_taken(half.len()).await;
        first.stop().await;
        for name in &rest {
            played(&second, name).await;
        }
        let taken = receiver.until_taken(2 * names.len()).await;
        nothing_is_missed(&taken, &names);
        let mut times: HashMap<_, u32> = HashMap::new();
        for got in &taken {
            *times.entry(got.id().to_owned()).or_default() += 1;
        }
        let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
        // A run that had started when the server changed is told to have started again.
        assert!(
            twice.iter().all(|(id, _)| id.contains(".started.")),
            "{twice:?}"
        );
        assert!(twice.len() <= 4, "{twice:?}");
        second.stop().await;
        database.remove().await;
    }
}

/// The records of which the feed has changes, by the last part of their names.
async fn names(opened: &Opened) -> BTreeSet<String> {
    let begin = opened.store.feed_begin().await.unwrap();
    let page = opened
        .store
        .feed(begin, NonZeroU32::new(100).unwrap())
        .await;
    let changes = page.unwrap().changes.into_iter();
    let names = changes.map(|change| change.columns.record.name.id().to_owned());
    names.collect()
}

#[tokio::test]
async fn a_gap_is_told() {
    for database in each_database().await {
        let receiver = Receiver::start(|number, _| match number {
            2 => Act::status(503),
            _ => Act::status(202),
        })
        .await;
        let file = File::of(&[("one", &receiver.url(), "")]);
        let path = file.path();
        let more = [("events_file", path.as_str())];
        let server = TestServer::start_with(&database, &more).await;
        sends(&server, "one").await;
        given(&server, &run("TaskRun", "before", Some("Succeeded"))).await;
        receiver.until_taken(2).await;
        server.stop().await;
        let server = TestServer::start(&database).await;
        for name in ["lost", "last"] {
            given(&server, &run("TaskRun", name, Some("Succeeded"))).await;
        }
        let opened = open(&database.url(), &resolve::Options::default())
            .await
            .unwrap();
        let before = jiff::Timestamp::from_second(9_000_000_000).unwrap();
        while !names(&opened).await.contains("last") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        while names(&opened).await.contains("lost") {
            let removed = opened.maintenance.prune_feed(before, NonZeroU32::MAX).await;
            removed.unwrap();
        }
        opened.maintenance.close().await;
        server.stop().await;
        let server = TestServer::start_with(&database, &more).await;
        sends(&server, "one").await;
        let said = receiver
            .until(|all| {
                all.iter()
                    .any(|got| got.taken && got.moment() == "interrupted")
            })
            .await;
        let gaps: Vec<_> = said
            .iter()
            .filter(|got| got.moment() == "interrupted")
            .collect();
        assert_eq!(gaps.len(), 2, "it is tried until it is taken");
        assert_eq!(gaps[0].id(), gaps[1].id());
        assert_eq!(
            gaps[1].header("ce-type"),
            "dev.cdeventsx.hindsight-feed.interrupted.0.1.0"
        );
        assert_eq!(gaps[1].body["subject"], json!({"id": "one", "content": {}}));
        given(&server, &run("TaskRun", "after", Some("Succeeded"))).await;
        let all = receiver
            .until(|all| {
                all.iter()
                    .any(|got| got.run() == "after" && got.moment() == "finished")
            })
            .await;
        assert!(!all.iter().any(|got| got.run() == "lost"));
        let text = metrics(&server).await;
        assert!(
            text.contains("hindsight_events_gaps_total{receiver=\"one\"} 1"),
            "{text}"
        );
        server.stop().await;
        database.remove().await;
    }
}
