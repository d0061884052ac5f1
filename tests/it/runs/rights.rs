//! What a caller must be allowed to do to ask about runs.

use hindsight_client::{Client, Options};
use hindsight_proto::{
    v1::{DiffRunsRequest, ExplainFailureRequest, GetRunTreeRequest},
    v1alpha2::ListRecordsRequest,
};
use tonic::{Code, Status};

use super::objects::{history, record};
use super::seeds::given_log;
use crate::support::{Database, TestServer};

const USERS: [(&str, &str, &[&str], &str); 3] = [
    ("reader", "shop", &["get", "list"], "records"),
    ("getter", "shop", &["get"], "records"),
    ("debugger", "shop", &["get", "list"], "records', 'logs"),
];

fn file() -> String {
    let users = USERS.map(|(name, parent, verbs, resource)| {
        let hash = hindsight_access::auth::token_hash(name);
        format!(
            "[[users]]\nname = '{name}'\nsha256 = ['{hash}']\n[[users.grants]]\n\
             parents = ['{parent}']\nverbs = {verbs:?}\nresources = ['{resource}']\n"
        )
    });
    users.concat()
}

fn client(server: &TestServer, token: &str) -> Client {
    let mut options = Options::new(&server.url);
    options.token = Some(token.to_owned());
    Client::new(&options).unwrap()
}

fn denied<T: std::fmt::Debug>(answer: Result<T, Status>, like: &Status) {
    let status = answer.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (Code::PermissionDenied, like.message())
    );
}

/// A server over the database that knows the users.
async fn with_users(database: &Database, folder: &std::path::Path) -> TestServer {
    let path = folder.join("users.toml");
    std::fs::write(&path, file()).unwrap();
    let path = path.display().to_string();
    let more = [("auth", "tokens"), ("auth_tokens_file", &path)];
    TestServer::start_with(database, &more).await
}

#[tokio::test]
async fn a_failure_has_a_log_for_callers_who_may_get_logs() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    history(&server).await;
    given_log(&server).await;
    server.stop().await;
    let folder = tempfile::tempdir().unwrap();
    let server = with_users(&database, folder.path()).await;
    let why = async |token: &str| {
        let request = ExplainFailureRequest {
            name: record("release-44"),
            log_lines: 1,
            ..ExplainFailureRequest::default()
        };
        let mut runs = client(&server, token).runs();
        runs.explain_failure(request).await.unwrap().into_inner()
    };
    assert_eq!(why("reader").await.log, None);
    let log = why("debugger").await.log.unwrap();
    assert_eq!(log.tail[0].text, "exit status 1");
    server.stop().await;
    database.remove().await;
}

#[tokio::test]
async fn a_caller_who_may_not_list_records_is_refused_as_by_lists() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    history(&server).await;
    server.stop().await;
    let folder = tempfile::tempdir().unwrap();
    let server = with_users(&database, folder.path()).await;

    let getter = client(&server, "getter");
    let list = ListRecordsRequest {
        parent: "shop/results/-".to_owned(),
        ..ListRecordsRequest::default()
    };
    let like = getter.rpc().list_records(list).await.unwrap_err();
    let name = record("release-42");
    let tree = GetRunTreeRequest {
        name: name.clone(),
        steps: false,
        brief: false,
    };
    denied(getter.runs().get_run_tree(tree.clone()).await, &like);
    let failure = ExplainFailureRequest {
        name: name.clone(),
        ..ExplainFailureRequest::default()
    };
    denied(getter.runs().explain_failure(failure.clone()).await, &like);
    let diff = DiffRunsRequest {
        a: name,
        ..DiffRunsRequest::default()
    };
    denied(getter.runs().diff_runs(diff.clone()).await, &like);

    let mut reader = client(&server, "reader").runs();
    assert_eq!(
        reader
            .get_run_tree(tree)
            .await
            .unwrap()
            .into_inner()
            .nodes
            .len(),
        3
    );
    assert!(reader.explain_failure(failure).await.is_ok());
    assert!(reader.diff_runs(diff.clone()).await.is_ok());
    let elsewhere = DiffRunsRequest {
        b: "data/results/x/records/x".to_owned(),
        ..diff
    };
    denied(reader.diff_runs(elsewhere).await, &like);
    server.stop().await;
}
