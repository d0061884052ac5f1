//! What web pages can make a browser send to a server, and what the server takes of it.

use hindsight_proto::v1alpha2 as pb;
use tonic::{Code, Request, metadata::MetadataValue};

use super::{at, http};
use crate::support::{
    Database, TestServer,
    http::{Http, Reply},
    server::refused,
};

const RESULT: &str = r#"{"name": "ci/results/forged"}"#;

#[track_caller]
fn says(reply: &Reply, status: u16, code: i32, text: &str) {
    assert_eq!(reply.status, status, "{}", reply.text());
    let json = reply.json();
    assert_eq!(json["code"], code);
    let message = json["message"].as_str().unwrap();
    assert!(message.contains(text), "`{message}` does not say `{text}`");
    assert!(reply.header("x-request-id").is_some());
}

#[tokio::test]
async fn a_page_can_neither_write_nor_read_where_nobody_is_asked_who_they_are() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let mut http = http(&server).await;
    // Without these no browser asks the server first whether the page may.
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "",
    ] {
        let reply = http
            .send("POST", &at("ci/results"), &[("content-type", kind)], RESULT)
            .await;
        says(&reply, 415, 3, "send `content-type: application/json`");
    }
    for origin in ["https://evil.example", "null", "http://localhost:3000"] {
        for (verb, path) in [
            ("POST", "ci/results"),
            ("GET", "ci/results"),
            ("DELETE", "ci/results/r"),
        ] {
            let reply = http
                .send(verb, &at(path), &[("origin", origin)], RESULT)
                .await;
            says(&reply, 403, 7, "add the origin to cors_origins");
        }
    }
    assert_eq!(server.ids("ci/results/-", "").await.unwrap().len(), 0);
    let good = [
        ("content-type", "application/json; charset=utf-8"),
        ("origin", "http://localhost"),
    ];
    http.send("POST", &at("ci/results"), &good, RESULT)
        .await
        .ok();
    server.stop().await;
}

#[tokio::test]
async fn a_name_that_was_rebound_to_loopback_reaches_nothing() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let address = server.url.strip_prefix("http://").unwrap();
    for path in [
        at("ci/results"),
        "/healthz".to_owned(),
        "/openapi.json".to_owned(),
    ] {
        let page = ask(address, &path, &["host: evil.example"]).await;
        assert!(page.starts_with("HTTP/1.1 403 "), "{page}");
        assert!(page.contains("this server is not `evil.example`"), "{page}");
        assert!(page.contains("add the name to allowed_hosts"), "{page}");
    }
    let other = tonic::transport::Endpoint::from_shared(server.url.clone())
        .unwrap()
        .origin("http://evil.example".parse().unwrap());
    let mut rpc = pb::results_client::ResultsClient::new(other.connect().await.unwrap());
    let list = pb::ListResultsRequest {
        parent: "-".to_owned(),
        ..Default::default()
    };
    refused(
        rpc.list_results(list.clone()).await,
        Code::PermissionDenied,
        "allowed_hosts",
    );
    let mut from_page = Request::new(list);
    from_page
        .metadata_mut()
        .insert("origin", MetadataValue::from_static("https://evil.example"));
    refused(
        server.rpc().list_results(from_page).await,
        Code::PermissionDenied,
        "cors_origins",
    );
    server.stop().await;
    let named = [("allowed_hosts", "evil.example")];
    let server = TestServer::start_with(&database, &named).await;
    let address = server.url.strip_prefix("http://").unwrap();
    let page = ask(address, "/livez", &["host: evil.example:80"]).await;
    assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
    server.stop().await;
}

