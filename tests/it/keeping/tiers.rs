//! Records of old runs move to files of an archive, and every answer stays the same.

mod told;

use std::path::{Path, PathBuf};

use bytes::Bytes;
use hindsight_archive::Reader;
use hindsight_proto::v1alpha2 as pb;
use serde_json::{Value, json};
use tonic::Code;

use crate::support::{
    Database, TestServer, each_database,
    process::{Said, run},
};

const TASK_RUN: &str = "tekton.dev/v1.TaskRun";
const FILE: &str =
    "run_at = '30 3 * * * UTC'\n[default]\nkeep_for = 'forever'\narchive_after = '30d'\n";

/// A run that ended in 2020, or goes on.
fn object(name: &str, number: usize, ended: bool) -> Vec<u8> {
    let mut object = json!({"kind": "TaskRun", "metadata": {"name": name, "namespace": "ci",
        "labels": {"team": if number.is_multiple_of(2) { "blue" } else { "red" }, "tekton.dev/pipeline": "nightly"}},
        "status": {"startTime": "2020-01-01T00:00:00Z"}});
    if ended {
        let succeeded = !number.is_multiple_of(3);
        object["status"] = json!({"startTime": "2020-01-01T00:00:00Z",
            "completionTime": format!("2020-01-01T00:0{}:00Z", 1 + number % 5),
            "conditions": [{"type": "Succeeded", "status": if succeeded { "True" } else { "False" },
                "reason": if succeeded { "Succeeded" } else { "Failed" },
                "message": format!("that was number {number}")}]});
    }
    serde_json::to_vec(&object).unwrap()
}

/// Ten results of three records, of which the last goes on, and one of another namespace.
async fn given(server: &TestServer) {
    for result in 0..10 {
        for part in 0..3 {
            let number = result * 3 + part;
            let object = object(&format!("run-{number}"), number, result < 9);
            let name = format!("ci/results/r{result}/records/t{number}");
            server.given_record(&name, TASK_RUN, &object).await;
        }
    }
    let object = object("elsewhere", 1, true);
    let name = "other/results/e/records/e";
    server.given_record(name, TASK_RUN, &object).await;
}

/// What lists of many kinds answer.
async fn answers(server: &TestServer) -> Vec<Value> {
    let mut answers = Vec::new();
    for filter in [
        "",
        "data.metadata.labels.team == 'red'",
        "data.status.conditions[0].reason == 'Failed'",
        "run.outcome == 'FAILURE' && data.metadata.name.startsWith('run-1')",
        "data.status.conditions[0].message.endsWith('number 4')",
        "data.metadata.name in ['run-3', 'run-28', 'elsewhere']",
        "result_name == 'r4'",
        "create_time < timestamp('2020-01-01T00:00:00Z')",
    ] {
        for parent in [
            "-/results/-",
            "ci/results/-",
            "ci/results/r4",
            "ci/results/r9",
        ] {
            for order in ["", "create_time asc", "data.metadata.name desc"] {
                answers.push(json!({"of": [parent, filter, order], "rows": walk(server, parent, filter, order).await}));
            }
        }
    }
    answers
}

/// The names and payloads of all pages of seven.
async fn walk(server: &TestServer, parent: &str, filter: &str, order: &str) -> Vec<Value> {
    let (mut rows, mut token) = (Vec::new(), String::new());
    loop {
        let request = pb::ListRecordsRequest {
            parent: parent.to_owned(),
            filter: filter.to_owned(),
            order_by: order.to_owned(),
            page_size: 7,
            page_token: token,
        };
        let page = server.rpc().list_records(request).await;
        let page = match page {
            Ok(page) => page.into_inner(),
            Err(error) => return vec![json!({"error": error.message()})],
        };
        for record in page.records {
            let data = record.data.unwrap_or_default();
            rows.push(json!([
                record.name,
                record.uid,
                record.etag,
                String::from_utf8_lossy(&data.value)
            ]));
        }
        token = page.next_page_token;
        if token.is_empty() {
            return rows;
        }
    }
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("retention.toml"), FILE).unwrap();
        Self(folder)
    }

    fn url(&self) -> String {
        format!("file://{}/archive", self.0.path().display())
    }

    fn paths(&self) -> Vec<PathBuf> {
        fn below(path: &Path) -> Vec<PathBuf> {
            let entries = std::fs::read_dir(path).into_iter().flatten();
            let paths = entries.map(|entry| entry.unwrap().path());
            paths
                .flat_map(|path| match path.is_dir() {
                    true => below(&path),
                    false => vec![path],
                })
                .collect()
        }
        below(&self.0.path().join("archive"))
    }

    fn files(&self) -> usize {
        self.paths().len()
    }

    async fn retention(&self, database: &Database, what: &[&str]) -> Said {
        let file = self.0.path().join("retention.toml").display().to_string();
        let (db, url) = (database.url(), self.url());
        let fixed = [
            "--db",
            &db,
            "--retention-file",
            &file,
            "--archive-url",
            &url,
        ];
        run(&[&["retention"][..], what, &fixed].concat()).await
    }
}

