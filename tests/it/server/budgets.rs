//! What one caller may use, and what others notice of it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use hindsight_client::{Client, Options};
use hindsight_proto::{v1::AggregateRequest, v1alpha2 as pb};
use tonic::Code;
use tonic_types::StatusExt as _;

use super::{ask, users};
use crate::support::{Database, TestServer};

const SLOW: &str = "data.n + 1 == 0";

async fn start(database: &Database, more: &[(&str, &str)]) -> TestServer {
    let server = TestServer::start(database).await;
    for n in 0..30 {
        let value = format!("{{\"n\": {n}}}");
        server
            .given_record(&format!("ci/results/r/records/{n}"), "t", value.as_bytes())
            .await;
    }
    server.stop().await;
    let folder = tempfile::tempdir().unwrap();
    let users = users(&folder, &[("ann", "admin"), ("bob", "admin")]);
    let mut all = vec![("auth", "tokens"), ("auth_tokens_file", users.as_str())];
    all.extend(more);
    TestServer::start_with(database, &all).await
}

#[tokio::test]
async fn who_asks_too_often_is_told_when_to_come_again_by_both_protocols() {
    let database = Database::sqlite();
    let server = start(&database, &[("caller_max_rate", "2")]).await;
    let get = || ask(&server, "ann", "GET", "ci/results/r", &[], "");
    let mut replies = Vec::new();
    while replies.last().is_none_or(|status| *status == 200) {
        let reply = get().await;
        replies.push(reply.status);
        if reply.status == 429 {
            assert_eq!(reply.header("retry-after"), Some("1"));
            let told = reply.json();
            assert_eq!(told["code"], 8);
            let says = told["message"].as_str().unwrap();
            assert!(
                says.starts_with("this caller may begin 2 requests a second"),
                "{says}"
            );
        }
        assert!(replies.len() < 1000);
    }
    assert_eq!(replies.last(), Some(&429));
    let rpc = |token: &str| {
        let options = Options {
            token: Some(token.into()),
            ..Options::new(&server.url)
        };
        Client::new(&options).unwrap().rpc()
    };
    let request = || pb::GetResultRequest {
        name: "ci/results/r".to_owned(),
    };
    let mut ann = rpc("ann");
    let refused = loop {
        match ann.get_result(request()).await {
            Ok(_) => {}
            Err(status) => break status,
        }
    };
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let delay = refused
        .get_details_retry_info()
        .unwrap()
        .retry_delay
        .unwrap();
    assert!(delay <= Duration::from_millis(500), "{delay:?}");
    rpc("bob").get_result(request()).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn who_has_filters_read_too_much_is_refused_and_may_still_ask_what_costs_little() {
    let database = Database::sqlite();
    let server = start(&database, &[("caller_max_scan", "50")]).await;
    let list = async |who: &str, filter: &str| {
        ask(
            &server,
            who,
            "GET",
            "ci/results/-/records",
            &[("filter", filter)],
            "",
        )
        .await
    };
    assert_eq!(list("ann", SLOW).await.status, 200);
    assert_eq!(list("ann", SLOW).await.status, 200);
    let reply = list("ann", SLOW).await;
    assert_eq!(reply.status, 429, "{}", reply.text());
    let after: u32 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&after), "{after}");
    assert_eq!(list("ann", "name == '1'").await.status, 200);
    assert_eq!(list("bob", SLOW).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn what_is_read_for_sums_is_paid_for_too() {
    let database = Database::sqlite();
    let server = start(&database, &[("caller_max_scan", "50")]).await;
    let options = Options {
        token: Some("ann".into()),
        ..Options::new(&server.url)
    };
    let mut ann = Client::new(&options).unwrap().queries();
    let question = |by: &str, filter: &str| AggregateRequest {
        parent: "ci/results/-".to_owned(),
        group_by: vec![by.to_owned()],
        filter: filter.to_owned(),
        ..AggregateRequest::default()
    };
    ann.aggregate(question("type", SLOW)).await.unwrap();
    ann.aggregate(question("param(env)", "")).await.unwrap();
    let refused = ann.aggregate(question("type", SLOW)).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    ann.aggregate(question("type", "")).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn requests_in_flight_are_bounded_for_each_caller_and_counted() {
    let database = Database::sqlite();
    let server = Arc::new(
        start(
            &database,
            &[("caller_max_requests", "1"), ("scan_slots", "1")],
        )
        .await,
    );
    let crowd = (0..40).map(|_| {
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            let query = [("filter", SLOW)];
            ask(&server, "ann", "GET", "ci/results/-/records", &query, "")
                .await
                .status
        })
    });
    let crowd: Vec<_> = crowd.collect();
    let mut seen = [0, 0];
    for reply in crowd {
        seen[usize::from(reply.await.unwrap() == 429)] += 1;
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
    let mut http = crate::support::http::Http::one(&format!("http://{}", server.admin)).await;
    let metrics = http.send("GET", "/metrics", &[], "").await.text();
    let line = format!(
        "hindsight_budget_refusals_total{{budget=\"in_flight\"}} {}",
        seen[1]
    );
    assert!(metrics.contains(&line), "{line} is not in {metrics}");
    Arc::into_inner(server).unwrap().stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_made_to_hurt_end_at_their_deadline_and_keep_nobody_else_waiting() {
    let database = Database::sqlite();
    let server = Arc::new(start(&database, &[("scan_slots", "1")]).await);
    let zeros = ["0"; 15_000].join(",");
    let slow = Options {
        token: Some("ann".into()),
        ..Options::new(&server.url)
    };
    let mut ann = Client::new(&slow).unwrap().rpc();
    for n in 0..60 {
        let value = format!("{{\"l\": [{zeros}], \"s\": \"{}\"}}", "a".repeat(1_000));
        ann.create_record(pb::CreateRecordRequest {
            parent: "ci/results/r".to_owned(),
            record: Some(pb::Record {
                name: format!("ci/results/r/records/slow-{n}"),
                data: Some(pb::Any {
                    r#type: "t".to_owned(),
                    value: value.into_bytes().into(),
                }),
                ..pb::Record::default()
            }),
        })
        .await
        .unwrap();
    }
    let tenfold = r#".replace("a","aaaaaaaaaa")"#.repeat(5);
    let folded = format!(r#""aaaaaaaaaa"{tenfold}.matches("[a-z]{{4000}}[^a-z]")"#);
    let patterns = [r#"uid.matches("a{2000}")"#; 1_000].join("||");
    let list = format!("data.n in [{}1]", "1,".repeat(10_000));
    // Each row takes nearly all the steps that it may.
    let rows = "data.l.all(i, i == 0 && i == 0) && data.s.matches('[a-z]{900}[^a-z]')";
    let crowd = (0..24).map(|n| {
        let server = Arc::clone(&server);
        let filter = [&folded, &patterns, &list, &rows.to_owned()][n % 4].clone();
        tokio::spawn(async move {
            let mut http = crate::support::http::Http::one(&server.url).await;
            let headers = [("authorization", "Bearer ann"), ("grpc-timeout", "3S")];
            let query = [("filter", filter.as_str())];
            let target = crate::support::http::target("ci/results/-/records", &query);
            let began = Instant::now();
            let reply = http.send("GET", &target, &headers, String::new()).await;
            (reply.status, began.elapsed())
        })
    });
    let crowd: Vec<_> = crowd.collect();
    let mut asked = 0;
    while !crowd.iter().all(tokio::task::JoinHandle::is_finished) {
        let began = Instant::now();
        let mut http = crate::support::http::Http::one(&server.url).await;
        let healthy = http.send("GET", "/healthz", &[], String::new()).await;
        assert_eq!(healthy.status, 200);
        let filters = ["name == '1'", "data.n + 1 == 2 && name == '1'"];
        for filter in filters {
            let query = [("filter", filter)];
            let reply = ask(&server, "bob", "GET", "ci/results/-/records", &query, "").await;
            assert_eq!(reply.status, 200, "{}", reply.text());
        }
        // Without turns these wait for minutes; the rest is room for machines that are busy.
        assert!(
            began.elapsed() < Duration::from_secs(15),
            "{:?}",
            began.elapsed()
        );
        asked += 1;
    }
    assert!(asked > 0, "{asked}");
    for reply in crowd {
        let (status, took) = reply.await.unwrap();
        assert!([400, 429, 504, 200].contains(&status), "{status}");
        assert!(took < Duration::from_secs(10), "{took:?}");
    }
    Arc::into_inner(server).unwrap().stop().await;
}
