//! Who is let in to pages, how much is made for one caller, and what is refused at the door.

use std::time::Duration;

use hindsight_proto::v1alpha2 as pb;
use hindsight_proto::v1alpha2::results_client::ResultsClient;
use kubesim::{Fault, Sim};
use serde_json::json;

use super::{
    asked_as, page,
    seed::{Given, empty, record},
    sign_in::{guarded, sign_in},
};
use crate::support::{
    Database, TestServer,
    http::Http,
    objects::{PIPELINE_RUN, bytes},
};

async fn with_token(http: &mut Http, target: &str, token: &str) -> crate::support::http::Reply {
    let token = format!("Bearer {token}");
    http.send("GET", target, &[("authorization", &token)], "")
        .await
}

#[tokio::test]
async fn callers_who_are_not_known_take_no_share_of_pages() {
    let sim = Sim::new();
    let listening = sim.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    sim.policy().token("zoe", "zoe", &[]).allow(
        "zoe",
        "list",
        "results.tekton.dev",
        "records",
        "*",
    );
    let kubeconfig = listening.kubeconfig().display().to_string();
    let server = empty(&[("auth", "kubernetes"), ("auth_kubeconfig", &kubeconfig)]).await;
    let mut http = Http::one(&server.url).await;
    assert_eq!(
        with_token(&mut http, "/ui/runs?ns=shop", "zoe")
            .await
            .status,
        200
    );

    // From now on the cluster does not say who callers are.
    sim.faults().plan(
        Fault::slow(Duration::from_mins(10))
            .resource("tokenreviews")
            .lasting(),
    );
    let strangers: Vec<_> = (0..200)
        .map(|number| {
            let url = server.url.clone();
            tokio::spawn(async move {
                let mut http = Http::one(&url).await;
                let target = "/ui/run/shop/results/a/records/b";
                with_token(&mut http, target, &format!("random-{number}")).await
            })
        })
        .collect();
    // Some of them are refused because there are so many: by then all are inside.
    let patience = Duration::from_secs(60);
    let refused = async {
        while !strangers.iter().any(tokio::task::JoinHandle::is_finished) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(patience, refused).await.unwrap();
    let known = with_token(&mut http, "/ui/runs?ns=shop", "zoe");
    let known = tokio::time::timeout(Duration::from_secs(4), known).await;
    assert_eq!(known.unwrap().status, 200);
    for stranger in &strangers {
        stranger.abort();
    }
    server.stop().await;
}

#[tokio::test]
async fn a_token_is_taken_from_the_proxy_alone_where_it_is_encrypted() {
    let guarded = guarded(&[("public_url", "https://results.example/history")]).await;
    let server = &guarded.server;
    for (host, more, may) in [
        ("results.example", "", true),
        ("RESULTS.example:443", "", true),
        ("node-7:8080", "x-forwarded-proto: https\r\n", true),
        ("node-7:8080", "", false),
        ("results.example", "x-forwarded-proto: http\r\n", false),
        ("results.example.evil:443", "", false),
    ] {
        let host = format!("{host}\r\n{more}x-nothing: 1");
        let answer = asked_as(server, &host, "/ui/login?to=/history/ui/runs").await;
        assert_eq!(answer.contains("name=\"token\""), may, "{host}");
        let status = if may {
            "HTTP/1.1 200 "
        } else {
            "HTTP/1.1 403 "
        };
        assert!(answer.starts_with(status), "{host}: {answer}");
        let link = "https://results.example/history/ui/login?to=%2Fhistory%2Fui%2Fruns";
        assert_eq!(answer.contains(link), !may, "{answer}");
    }
    // What is sent all the same is not looked at.
    let mut http = Http::one(&server.url).await;
    let headers = [
        ("origin", "https://results.example"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-for", "203.0.113.1"),
    ];
    let form = http
        .send("POST", "/ui/login", &headers, "token=reader")
        .await;
    assert_eq!((form.status, form.header("set-cookie")), (403, None));
    guarded.server.stop().await;
}

#[tokio::test]
async fn a_run_that_was_closed_is_shown_as_vanished() {
    let server = empty(&[]).await;
    let run = json!({
        "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
        "metadata": {"name": "gone", "namespace": "shop", "uid": "u-1",
            "creationTimestamp": "2026-03-02T08:00:00Z",
            "labels": {"tekton.dev/pipeline": "release"},
            "annotations": {"hindsight.dev/closed": "deleted before it finished",
                "hindsight.dev/closed-at": "2026-03-02T09:00:00Z",
                "hindsight.dev/closed-uid": "u-1"}},
        "status": {"startTime": "2026-03-02T08:00:01Z",
            "conditions": [{"type": "Succeeded", "status": "Unknown", "reason": "Running"}]},
    });
    let name = "shop/results/gone/records/gone";
    server.given_record(name, PIPELINE_RUN, &bytes(&run)).await;
    assert_eq!(record(&server, "vanished").await, name);
    let mut http = Http::one(&server.url).await;
    for target in [
        "/ui/runs".to_owned(),
        format!("/ui/run/{name}"),
        "/ui/pipeline/shop/release".to_owned(),
        "/ui/".to_owned(),
    ] {
        let html = page(&mut http, &target).await.text();
        let (_, shown) = html.split_once("<main").unwrap();
        assert!(shown.contains("#s-vanished"), "{target}: {shown}");
        assert!(!shown.contains("#s-unknown"), "{target}: {shown}");
        // Nothing is asked for again: it has ended.
        assert!(!shown.contains("hx-get=\"/ui/run/"), "{target}");
    }
    let html = page(&mut http, &format!("/ui/run/{name}")).await.text();
    assert!(html.contains("took <b>59 m 59 s</b>"), "{html}");
    server.stop().await;
}

#[tokio::test]
async fn a_payload_above_32_mib_is_said_to_be_with_its_size_and_command() {
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &[("max_message_bytes", "64MiB")]).await;
    let name = "shop/results/large/records/large";
    server.given_result("shop/results/large").await;
    let channel = tonic::transport::Endpoint::new(server.url.clone()).unwrap();
    let mut results = ResultsClient::new(channel.connect().await.unwrap())
        .max_decoding_message_size(64 << 20)
        .max_encoding_message_size(64 << 20);
    let record = pb::Record {
        name: name.to_owned(),
        data: Some(pb::Any {
            r#type: "note".to_owned(),
            value: vec![b'x'; 33 << 20].into(),
        }),
        ..pb::Record::default()
    };
    let request = pb::CreateRecordRequest {
        parent: "shop/results/large".to_owned(),
        record: Some(record),
    };
    results.create_record(request).await.unwrap();
    let mut http = Http::one(&server.url).await;
    let reply = page(&mut http, &format!("/ui/raw/{name}")).await;
    assert_eq!(reply.status, 413);
    let html = reply.text();
    for text in [
        "The payload has 33.0 MiB, and pages take 32 MiB.",
        "hindsight get shop/results/large/records/large",
        "/apis/results.tekton.dev/v1alpha2/parents/",
    ] {
        assert!(html.contains(text), "no `{text}`: {html}");
    }
    let file = page(&mut http, &format!("/ui/payload/{name}")).await;
    assert_eq!(file.status, 413);
    server.stop().await;
    // The limit of the server itself has its own words.
    let server = TestServer::start_with(&database, &[("max_message_bytes", "1MiB")]).await;
    let mut http = Http::one(&server.url).await;
    let reply = page(&mut http, &format!("/ui/raw/{name}")).await;
    assert_eq!(reply.status, 413);
    assert!(
        reply.text().contains("max_message_bytes"),
        "{}",
        reply.text()
    );
    server.stop().await;
}

#[tokio::test]
async fn what_other_programs_read_takes_a_session_or_a_bearer_token() {
    let guarded = guarded(&[]).await;
    let server: &Given = &guarded.server;
    let mut http = Http::one(&server.url).await;
    let session = super::sign_in::cookie(&sign_in(&mut http, "shopper", "").await);
    for target in ["/ui/badge/shop/release.svg", "/ui/feed.atom?ns=shop"] {
        let none = http.send("GET", target, &[], "").await;
        assert_eq!((none.status, none.header("location")), (401, None));
        assert_eq!(none.header("www-authenticate"), Some("Bearer"));
        let wrong = with_token(&mut http, target, "wrong").await;
        assert_eq!(wrong.status, 401);
        assert_eq!(with_token(&mut http, target, "shopper").await.status, 200);
        let reply = http.send("GET", target, &[("cookie", &session)], "").await;
        assert_eq!(reply.status, 200);
    }
    for target in ["/ui/badge/data/x.svg", "/ui/feed.atom"] {
        assert_eq!(with_token(&mut http, target, "shopper").await.status, 403);
    }
    guarded.server.stop().await;
}

#[tokio::test]
async fn you_are_told_who_you_are_and_until_when() {
    let guarded = guarded(&[]).await;
    let server = &guarded.server;
    let mut http = Http::one(&server.url).await;
    let session = super::sign_in::cookie(&sign_in(&mut http, "shopper", "").await);
    let headers = [("cookie", session.as_str())];
    let html = http.send("GET", "/ui/you", &headers, "").await.text();
    for text in ["shopper", "7 h 59 m left", "auth = \"tokens\"", "Sign out"] {
        assert!(html.contains(text), "no `{text}`: {html}");
    }
    let own = [("origin", "http://localhost")];
    let form = "zone=Asia%2FKolkata&to=/ui/you";
    let kept = http.send("POST", "/ui/preferences", &own, form).await;
    let zone = kept
        .header("set-cookie")
        .unwrap()
        .split(';')
        .next()
        .unwrap();
    let both = format!("{session}; {zone}; hs_zone=UTC");
    let html = http.send("GET", "/ui/you", &[("cookie", &both)], "").await;
    let html = html.text();
    assert!(
        html.contains("which you chose") && html.contains("Asia/Kolkata"),
        "{html}"
    );
    // A zone that there is not is none.
    let kept = http
        .send(
            "POST",
            "/ui/preferences",
            &own,
            "zone=Moon%2FSea&to=/ui/you",
        )
        .await;
    assert!(kept.header("set-cookie").unwrap().contains("Max-Age=0"));
    guarded.server.stop().await;
}