/// The ids of all records that a file has.
fn records_in(file: &Path) -> Vec<String> {
    let reader = Reader::open(Bytes::from(std::fs::read(file).unwrap())).unwrap();
    let groups = (0..reader.groups()).flat_map(|group| reader.group(group).unwrap());
    groups.map(|row| row.record.name.id().to_owned()).collect()
}

fn stages(said: &Said) -> Vec<String> {
    let lines = said.out.lines();
    let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut all: Vec<_> = lines
        .map(|line| {
            format!(
                "{} {}",
                line["stage"].as_str().unwrap(),
                line["result"].as_str().unwrap()
            )
        })
        .collect();
    all.sort();
    all
}

#[tokio::test]
async fn lists_are_the_same_once_records_are_in_files() {
    for database in each_database().await {
        let folder = Folder::new();
        let server = TestServer::start(&database).await;
        given(&server).await;
        let before = answers(&server).await;
        server.stop().await;

        let plan = folder.retention(&database, &["plan", "-o", "jsonl"]).await;
        assert_eq!((plan.code, stages(&plan).len()), (0, 10), "{plan:?}");
        assert_eq!(stages(&plan)[0], "archive ci/results/r0");
        assert_eq!(folder.files(), 0, "nothing was moved");
        let moved = folder
            .retention(&database, &["run", "--yes", "-o", "jsonl"])
            .await;
        assert_eq!(
            (moved.code, stages(&moved)),
            (0, stages(&plan)),
            "{moved:?}"
        );
        assert!(moved.err.contains("moved to the archive"), "{moved:?}");
        assert_eq!(folder.files(), 2, "a file for each namespace");
        let again = folder
            .retention(&database, &["run", "--yes", "-o", "jsonl"])
            .await;
        assert_eq!((again.code, again.out.as_str()), (0, ""), "{again:?}");

        let url = folder.url();
        let server = TestServer::start_with(&database, &[("archive_url", &url)]).await;
        let after = answers(&server).await;
        for (before, after) in before.iter().zip(&after) {
            let names = |answer: &Value| -> Vec<String> {
                let rows = answer["rows"].as_array().unwrap().iter();
                rows.map(|row| row[0].to_string()).collect()
            };
            assert_eq!(names(before), names(after), "{}", before["of"]);
            assert_eq!(before, after);
        }
        let record = server
            .get_record("ci/results/r4/records/t13")
            .await
            .unwrap();
        assert_eq!(record.data.unwrap().value, object("run-13", 13, true));
        let absent = server.get_record("ci/results/r4/records/t14x").await;
        assert_eq!(absent.unwrap_err().code(), Code::NotFound);
        server.stop().await;
        database.remove().await;
    }
}

