//! `hindsight export records -o parquet`, and what `hindsight import` makes of it.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use hindsight_archive::{Reader, Row};
use hindsight_filter::condition::{Column, Condition, Is, ObjectField, Test, Value as Sought};
use hindsight_proto::v1alpha2 as pb;
use serde_json::Value;

use super::{export, given, is_imported, stored};
use crate::support::{Database, TestServer, objects::task_run, process::run, server::on_each};

/// The files below a directory, in the order of their paths.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

fn rows(file: &Path) -> Vec<Row> {
    let reader = Reader::open(File::open(file).unwrap()).unwrap();
    reader.verify().unwrap();
    (0..reader.groups())
        .flat_map(|group| reader.group(group).unwrap())
        .collect()
}

#[tokio::test]
async fn a_file_has_what_is_stored_and_is_imported_byte_for_byte() {
    on_each(|server| async move {
        given(&server).await;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all.parquet");
        let file = path.display().to_string();
        let all = ["records", "-A", "-o", "parquet", "--file", &file];
        export(&server, &all).await.fails(0, "exported 3 records");
        let rows = rows(&path);
        let request = pb::GetRecordRequest {
            name: "ci/results/r1/records/r1".to_owned(),
        };
        let record = server.rpc().get_record(request).await.unwrap().into_inner();
        let row = rows
            .iter()
            .find(|row| row.record.name.id() == "r1")
            .unwrap();
        assert_eq!(row.record.etag.as_str(), record.etag);
        assert_eq!(
            (&row.record.uid, &row.record.data.as_ref().unwrap().value),
            (&record.uid, &record.data.unwrap().value)
        );
        let request = pb::GetResultRequest {
            name: "ci/results/r1".to_owned(),
        };
        let result = server.rpc().get_result(request).await.unwrap().into_inner();
        assert_eq!(
            (row.result.uid.as_str(), row.result.etag.as_str()),
            (result.uid.as_str(), result.etag.as_str())
        );
        assert_eq!(
            row.result.annotations,
            result.annotations.into_iter().collect()
        );

        let reader = Reader::open(File::open(&path).unwrap()).unwrap();
        let text = |text: &str| Sought::Text(text.to_owned());
        for (column, value, count) in [
            (Column::Object(ObjectField::Name), text("spaced"), 1),
            (Column::Outcome, Sought::Int(2), 2),
            (Column::Pipeline, text("nightly"), 3),
        ] {
            let test = Condition::Test(Test {
                column,
                is: Is::Equal(value),
                negated: false,
            });
            let found = reader.find(&test).unwrap();
            assert_eq!(found.places.len(), count, "{test:?}");
        }
        export(&server, &all)
            .await
            .fails(2, "cannot be written: it is there already");

        is_imported(&file).await;
    })
    .await;
}

#[tokio::test]
async fn a_directory_has_files_by_namespace_and_day() {
    on_each(|server| async move {
        given(&server).await;
        let object = task_run("elsewhere", "Failed").to_string();
        server
            .given_record(
                "cluster/east/namespace/shop/results/e/records/e",
                "tekton.dev/v1.TaskRun",
                object.as_bytes(),
            )
            .await;
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("history");
        let text = dir.display().to_string();
        let said = export(
            &server,
            &["records", "-A", "failed", "-o", "parquet", "--dir", &text],
        )
        .await;
        said.fails(0, "exported 3 records in 2 files");
        let files = files(&dir);
        let paths: Vec<_> = files
            .iter()
            .map(|it| it.strip_prefix(&dir).unwrap().display().to_string())
            .collect();
        assert!(
            paths[0].starts_with("cluster=__HIVE_DEFAULT_PARTITION__/namespace=ci/date=20"),
            "{paths:?}"
        );
        assert!(
            paths[1].starts_with("cluster=east/namespace=shop/date=20"),
            "{paths:?}"
        );
        assert_eq!(
            files
                .iter()
                .map(|file| rows(file).len())
                .collect::<Vec<_>>(),
            [2, 1]
        );

        let database = Database::sqlite();
        let other = TestServer::start(&database).await;
        let said = run(&["import", &text, "--server", &other.url]).await;
        said.prints(0, "imported 3 objects from 1 file");
        assert_eq!(stored(&other).await.len(), 3);
        other.stop().await;
    })
    .await;
}

#[tokio::test]
async fn an_export_to_a_directory_goes_on_where_its_cursor_is() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let objects = (0..250).map(|number| task_run(&format!("run-{number}"), "Failed").to_string());
    let given = path("given.json");
    fs::write(&given, objects.collect::<Vec<_>>().join("\n")).unwrap();
    let imported = run(&["import", &given, "--server", &server.url]).await;
    imported.prints(0, "250 created");
    let [dir, cursor] = ["dir", "cursor"].map(path);
    let all = [
        "records", "-A", "-o", "parquet", "--dir", &dir, "--cursor", &cursor,
    ];
    export(&server, &all)
        .await
        .fails(0, "exported 250 records in 1 file");
    let first = files(Path::new(&dir));
    let whole = rows(&first[0]);
    export(&server, &all)
        .await
        .fails(0, "the export is complete");

    // As if it had ended after the second file and before that was in the cursor, with the first file of 200 rows.
    let mut kept: Value = serde_json::from_str(&fs::read_to_string(&cursor).unwrap()).unwrap();
    let list = pb::ListRecordsRequest {
        parent: "-/results/-".to_owned(),
        filter: kept["filter"].as_str().unwrap().to_owned(),
        order_by: "create_time asc".to_owned(),
        page_size: 200,
        ..pb::ListRecordsRequest::default()
    };
    let page = server.rpc().list_records(list).await.unwrap().into_inner();
    kept["after"] = page.next_page_token.into();
    kept["done"] = false.into();
    fs::write(&cursor, kept.to_string()).unwrap();
    let second = first[0].display().to_string().replace("-000000", "-000001");
    fs::copy(&first[0], &second).unwrap();
    fs::write(format!("{second}.part"), "half a file").unwrap();
    export(&server, &all)
        .await
        .fails(0, "exported 50 records in 1 file");
    let last = files(Path::new(&dir));
    assert_eq!(last, [first[0].clone(), PathBuf::from(second)]);
    let rest = rows(&last[1]);
    assert_eq!(rest.len(), 50);
    assert!(rest.iter().all(|row| whole.contains(row)));
    server.stop().await;
}

#[tokio::test]
async fn what_cannot_be_is_said() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let [file, cursor, other] = ["a.parquet", "cursor", "other.parquet"].map(path);
    for (arguments, why) in [
        (
            vec!["runs", "-A", "-o", "parquet", "--file", &file],
            "`export records -o parquet`",
        ),
        (
            vec!["records", "-A", "-o", "parquet"],
            "name --file FILE or --dir DIR",
        ),
        (
            vec!["records", "-A", "--dir", &file],
            "a directory is for Parquet",
        ),
        (
            vec![
                "records", "-A", "-o", "parquet", "--file", &file, "--cursor", &cursor,
            ],
            "--dir writes files that it goes on after",
        ),
        (
            vec!["records", "-A", "-o", "parquet", "--file", "/dev/null/a/b"],
            "cannot be written",
        ),
    ] {
        export(&server, &arguments).await.fails(2, why);
    }
    assert!(!Path::new(&file).exists());
    fs::write(&other, "PAR1 and no more").unwrap();
    let said = run(&["import", &other, "--server", &server.url]).await;
    said.fails(2, "it cannot be read or written as Parquet");
    server.stop().await;
}
