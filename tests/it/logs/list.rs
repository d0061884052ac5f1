//! The list of what is stored of logs: pages, rights, and logs whose records are in files.

use std::collections::BTreeSet;

use hindsight_proto::v1::{ListLogsRequest, LogContainer};
use tonic::Code;

use super::{BEGAN, append, logs, logs_as, message, seal, update_log};
use crate::support::{
    Database, TestServer,
    http::Http,
    server::{on_each, refused},
};

fn ask(parent: &str, page_size: i32) -> ListLogsRequest {
    ListLogsRequest {
        parent: parent.to_owned(),
        page_size,
        ..ListLogsRequest::default()
    }
}

/// All pages of a list.
async fn listed(server: &TestServer, parent: &str, page_size: i32) -> Vec<LogContainer> {
    let (mut request, mut all) = (ask(parent, page_size), Vec::new());
    loop {
        let page = logs(server).list_logs(request.clone()).await.unwrap();
        let page = page.into_inner();
        assert!(page_size == 0 || page.containers.len() <= usize::try_from(page_size).unwrap());
        all.extend(page.containers);
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            return all;
        }
    }
}

fn named(container: &LogContainer) -> (String, String) {
    let source = container.source.clone().unwrap_or_default();
    (container.name.clone(), source.container)
}

/// Logs of two containers of five runs of `ci` and one of `secret`, a result without any, and a text.
async fn given(server: &TestServer) {
    for run in 0..5 {
        let name = format!("ci/results/r{run}/logs/run");
        let messages = ["a", "b"].map(|container| message(&name, container, 0, b"one\ntwo\n"));
        append(server, messages.to_vec()).await.unwrap();
    }
    append(server, vec![seal("ci/results/r2/logs/run", "a")])
        .await
        .unwrap();
    server.given_result("ci/results/none").await;
    let secret = message("secret/results/s/logs/run", "a", 0, b"x\n");
    append(server, vec![secret]).await.unwrap();
    server
        .given_record("ci/results/r4/records/text", "t", b"{}")
        .await;
}

#[tokio::test]
async fn each_log_is_on_one_page_whatever_the_size_over_grpc_and_rest() {
    on_each(|server| async move {
        given(&server).await;
        let all = listed(&server, "-/results/-", 0).await;
        assert_eq!(all.len(), 11);
        assert_eq!(all[0].name, "secret/results/s/logs/run");
        assert_eq!(all[1].name, "ci/results/r4/logs/run");
        for (parent, count) in [
            ("ci/results/-", 10),
            ("ci/results/r2", 2),
            ("-/results/s", 1),
        ] {
            for size in [1, 2, 3, 7, 50] {
                let found = listed(&server, parent, size).await;
                assert_eq!(found.len(), count, "pages of {size} of {parent}");
                let once: BTreeSet<_> = found.iter().map(named).collect();
                assert_eq!(once.len(), count, "pages of {size} of {parent}");
                assert!(found.iter().all(|log| all.contains(log)));
            }
        }
        let one = listed(&server, "ci/results/r2", 0).await;
        assert_eq!((one[0].lines, one[0].bytes, one[0].holes), (2, 8, 0));
        assert_eq!((one[0].sealed, one[0].sha256.len()), (true, 32));
        assert_eq!((one[1].sealed, one[1].sha256.len()), (false, 0));
        let seconds = |log: &LogContainer| {
            let times = [log.first_time, log.last_time];
            times.map(|time| time.unwrap().seconds)
        };
        let begun = BEGAN / 1_000_000;
        assert_eq!(seconds(&one[0]), [begun, begun + 1]);

        let mut rest = Http::one(&server.url).await;
        let path = "/apis/hindsight.dev/v1/parents/ci/results/-/logs";
        let (mut token, mut names) = (String::new(), Vec::new());
        loop {
            let asked = format!("{path}?pageSize=3&pageToken={token}");
            let page = rest.send("GET", &asked, &[], "").await.ok();
            for log in page["containers"].as_array().unwrap() {
                names.push(log["name"].as_str().unwrap().to_owned());
            }
            match page["nextPageToken"].as_str() {
                None | Some("") => break,
                Some(next) => token = next.to_owned(),
            }
        }
        let wanted = listed(&server, "ci/results/-", 0).await;
        let wanted: Vec<_> = wanted.into_iter().map(|log| log.name).collect();
        assert_eq!(names, wanted);
        let none = path.replace("/ci/", "/x/");
        let none = rest.send("GET", &none, &[], "").await.ok();
        assert!(none["containers"].as_array().is_none_or(Vec::is_empty));
    })
    .await;
}

