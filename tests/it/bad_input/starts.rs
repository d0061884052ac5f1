//! A server that is given what it cannot start with says so.

use crate::support::{Database, database::postgres_or_skip, process::run};

async fn fails(arguments: &[&str], code: i32, says: &[&str]) {
    let said = run(arguments).await;
    assert_eq!(said.code, code, "{arguments:?}: {said:?}");
    for text in says {
        assert!(
            said.err.contains(text),
            "{arguments:?}: `{}` does not say `{text}`",
            said.err
        );
    }
}

#[tokio::test]
async fn every_problem_of_the_configuration_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("h.toml");
    std::fs::write(&file, "listne = \"127.0.0.1:1\"\nscan_budget = \"many\"\n").unwrap();
    let file = file.display().to_string();
    fails(
        &[
            "serve",
            "--config",
            &file,
            "--db",
            "mysql://x",
            "--auth",
            "magic",
        ],
        2,
        &["listne", "listen", "scan_budget", "mysql://x", "magic"],
    )
    .await;
    fails(
        &["serve", "--listen", "0.0.0.0:0"],
        2,
        &["0.0.0.0:0", "allow_unauthenticated_remote"],
    )
    .await;
}

#[tokio::test]
async fn a_database_that_is_not_there_or_not_ours_is_refused() {
    fails(
        &[
            "serve",
            "--db",
            "postgres://u:secret@127.0.0.1:1/x",
            "--listen",
            "127.0.0.1:0",
        ],
        5,
        &["127.0.0.1:1"],
    )
    .await;
    let said = run(&["migrate", "--db", "postgres://u:secret@127.0.0.1:1/x"]).await;
    assert!(!said.err.contains("secret"), "{}", said.err);

    let folder = tempfile::tempdir().unwrap();
    let db = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    std::fs::write(
        folder.path().join("noise.db"),
        b"not a database, but long enough to look at",
    )
    .unwrap();
    fails(&["migrate", "--db", &db("noise.db")], 1, &["noise.db"]).await;
    fails(
        &["migrate", "--db", &db("no/such/folder.db")],
        1,
        &["no/such"],
    )
    .await;
    fails(
        &[
            "migrate",
            "--db",
            &format!("sqlite:{}", folder.path().display()),
        ],
        1,
        &[],
    )
    .await;

    let foreign = folder.path().join("foreign.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&foreign)
        .create_if_missing(true);
    let mut connection = <sqlx::SqliteConnection as sqlx::Connection>::connect_with(&options)
        .await
        .unwrap();
    sqlx::Executor::execute(&mut connection, "CREATE TABLE users (id INTEGER)")
        .await
        .unwrap();
    sqlx::Connection::close(connection).await.unwrap();
    fails(&["migrate", "--db", &db("foreign.db")], 1, &["users"]).await;
}

#[tokio::test]
async fn a_foreign_postgres_database_is_left_alone() {
    let Some(database) = postgres_or_skip().await else {
        return;
    };
    let mut connection = <sqlx::PgConnection as sqlx::Connection>::connect(&database.url())
        .await
        .unwrap();
    sqlx::Executor::execute(&mut connection, "CREATE TABLE users (id INTEGER)")
        .await
        .unwrap();
    fails(&["migrate", "--db", &database.url()], 1, &["users"]).await;
    sqlx::Connection::close(connection).await.unwrap();
    database.remove().await;
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let database = Database::sqlite();
    fails(
        &[
            "serve",
            "--db",
            &database.url(),
            "--listen",
            &address,
            "--metrics-listen",
            "off",
        ],
        1,
        &[&address, "--listen", "in use"],
    )
    .await;
}
