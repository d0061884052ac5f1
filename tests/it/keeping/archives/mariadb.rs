//! The same imports from MariaDB, whose rows have other keys and whose JSON is kept as it was written.

use serde_json::Value;
use sqlx::{Connection as _, MySqlConnection};

use super::{STORED, argo, everything, fixture, kubearchive, says_what_is_refused, text};
use crate::support::{Database, TestServer, mariadb::MariaDb, process::run};

/// What KubeArchive makes.
const KUBEARCHIVE: &str = "
    CREATE TABLE resource (
        uuid char(36) NOT NULL PRIMARY KEY, api_version varchar(256) NOT NULL,
        kind varchar(256) NOT NULL, name varchar(256), namespace varchar(256),
        resource_version varchar(256), created_at timestamp NOT NULL DEFAULT current_timestamp(),
        updated_at timestamp NOT NULL DEFAULT current_timestamp(), cluster_deleted_ts timestamp NULL,
        data json NOT NULL) DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci";
/// What is left after the last of Argo's migrations.
const ARGO: &str = "
    CREATE TABLE argo_archived_workflows (
        uid varchar(128) NOT NULL, name varchar(256) NOT NULL, phase varchar(25) NOT NULL,
        namespace varchar(256) NOT NULL, workflow json NOT NULL,
        startedat timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
        finishedat timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP, clustername varchar(64) NOT NULL,
        instanceid varchar(64) NOT NULL, creationtimestamp timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
        PRIMARY KEY (clustername, uid))";

/// A server with this table, and a connection to it.
async fn source(table: &'static str) -> Option<(MariaDb, MySqlConnection)> {
    let source = MariaDb::start().await?;
    let mut connection = source.connect("runs").await;
    sqlx::raw_sql(table).execute(&mut connection).await.unwrap();
    Some((source, connection))
}

/// Adds a row of these texts, and of the name, the namespace and the JSON of an object.
async fn insert(connection: &mut MySqlConnection, sql: &'static str, of: &[&str], object: &Value) {
    let query = of
        .iter()
        .fold(sqlx::query(sql), |query, text| query.bind(*text));
    let query = query
        .bind(text(object, "/metadata/name"))
        .bind(text(object, "/metadata/namespace"))
        .bind(object.to_string());
    query.execute(connection).await.unwrap();
}

#[tokio::test]
async fn runs_of_kubearchive_are_read_from_mariadb() {
    let Some((source, mut connection)) = source(KUBEARCHIVE).await else {
        return;
    };
    let rows = kubearchive();
    for (uid, kind, object) in &rows {
        let sql = "INSERT INTO resource (uuid, kind, api_version, name, namespace, data) VALUES (?, ?, ?, ?, ?, ?)";
        let of = [uid, *kind, text(object, "/apiVersion")];
        insert(&mut connection, sql, &of, object).await;
    }
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let url = source.url();
    let import = ["import", "kubearchive", &url, "--server", &server.url];
    let said = run(&[&import[..], &["--verify"]].concat()).await;
    said.prints(1, "15 created, 0 updated, 0 unchanged, 5 refused");
    said.prints(
        1,
        "verified: 15 runs are in the server with the same content, 0 were not",
    );
    says_what_is_refused(&said);
    let stored = everything(&server).await;
    assert_eq!(stored.len(), STORED);
    let texts: Vec<String> = rows
        .iter()
        .map(|(_, _, object)| object.to_string())
        .collect();
    let data = |record: &hindsight_proto::v1alpha2::Record| record.data.clone().unwrap().value;
    for record in &stored {
        let data = data(record);
        assert!(
            texts.iter().any(|text| text.as_bytes() == data),
            "{record:?}"
        );
    }

    // More than a page, in the order of UIDs.
    let many = "INSERT INTO resource (uuid, api_version, kind, name, namespace, data) \
        SELECT uid, 'tekton.dev/v1', 'TaskRun', uid, 'ci', JSON_OBJECT('apiVersion', 'tekton.dev/v1', \
            'kind', 'TaskRun', 'metadata', JSON_OBJECT('name', uid, 'namespace', 'ci', 'uid', uid)) \
        FROM (SELECT CONCAT('10000000-0000-4000-8000-', LPAD(seq, 12, '0')) AS uid FROM seq_1_to_600) AS many";
    sqlx::raw_sql(many).execute(&mut connection).await.unwrap();
    let again = run(&import).await;
    again.prints(1, "600 created, 0 updated, 15 unchanged, 5 refused");

    let other = ["import", "argo-archive", &url, "--server", &server.url];
    run(&other).await.fails(
        1,
        "it has no column `argo_archived_workflows.uid`; give another database",
    );
    let wrong = url.replace("p%40ss", "pass");
    let said = run(&["import", "kubearchive", &wrong, "--dry-run"]).await;
    said.fails(1, "the database that is imported refuses: ");
    assert!(
        !said.err.contains("w%3Ad") && !said.err.contains("w:d"),
        "{said:?}"
    );
    server.stop().await;
    connection.close().await.unwrap();
}

#[tokio::test]
async fn workflows_of_argo_are_read_from_mariadb() {
    let Some((source, mut connection)) = source(ARGO).await else {
        return;
    };
    let rows = argo("a\0b");
    for (cluster, (uid, object)) in rows
        .iter()
        .map(|row| ("default", row))
        .chain([("west", &rows[0])])
    {
        let sql = "INSERT INTO argo_archived_workflows \
                   (clustername, uid, name, namespace, workflow, instanceid, phase) \
                   VALUES (?, ?, ?, ?, ?, '', 'Succeeded')";
        insert(&mut connection, sql, &[cluster, uid], object).await;
    }
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let url = source.url();
    let import = ["import", "argo-archive", &url, "--server", &server.url];
    run(&import)
        .await
        .fails(1, "workflows of several clusters, default, west");
    let default = [&import[..], &["--from-cluster", "default"]].concat();
    let said = run(&default).await;
    said.prints(1, "2 created, 0 updated, 0 unchanged, 2 refused");
    said.fails(1, "/ null: its object is not one of Kubernetes");
    said.fails(1, "other: its object has another UID");
    let stored = everything(&server).await;
    assert_eq!(stored.len(), fixture("workflows.json").len());
    for record in &stored {
        let data = record.data.as_ref().unwrap();
        assert_eq!(data.r#type, "argoproj.io/v1alpha1.Workflow");
        let object: Value = serde_json::from_slice(&data.value).unwrap();
        assert_eq!(object["metadata"]["annotations"]["nul"], "a\0b");
    }
    run(&default)
        .await
        .prints(1, "0 created, 0 updated, 2 unchanged");
    server.stop().await;
    connection.close().await.unwrap();
}
