//! `hindsight import kubearchive` and `import argo-archive`, from databases with the schemas of these
//! programs, odd rows included.

mod mariadb;

use std::{path::Path, time::Duration};

use hindsight_proto::v1alpha2 as pb;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};

use crate::support::{
    Database, TestServer,
    database::postgres_or_skip,
    each_database,
    process::{Said, hindsight, run},
};

/// Columns of KubeArchive's migrations.
const KUBEARCHIVE: &str = "
    CREATE TABLE resource (
        id bigserial PRIMARY KEY, uuid uuid UNIQUE NOT NULL, api_version varchar NOT NULL,
        kind varchar NOT NULL, name varchar NOT NULL, namespace varchar NOT NULL,
        resource_version varchar, created_at timestamptz NOT NULL DEFAULT now(),
        updated_at timestamptz NOT NULL DEFAULT now(), cluster_updated_ts timestamptz NOT NULL,
        cluster_deleted_ts timestamptz, data jsonb NOT NULL);
    CREATE TABLE log_url (
        id bigserial PRIMARY KEY, uuid uuid NOT NULL REFERENCES resource (uuid) ON DELETE CASCADE,
        url text NOT NULL, container_name text NOT NULL, query text, \"start\" text, \"end\" text,
        created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now());";
/// Columns after the last of Argo's migrations.
const ARGO: &str = "
    CREATE TABLE argo_archived_workflows (
        uid varchar(128) NOT NULL, name varchar(256) NOT NULL, phase varchar(25) NOT NULL,
        namespace varchar(256) NOT NULL, workflow jsonb NOT NULL,
        startedat timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
        finishedat timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP, clustername varchar(64) NOT NULL,
        instanceid varchar(64) NOT NULL, creationtimestamp timestamp DEFAULT CURRENT_TIMESTAMP,
        PRIMARY KEY (clustername, uid));
    CREATE TABLE argo_archived_workflows_labels (
        clustername varchar(64) NOT NULL, uid varchar(128) NOT NULL, name varchar(317) NOT NULL,
        value varchar(63) NOT NULL, PRIMARY KEY (clustername, uid, name),
        FOREIGN KEY (clustername, uid) REFERENCES argo_archived_workflows (clustername, uid)
            ON DELETE CASCADE);";

/// A database with these tables, and a connection to it; none without PostgreSQL.
async fn source(tables: &'static str) -> Option<(Database, PgConnection)> {
    let database = postgres_or_skip().await?;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    sqlx::raw_sql(tables)
        .execute(&mut connection)
        .await
        .unwrap();
    Some((database, connection))
}

/// The objects of a file of the fixtures.
fn fixture(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let text = std::fs::read_to_string(path.join(name)).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    list["items"].as_array().unwrap().clone()
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or("")
}

async fn archive(connection: &mut PgConnection, uid: &str, kind: &str, object: &Value) {
    let sql = "INSERT INTO resource (uuid, api_version, kind, name, namespace, cluster_updated_ts, data) \
               VALUES ($1::uuid, $2, $3, $4, $5, now(), $6::jsonb)";
    sqlx::query(sql)
        .bind(uid)
        .bind(text(object, "/apiVersion"))
        .bind(kind)
        .bind(text(object, "/metadata/name"))
        .bind(text(object, "/metadata/namespace"))
        .bind(object.to_string())
        .execute(connection)
        .await
        .unwrap();
}

async fn archive_workflow(connection: &mut PgConnection, cluster: &str, uid: &str, object: &Value) {
    let sql = "INSERT INTO argo_archived_workflows \
               (clustername, instanceid, uid, name, namespace, phase, workflow) \
               VALUES ($1, '', $2, $3, $4, 'Succeeded', $5::jsonb)";
    sqlx::query(sql)
        .bind(cluster)
        .bind(uid)
        .bind(text(object, "/metadata/name"))
        .bind(text(object, "/metadata/namespace"))
        .bind(object.to_string())
        .execute(connection)
        .await
        .unwrap();
}

/// UID and object of workflows, in which this text is where a NUL was, and of rows that cannot be stored.
fn argo(nul: &str) -> Vec<(String, Value)> {
    let workflows = fixture("workflows.json");
    let stored = |object: &Value| {
        let mut object = object.clone();
        let uid = text(&object, "/metadata/uid").to_owned();
        // The controller's own objects may not say what they are.
        object.as_object_mut().unwrap().remove("apiVersion");
        object.as_object_mut().unwrap().remove("kind");
        object["metadata"]["annotations"]["nul"] = json!(nul);
        (uid, object)
    };
    let mut rows: Vec<_> = workflows.iter().map(stored).collect();
    rows.push(("null".to_owned(), Value::Null));
    rows.push(("other".to_owned(), workflows[0].clone()));
    rows
}

async fn everything(server: &TestServer) -> Vec<pb::Record> {
    let mut request = pb::ListRecordsRequest {
        parent: "-/results/-".to_owned(),
        page_size: 1_000,
        ..pb::ListRecordsRequest::default()
    };
    let mut records = Vec::new();
    loop {
        let page = server.rpc().list_records(request.clone()).await.unwrap();
        let page = page.into_inner();
        records.extend(page.records);
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            return records;
        }
    }
}

