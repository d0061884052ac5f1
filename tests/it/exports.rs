//! `hindsight export`, and what `hindsight import` makes of it.

use hindsight_proto::v1alpha2 as pb;
use serde_json::Value;

use crate::support::{
    Database, TestServer,
    objects::{TASK_RUN, bytes, task_run},
    process::{Said, run},
    server::on_each,
};

mod logs;
mod parquet;

async fn export(server: &TestServer, arguments: &[&str]) -> Said {
    let all = [&["export"], arguments, &["--server", &server.url]].concat();
    run(&all).await
}

/// Payloads as clients may send them: with blanks, with line ends, with numbers that lose digits.
fn payloads() -> Vec<Vec<u8>> {
    let text = bytes(&task_run("compact", "Failed"));
    let spaced = String::from_utf8(bytes(&task_run("spaced", "Failed"))).unwrap();
    let spaced = spaced.replace(r#""spec":{"#, r#""spec" : { "n": 9007199254740993, "#);
    let lines = serde_json::to_string_pretty(&task_run("lines", "Succeeded")).unwrap();
    vec![text, spaced.into_bytes(), lines.into_bytes()]
}

async fn given(server: &TestServer) {
    for (number, payload) in payloads().iter().enumerate() {
        let name = format!("ci/results/r{number}/records/r{number}");
        server.given_record(&name, TASK_RUN, payload).await;
    }
}

async fn stored(server: &TestServer) -> Vec<Vec<u8>> {
    let request = pb::ListRecordsRequest {
        parent: "-/results/-".to_owned(),
        page_size: 100,
        ..pb::ListRecordsRequest::default()
    };
    let records = server.rpc().list_records(request).await.unwrap();
    let records = records.into_inner().records.into_iter();
    let mut payloads: Vec<_> = records.map(|it| it.data.unwrap().value.to_vec()).collect();
    payloads.sort();
    payloads
}

/// Whether another server has the payloads of `given` once it has a file, and nothing more if it has it again.
async fn is_imported(file: &str) {
    let database = Database::sqlite();
    let other = TestServer::start(&database).await;
    let said = run(&["import", file, "--server", &other.url]).await;
    said.prints(0, "imported 3 objects from 1 file");
    said.prints(0, "3 created, 0 updated, 0 unchanged, 0 refused");
    let mut wanted = payloads();
    wanted.sort();
    assert_eq!(stored(&other).await, wanted);
    let said = run(&["import", file, "--server", &other.url]).await;
    said.prints(0, "0 created, 0 updated, 3 unchanged, 0 refused");
    other.stop().await;
}

#[tokio::test]
async fn records_are_imported_again_byte_for_byte() {
    on_each(|server| async move {
        given(&server).await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("all.jsonl").display().to_string();
        let said = export(&server, &["records", "-A", "--file", &file]).await;
        said.fails(0, "exported 3 records");
        is_imported(&file).await;
    })
    .await;
}

#[tokio::test]
async fn runs_are_lines_in_the_order_of_storing() {
    on_each(|server| async move {
        given(&server).await;
        let said = export(&server, &["runs", "-A", "failed"]).await;
        let names: Vec<_> = said
            .out
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].clone())
            .collect();
        assert_eq!(names, ["compact", "spaced"]);
        let said = export(&server, &["runs", "-n", "ci", "lines", "-o", "csv"]).await;
        let lines: Vec<_> = said.out.lines().collect();
        assert!(lines[0].starts_with("status,namespace,name,"), "{said:?}");
        assert!(
            lines[1].starts_with("succeeded,ci,lines,TaskRun,tekton,nightly,"),
            "{said:?}"
        );
        let said = export(&server, &["records", "-A", "-o", "csv"]).await;
        assert_eq!(said.out.matches(",base64,").count(), 1, "{said:?}");
        assert_eq!(said.out.lines().count(), 4, "{said:?}");
        export(&server, &["runs", "stauts:x"])
            .await
            .fails(2, "^^^^^^");
    })
    .await;
}

#[tokio::test]
async fn an_export_goes_on_where_its_cursor_is() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let objects = (0..250).map(|number| task_run(&format!("run-{number}"), "Failed").to_string());
    let given = path("given.json");
    std::fs::write(&given, objects.collect::<Vec<_>>().join("\n")).unwrap();
    let imported = run(&["import", &given, "--server", &server.url]).await;
    imported.prints(0, "250 created");
    let [whole, part, cursor] = ["whole", "part", "cursor"].map(path);
    let all = ["records", "-A", "failed"];
    export(&server, &[&all[..], &["--file", &whole]].concat())
        .await
        .fails(0, "exported 250");
    let resumed = [&all[..], &["--file", &part, "--cursor", &cursor]].concat();
    export(&server, &resumed)
        .await
        .fails(0, "exported 250 records");
    let text = std::fs::read_to_string(&whole).unwrap();
    assert_eq!(std::fs::read_to_string(&part).unwrap(), text);
    export(&server, &resumed)
        .await
        .fails(0, "the export is complete");

    // A cursor that is not there says nothing of a file that is.
    let lost = path("lost");
    let lost = [&all[..], &["--file", &whole, "--cursor", &lost]].concat();
    export(&server, &lost).await.fails(2, "cannot be written");
    assert_eq!(std::fs::read_to_string(&whole).unwrap(), text);

    // As if it had ended while the second page was written.
    let first: Vec<_> = text.split_inclusive('\n').take(200).collect();
    let first = first.concat();
    let list = pb::ListRecordsRequest {
        parent: "-/results/-".to_owned(),
        filter: serde_json::from_str::<Value>(&std::fs::read_to_string(&cursor).unwrap()).unwrap()
            ["filter"]
            .as_str()
            .unwrap()
            .to_owned(),
        order_by: "create_time asc".to_owned(),
        page_size: 200,
        ..pb::ListRecordsRequest::default()
    };
    let page = server.rpc().list_records(list).await.unwrap().into_inner();
    let mut kept: Value = serde_json::from_str(&std::fs::read_to_string(&cursor).unwrap()).unwrap();
    kept["after"] = page.next_page_token.clone().into();
    kept["bytes"] = first.len().into();
    kept["done"] = false.into();
    std::fs::write(&cursor, kept.to_string()).unwrap();
    std::fs::write(&part, format!("{first}{{\"half a li")).unwrap();
    export(&server, &resumed)
        .await
        .fails(0, "exported 50 records");
    assert_eq!(std::fs::read_to_string(&part).unwrap(), text);
    let after = [&all[..], &["--after", &page.next_page_token]].concat();
    let said = export(&server, &after).await;
    assert_eq!(first + &said.out, text);
    let other = ["runs", "-A", "--cursor", &cursor];
    export(&server, &other)
        .await
        .fails(2, "other arguments; name another file");
    server.stop().await;
}
