//! One test for each fault of the Logs service of Tekton Results.

use serde_json::{Value, json};
use tonic::Code;

use super::{append, get_log, message, tekton, update_log};
use crate::support::{
    Database, TestServer,
    http::Http,
    server::{on_each, refused},
};
use hindsight_proto::v1alpha2 as pb;

const LOG: &str = "results.tekton.dev/v1alpha3.Log";

/// Stores a record that tells of the log of a run, as upstream's watcher makes it.
async fn given_log(server: &TestServer, parent: &str, id: &str, run: &str) -> String {
    let record = format!("{parent}/results/r/records/{id}");
    let object = json!({
        "kind": "Log", "apiVersion": "results.tekton.dev/v1alpha3",
        "metadata": {"name": format!("{run}-log"), "namespace": parent, "uid": id},
        "spec": {"resource": {"kind": "TaskRun", "namespace": parent, "name": run, "uid": run}},
        "status": {"size": 0, "isStored": false, "errorOnStoreMsg": "an older failure"},
    });
    server
        .given_record(&record, LOG, object.to_string().as_bytes())
        .await;
    format!("{parent}/results/r/logs/{id}")
}

/// The status that a record of a log tells.
async fn status(server: &TestServer, log: &str) -> Value {
    let record = server
        .get_record(&log.replace("/logs/", "/records/"))
        .await
        .unwrap();
    let told: Value = serde_json::from_slice(&record.data.unwrap().value).unwrap();
    told["status"].clone()
}

/// Where a log is over REST.
fn path(log: &str) -> String {
    format!("/apis/results.tekton.dev/v1alpha2/parents/{log}")
}

#[tokio::test]
async fn the_log_of_another_parent_is_not_read_by_its_uid() {
    on_each(|server| async move {
        let theirs = given_log(&server, "secret", "log-1", "run-1").await;
        update_log(&server, &[(&theirs, b"secret text\n")])
            .await
            .unwrap();
        append(
            &server,
            vec![message(
                "secret/results/r/logs/run-2",
                "step",
                0,
                b"secret\n",
            )],
        )
        .await
        .unwrap();
        // A record of their own that is named after the run, or says that it tells of its log.
        given_log(&server, "mine", "run-1", "run-1").await;
        given_log(&server, "mine", "run-2", "run-2").await;
        for name in ["mine/results/r/logs/run-1", "mine/results/r/logs/run-2"] {
            refused(
                get_log(&server, name).await,
                Code::NotFound,
                "does not exist",
            );
            let request = pb::DeleteLogRequest {
                name: name.to_owned(),
            };
            tekton(&server).await.delete_log(request).await.unwrap();
        }
        assert_eq!(get_log(&server, &theirs).await.unwrap().0, b"secret text\n");
        let run = get_log(&server, "secret/results/r/logs/run-1").await;
        assert_eq!(
            run.unwrap().0,
            b"secret text\n",
            "by the UID within its parent"
        );
    })
    .await;
}

#[tokio::test]
async fn a_path_in_a_record_of_a_log_is_no_path() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let object = json!({
        "kind": "Log", "spec": {"resource": {"uid": "../../../etc"}, "type": "File"},
        "status": {"path": "../../../../etc/passwd", "size": 7, "isStored": true},
    });
    let record = "mine/results/r/records/log";
    server
        .given_record(record, LOG, object.to_string().as_bytes())
        .await;
    let log = "mine/results/r/logs/log";
    refused(
        get_log(&server, log).await,
        Code::NotFound,
        "does not exist",
    );
    update_log(&server, &[(log, b"text\n")]).await.unwrap();
    assert_eq!(get_log(&server, log).await.unwrap().0, b"text\n");
    let told = status(&server, log).await;
    assert_eq!(told["path"], Value::Null, "{told}");
    server.stop().await;
}