/// UID, kind and object of runs, pods, and rows that cannot be stored.
fn kubearchive() -> Vec<(String, &'static str, Value)> {
    let files = [
        ("pipelineruns.json", "PipelineRun"),
        ("taskruns.json", "TaskRun"),
        ("jobs.json", "Job"),
        ("workflows.json", "Workflow"),
    ];
    let of_file = |(file, kind)| {
        let objects = fixture(file).into_iter();
        objects.map(move |object| (text(&object, "/metadata/uid").to_owned(), kind, object))
    };
    let mut rows: Vec<_> = files.into_iter().flat_map(of_file).collect();
    let uid = |n: u32| format!("00000000-0000-4000-8000-{n:012}");
    let mut run = fixture("taskruns.json").remove(0);
    run["metadata"]["uid"] = json!(uid(1));
    run["metadata"]["name"] = json!("large");
    run["metadata"]["annotations"]["note"] = json!("x".repeat(1 << 20));
    rows.push((uid(1), "TaskRun", run.clone()));
    run["metadata"]["annotations"] = json!({});
    run["metadata"]["name"] = json!("\u{1b}]0;x\u{7}\u{202e}");
    run["metadata"]["uid"] = json!(uid(2));
    rows.push((uid(2), "TaskRun", run.clone()));
    // A pod, one that is called a run, nothing, a list, a foreign UID, no UID, no namespace.
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"uid": uid(3)}});
    rows.push((uid(3), "Pod", pod.clone()));
    rows.push((uid(4), "TaskRun", pod));
    rows.push((uid(5), "TaskRun", Value::Null));
    rows.push((uid(6), "TaskRun", json!([1])));
    rows.push((uid(7), "TaskRun", run.clone()));
    run["metadata"].as_object_mut().unwrap().remove("uid");
    rows.push((uid(8), "TaskRun", run.clone()));
    run["metadata"] = json!({"name": "nowhere", "uid": uid(9)});
    rows.push((uid(9), "TaskRun", run));
    rows
}

const STORED: usize = 3 + 7 + 1 + 2 + 2;

fn says_what_is_refused(said: &Said) {
    for line in [
        "refused / 00000000-0000-4000-8000-000000000005: its object is not one of Kubernetes",
        "000000000006: its object is not one of Kubernetes",
        "000000000007: its object has another UID, `00000000-0000-4000-8000-000000000002`",
        "000000000008: its object has no `metadata.uid`",
        "metadata.namespace",
        "skipped 1 objects that are no runs",
    ] {
        assert!(said.err.contains(line), "{line}: {said:?}");
    }
    assert!(!said.err.contains('\u{1b}'), "{said:?}");
}

#[tokio::test]
async fn runs_of_kubearchive_get_the_names_that_the_watcher_gives() {
    let Some((source, mut connection)) = source(KUBEARCHIVE).await else {
        return;
    };
    for (uid, kind, object) in kubearchive() {
        archive(&mut connection, &uid, kind, &object).await;
    }
    for database in each_database().await {
        let server = TestServer::start(&database).await;
        let url = source.url();
        let import = ["import", "kubearchive", &url, "--server", &server.url];
        let said = run(&[&import[..], &["--dry-run"]].concat()).await;
        said.prints(1, "15 runs of KubeArchive would be stored, 5 refused");
        says_what_is_refused(&said);
        assert_eq!(everything(&server).await.len(), 0);

        let said = run(&[&import[..], &["--verify"]].concat()).await;
        said.prints(1, "imported 15 objects from KubeArchive");
        said.prints(1, "15 created, 0 updated, 0 unchanged, 5 refused");
        said.prints(
            1,
            "verified: 15 runs are in the server with the same content, 0 were not",
        );
        says_what_is_refused(&said);
        let before = everything(&server).await;
        assert_eq!(before.len(), STORED);

        // Files of the same objects name the same records, as the watcher does.
        let again = run(&import).await;
        again.prints(1, "0 created, 0 updated, 15 unchanged, 5 refused");
        assert_eq!(everything(&server).await, before);
        let files = [
            "import",
            "tests/fixtures/taskruns.json",
            "--server",
            &server.url,
        ];
        let said = run(&files).await;
        said.prints(0, "0 created, 7 updated, 0 unchanged, 0 refused");
        assert_eq!(everything(&server).await.len(), STORED);

        let large = ["runs", "-n", "apps", "name:large", "-o", "name"];
        let found = run(&[&large[..], &["--server", &server.url]].concat()).await;
        assert_eq!(found.out.lines().count(), 1, "{found:?}");

        let east = run(&[&import[..], &["--cluster-id", "east"]].concat()).await;
        east.prints(1, "15 created");
        let runs = [
            "runs",
            "-A",
            "--cluster",
            "east",
            "-o",
            "name",
            "--server",
            &server.url,
        ];
        let found = run(&runs).await;
        assert_eq!(found.out.lines().count(), STORED, "{found:?}");
        let named = |line: &str| line.starts_with("cluster/east/namespace/");
        assert!(found.out.lines().all(named), "{found:?}");
        server.stop().await;
        database.remove().await;
    }
    connection.close().await.unwrap();
    source.remove().await;
}