#[tokio::test]
async fn a_write_brings_records_back_and_a_delete_takes_them() {
    for database in each_database().await {
        let folder = Folder::new();
        let server = TestServer::start(&database).await;
        given(&server).await;
        server.stop().await;
        let moved = folder.retention(&database, &["run", "--yes"]).await;
        assert_eq!(moved.code, 0, "{moved:?}");

        let url = folder.url();
        let server = TestServer::start_with(&database, &[("archive_url", &url)]).await;
        let twice = server
            .create_record("ci/results/r1/records/t3", TASK_RUN, b"{}")
            .await;
        assert_eq!(twice.unwrap_err().code(), Code::AlreadyExists);
        let made = server
            .create_record("ci/results/r2/records/late", TASK_RUN, b"{}")
            .await;
        made.unwrap();
        server
            .delete_record("ci/results/r3/records/t10")
            .await
            .unwrap();
        let mut names = server.ids("ci/results/r2", "").await.unwrap();
        names.sort();
        assert_eq!(names, ["late", "t6", "t7", "t8"]);
        let mut names = server.ids("ci/results/r3", "").await.unwrap();
        names.sort();
        assert_eq!(names, ["t11", "t9"]);
        let request = pb::DeleteResultRequest {
            name: "ci/results/r5".to_owned(),
        };
        server.rpc().delete_result(request).await.unwrap();
        assert_eq!(server.ids("ci/results/-", "").await.unwrap().len(), 27);
        let gone = server.get_record("ci/results/r5/records/t15").await;
        assert_eq!(gone.unwrap_err().code(), Code::NotFound);
        server.stop().await;

        let (db, archive) = (database.url(), folder.url());
        let common = ["--db", &db, "--archive-url", &archive];
        let of_archive =
            async |what: &[&str]| run(&[&["archive"][..], what, &common].concat()).await;
        let said = of_archive(&["verify"]).await;
        said.prints(
            0,
            "2 files with 28 records, 6 results of the database: 0 damaged or missing",
        );
        let said = of_archive(&["restore", "ci/results/r0"]).await;
        said.prints(0, "ci/results/r0 restored");
        let said = of_archive(&["restore", "ci/results/r0"]).await;
        said.prints(0, "ci/results/r0 is in the database already");
        let said = of_archive(&["restore", "ci/results/nothing"]).await;
        assert_ne!(said.code, 0, "{said:?}");
        let said = of_archive(&["restore", "ci/results/r1", "--since", "1d"]).await;
        said.fails(2, "are for all of a parent");
        let said = of_archive(&["restore", "ci/results/-", "--until", "1d"]).await;
        said.prints(0, "0 results: 0 restored, 0 in the database already");
        let target = Database::sqlite();
        let said = run(&["copy", "--from", &db, "--to", &target.url()]).await;
        said.fails(1, "put them back with `hindsight archive restore`");
        for file in folder.paths() {
            let mut bytes = std::fs::read(&file).unwrap();
            let middle = bytes.len() / 3;
            bytes[middle] ^= 0x5a;
            std::fs::write(&file, bytes).unwrap();
        }
        let said = of_archive(&["verify"]).await;
        said.prints(6, "2 damaged or missing");

        let url = database.url();
        let said = run(&["serve", "--listen", "127.0.0.1:0", "--db", &url]).await;
        said.fails(1, "set archive_url to where they are");
        database.remove().await;
    }
}

#[tokio::test]
async fn pipelines_are_exported_from_a_database_with_an_archive() {
    let folder = Folder::new();
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    given(&server).await;
    server.stop().await;
    let moved = folder.retention(&database, &["run", "--yes"]).await;
    assert_eq!(moved.code, 0, "{moved:?}");
    let output = folder.0.path().join("pipelines").display().to_string();
    let (db, archive) = (database.url(), folder.url());
    let export = [
        "pipelines",
        "export",
        "--to-namespace",
        "ml",
        "-o",
        &output,
        "--db",
        &db,
    ];
    let said = run(&export).await;
    said.fails(1, "set archive_url to where they are");
    let said = run(&[&export[..], &["--archive-url", &archive]].concat()).await;
    assert_eq!(said.code, 0, "{said:?}");
}

#[tokio::test]
async fn a_policy_deletes_results_whose_records_are_in_files() {
    for database in each_database().await {
        let folder = Folder::new();
        let server = TestServer::start(&database).await;
        given(&server).await;
        server.stop().await;
        let moved = folder.retention(&database, &["run", "--yes"]).await;
        assert_eq!(moved.code, 0, "{moved:?}");

        let file = "run_at = '30 3 * * * UTC'\n[default]\nkeep_for = 'forever'\n\
            [namespaces.ci.default]\nkeep_for = '60d'\n";
        std::fs::write(folder.0.path().join("retention.toml"), file).unwrap();
        let plan = folder.retention(&database, &["plan", "-o", "jsonl"]).await;
        assert_eq!((plan.code, stages(&plan).len()), (0, 9), "{plan:?}");
        assert_eq!(stages(&plan)[8], "delete ci/results/r8");
        let run = folder
            .retention(&database, &["run", "--yes", "-o", "jsonl"])
            .await;
        assert_eq!((run.code, stages(&run)), (0, stages(&plan)), "{run:?}");

        let url = folder.url();
        let server = TestServer::start_with(&database, &[("archive_url", &url)]).await;
        let mut left = server.ids("-/results/-", "").await.unwrap();
        left.sort();
        assert_eq!(left, ["e", "t27", "t28", "t29"]);
        let gone = server.get_record("ci/results/r4/records/t13").await;
        assert_eq!(gone.unwrap_err().code(), Code::NotFound);
        server.stop().await;
        database.remove().await;
    }
}

