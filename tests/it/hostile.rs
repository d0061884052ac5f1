//! Crowds, giants, peers that never finish, and input made to do harm.

mod commands;

use std::{collections::BTreeMap, time::Duration};

use futures::future::join_all;
use hindsight_filter::{Order, condition::Condition};
use hindsight_proto::v1alpha2 as pb;
use hindsight_storage::{
    ListQuery, Priority, Projection,
    resolve::{Options, open},
};
use sqlx::{Connection as _, Executor as _, SqliteConnection};
use tokio::{io::AsyncWriteExt as _, net::TcpStream, time::timeout};
use tonic::Code;

use crate::support::{Database, TestServer, objects::TASK_RUN, server::on_each};

#[tokio::test]
async fn any_number_of_updates_without_an_etag_succeed() {
    on_each(|server| async move {
        let name = "ci/results/r/records/a";
        server.given_record(name, "blob", b"0").await;
        let updates = (0..100).map(|n: u32| {
            let data = pb::Any {
                r#type: "blob".to_owned(),
                value: n.to_string().into_bytes().into(),
            };
            let request = pb::UpdateRecordRequest {
                record: Some(pb::Record {
                    name: name.to_owned(),
                    data: Some(data),
                    ..Default::default()
                }),
                ..Default::default()
            };
            let mut rpc = server.rpc();
            tokio::spawn(async move { rpc.update_record(request).await })
        });
        for answer in join_all(updates.collect::<Vec<_>>()).await {
            answer.unwrap().unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn a_record_that_is_stored_can_be_read_however_large() {
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &[("max_message_bytes", "1MiB")]).await;
    server.given_result("ci/results/r").await;
    let mut stored = 0;
    for less in (0..6000).step_by(100) {
        let name = format!("ci/results/r/records/{less}");
        let value = vec![b'x'; (1 << 20) - less];
        match server.create_record(&name, "blob", &value).await {
            Ok(created) => {
                assert_eq!(server.get_record(&name).await.unwrap(), created);
                stored += 1;
            }
            Err(status) => {
                assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
                let missing = server.get_record(&name).await.unwrap_err();
                assert_eq!(
                    missing.code(),
                    Code::NotFound,
                    "{less} bytes below: {missing:?}"
                );
            }
        }
    }
    assert!((1..60).contains(&stored), "{stored}");
    server.stop().await;
}

#[tokio::test]
async fn a_page_of_results_ends_before_its_summaries_outgrow_a_message() {
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &[("max_message_bytes", "1MiB")]).await;
    for n in 0..9 {
        let summary = pb::RecordSummary {
            record: "ci/results/r/records/a".to_owned(),
            r#type: TASK_RUN.to_owned(),
            annotations: BTreeMap::from([("k".to_owned(), "v".repeat(200_000))]),
            ..Default::default()
        };
        let result = pb::Result {
            name: format!("ci/results/{n}"),
            summary: Some(summary),
            ..Default::default()
        };
        server.create_result(result).await.unwrap();
    }
    let (mut seen, mut token) = (0, String::new());
    loop {
        let request = pb::ListResultsRequest {
            parent: "ci".to_owned(),
            page_token: token,
            ..Default::default()
        };
        let reply = server
            .rpc()
            .list_results(request)
            .await
            .unwrap()
            .into_inner();
        seen += reply.results.len();
        token = reply.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen, 9);
    server.stop().await;
}

#[tokio::test]
async fn a_list_of_large_payloads_does_not_hold_all_of_them_at_once() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    for n in 0..5 {
        let name = format!("ci/results/r/records/{n}");
        server
            .given_record(&name, "blob", &vec![b'x'; 3 << 20])
            .await;
    }
    let request = pb::ListRecordsRequest {
        parent: "ci/results/r".to_owned(),
        ..Default::default()
    };
    let reply = server
        .rpc()
        .list_records(request)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(
        (reply.records.len(), reply.next_page_token.as_str()),
        (5, "")
    );
    server.stop().await;

    let opened = open(&database.url(), &Options::default()).await.unwrap();
    let query = ListQuery {
        scope: "ci/results/r".parse().unwrap(),
        condition: Condition::All,
        order: Order::newest_first(),
        after: None,
        limit: 50.try_into().unwrap(),
        bodies: true,
        max_bytes: Some(4 << 20),
        projection: Projection::ALL,
        priority: Priority::Normal,
    };
    assert_eq!(opened.store.list_records(&query).await.unwrap().len(), 2);
    let query = ListQuery {
        bodies: false,
        ..query
    };
    assert_eq!(opened.store.list_records(&query).await.unwrap().len(), 5);
    opened.maintenance.close().await;
}

#[tokio::test]
async fn a_server_stops_although_a_peer_never_finishes_its_request() {
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &[("shutdown_grace", "100ms")]).await;
    let mut admin = TcpStream::connect(&server.admin).await.unwrap();
    admin.write_all(b"GET /metr").await.unwrap();
    let api = server.url.strip_prefix("http://").unwrap();
    let mut api = TcpStream::connect(api).await.unwrap();
    api.write_all(b"PRI * HT").await.unwrap();
    // The page answers others only once it has met this peer.
    server.given_result("ci/results/r").await;
    let stopped = timeout(Duration::from_secs(30), server.stop()).await;
    assert!(stopped.is_ok(), "the server waits for a peer");
    drop((admin, api));
}

#[tokio::test]
async fn writers_are_told_together_that_another_process_holds_the_file() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let mut other = SqliteConnection::connect(&database.url()).await.unwrap();
    other.execute("BEGIN IMMEDIATE").await.unwrap();
    let creates = (0..12).map(|n| {
        let result = pb::Result {
            name: format!("ci/results/{n}"),
            ..Default::default()
        };
        let request = pb::CreateResultRequest {
            result: Some(result),
            ..Default::default()
        };
        let mut rpc = server.rpc();
        async move { rpc.create_result(request).await }
    });
    let answers = timeout(Duration::from_secs(28), join_all(creates)).await;
    for answer in answers.expect("nobody waits for the others' turns") {
        assert_eq!(answer.unwrap_err().code(), Code::Unavailable);
    }
    other.execute("ROLLBACK").await.unwrap();
    server.given_result("ci/results/0").await;
    server.stop().await;
}

#[tokio::test]
async fn a_list_that_ends_within_the_budget_is_whole() {
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &[("scan_budget", "3")]).await;
    for n in 0..3 {
        let name = format!("ci/results/r/records/{n}");
        server.given_record(&name, "blob", b"{\"n\": 1}").await;
    }
    for (filter, count) in [("data.n + 1 == 3", 0), ("data.n + 1 == 2", 3)] {
        assert_eq!(
            server.ids("-/results/-", filter).await.unwrap().len(),
            count
        );
        let request = pb::RecordListSummaryRequest {
            parent: "-/results/-".to_owned(),
            filter: filter.to_owned(),
            ..Default::default()
        };
        server.rpc().get_record_list_summary(request).await.unwrap();
    }
    server.stop().await;
}
