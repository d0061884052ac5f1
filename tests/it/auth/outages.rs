//! A cluster that is asked about callers and does not answer, or is asked by many at once.

use hindsight_client::{Client, Options};
use hindsight_proto::v1alpha2 as pb;
use tonic::Code;

use super::{GROUP, bearer, cluster};
use crate::support::{
    Database, TestServer,
    http::{Http, target},
    server::refused,
};

fn list(parent: &str) -> pb::ListResultsRequest {
    pb::ListResultsRequest {
        parent: parent.to_owned(),
        ..pb::ListResultsRequest::default()
    }
}

#[tokio::test]
async fn a_crowd_is_one_question_and_an_outage_is_unavailable_by_both_protocols() {
    let (sim, listening) = cluster().await;
    sim.policy()
        .token("zoe", "zoe", &[])
        .allow("zoe", "list", GROUP, "results", "ci");
    let kubeconfig = listening.kubeconfig().display().to_string();
    let more = [("auth", "kubernetes"), ("auth_kubeconfig", &kubeconfig)];
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &more).await;
    let client = Client::new(&Options {
        token: Some("zoe".into()),
        ..Options::new(&server.url)
    })
    .unwrap();
    let crowd = (0..100).map(|_| {
        let mut rpc = client.rpc();
        async move { rpc.list_results(list("ci")).await }
    });
    for answer in futures::future::join_all(crowd).await {
        answer.unwrap();
    }
    let policy = sim.policy();
    assert_eq!((policy.token_reviews(), policy.access_reviews()), (1, 1));

    sim.faults().down();
    client.rpc().list_results(list("ci")).await.unwrap();
    let says = "access cannot be checked at the moment; try again";
    let answer = client.rpc().list_results(list("dev")).await;
    refused(answer, Code::Unavailable, says);
    let mut http = Http::one(&server.url).await;
    let token = bearer("zoe");
    let headers = [("authorization", token.as_str())];
    let path = target("dev/results", &[]);
    let reply = http.send("GET", &path, &headers, "").await;
    assert_eq!(reply.status, 503);
    let expected = serde_json::json!({"code": 14, "message": says});
    assert_eq!(reply.json(), expected);
    sim.faults().up();
    let answer = client.rpc().list_results(list("dev")).await;
    refused(answer, Code::PermissionDenied, "permission denied");
    server.stop().await;
}

#[tokio::test]
async fn impersonation_headers_reach_the_cluster_by_both_protocols() {
    let (sim, listening) = cluster().await;
    sim.policy()
        .token("proxy", "proxy", &["proxies"])
        .allow("proxies", "impersonate", "", "users", "*")
        .allow("ann", "list", GROUP, "results", "ci");
    let kubeconfig = listening.kubeconfig().display().to_string();
    let more = [("auth", "kubernetes"), ("auth_kubeconfig", &kubeconfig)];
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &more).await;
    let mut http = Http::one(&server.url).await;
    let token = bearer("proxy");
    for (user, status) in [("ann", 200), ("bob", 403)] {
        let headers = [
            ("authorization", token.as_str()),
            ("impersonate-user", user),
        ];
        let path = target("ci/results", &[]);
        let reply = http.send("GET", &path, &headers, "").await;
        assert_eq!(reply.status, status, "{user}");

        let client = Client::new(&Options {
            token: Some("proxy".into()),
            ..Options::new(&server.url)
        });
        let mut request = tonic::Request::new(list("ci"));
        request
            .metadata_mut()
            .insert("impersonate-user", user.parse().unwrap());
        let answer = client.unwrap().rpc().list_results(request).await;
        assert_eq!(answer.is_ok(), status == 200, "{user}");
    }
    server.stop().await;
}