#[tokio::test]
async fn an_import_that_was_killed_goes_on_where_it_was() {
    let Some((source, mut connection)) = source(KUBEARCHIVE).await else {
        return;
    };
    let many = "INSERT INTO resource (uuid, api_version, kind, name, namespace, cluster_updated_ts, data) \
        SELECT u.uid::uuid, 'tekton.dev/v1', 'TaskRun', 'run-' || n, 'ci', now(), jsonb_build_object( \
            'apiVersion', 'tekton.dev/v1', 'kind', 'TaskRun', 'spec', jsonb_build_object('x', repeat('y', 4000)), \
            'metadata', jsonb_build_object('name', 'run-' || n, 'namespace', 'ci', 'uid', u.uid)) \
        FROM generate_series(1, 2000) AS n, \
            LATERAL (SELECT '00000000-0000-4000-8000-' || lpad(n::text, 12, '0') AS uid) AS u";
    sqlx::raw_sql(many).execute(&mut connection).await.unwrap();
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let folder = tempfile::tempdir().unwrap();
    let cursor = folder.path().join("cursor");
    let url = source.url();
    let import = [
        "import",
        "kubearchive",
        &url,
        "--server",
        &server.url,
        "--concurrency",
        "8",
        "--cursor",
        cursor.to_str().unwrap(),
    ];
    let mut child = hindsight().args(import).spawn().unwrap();
    while !cursor.exists() {
        assert_eq!(child.try_wait().unwrap(), None, "it did not end before");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = everything(&server).await.len();
    assert!(
        (256..2000).contains(&before),
        "{before} of 2000 were stored"
    );
    let said = run(&import).await;
    said.prints(0, "from KubeArchive in");
    let left: usize = said.out.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(
        left <= 2000 - 256,
        "what the cursor has is not sent: {said:?}"
    );
    assert_eq!(everything(&server).await.len(), 2000);
    let said = run(&import).await;
    said.fails(0, "the cursor says that the import is done");
    let other = run(&[
        "import",
        "argo-archive",
        &url,
        "--cursor",
        cursor.to_str().unwrap(),
    ])
    .await;
    other.fails(
        2,
        "is not a cursor: it is that of an import of KubeArchive in ",
    );
    // What was stored below one parent is not below another.
    let other = run(&[&import[..], &["--parent", "old"]].concat()).await;
    other.fails(
        2,
        "is not a cursor: it is that of an import of KubeArchive in ",
    );
    server.stop().await;
    connection.close().await.unwrap();
    source.remove().await;
}

#[tokio::test]
async fn workflows_of_the_archive_of_argo_are_stored_cluster_by_cluster() {
    let Some((source, mut connection)) = source(ARGO).await else {
        return;
    };
    let workflows = fixture("workflows.json");
    for (uid, object) in argo("aARGO_POSTGRES_NULL_REPLACEMENTb") {
        archive_workflow(&mut connection, "default", &uid, &object).await;
    }
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let url = source.url();
    let import = ["import", "argo-archive", &url, "--server", &server.url];
    let said = run(&[&import[..], &["--verify"]].concat()).await;
    said.prints(1, "2 created, 0 updated, 0 unchanged, 2 refused");
    said.prints(
        1,
        "verified: 2 runs are in the server with the same content, 0 were not",
    );
    said.fails(1, "/ null: its object is not one of Kubernetes");
    said.fails(1, "other: its object has another UID");
    let stored = everything(&server).await;
    assert_eq!(stored.len(), 2);
    for record in &stored {
        let data = record.data.as_ref().unwrap();
        assert_eq!(data.r#type, "argoproj.io/v1alpha1.Workflow");
        let object: Value = serde_json::from_slice(&data.value).unwrap();
        assert_eq!(object["metadata"]["annotations"]["nul"], "a\0b");
    }
    run(&import)
        .await
        .prints(1, "0 created, 0 updated, 2 unchanged");
    let files = [
        "import",
        "tests/fixtures/workflows.json",
        "--server",
        &server.url,
    ];
    run(&files)
        .await
        .prints(0, "0 created, 2 updated, 0 unchanged");

    let uid = text(&workflows[0], "/metadata/uid");
    archive_workflow(&mut connection, "west", uid, &workflows[0]).await;
    let said = run(&import).await;
    said.fails(1, "workflows of several clusters, default, west");
    let west = ["--from-cluster", "west", "--cluster-id", "west"];
    let said = run(&[&import[..], &west].concat()).await;
    said.prints(0, "1 created, 0 updated, 0 unchanged, 0 refused");
    let said = run(&[&import[..], &["--from-cluster", "north"]].concat()).await;
    said.fails(
        1,
        "the archive has no cluster `north`; it has default, west",
    );
    let other = ["import", "kubearchive", &url, "--server", &server.url];
    let said = run(&other).await;
    said.fails(
        1,
        "this is no database of KubeArchive: it has no column `resource.id`",
    );
    server.stop().await;
    connection.close().await.unwrap();
    source.remove().await;
}
