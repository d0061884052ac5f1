//! `hindsight copy` between all kinds of databases, as users run it.

use hindsight_proto::v1alpha2 as pb;

use crate::support::{Database, TestServer, each_database, process::run};

async fn records(server: &TestServer) -> Vec<pb::Record> {
    let request = pb::ListRecordsRequest {
        parent: "-/results/-".to_owned(),
        page_size: 1000,
        ..pb::ListRecordsRequest::default()
    };
    let reply = server.rpc().list_records(request).await.unwrap();
    reply.into_inner().records
}

#[tokio::test]
async fn a_copy_is_served_as_its_source_was_and_a_second_copy_changes_nothing() {
    for from in each_database().await {
        for to in each_database().await {
            let server = TestServer::start(&from).await;
            for at in 0..30 {
                let name = format!("ci/results/r{}/records/x{at}", at % 4);
                let value = format!(
                    r#"{{"kind":"TaskRun","metadata":{{"name":"n{at}"}},"spec":{{"script":"{}"}}}}"#,
                    "echo ".repeat(300)
                );
                server
                    .given_record(&name, "tekton.dev/v1.TaskRun", value.as_bytes())
                    .await;
            }
            let arguments = ["copy", "--from", &from.url(), "--to", &to.url()];
            let said = run(&arguments).await;
            assert_eq!(said.code, 0, "{said:?}");
            for line in [
                "results: 4 created, 0 updated, 0 unchanged, 0 refused",
                "records: 30 created, 0 updated, 0 unchanged, 0 refused",
                "verified: 34 rows are in the target with the same content",
            ] {
                assert!(said.out.contains(line), "{line}: {said:?}");
            }
            let second = TestServer::start(&to).await;
            let wanted = records(&server).await;
            assert_eq!(records(&second).await, wanted);
            let said = run(&arguments).await;
            assert_eq!(said.code, 0, "beside both servers: {said:?}");
            assert!(said.out.contains("30 unchanged"), "{said:?}");
            assert_eq!(records(&second).await, wanted);
            let request = pb::DeleteResultRequest {
                name: "ci/results/r1".to_owned(),
            };
            second.rpc().delete_result(request).await.unwrap();
            let said = run(&arguments).await;
            assert!(
                said.out.contains("1 created, 0 updated, 3 unchanged"),
                "{said:?}"
            );
            assert_eq!(records(&second).await, wanted, "in the same order");
            for at in 0..4 {
                let name = format!("ci/results/r{at}");
                let request = pb::DeleteResultRequest { name };
                server.rpc().delete_result(request).await.unwrap();
            }
            server.stop().await;
            second.stop().await;
            to.remove().await;
        }
        from.remove().await;
    }
}

#[tokio::test]
async fn what_cannot_be_copied_has_exit_codes() {
    let database = Database::sqlite();
    let url = database.url();
    let said = run(&["copy", "--from", &url, "--to", &url]).await;
    assert_eq!(said.code, 2, "{said:?}");
    let other = Database::sqlite();
    let said = run(&["copy", "--from", &url, "--to", &other.url()]).await;
    said.fails(1, "there is no file `");
    let said = run(&["copy", "--from", "mysql:x", "--to", &url]).await;
    assert_eq!(said.code, 2, "{said:?}");
}
