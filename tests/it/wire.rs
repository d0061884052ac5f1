//! What is on the wire beside the service itself: reflection, health, metrics, and a quiet end.

mod raw;

use std::time::Duration;

use hindsight_proto::v1alpha2 as pb;
use sqlx::{Connection as _, Executor as _, SqliteConnection};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
};
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tonic_reflection::pb::v1::server_reflection_client as reflection;

use crate::support::{Database, TestServer, each_database, http::Http, server::on_each};

async fn channel(url: &str) -> Channel {
    Endpoint::from_shared(url.to_owned())
        .unwrap()
        .connect()
        .await
        .unwrap()
}

/// GETs a page of the admin port.
pub async fn visit(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    page
}

/// The names that reflection lists, by either version of its protocol.
macro_rules! reflected {
    ($version:ident, $url:expr) => {{
        use tonic_reflection::pb::$version::{
            ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
            server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
        };
        let mut client = ServerReflectionClient::new(channel(&$url).await);
        let ask = ServerReflectionRequest {
            host: String::new(),
            message_request: Some(MessageRequest::ListServices(String::new())),
        };
        let mut answers = client
            .server_reflection_info(tokio_stream::iter([ask]))
            .await
            .unwrap()
            .into_inner();
        match answers
            .message()
            .await
            .unwrap()
            .unwrap()
            .message_response
            .unwrap()
        {
            MessageResponse::ListServicesResponse(list) => list
                .service
                .into_iter()
                .map(|service| service.name)
                .collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        }
    }};
}

/// The names of the services that reflection lists.
pub(crate) async fn services(url: &str) -> Vec<String> {
    reflected!(v1, url)
}

#[tokio::test]
async fn reflection_lists_the_services_in_both_versions() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    for names in [reflected!(v1, server.url), reflected!(v1alpha, server.url)] {
        for wanted in [
            "tekton.results.v1alpha2.Results",
            "tekton.results.v1alpha2.Logs",
            "tekton.results.v1alpha3.Logs",
            "hindsight.v1.Archive",
            "hindsight.v1.Holds",
            "hindsight.v1.Ingest",
            "hindsight.v1.Logs",
            "hindsight.v1.Queries",
            "hindsight.v1.Runs",
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection",
        ] {
            assert!(names.iter().any(|name| name == wanted), "{names:?}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn health_says_serving_while_the_store_answers() {
    on_each(|server| async move {
        let mut client = HealthClient::new(channel(&server.url).await);
        for service in ["", "tekton.results.v1alpha2.Results"] {
            let request = HealthCheckRequest {
                service: service.to_owned(),
            };
            let mut states = client.watch(request).await.unwrap().into_inner();
            // The store is asked in the background; the first word may come before its answer.
            let serving = async {
                while let Some(state) = states.message().await.unwrap() {
                    if state.status() == ServingStatus::Serving {
                        return;
                    }
                }
                panic!("the watch ended");
            };
            tokio::time::timeout(Duration::from_secs(20), serving)
                .await
                .unwrap();
        }
        let request = HealthCheckRequest {
            service: "no.such.Service".to_owned(),
        };
        assert_eq!(
            client.check(request).await.unwrap_err().code(),
            tonic::Code::NotFound
        );
    })
    .await;
}

#[tokio::test]
async fn those_who_follow_health_leave_it_to_others() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let mut following = Vec::new();
    let mut refused = 0;
    for _ in 0..2 {
        let mut client = HealthClient::new(channel(&server.url).await);
        for _ in 0..60 {
            match client.watch(HealthCheckRequest::default()).await {
                Ok(states) => following.push(states),
                Err(status) => {
                    assert_eq!(status.code(), tonic::Code::Unavailable, "{status}");
                    refused += 1;
                }
            }
        }
    }
    assert_eq!((following.len(), refused), (100, 20));
    let mut client = HealthClient::new(channel(&server.url).await);
    client.check(HealthCheckRequest::default()).await.unwrap();
    drop((following, client));
    server.stop().await;
    database.remove().await;
}

#[tokio::test]
async fn streams_of_reflection_leave_health_to_others() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let mut open = Vec::new();
    for _ in 0..11 {
        let channel = channel(&server.url).await;
        let mut client = reflection::ServerReflectionClient::new(channel);
        for _ in 0..99 {
            let silent = tokio_stream::pending();
            match client.server_reflection_info(silent).await {
                Ok(answers) => open.push(answers),
                Err(status) => assert_eq!(status.code(), tonic::Code::Unavailable, "{status}"),
            }
        }
    }
    let mut client = HealthClient::new(channel(&server.url).await);
    client.check(HealthCheckRequest::default()).await.unwrap();
    let mut http = Http::one(&server.url).await;
    assert_eq!(http.send("GET", "/healthz", &[], "").await.status, 200);
    assert_eq!(open.len(), 100);
    drop((open, client, http));
    server.stop().await;
    database.remove().await;
}

