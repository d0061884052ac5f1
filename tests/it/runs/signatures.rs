//! What failures have in common, as columns of lists and groups; counts of lists.

use hindsight_proto::v1::{ExplainFailureRequest, ListRunsRequest, ListRunsResponse};
use hindsight_proto::v1alpha2 as pb;
use serde_json::json;
use tonic::{Code, Status};

use super::objects::{given, given_failure, record, release};
use crate::logs::{append, message, seal};
use crate::support::{
    Database,
    http::Http,
    objects::{TASK_RUN, bytes},
    process,
    server::{TestServer, on_each, refused},
};

async fn list(server: &TestServer, ask: ListRunsRequest) -> Result<ListRunsResponse, Status> {
    let ask = ListRunsRequest {
        parent: "-/results/-".to_owned(),
        ..ask
    };
    Ok(server.client().runs().list_runs(ask).await?.into_inner())
}

async fn found(server: &TestServer, query: &str) -> ListRunsResponse {
    let ask = ListRunsRequest {
        query: query.to_owned(),
        ..ListRunsRequest::default()
    };
    list(server, ask).await.unwrap()
}

#[tokio::test]
async fn runs_that_failed_alike_are_listed_and_counted_by_their_signature() {
    on_each(|server| async move {
        given(&server, &release("r0", 7, "a", "Succeeded")).await;
        let address = |at: u32| format!("cannot reach 10.0.0.{at} after {at}0ms");
        for at in 1..4 {
            given_failure(&server, (&format!("r{at}"), at), 1, &address(at)).await;
        }
        given_failure(&server, ("r4", 8), 1, "cannot find package lodash").await;
        let rows = found(&server, "r2-test").await.runs;
        let key = &rows[0].signature;
        assert_eq!((key.len(), &key[..1]), (11, "2"));
        assert_eq!(rows[0].message, address(2));
        let names = |found: ListRunsResponse| -> Vec<String> {
            found.runs.into_iter().map(|run| run.name).collect()
        };
        let alike = found(&server, &format!("signature:{key}")).await;
        assert_eq!(names(alike), ["r3-test", "r2-test", "r1-test"]);
        let other = found(&server, &format!("kind:TaskRun -signature:{key}")).await;
        assert_eq!(names(other), ["r4-test"]);
        let succeeded = found(&server, "r0").await.runs;
        assert_eq!((&*succeeded[0].signature, &*succeeded[0].message), ("", ""));
        let mut http = Http::one(&server.url).await;
        let path = format!("/apis/hindsight.dev/v1/parents/{}/failure", record("r3"));
        let told = http.send("GET", &path, &[], "").await.ok();
        assert_eq!(told["signature"]["key"], **key, "why says the same key");
        let stats = ["stats", "-A", "--by", "kind,signature"];
        let server_url = [
            "--measure",
            "count",
            "--order-by",
            "count desc",
            "--server",
            &server.url,
        ];
        let said = process::run(&[&stats[..], &server_url[..]].concat()).await;
        said.prints(0, &format!("TaskRun\t{key}\t3\n"));
        // The run that succeeded has no signature, and makes no group.
        let unsigned = said.out.lines().filter(|line| line.contains("\t\t"));
        assert_eq!(unsigned.collect::<Vec<_>>(), Vec::<&str>::new());
    })
    .await;
}