#[tokio::test]
async fn what_is_purged_is_in_no_file() {
    for database in each_database().await {
        let folder = Folder::new();
        let server = TestServer::start(&database).await;
        given(&server).await;
        server.stop().await;
        let moved = folder.retention(&database, &["run", "--yes"]).await;
        assert_eq!(moved.code, 0, "{moved:?}");
        let (db, archive) = (database.url(), folder.url());
        let common = ["--db", &db, "--archive-url", &archive, "--yes"];
        let purge = async |what: &[&str]| run(&[&["purge"][..], what, &common].concat()).await;
        let before = folder.paths();

        let record = ["--record", "ci/results/r1/records/t4"];
        let said = purge(&[&record[..], &["--dry-run"]].concat()).await;
        said.prints(0, "would purge 0 results, 1 record");
        assert_eq!(folder.paths(), before, "nothing was purged");
        purge(&record).await.prints(0, "purged 0 results, 1 record");
        let said = purge(&["--result", "ci/results/r2"]).await;
        said.prints(0, "purged 1 result");
        for path in folder.paths() {
            let records = records_in(&path);
            let is_gone = |id: &str| !records.iter().any(|record| record == id);
            assert!(is_gone("t4") && is_gone("t6"), "{records:?}");
        }
        let said = purge(&["--parent", "other"]).await;
        said.prints(0, "purged 1 result");
        assert_eq!(folder.files(), 1, "{:?}", folder.paths());

        let server = TestServer::start_with(&database, &[("archive_url", &archive)]).await;
        let left = server.ids("-/results/-", "").await.unwrap();
        assert_eq!(left.len(), 26);
        server.stop().await;
        database.remove().await;
    }
}

#[tokio::test]
async fn a_pass_joins_the_files_of_passes_before() {
    for database in each_database().await {
        let folder = Folder::new();
        let server = TestServer::start(&database).await;
        given(&server).await;
        let before = answers(&server).await;
        server.stop().await;
        let (db, archive) = (database.url(), folder.url());
        for result in ["r0", "r1", "r2"] {
            let moved = folder.retention(&database, &["run", "--yes"]).await;
            assert_eq!(moved.code, 0, "{moved:?}");
            let name = format!("ci/results/{result}");
            let what = ["archive", "restore", &name];
            let said = run(&[&what[..], &["--db", &db, "--archive-url", &archive]].concat()).await;
            said.prints(0, "restored");
        }
        let of_ci = |path: &PathBuf| path.to_string_lossy().contains("namespace=ci");
        let files = folder.paths().iter().filter(|path| of_ci(path)).count();
        assert_eq!(files, 3);
        let moved = folder.retention(&database, &["run", "--yes"]).await;
        assert_eq!(moved.code, 0, "{moved:?}");
        let whole = folder.paths().into_iter().filter(of_ci);
        let whole: Vec<_> = whole.filter(|path| records_in(path).len() == 27).collect();
        // The first one of all, which is removed a day later, and the one of all that were left.
        assert_eq!(whole.len(), 2, "{:?}", folder.paths());

        let server = TestServer::start_with(&database, &[("archive_url", &archive)]).await;
        assert_eq!(answers(&server).await, before);
        server.stop().await;

        let all = ["archive", "restore", "-A", "--since", "1d"];
        let said = run(&[&all[..], &["--db", &db, "--archive-url", &archive]].concat()).await;
        said.prints(0, "11 results: 10 restored, 1 in the database already");
        let verify = ["archive", "verify", "--db", &db, "--archive-url", &archive];
        run(&verify).await.prints(0, ", 0 results of the database");
        let server = TestServer::start_with(&database, &[("archive_url", &archive)]).await;
        assert_eq!(answers(&server).await, before);
        server.stop().await;
        database.remove().await;
    }
}