#[tokio::test]
async fn the_admin_port_shows_metrics_and_readiness() {
    on_each(|server| async move {
        let request = pb::GetRecordRequest {
            name: "nonsense".to_owned(),
        };
        server.rpc().get_record(request).await.unwrap_err();
        let page = visit(&server.admin, "/metrics").await;
        let line = "hindsight_requests_total{method=\"GetRecord\",code=\"INVALID_ARGUMENT\"} 1";
        assert!(page.contains(line), "{page}");
        // Whoever made it ready opened one, and may hold it.
        let open: u32 = ["busy", "idle"]
            .iter()
            .filter_map(|state| {
                let line = format!("hindsight_db_connections{{state=\"{state}\"}} ");
                page.lines()
                    .find_map(|text| text.strip_prefix(&line)?.parse::<u32>().ok())
            })
            .sum();
        assert!(open > 0, "{page}");
        assert!(page.contains("\nhindsight_db_connections_most "), "{page}");
        assert!(
            visit(&server.admin, "/readyz")
                .await
                .starts_with("HTTP/1.1 200")
        );
        assert!(
            visit(&server.admin, "/livez")
                .await
                .starts_with("HTTP/1.1 200")
        );
        assert!(
            visit(&server.admin, "/else")
                .await
                .starts_with("HTTP/1.1 404")
        );
    })
    .await;
}

#[tokio::test]
async fn strangers_do_not_learn_why_a_server_is_not_ready() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let mut other = SqliteConnection::connect(&database.url()).await.unwrap();
    let spoil = "ALTER TABLE hindsight_schema RENAME TO hunter2";
    other.execute(spoil).await.unwrap();
    let api = server.url.strip_prefix("http://").unwrap();
    for address in [api, &server.admin] {
        let page = visit(address, "/readyz").await;
        assert!(page.starts_with("HTTP/1.1 503"), "{page}");
        assert!(page.contains("not ready: the database refused"), "{page}");
        assert!(!page.contains("table") && !page.contains("code"), "{page}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_is_told_to_stop_keeps_what_it_acknowledged() {
    for database in each_database().await {
        let server = TestServer::start(&database).await;
        server.given_result("ci/results/r").await;
        let client = server.client();
        let mut writes: JoinSet<_> = (0..64)
            .map(|n| {
                let mut rpc = client.rpc();
                let record = pb::Record {
                    name: format!("ci/results/r/records/{n}"),
                    ..Default::default()
                };
                let request = pb::CreateRecordRequest {
                    record: Some(record),
                    ..Default::default()
                };
                async move { rpc.create_record(request).await }
            })
            .collect();
        // The first answer shows that the load is under way.
        writes.join_next().await.unwrap().unwrap().unwrap();
        server.stop().await;
        let mut acknowledged = 1;
        while let Some(write) = writes.join_next().await {
            acknowledged += usize::from(write.unwrap().is_ok());
        }
        let server = TestServer::start(&database).await;
        let kept = server.ids("ci/results/r", "").await.unwrap().len();
        assert!(
            kept >= acknowledged,
            "{kept} kept of {acknowledged} acknowledged"
        );
        server.stop().await;
        database.remove().await;
    }
}
