//! `hindsight fsck` beside a server: what it prints, and its exit codes.

use serde_json::Value;
use sqlx::Executor as _;

use crate::support::{
    Database, TestServer, each_database,
    process::{Said, run},
};

/// Runs what the database does not refuse.
async fn tamper(database: &Database, sql: &str) {
    let sql = sqlx::AssertSqlSafe(sql.to_owned());
    match database {
        Database::Sqlite { folder } => {
            let file = format!("sqlite:{}", folder.path().join("t.db").display());
            let pool = sqlx::SqlitePool::connect(&file).await.unwrap();
            pool.execute(sql).await.unwrap();
            pool.close().await;
        }
        Database::Postgres { .. } => {
            let pool = sqlx::PgPool::connect(&database.url()).await.unwrap();
            pool.execute(sql).await.unwrap();
            pool.close().await;
        }
    }
}

async fn fsck(database: &Database, more: &[&str]) -> Said {
    let url = database.url();
    let mut arguments = vec!["fsck", "--db", &url];
    arguments.extend(more);
    run(&arguments).await
}

#[tokio::test]
async fn exit_codes_and_documents_say_whether_a_database_is_damaged() {
    for database in each_database().await {
        let server = TestServer::start(&database).await;
        let value = br#"{"kind":"TaskRun","metadata":{"name":"first"}}"#;
        for id in ["one", "two", "three"] {
            let name = format!("ci/results/r/records/{id}");
            server
                .given_record(&name, "tekton.dev/v1.TaskRun", value)
                .await;
        }
        let said = fsck(&database, &[]).await;
        assert_eq!(said.code, 0, "{said:?}");
        assert!(
            said.out.contains(": clean in ") && said.out.contains("3 payloads of 138 bytes"),
            "{said:?}"
        );

        let spoil = "UPDATE records SET object_name = 'other' WHERE id = 'two'";
        tamper(&database, spoil).await;
        let said = fsck(&database, &[]).await;
        assert_eq!(said.code, 6, "{said:?}");
        let wanted = "column-differs: ci/results/r/records/two: the column `object_name` holds \
                      `other`, and the payload gives `first`\n    copy the database";
        assert!(said.out.starts_with(wanted), "{said:?}");
        assert!(said.out.contains("damaged (1 column-differs)"), "{said:?}");

        let said = fsck(&database, &["-o", "json"]).await;
        assert_eq!(said.code, 6, "{said:?}");
        let report: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(report["clean"], false);
        assert_eq!(report["checked"]["records"], 3);
        assert_eq!(report["found"]["column-differs"], 1);
        let finding = &report["findings"][0];
        assert_eq!(finding["kind"], "column-differs");
        assert_eq!(finding["of"], "ci/results/r/records/two");
        let said = fsck(&database, &["--quick"]).await;
        assert_eq!(said.code, 0, "columns are not looked at: {said:?}");
        server.stop().await;
        database.remove().await;
    }
}

#[tokio::test]
async fn what_cannot_be_looked_at_has_exit_codes_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let missing = format!("sqlite:{}", folder.path().join("none.db").display());
    let said = run(&["fsck", "--db", &missing]).await;
    said.fails(1, "there is no file `");
    assert!(!folder.path().join("none.db").exists());
    let text = folder.path().join("text.db");
    std::fs::write(&text, "This is a letter. ".repeat(1000)).unwrap();
    let said = run(&["fsck", "--db", &format!("sqlite:{}", text.display())]).await;
    said.fails(1, "is not a SQLite database");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    let away = format!("postgres://me:pa55word@127.0.0.1:{port}/x");
    let said = run(&["fsck", "--db", &away]).await;
    assert_eq!(said.code, 5, "{said:?}");
    assert!(!said.err.contains("pa55word"), "{said:?}");
    let said = run(&["fsck", "--db", "mysql:x"]).await;
    assert_eq!(said.code, 2, "{said:?}");
}