#[tokio::test]
async fn bytes_come_over_rest_without_a_newline_after_each_chunk() {
    on_each(|server| async move {
        let log = given_log(&server, "ci", "log", "run").await;
        // No line feeds, bytes that are no text, and more than one part.
        let bytes: Vec<u8> = (0..120_003_u32).map(|at| (at % 251) as u8).collect();
        let sent: Vec<(&str, &[u8])> = bytes
            .chunks(1000)
            .map(|part| (log.as_str(), part))
            .collect();
        let summary = update_log(&server, &sent).await.unwrap();
        assert_eq!(summary.bytes_received, 120_003);
        assert_eq!(summary.record, log.replace("/logs/", "/records/"));
        let (text, sizes) = get_log(&server, &log).await.unwrap();
        assert!(
            text == bytes && sizes.iter().all(|size| *size <= 32 << 10),
            "{sizes:?}"
        );
        let mut http = Http::one(&server.url).await;
        for version in ["v1alpha2", "v1alpha3"] {
            let path = path(&log).replace("v1alpha2", version);
            let reply = http.send("GET", &path, &[], "").await;
            assert_eq!(reply.status, 200, "{}", reply.text());
            assert_eq!(
                reply.header("content-type"),
                Some("text/plain; charset=utf-8")
            );
            assert!(reply.body == bytes, "{} bytes", reply.body.len());
        }
    })
    .await;
}

#[tokio::test]
async fn two_records_in_one_upload_are_refused() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let one = given_log(&server, "ci", "log-1", "run-1").await;
    let two = given_log(&server, "ci", "log-2", "run-2").await;
    let both = update_log(&server, &[(&one, b"a"), (&two, b"b")]).await;
    refused(both, Code::InvalidArgument, "a stream is about one log");
    for log in [&one, &two] {
        refused(
            get_log(&server, log).await,
            Code::NotFound,
            "does not exist",
        );
    }
    let told = status(&server, &one).await;
    assert_eq!(
        (&told["isStored"], &told["size"]),
        (&json!(false), &json!(0)),
        "{told}"
    );
    assert!(
        told["errorOnStoreMsg"]
            .as_str()
            .unwrap()
            .contains("one log"),
        "{told}"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_record_tells_the_true_size_and_no_error_that_is_over() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let log = given_log(&server, "ci", "log", "run").await;
    update_log(&server, &[(&log, b"abc"), ("", b"de\n")])
        .await
        .unwrap();
    let told = status(&server, &log).await;
    let expected =
        json!({"size": 6, "isStored": true, "errorOnStoreMsg": "", "isRetryableErr": false});
    assert_eq!(told, expected);
    server.stop().await;
}

#[tokio::test]
async fn all_messages_of_an_upload_are_kept_and_not_the_last_alone() {
    on_each(|server| async move {
        let log = given_log(&server, "ci", "log", "run").await;
        let line = "a line of a build that says something\n".repeat(100);
        let parts = vec![(log.as_str(), line.as_bytes()); 1000];
        update_log(&server, &parts).await.unwrap();
        let (text, _) = get_log(&server, &log).await.unwrap();
        assert_eq!(text.len(), line.len() * 1000);
        assert!(text.chunks(line.len()).all(|part| part == line.as_bytes()));
    })
    .await;
}

#[tokio::test]
async fn a_repeated_upload_is_the_same_log_and_not_twice() {
    on_each(|server| async move {
        let log = given_log(&server, "ci", "log", "run").await;
        for text in [&b"first upload\n"[..], b"second\n", b"second\n"] {
            update_log(&server, &[(&log, text)]).await.unwrap();
            assert_eq!(get_log(&server, &log).await.unwrap().0, text);
            assert_eq!(status(&server, &log).await["size"], text.len());
        }
    })
    .await;
}

#[tokio::test]
async fn an_upload_of_no_bytes_is_an_empty_log() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let log = given_log(&server, "ci", "log", "run").await;
    let summary = update_log(&server, &[(&log, b"")]).await.unwrap();
    assert_eq!(summary.bytes_received, 0);
    assert_eq!(get_log(&server, &log).await.unwrap().0, b"");
    assert_eq!(status(&server, &log).await["isStored"], true);
    refused(
        update_log(&server, &[]).await,
        Code::InvalidArgument,
        "has no message",
    );
    server.stop().await;
}

