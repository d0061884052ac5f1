//! What a connection may do: how many there are, how long they are used, how slow they may be.

use std::time::Duration;

use hindsight_proto::v1alpha2 as pb;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::support::{
    Database, TestServer,
    http::{Http, target},
};

const PATIENCE: Duration = Duration::from_secs(30);

async fn connect(server: &TestServer) -> TcpStream {
    let address = server.url.strip_prefix("http://").unwrap();
    TcpStream::connect(address).await.unwrap()
}

/// Everything that comes until the server closes.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    // A reset is an end too.
    drop(read.expect("the server closes the connection"));
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn slow_clients_are_let_go_wherever_they_stop() {
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &[("client_timeout", "200ms")]).await;
    let path = target("ci/results", &[]);
    let begun = [
        String::new(),
        "GET /livez HT".to_owned(),
        "PRI * HTTP/2.0".to_owned(),
        format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: 99\r\n\r\n{{"
        ),
    ];
    for begun in begun {
        let mut stream = connect(&server).await;
        stream.write_all(begun.as_bytes()).await.unwrap();
        let answer = rest(&mut stream).await;
        if begun.starts_with("POST") {
            assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
            assert!(answer.contains("did not go on within 200ms"), "{answer}");
        }
    }
    // One who asks in time is answered on the same connection again and again.
    let mut http = Http::two(&server.url).await;
    for _ in 0..3 {
        assert_eq!(http.send("GET", &path, &[], "").await.status, 200);
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn no_more_connections_are_taken_than_there_may_be() {
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &[("max_connections", "2")]).await;
    let path = target("ci/results", &[]);
    let mut open = [Http::one(&server.url).await, Http::one(&server.url).await];
    for http in &mut open {
        assert_eq!(http.send("GET", &path, &[], "").await.status, 200);
    }
    let mut third = connect(&server).await;
    let ask = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    third.write_all(ask.as_bytes()).await.unwrap();
    let short = timeout(Duration::from_millis(300), third.read_u8()).await;
    assert!(short.is_err(), "it waits");
    let [first, second] = open;
    drop(first);
    assert!(rest(&mut third).await.contains("200 OK"));
    drop(second);
    server.stop().await;
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &[("max_header_bytes", "16KiB")]).await;
    let large = "x".repeat(20_000);
    let path = target("ci/results", &[]);
    let mut one = Http::one(&server.url).await;
    let status = one
        .send("GET", &path, &[("x-large", &large)], "")
        .await
        .status;
    assert_eq!(status, 431);
    let mut two = Http::two(&server.url).await;
    let status = two
        .send("GET", &path, &[("x-large", &large)], "")
        .await
        .status;
    assert_eq!(status, 431);
    assert_eq!(
        two.send("GET", &path, &[("x-small", "x")], "").await.status,
        200
    );
    server.stop().await;
}

#[tokio::test]
async fn old_connections_are_given_up_and_what_was_sent_is_answered() {
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &[("connection_age", "100ms")]).await;
    server.given_result("ci/results/r").await;
    let mut rpc = server.rpc();
    let began = std::time::Instant::now();
    let mut asked = 0;
    while began.elapsed() < Duration::from_secs(2) {
        let request = pb::GetResultRequest {
            name: "ci/results/r".to_owned(),
        };
        match rpc.get_result(request).await {
            Ok(_) => asked += 1,
            // The client noticed before it sent anything.
            Err(status) => assert_eq!(status.message(), "operation was canceled", "{status:?}"),
        }
    }
    let mut http = Http::one(&format!("http://{}", server.admin)).await;
    let metrics = http.send("GET", "/metrics", &[], "").await.text();
    let taken = metrics
        .lines()
        .find_map(|line| line.strip_prefix("hindsight_connections_taken_total "));
    let taken: u32 = taken.unwrap().parse().unwrap();
    assert!(
        taken > 5 && asked > taken,
        "{asked} requests over {taken} connections"
    );
    server.stop().await;
}

#[tokio::test]
async fn every_request_has_a_name_by_both_protocols() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let path = target("ci/results", &[]);
    let grpc = "/grpc.health.v1.Health/Check";
    for (path, kind) in [
        (path.as_str(), "application/json"),
        (grpc, "application/grpc"),
        ("/livez", "text/plain"),
    ] {
        let mut http = Http::two(&server.url).await;
        let verb = if path == grpc { "POST" } else { "GET" };
        let own = [
            ("content-type", kind),
            ("te", "trailers"),
            ("x-request-id", "mine-7"),
        ];
        let body = vec![0; if path == grpc { 5 } else { 0 }];
        let reply = http.send(verb, path, &own, body.clone()).await;
        assert_eq!(reply.header("x-request-id"), Some("mine-7"), "{path}");
        let odd = [
            ("content-type", kind),
            ("te", "trailers"),
            ("x-request-id", "not a name"),
        ];
        let reply = http.send(verb, path, &odd, body).await;
        let made = reply.header("x-request-id").unwrap();
        assert_eq!(made.len(), 36, "{path}: {made}");
    }
    server.stop().await;
}

#[tokio::test]
async fn pages_of_chosen_origins_may_ask_from_a_browser() {
    let database = Database::sqlite();
    let origins = [("cors_origins", "https://a.example,https://b.example")];
    let server = TestServer::start_with(&database, &origins).await;
    let mut http = Http::one(&server.url).await;
    let path = target("ci/results", &[]);
    for (origin, status) in [("https://b.example", 200), ("https://c.example", 403)] {
        let expected = (status == 200).then_some(origin);
        let asked = [
            ("origin", origin),
            ("access-control-request-method", "PATCH"),
            (
                "access-control-request-headers",
                "authorization,content-type",
            ),
        ];
        let reply = http.send("OPTIONS", &path, &asked, "").await;
        assert_eq!(reply.status, status);
        assert_eq!(reply.header("access-control-allow-origin"), expected);
        let headers = reply.header("access-control-allow-headers");
        assert!(headers.is_none_or(|headers| headers.contains("authorization")));
        let methods = reply.header("access-control-allow-methods");
        assert!(methods.is_none_or(|methods| methods.contains("PATCH")));
        assert_eq!(
            (headers.is_some(), methods.is_some()),
            (status == 200, status == 200)
        );
        let reply = http.send("GET", &path, &[("origin", origin)], "").await;
        assert_eq!(reply.status, status);
        assert_eq!(reply.header("access-control-allow-origin"), expected);
    }
    server.stop().await;
    let server = TestServer::start(&database).await;
    let mut http = Http::one(&server.url).await;
    let reply = http
        .send("GET", &path, &[("origin", "https://a.example")], "")
        .await;
    assert_eq!(reply.header("access-control-allow-origin"), None);
    server.stop().await;
}
