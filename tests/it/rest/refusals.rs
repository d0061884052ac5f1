//! What cannot be answered, and how that is said.

use serde_json::{Value, json};

use super::http;
use crate::support::{
    Database, TestServer,
    http::{Http, PREFIX},
    server::on_each,
};

#[tokio::test]
async fn every_refusal_has_its_status_its_code_and_nothing_else() {
    on_each(|server| async move {
        let kept = "ci/results/r/records/a";
        server.given_record(kept, "t", b"{}").await;
        let mut http = http(&server).await;
        let result = r#"{"name": "ci/results/r"}"#;
        let record = r#"{"name": "ci/results/r/records/a"}"#;
        let orphan = r#"{"name": "ci/results/none/records/a"}"#;
        let object =
            r#"{"name": "ci/results/r/records/b", "data": {"value": {"kind": "TaskRun"}}}"#;
        let cases = [
            ("GET", "ci/results/none", "", 404, 5),
            ("GET", "ci/results/r/records/none", "", 404, 5),
            ("DELETE", "ci/results/none", "", 404, 5),
            ("PATCH", "ci/results/none", "{}", 404, 5),
            ("PATCH", "ci/results/r/records/none", "{}", 404, 5),
            ("POST", "ci/results", result, 409, 6),
            ("POST", "ci/results/r/records", record, 409, 6),
            ("POST", "ci/results/none/records", orphan, 404, 5),
            ("POST", "dev/results", result, 400, 3),
            ("POST", "ci/results", "", 400, 3),
            ("POST", "ci/results", "{", 400, 3),
            ("POST", "ci/results/r/records", object, 400, 3),
            ("PATCH", "ci/results/r?etag=stale", "{}", 400, 9),
            ("PATCH", "ci/results/r/records/a?etag=stale", "{}", 400, 9),
            ("GET", "ci/results?page_size=many", "", 400, 3),
            ("GET", "ci/results?page_size=-1", "", 400, 3),
            ("GET", "ci/results?filter=nonsense%20(", "", 400, 3),
            ("GET", "ci/results?order_by=colour", "", 400, 3),
            ("GET", "ci/results?page_token=garbage", "", 400, 3),
            ("GET", "ci/results/a%20b", "", 400, 3),
            ("GET", "ci/results/%C3%A9", "", 400, 3),
            ("GET", "ci/results/r/records/a/b", "", 404, 5),
            ("GET", "ci/results/", "", 404, 5),
            ("GET", "ci", "", 404, 5),
            ("GET", "ci/results/r/logs/none", "", 404, 5),
            ("PUT", "ci/results/r", "{}", 501, 12),
            ("OPTIONS", "ci/results", "", 501, 12),
            ("POST", "ci/results/r/records/a", "{}", 501, 12),
            ("DELETE", "ci/results", "", 501, 12),
        ];
        for (method, path, body, status, code) in cases {
            let target = super::at(path);
            let reply = http.send(method, &target, &[], body).await;
            let what = format!("{method} {path}: {}", reply.text());
            assert_eq!(reply.status, status, "{what}");
            let json = reply.json();
            assert_eq!(json["code"], code, "{what}");
            assert!(
                json["message"].as_str().is_some_and(|m| !m.is_empty()),
                "{what}"
            );
            let keys: Vec<_> = json.as_object().unwrap().keys().collect();
            assert_eq!(keys, ["code", "message"], "{what}");
            assert_eq!(
                reply.header("content-type"),
                Some("application/json"),
                "{what}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn unknown_paths_and_wrong_verbs_say_so_in_the_known_words() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let mut http = http(&server).await;
    let words = |code: i32, message: &str| json!({"code": code, "message": message});
    for path in [
        "/",
        "/apis",
        "/metrics",
        "/tekton.results.v1alpha2.Results/GetResult",
    ] {
        let reply = http.send("GET", path, &[], "").await;
        assert_eq!(
            (reply.status, reply.json()),
            (404, words(5, "Not Found")),
            "{path}"
        );
    }
    for (verb, path) in [
        ("PUT", super::at("ci/results")),
        ("POST", "/healthz".to_owned()),
    ] {
        let reply = http.send(verb, &path, &[], "").await;
        assert_eq!(
            (reply.status, reply.json()),
            (501, words(12, "Method Not Allowed"))
        );
    }
    let head = http.send("HEAD", &super::at("ci/results"), &[], "").await;
    assert_eq!((head.status, head.body.len()), (501, 0));
    drop(http);
    server.stop().await;
}

#[tokio::test]
async fn what_is_too_large_is_told_apart_from_what_is_too_much() {
    let database = Database::sqlite();
    let limit = [("max_message_bytes", "1MiB")];
    let server = TestServer::start_with(&database, &limit).await;
    server.given_result("ci/results/r").await;
    let post = |bytes: usize| {
        json!({
            "name": format!("ci/results/r/records/n{bytes}"),
            "data": {"type": "t", "value": "A".repeat(bytes)},
        })
    };
    for bytes in [1_397_000, 1_400_000, 4_000_000] {
        let mut http = Http::one(&server.url).await;
        let reply = http.put("POST", "ci/results/r/records", &post(bytes)).await;
        assert_eq!(
            (reply.status, &reply.json()["code"]),
            (413, &json!(8)),
            "{bytes}"
        );
    }
    let mut http = Http::one(&server.url).await;
    http.put("POST", "ci/results/r/records", &post(1_200_000))
        .await
        .ok();
    drop(http);
    server.stop().await;
}

#[tokio::test]
async fn a_malformed_deadline_is_refused() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let mut http = http(&server).await;
    let target = format!("{PREFIX}/ci/results");
    let reply = http
        .send("GET", &target, &[("grpc-timeout", "soon")], "")
        .await;
    assert_eq!(reply.status, 400);
    let said = reply.json();
    assert!(
        matches!(&said["message"], Value::String(m) if m.contains("grpc-timeout")),
        "{said}"
    );
    let reply = http
        .send("GET", &target, &[("Grpc-Timeout", "20S")], "")
        .await;
    assert_eq!((reply.status, reply.text().as_str()), (200, "{}"));
    drop(http);
    server.stop().await;
}
