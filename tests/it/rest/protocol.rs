//! Connections, headers, compression, probes, and gRPC on the same port.

use std::io::Read as _;

use hindsight_proto::v1alpha2 as pb;
use serde_json::json;

use super::{http, some_runs, strictly};
use crate::support::{
    Database, TestServer,
    http::{Http, target},
    server::on_each,
};

#[tokio::test]
async fn one_connection_carries_many_requests_in_either_version_of_http() {
    on_each(|server| async move {
        some_runs(&server).await;
        for mut http in [Http::one(&server.url).await, Http::two(&server.url).await] {
            for _ in 0..3 {
                let path = super::at("ci/results/r1/records");
                let body = json!({"parent": "x", "filter": "y".repeat(100_000)}).to_string();
                let reply = http.send("GET", &path, &[], body).await;
                let page: pb::ListRecordsResponse = strictly(&reply, "ListRecordsResponse");
                assert_eq!(page.records.len(), 3);
                assert_eq!(http.get("ci/results/none", &[]).await.status, 404);
                let path = super::at("nowhere");
                assert_eq!(http.send("GET", &path, &[], "{").await.status, 404);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn paths_are_decoded_before_they_are_matched() {
    on_each(|server| async move {
        server
            .given_record("ci/results/a.b~c/records/d_e-f", "t", b"{}")
            .await;
        let mut http = http(&server).await;
        for path in [
            "ci/results/a.b~c/records/d_e-f",
            "ci/results/a%2Eb%7Ec/records/d%5Fe%2df",
            "ci%2Fresults%2Fa.b~c/records/d_e-f",
            "%63i/%72esults/a.b~c/%72ecords/d_e-f",
        ] {
            let reply = http.get(path, &[]).await;
            assert_eq!(
                reply.ok()["name"],
                "ci/results/a.b~c/records/d_e-f",
                "{path}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn every_answer_names_its_request() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let mut http = http(&server).await;
    let path = super::at("ci/results");
    let given = [("x-request-id", "abc-123")];
    let reply = http.send("GET", &path, &given, "").await;
    assert_eq!(reply.header("x-request-id"), Some("abc-123"));
    let strange = "x".repeat(200);
    let mut made = Vec::new();
    for headers in [vec![], vec![("x-request-id", strange.as_str())]] {
        let reply = http.send("GET", "/nowhere", &headers, "").await;
        assert_eq!(reply.status, 404);
        made.push(reply.header("x-request-id").unwrap().to_owned());
    }
    assert!(made.iter().all(|id| id.len() == 36), "{made:?}");
    assert_ne!(made[0], made[1]);
    drop(http);
    server.stop().await;
}

#[tokio::test]
async fn a_large_answer_is_compressed_for_those_who_take_that() {
    on_each(|server| async move {
        some_runs(&server).await;
        let mut http = http(&server).await;
        let path = target("-/results/-/records", &[]);
        let plain = http.send("GET", &path, &[], "").await;
        assert_eq!(plain.header("content-encoding"), None);
        assert_eq!(plain.header("vary"), Some("accept-encoding"));
        let packed = http
            .send("GET", &path, &[("accept-encoding", "br, gzip")], "")
            .await;
        assert_eq!(packed.header("content-encoding"), Some("gzip"));
        assert!(packed.body.len() < plain.body.len() / 2);
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(packed.body.as_ref())
            .read_to_end(&mut unpacked)
            .unwrap();
        assert_eq!(unpacked, plain.body);
    })
    .await;
}

#[tokio::test]
async fn requests_over_rest_are_counted_as_those_over_grpc() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let mut http = http(&server).await;
    http.get("ci/results/none", &[]).await;
    http.get("ci/results", &[]).await;
    let mut admin = Http::one(&format!("http://{}", server.admin)).await;
    let page = admin.send("GET", "/metrics", &[], "").await.text();
    for line in [
        "hindsight_requests_total{method=\"GetResult\",code=\"NOT_FOUND\"} 1",
        "hindsight_requests_total{method=\"ListResults\",code=\"OK\"} 1",
    ] {
        assert!(page.contains(line), "{line} is not in {page}");
    }
    drop((http, admin));
    server.stop().await;
}

#[tokio::test]
async fn probes_are_answered_beside_the_api() {
    on_each(|server| async move {
        let mut http = http(&server).await;
        for path in ["/livez", "/readyz"] {
            assert_eq!(http.send("GET", path, &[], "").await.status, 200, "{path}");
        }
        // The store is asked in the background; the first answer may come before its answer.
        let serving = async {
            loop {
                let reply = http.send("GET", "/healthz", &[], "").await;
                if reply.status == 200 {
                    assert_eq!(reply.json(), json!({"status": "SERVING"}));
                    return;
                }
                assert_eq!(reply.status, 503);
                assert_eq!(reply.json(), json!({"status": "NOT_SERVING"}));
                tokio::task::yield_now().await;
            }
        };
        let patience = std::time::Duration::from_secs(20);
        tokio::time::timeout(patience, serving).await.unwrap();
        let known = "/healthz?service=tekton.results.v1alpha2.Results";
        assert_eq!(http.send("GET", known, &[], "").await.status, 200);
        let unknown = http.send("GET", "/healthz?service=no.such", &[], "").await;
        assert_eq!((unknown.status, &unknown.json()["code"]), (404, &json!(5)));
    })
    .await;
}

#[tokio::test]
async fn a_grpc_call_of_an_unknown_method_gets_a_grpc_answer() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let mut http = Http::two(&server.url).await;
    let grpc = [
        ("content-type", "application/grpc+proto"),
        ("te", "trailers"),
    ];
    for path in [
        "/tekton.results.v1alpha2.Results/Nothing",
        "/no.such.Service/Nothing",
        "/x",
    ] {
        let reply = http.send("POST", path, &grpc, "").await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("grpc-status"), Some("12"), "{path}");
    }
    drop(http);
    server.stop().await;
}

#[tokio::test]
async fn the_api_describes_itself() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let mut http = http(&server).await;
    let described = http.send("GET", "/openapi.json", &[], "").await.ok();
    assert_eq!(described["openapi"], "3.1.0");
    let path = "/apis/results.tekton.dev/v1alpha2/parents/{parent}/results/{result}";
    assert_eq!(
        described["paths"][path]["patch"]["operationId"],
        "UpdateResult"
    );
    drop(http);
    server.stop().await;
}