#[tokio::test]
async fn where_callers_show_tokens_any_name_and_origin_may_ask() {
    let (database, folder) = (Database::sqlite(), tempfile::tempdir().unwrap());
    let users = folder.path().join("users.toml");
    std::fs::write(&users, "").unwrap();
    let more = [
        ("auth", "tokens"),
        ("auth_tokens_file", users.to_str().unwrap()),
    ];
    let server = TestServer::start_with(&database, &more).await;
    let address = server.url.strip_prefix("http://").unwrap();
    let headers = ["host: any.example", "origin: https://any.example"];
    let page = ask(address, &at("ci/results"), &headers).await;
    assert!(page.starts_with("HTTP/1.1 401 "), "{page}");
    server.stop().await;
}

/// Sends a bare request with these headers.
async fn ask(address: &str, path: &str, headers: &[&str]) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let head: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let request = format!("GET {path} HTTP/1.1\r\nconnection: close\r\n{head}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    page
}

#[tokio::test]
async fn a_request_has_one_host_and_an_answer_is_what_it_says() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let address = server.url.strip_prefix("http://").unwrap();
    for hosts in [&[][..], &["host: localhost", "host: localhost"]] {
        let page = ask(address, "/healthz", hosts).await;
        assert!(page.starts_with("HTTP/1.1 400 "), "{page}");
        assert!(
            page.contains(&format!("has {} Host headers; send one", hosts.len())),
            "{page}"
        );
    }
    let mut http = Http::one(&server.url).await;
    for path in [
        "/healthz",
        "/livez",
        "/openapi.json",
        "/nothing",
        &at("ci/results"),
        &at("?"),
    ] {
        let reply = http.send("GET", path, &[], "").await;
        assert_eq!(
            reply.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_is_packed_or_has_a_key_twice_or_another_name_is_refused() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    server
        .given_record("ci/results/r/records/a", "t", b"{}")
        .await;
    let mut http = http(&server).await;
    let packed = [("content-encoding", "gzip")];
    let reply = http
        .send("POST", &at("ci/results"), &packed, &b"\x1f\x8b\x08"[..])
        .await;
    says(
        &reply,
        415,
        3,
        "bodies in `content-encoding: gzip` are not taken",
    );
    let twice = r#"{"name": "ci/results/x", "name": "ci/results/y"}"#;
    let reply = http.send("POST", &at("ci/results"), &[], twice).await;
    says(&reply, 400, 3, "the key `name` is there twice");
    for (path, other) in [
        ("ci/results/r", r#"{"name": "ci/results/other"}"#),
        (
            "ci/results/r/records/a",
            r#"{"name": "ci/results/r/records/b"}"#,
        ),
    ] {
        let reply = http.send("PATCH", &at(path), &[], other).await;
        says(&reply, 400, 3, "the path is enough");
        let same = format!(r#"{{"name": "{path}"}}"#);
        http.send("PATCH", &at(path), &[], same).await.ok();
    }
    let update = pb::UpdateResultRequest {
        name: "ci/results/r".to_owned(),
        result: Some(pb::Result {
            name: "ci/results/other".to_owned(),
            ..Default::default()
        }),
        ..Default::default()
    };
    let reply = server.rpc().update_result(update).await;
    refused(
        reply,
        Code::InvalidArgument,
        "`ci/results/other` is another result than name",
    );
    let mut odd = pb::RecordSummary {
        record: "ci/results/r/records/a".to_owned(),
        r#type: "t".to_owned(),
        start_time: Some(prost_types::Timestamp {
            seconds: 1,
            nanos: -1,
        }),
        ..Default::default()
    };
    let with = |summary: &pb::RecordSummary| pb::UpdateResultRequest {
        name: "ci/results/r".to_owned(),
        result: Some(pb::Result {
            summary: Some(summary.clone()),
            ..Default::default()
        }),
        ..Default::default()
    };
    let reply = server.rpc().update_result(with(&odd)).await;
    refused(reply, Code::InvalidArgument, "999999999 ns");
    odd.start_time = None;
    odd.record = "dev/results/r/records/a".to_owned();
    let reply = server.rpc().update_result(with(&odd)).await;
    refused(
        reply,
        Code::InvalidArgument,
        "is not below the parent of its result, `ci`",
    );
    server.stop().await;
}