#[tokio::test]
async fn a_text_that_was_uploaded_is_listed_without_a_container() {
    on_each(|server| async move {
        let log = "ci/results/r/logs/log";
        let of_log = br#"{"spec": {"resource": {"uid": "run"}}}"#;
        let record = "ci/results/r/records/log";
        let data_type = "results.tekton.dev/v1alpha3.Log";
        server.given_record(record, data_type, of_log).await;
        update_log(&server, &[(log, b"text\n")]).await.unwrap();
        let found = listed(&server, "ci/results/-", 0).await;
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].source,
            Some(hindsight_proto::v1::LogSource::default())
        );
        assert_eq!((found[0].bytes, found[0].sealed), (5, true));
    })
    .await;
}

#[tokio::test]
async fn pages_go_on_while_logs_are_appended() {
    on_each(|server| async move {
        given(&server).await;
        let before: BTreeSet<_> = listed(&server, "ci/results/-", 0)
            .await
            .iter()
            .map(named)
            .collect();
        let (mut request, mut found) = (ask("ci/results/-", 2), Vec::new());
        let mut at = 0;
        loop {
            let page = logs(&server)
                .list_logs(request.clone())
                .await
                .unwrap()
                .into_inner();
            found.extend(page.containers.iter().map(named));
            request.page_token = page.next_page_token;
            if request.page_token.is_empty() {
                break;
            }
            at += 1;
            let more = [
                message(&format!("ci/results/new-{at}/logs/run"), "a", 0, b"x\n"),
                message("ci/results/r3/logs/run", &format!("c{at}"), 0, b"x\n"),
                message("ci/results/r0/logs/run", "a", 2 + at - 1, b"x\n"),
            ];
            append(&server, more.to_vec()).await.unwrap();
        }
        assert!(at >= 4, "{at} pages");
        let once: BTreeSet<_> = found.iter().cloned().collect();
        assert_eq!(once.len(), found.len());
        assert!(before.is_subset(&once), "{before:?} in {once:?}");
    })
    .await;
}

#[tokio::test]
async fn a_page_token_is_of_one_list_and_sizes_have_bounds() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    given(&server).await;
    let mut logs = logs(&server);
    let first = logs
        .list_logs(ask("ci/results/-", 1))
        .await
        .unwrap()
        .into_inner();
    let token = first.next_page_token;
    for (parent, page_token, says) in [
        ("secret/results/-", token.clone(), "another list"),
        ("ci/results/r1", token.clone(), "another list"),
        ("ci/results/-", "5".to_owned(), "malformed"),
        ("ci", String::new(), "parent"),
    ] {
        let request = ListLogsRequest {
            page_token,
            ..ask(parent, 1)
        };
        refused(logs.list_logs(request).await, Code::InvalidArgument, says);
    }
    for size in [-1, 10_001] {
        let page = logs.list_logs(ask("ci/results/-", size)).await;
        refused(page, Code::InvalidArgument, &format!("page_size {size}"));
    }
    server.stop().await;
    database.remove().await;
}

#[tokio::test]
async fn a_call_that_read_many_results_without_logs_says_where_to_go_on() {
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &[("scan_budget", "4")]).await;
    append(
        &server,
        vec![message("ci/results/first/logs/run", "a", 0, b"x\n")],
    )
    .await
    .unwrap();
    for at in 0..20 {
        server.given_result(&format!("ci/results/r{at}")).await;
    }
    let page = logs(&server)
        .list_logs(ask("ci/results/-", 2))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(page.containers, []);
    assert!(!page.next_page_token.is_empty());
    assert_eq!(listed(&server, "ci/results/-", 2).await.len(), 1);
    server.stop().await;
    database.remove().await;
}

#[tokio::test]
async fn a_caller_lists_logs_of_their_parents_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("users.toml");
    let user = |token: &str, parent: &str, role: &str| {
        let hash = hindsight_access::auth::token_hash(token);
        format!(
            "[[users]]\nname = '{token}'\nsha256 = ['{hash}']\n\
             grants = [{{parents = ['{parent}'], role = '{role}'}}]\n"
        )
    };
    let users = [user("root", "*", "admin"), user("reader", "ci", "readonly")];
    std::fs::write(&file, users.concat()).unwrap();
    let database = Database::sqlite();
    given(&TestServer::start(&database).await).await;
    let more = [
        ("auth", "tokens"),
        ("auth_tokens_file", file.to_str().unwrap()),
    ];
    let server = TestServer::start_with(&database, &more).await;
    let client = |token| logs_as(&server, token);
    let all = client("root")
        .list_logs(ask("-/results/-", 0))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(all.containers.len(), 11);
    let own = client("reader")
        .list_logs(ask("ci/results/-", 0))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(own.containers.len(), 10);
    assert!(own.containers.iter().all(|log| log.name.starts_with("ci/")));
    for parent in [
        "-/results/-",
        "secret/results/-",
        "-/results/s",
        "secret/results/s",
    ] {
        let page = client("reader").list_logs(ask(parent, 0)).await;
        refused(page, Code::PermissionDenied, "denied");
    }
    server.stop().await;
    database.remove().await;
}