#[tokio::test]
async fn failures_that_say_nothing_are_alike_by_the_ends_of_their_logs() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    given(&server, &release("r0", 7, "a", "Succeeded")).await;
    let vague = "\"step-run\" exited with code 1: Error";
    for (at, error) in [
        (1, "error: cannot reach 10.0.0.1 after 30 ms"),
        (2, "error: cannot reach 10.0.0.2 after 7 ms"),
        (3, "error: cannot find package lodash"),
    ] {
        let run = format!("r{at}");
        given_failure(&server, (&run, at), 1, vague).await;
        let name = format!("shop/results/{run}/logs/{run}-test");
        let text = format!("fetching {at}\n{error}\n");
        let messages = vec![
            message(&name, "step-run", 0, text.as_bytes()),
            seal(&name, "step-run"),
        ];
        append(&server, messages).await.unwrap();
    }
    let explain = async |server: &TestServer| {
        let request = ExplainFailureRequest {
            name: record("r1"),
            ..ExplainFailureRequest::default()
        };
        let told = server.client().runs().explain_failure(request).await;
        told.unwrap().into_inner()
    };
    // Until the pass has looked at logs, all of them say the same.
    assert_eq!(explain(&server).await.alike.unwrap().count, 3);
    server.stop().await;
    let server = TestServer::start(&database).await;
    let plain = found(&server, "r1-test").await.runs.remove(0).signature;
    // The pass looks at them when a server starts.
    let query = format!("signature:{plain}");
    while !found(&server, &query).await.runs.is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let told = explain(&server).await;
    let signature = told.signature.unwrap();
    assert!(
        signature
            .template
            .ends_with("| error: cannot reach <addr> after <duration>"),
        "{signature:?}"
    );
    let alike = found(&server, &format!("signature:{}", signature.key)).await;
    let names: Vec<_> = alike.runs.iter().map(|run| &*run.name).collect();
    assert_eq!(names, ["r2-test", "r1-test"]);
    assert_eq!(told.alike.unwrap().count, 2);
    server.stop().await;
    database.remove().await;
}

#[tokio::test]
async fn messages_are_cut_and_attempts_are_counted() {
    on_each(|server| async move {
        let mut task = release("again", 9, "a", "Failed");
        task["kind"] = json!("TaskRun");
        task["status"]["conditions"][0]["message"] = json!("é".repeat(400));
        task["status"]["retriesStatus"] = json!([{"podName": "a"}, {"podName": "b"}]);
        let name = "shop/results/again/records/again";
        server.given_record(name, TASK_RUN, &bytes(&task)).await;
        let row = found(&server, "again").await.runs.remove(0);
        assert_eq!(row.message, "é".repeat(300));
        assert_eq!(row.attempt, Some(3));
        let columns = ["runs", "-A", "again", "--columns", "name,attempt,signature"];
        let said = process::run(&[&columns[..], &["--server", &server.url]].concat()).await;
        said.prints(0, &format!("again\t3\t{}", row.signature));
        let said = process::run(&["runs", "-A", "-o", "json", "--server", &server.url]).await;
        said.prints(0, "\"attempt\":3");
        let mut good = release("again", 9, "a", "Succeeded");
        good["kind"] = json!("TaskRun");
        good["status"]["conditions"][0]["message"] = json!("All Steps have completed");
        let data = Some(pb::Any {
            r#type: TASK_RUN.to_owned(),
            value: bytes(&good).into(),
        });
        let name = name.to_owned();
        let record = Some(pb::Record {
            name,
            data,
            ..pb::Record::default()
        });
        let update = pb::UpdateRecordRequest {
            record,
            ..pb::UpdateRecordRequest::default()
        };
        server.rpc().update_record(update).await.unwrap();
        let row = found(&server, "again").await.runs.remove(0);
        assert_eq!(
            (&*row.message, &*row.signature, row.attempt),
            ("", "", None)
        );
    })
    .await;
}

#[tokio::test]
async fn runs_are_counted_only_up_to_where_it_was_asked() {
    on_each(|server| async move {
        for at in 0..7 {
            given(&server, &release(&format!("r{at}"), at, "a", "Failed")).await;
        }
        let counted = async |query: &str, most: i32| {
            let ask = ListRunsRequest {
                query: query.to_owned(),
                page_size: 2,
                count_up_to: most,
                ..ListRunsRequest::default()
            };
            let found = list(&server, ask).await.unwrap();
            assert!(found.runs.len() <= 2);
            (found.count, found.more)
        };
        assert_eq!(counted("failed", 0).await, (None, false));
        assert_eq!(counted("failed", 5).await, (Some(5), true));
        assert_eq!(counted("failed", 7).await, (Some(7), false));
        assert_eq!(counted("failed", 500).await, (Some(7), false));
        assert_eq!(counted("succeeded", 500).await, (Some(0), false));
        // No column answers this one.
        let by_payload = "data.spec.params.exists(p, p.value == \"a\")";
        assert_eq!(counted(by_payload, 3).await, (Some(3), true));
        for wrong in [-1, 100_001] {
            let ask = ListRunsRequest {
                count_up_to: wrong,
                ..ListRunsRequest::default()
            };
            refused(
                list(&server, ask).await,
                Code::InvalidArgument,
                "count_up_to",
            );
        }
    })
    .await;
}
