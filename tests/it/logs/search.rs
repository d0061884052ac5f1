//! Searches, and who may do what.

use std::time::Duration;

use hindsight_client::{Client, Options};
use hindsight_proto::{
    v1::{LogMatch, SearchLogsRequest},
    v1alpha2 as pb, v1alpha3,
};
use tokio::time::{Instant, sleep, sleep_until};
use tonic::{Code, Request, Status, metadata::MetadataValue, transport::Channel};

use super::{append, logs, logs_as, message, whole};
use crate::support::{
    Database, TestServer,
    server::{on_each, refused},
};

async fn found(server: &TestServer, request: SearchLogsRequest) -> Vec<LogMatch> {
    let mut request = request;
    let mut matches = Vec::new();
    loop {
        let page = logs(server)
            .search_logs(request.clone())
            .await
            .unwrap()
            .into_inner();
        matches.extend(page.matches);
        if page.next_page_token.is_empty() {
            return matches;
        }
        request.page_token = page.next_page_token;
    }
}

/// Logs of three runs, with two containers each.
async fn given(server: &TestServer) {
    for run in 0..3 {
        let record = format!("ci/results/r{run}/records/run");
        server
            .given_record(&record, "t", br#"{"kind": "Job"}"#)
            .await;
        let name = format!("ci/results/r{run}/logs/run");
        let text: String = (0..50)
            .map(|at| {
                format!(
                    "{} {at}\n",
                    if at % 10 == run { "Error: x" } else { "fine" }
                )
            })
            .collect();
        append(
            server,
            vec![
                message(&name, "a", 0, text.as_bytes()),
                message(&name, "b", 0, b"another ERROR\n"),
            ],
        )
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn lines_are_found_in_all_runs_of_a_filter_page_by_page() {
    on_each(|server| async move {
        given(&server).await;
        let ask = |pattern: &str, regex, ignore_case| SearchLogsRequest {
            parent: "ci/results/-".to_owned(),
            pattern: pattern.to_owned(),
            regex,
            ignore_case,
            ..SearchLogsRequest::default()
        };
        for page_size in [1, 4, 0] {
            let request = SearchLogsRequest {
                page_size,
                ..ask("error", false, true)
            };
            let matches = found(&server, request).await;
            assert_eq!(matches.len(), 3 * 6, "pages of {page_size}");
            let mut places: Vec<_> = matches
                .iter()
                .map(|it| {
                    (
                        it.name.clone(),
                        it.source.clone().unwrap().container,
                        it.line,
                    )
                })
                .collect();
            places.dedup();
            assert_eq!(places.len(), 18);
        }
        let one = SearchLogsRequest {
            parent: "ci/results/r1".to_owned(),
            ..ask("^Error: (x) 4.$", true, false)
        };
        let matches = found(&server, one).await;
        assert_eq!(matches.len(), 1);
        assert_eq!(matches[0].name, "ci/results/r1/logs/run");
        assert_eq!(
            (matches[0].line, &*matches[0].text),
            (41, &b"Error: x 41"[..])
        );
        assert_eq!((matches[0].match_start, matches[0].match_end), (0, 11));
        let none = SearchLogsRequest {
            filter: "data_type == 'other'".to_owned(),
            ..ask("error", false, true)
        };
        assert_eq!(found(&server, none).await, []);
        let mut logs = logs(&server);
        let bad = logs.search_logs(ask("(", true, false)).await;
        refused(bad, Code::InvalidArgument, "pattern: ");
        let first = SearchLogsRequest {
            page_size: 1,
            ..ask("error", false, true)
        };
        let token = logs
            .search_logs(first)
            .await
            .unwrap()
            .into_inner()
            .next_page_token;
        let other = SearchLogsRequest {
            page_token: token,
            ..ask("fine", false, true)
        };
        refused(
            logs.search_logs(other).await,
            Code::InvalidArgument,
            "another list",
        );
    })
    .await;
}

/// What the services of Tekton Results answer to an upload and to a read.
async fn of_tekton(server: &TestServer, token: &str, name: &str) -> [Result<(), Status>; 2] {
    let channel = channel(server).await;
    let by = bearer(token);
    let mut texts = pb::logs_client::LogsClient::with_interceptor(channel.clone(), by.clone());
    let mut later = v1alpha3::logs_client::LogsClient::with_interceptor(channel, by);
    let upload = tokio_stream::iter([pb::Log {
        name: name.to_owned(),
        data: b"a\n".as_slice().into(),
    }]);
    let get = v1alpha3::GetLogRequest {
        name: name.to_owned(),
    };
    [
        texts.update_log(upload).await.map(drop),
        later.get_log(get).await.map(drop),
    ]
}

async fn channel(server: &TestServer) -> Channel {
    let address = Channel::from_shared(server.url.clone()).unwrap();
    address.connect().await.unwrap()
}

/// Adds a token to requests.
fn bearer(token: &str) -> impl FnMut(Request<()>) -> Result<Request<()>, Status> + Clone {
    let token: MetadataValue<_> = format!("Bearer {token}").parse().unwrap();
    move |mut request| {
        let metadata = request.metadata_mut();
        metadata.insert("authorization", token.clone());
        Ok(request)
    }
}

#[tokio::test]
async fn logs_are_a_resource_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users.toml");
    let grant = |token: &str, resources: &str, verbs: &str| {
        let hash = hindsight_access::auth::token_hash(token);
        format!(
            "[[users]]\nname = '{token}'\nsha256 = ['{hash}']\n\
             grants = [{{parents = ['ci'], verbs = [{verbs}], resources = [{resources}]}}]\n"
        )
    };
    let writes = r#""update", "create", "get""#;
    let users = [
        grant("writer", r#""logs", "results""#, writes),
        grant("reader", r#""records", "results""#, r#""get", "list""#),
    ];
    std::fs::write(&file, users.concat()).unwrap();
    let database = Database::sqlite();
    let more = [
        ("auth", "tokens"),
        ("auth_tokens_file", file.to_str().unwrap()),
    ];
    let server = TestServer::start_with(&database, &more).await;
    let client = |token| logs_as(&server, token);
    let name = "ci/results/r/logs/run";
    let sent = || tokio_stream::iter(vec![message(name, "step", 0, b"a\n")]);
    client("writer").append_log(sent()).await.unwrap();
    client("writer").read_log(whole(name)).await.unwrap();
    let search = SearchLogsRequest {
        parent: "ci/results/-".to_owned(),
        pattern: "a".to_owned(),
        ..SearchLogsRequest::default()
    };
    for refusal in [
        client("reader").append_log(sent()).await.map(drop),
        client("reader").read_log(whole(name)).await.map(drop),
        client("reader").search_logs(search.clone()).await.map(drop),
        // It may not list records.
        client("writer").search_logs(search).await.map(drop),
    ] {
        refused(refusal, Code::PermissionDenied, "denied");
    }
    for refusal in of_tekton(&server, "reader", name).await {
        refused(refusal, Code::PermissionDenied, "denied");
    }
    let other = tokio_stream::iter(vec![message("other/results/r/logs/x", "step", 0, b"a\n")]);
    refused(
        client("writer").append_log(other).await,
        Code::PermissionDenied,
        "denied",
    );
    server.stop().await;
}

/// More than the buffers between server and client hold.
const LARGE: usize = 12 << 20;

#[tokio::test]
async fn a_log_that_is_read_slowly_ends_when_its_reader_may_not_read_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users.toml");
    let write = |tokens: &[&str]| {
        let users = tokens.iter().map(|token| {
            let hash = hindsight_access::auth::token_hash(token);
            let grants = "grants = [{parents = ['*'], role = 'admin'}]";
            format!("[[users]]\nname = '{token}'\nsha256 = ['{hash}']\n{grants}\n")
        });
        std::fs::write(&file, users.collect::<String>()).unwrap();
    };
    write(&["keeper", "reader"]);
    let more = [
        ("auth", "tokens"),
        ("auth_tokens_file", file.to_str().unwrap()),
    ];
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &more).await;
    let name = "ci/results/r/logs/run";
    let line = "x".repeat((64 << 10) - 1) + "\n";
    let lines = (0..).take(LARGE / line.len());
    let sent = lines.map(|at| message(name, "step", at, line.as_bytes()));
    let sent = tokio_stream::iter(sent.collect::<Vec<_>>());
    logs_as(&server, "keeper").append_log(sent).await.unwrap();

    let client = pb::logs_client::LogsClient::with_interceptor;
    let mut client = client(channel(&server).await, bearer("reader"));
    let get = pb::GetLogRequest {
        name: name.to_owned(),
    };
    let mut parts = client.get_log(get).await.unwrap().into_inner();
    let mut read = parts.message().await.unwrap().unwrap().data.len();
    let began = Instant::now();
    write(&["keeper"]);
    while logs_as(&server, "reader")
        .read_log(whole(name))
        .await
        .is_ok()
    {
        sleep(Duration::from_millis(50)).await;
    }
    // How long nothing is asked about a stream.
    sleep_until(began + Duration::from_secs(10)).await;
    let refused = loop {
        match parts.message().await {
            Ok(part) => read += part.expect("it is cut off").data.len(),
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused:?}");
    assert!(read < LARGE, "{read}");
    server.stop().await;
}

#[tokio::test]
async fn a_stream_of_lines_ends_once_its_caller_may_not_append_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users.toml");
    let hash = hindsight_access::auth::token_hash("writer");
    let user = format!("[[users]]\nname = 'writer'\nsha256 = ['{hash}']\n");
    let may = "grants = [{parents = ['ci'], role = 'admin'}]\n";
    std::fs::write(&file, format!("{user}{may}")).unwrap();
    let database = Database::sqlite();
    let more = [
        ("auth", "tokens"),
        ("auth_tokens_file", file.to_str().unwrap()),
    ];
    let server = TestServer::start_with(&database, &more).await;
    let options = Options {
        token: Some("writer".to_owned()),
        ..Options::new(&server.url)
    };
    let client = Client::new(&options).unwrap();
    let (line, lines) = tokio::sync::mpsc::channel(1);
    let name = "ci/results/r/logs/run";
    let appending = client.logs();
    let stream = tokio_stream::wrappers::ReceiverStream::new(lines);
    let appended = tokio::spawn(async move {
        let mut appending = appending;
        appending.append_log(stream).await.map(drop)
    });
    line.send(message(name, "step", 0, b"a\n")).await.unwrap();
    while client.logs().read_log(whole(name)).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    std::fs::write(&file, user).unwrap();
    let refusal = async {
        let mut next = 1;
        while line.send(message(name, "step", next, b"a\n")).await.is_ok() {
            next += 1;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        appended.await.unwrap()
    };
    let refusal = tokio::time::timeout(Duration::from_secs(60), refusal).await;
    refused(refusal.unwrap(), Code::PermissionDenied, "");
    server.stop().await;
    database.remove().await;
}