#[tokio::test]
async fn a_list_of_logs_loses_none_and_keeps_its_order() {
    on_each(|server| async move {
        for at in 0..7 {
            given_log(&server, "ci", &format!("log-{at}"), &format!("run-{at}")).await;
        }
        server
            .given_record("ci/results/r/records/other", "t", b"{}")
            .await;
        for size in [1, 2, 3, 50] {
            let mut request = pb::ListRecordsRequest {
                parent: "ci/results/r".to_owned(),
                order_by: "created_time desc".to_owned(),
                page_size: size,
                ..pb::ListRecordsRequest::default()
            };
            let mut names = Vec::new();
            loop {
                let page = tekton(&server)
                    .await
                    .list_logs(request.clone())
                    .await
                    .unwrap();
                let page = page.into_inner();
                names.extend(page.records.into_iter().map(|record| record.name));
                if page.next_page_token.is_empty() {
                    break;
                }
                request.page_token = page.next_page_token;
            }
            let expected: Vec<_> = (0..7)
                .rev()
                .map(|at| format!("ci/results/r/logs/log-{at}"))
                .collect();
            assert_eq!(names, expected, "pages of {size}");
        }
        let request = pb::ListRecordsRequest {
            parent: "ci/results/-".to_owned(),
            filter: r#"data.spec.resource.uid == "run-3""#.to_owned(),
            ..pb::ListRecordsRequest::default()
        };
        let found = tekton(&server)
            .await
            .list_logs(request)
            .await
            .unwrap()
            .into_inner();
        assert_eq!(found.records.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_list_of_logs_has_no_other_records_whatever_its_filter_is() {
    on_each(|server| async move {
        let log = given_log(&server, "ci", "log", "run").await;
        server
            .given_record("ci/results/r/records/other", "t", b"{}")
            .await;
        let list = async |filter: &str, labels: Option<&str>| {
            let mut request = tonic::Request::new(pb::ListRecordsRequest {
                parent: "ci/results/-".to_owned(),
                filter: filter.to_owned(),
                ..pb::ListRecordsRequest::default()
            });
            if let Some(labels) = labels {
                let key = hindsight_proto::metadata::LABEL_SELECTOR;
                request.metadata_mut().insert(key, labels.parse().unwrap());
            }
            let reply = tekton(&server).await.list_logs(request).await;
            reply.map(|page| {
                let records = page.into_inner().records.into_iter();
                records.map(|record| record.name).collect::<Vec<_>>()
            })
        };
        for all in ["", "true", "true || data_type == \"t\"", "name != \"\""] {
            assert_eq!(list(all, None).await.unwrap(), [log.as_str()], "{all}");
        }
        assert!(list("", Some("none=such")).await.unwrap().is_empty());
        for half in ["true) || (true", "true) || (data_type == \"t\""] {
            refused(list(half, None).await, Code::InvalidArgument, "filter");
        }
    })
    .await;
}

#[tokio::test]
async fn a_delete_over_rest_deletes_and_does_not_return_the_log() {
    on_each(|server| async move {
        let log = given_log(&server, "ci", "log", "run").await;
        server
            .given_record("ci/results/r/records/run", "t", b"{}")
            .await;
        update_log(&server, &[(&log, b"text\n")]).await.unwrap();
        let mut http = Http::one(&server.url).await;
        let later = path(&log).replace("v1alpha2", "v1alpha3");
        let refused = http.send("DELETE", &later, &[], "").await;
        assert_eq!(refused.status, 501, "{}", refused.text());
        let deleted = http.send("DELETE", &path(&log), &[], "").await;
        assert_eq!((deleted.status, deleted.text().as_str()), (200, "{}"));
        assert_eq!(http.send("GET", &path(&log), &[], "").await.status, 404);
        assert!(server.get_record("ci/results/r/records/log").await.is_err());
        assert!(
            server.get_record("ci/results/r/records/run").await.is_ok(),
            "the run stays"
        );
        assert_eq!(http.send("DELETE", &path(&log), &[], "").await.status, 404);
    })
    .await;
}

#[tokio::test]
async fn a_log_that_cannot_be_read_is_an_error_and_no_empty_stream() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let log = given_log(&server, "ci", "log", "run").await;
    update_log(&server, &[(&log, b"text that is stored\n")])
        .await
        .unwrap();
    let url = database.url();
    let options: sqlx::sqlite::SqliteConnectOptions = url.parse().unwrap();
    let mut connection = sqlx::ConnectOptions::connect(&options).await.unwrap();
    let spoil = sqlx::query("UPDATE log_chunks SET body = zeroblob(30)");
    spoil.execute(&mut connection).await.unwrap();
    refused(get_log(&server, &log).await, Code::Internal, "damaged");
    let mut http = Http::one(&server.url).await;
    assert_eq!(http.send("GET", &path(&log), &[], "").await.status, 500);
    server.stop().await;
}

#[tokio::test]
async fn a_read_ends_with_its_client() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let log = given_log(&server, "ci", "log", "run").await;
    let part = vec![b'x'; 1 << 20];
    let parts: Vec<(&str, &[u8])> = vec![(log.as_str(), &*part); 40];
    update_log(&server, &parts).await.unwrap();
    let request = pb::GetLogRequest { name: log };
    let mut stream = tekton(&server)
        .await
        .get_log(request)
        .await
        .unwrap()
        .into_inner();
    assert!(stream.message().await.unwrap().is_some());
    drop(stream);
    // What is left is not read for a client that is gone, so that the server stops at once.
    tokio::time::timeout(std::time::Duration::from_secs(10), server.stop())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_log_of_the_older_type_is_read_and_deleted_too() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let record = "ci/results/r/records/old";
    let object = json!({"kind": "Log", "spec": {"resource": {"uid": "run"}}});
    let data_type = "results.tekton.dev/v1alpha2.Log";
    server
        .given_record(record, data_type, object.to_string().as_bytes())
        .await;
    let log = "ci/results/r/logs/old";
    update_log(&server, &[(log, b"text\n")]).await.unwrap();
    assert_eq!(get_log(&server, log).await.unwrap().0, b"text\n");
    let request = pb::DeleteLogRequest {
        name: log.to_owned(),
    };
    tekton(&server).await.delete_log(request).await.unwrap();
    refused(
        get_log(&server, log).await,
        Code::NotFound,
        "does not exist",
    );
    refused(server.get_record(record).await, Code::NotFound, "");
    server.stop().await;
}

#[tokio::test]
async fn a_log_that_is_not_there_is_404_over_rest_and_no_error_of_the_server() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let empty = given_log(&server, "ci", "log", "run").await;
    let mut http = Http::one(&server.url).await;
    for log in [
        empty.as_str(),
        "ci/results/r/logs/none",
        "ci/results/none/logs/x",
    ] {
        for version in ["v1alpha2", "v1alpha3"] {
            let path = path(log).replace("v1alpha2", version);
            let reply = http.send("GET", &path, &[], "").await;
            assert_eq!(reply.status, 404, "{path}: {}", reply.text());
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn an_upload_does_not_fail_because_its_record_changes_meanwhile() {
    on_each(|server| async move {
        let log = given_log(&server, "ci", "log", "run").await;
        let (sender, parts) = tokio::sync::mpsc::channel(1);
        let part = |data: &'static [u8]| pb::Log {
            name: log.clone(),
            data: data.into(),
        };
        let mut client = tekton(&server).await;
        let stream = tokio_stream::wrappers::ReceiverStream::new(parts);
        let uploading = tokio::spawn(async move { client.update_log(stream).await });
        sender.send(part(b"one\n")).await.unwrap();
        // The first message was taken once there is room for the next but one.
        sender.send(part(b"two\n")).await.unwrap();
        sender.send(part(b"three\n")).await.unwrap();
        let mut record = server
            .get_record(&log.replace("/logs/", "/records/"))
            .await
            .unwrap();
        let data = record.data.as_mut().unwrap();
        let mut object: Value = serde_json::from_slice(&data.value).unwrap();
        object["metadata"]["labels"] = json!({"team": "blue"});
        data.value = object.to_string().into();
        let request = pb::UpdateRecordRequest {
            record: Some(record),
            ..pb::UpdateRecordRequest::default()
        };
        server.rpc().update_record(request).await.unwrap();
        drop(sender);
        uploading.await.unwrap().unwrap();
        let (text, _) = get_log(&server, &log).await.unwrap();
        assert_eq!(text, b"one\ntwo\nthree\n");
        assert_eq!(status(&server, &log).await["isStored"], true);
    })
    .await;
}
