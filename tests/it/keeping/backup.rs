//! `hindsight backup` beside a server under load, `hindsight restore`, and PostgreSQL's own tools
//! as docs/operate.md shows them.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use hindsight_proto::v1alpha2 as pb;

use crate::support::{
    Database, TestServer,
    database::{postgres_or_skip, variable},
    process::{Said, run},
};

async fn records(server: &TestServer) -> Vec<pb::Record> {
    let request = pb::ListRecordsRequest {
        parent: "-/results/-".to_owned(),
        page_size: 10_000,
        ..pb::ListRecordsRequest::default()
    };
    let reply = server.rpc().list_records(request).await.unwrap();
    reply.into_inner().records
}

async fn backup(db: &str, to: &Path) -> Said {
    run(&["backup", "--db", db, "--to", &to.display().to_string()]).await
}

async fn restore(from: &Path, db: &str) -> Said {
    run(&["restore", "--from", &from.display().to_string(), "--db", db]).await
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_beside_writers_is_whole_and_restores_to_what_was_there() {
    let database = Database::sqlite();
    let server = Arc::new(TestServer::start(&database).await);
    server.given_result("ci/results/r").await;
    let (stop, count) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let writing = tokio::spawn({
        let (server, stop, count) = (Arc::clone(&server), Arc::clone(&stop), Arc::clone(&count));
        async move {
            while !stop.load(Ordering::Relaxed) {
                let at = count.load(Ordering::Relaxed);
                let name = format!("ci/results/r/records/x{at}");
                let value = format!("{{\"n\": {at}, \"text\": \"{}\"}}", "y".repeat(5000));
                let data_type = "tekton.dev/v1.TaskRun";
                let stored = server.create_record(&name, data_type, value.as_bytes());
                stored.await.unwrap();
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("copy.db");
    while count.load(Ordering::Relaxed) < 20 {
        tokio::task::yield_now().await;
    }
    let before = count.load(Ordering::Relaxed);
    let said = backup(&database.url(), &to).await;
    said.prints(0, "its rows are sound");
    stop.store(true, Ordering::Relaxed);
    writing.await.unwrap();
    assert_eq!(files(folder.path()), std::slice::from_ref(&to));

    let again = backup(&database.url(), &to).await;
    again.fails(1, "exists, and nothing is overwritten");
    let own = PathBuf::from(database.url().trim_start_matches("sqlite:"));
    let said = restore(&to, &database.url()).await;
    assert_eq!(said.code, 1, "a live database is not overwritten: {said:?}");
    assert!(
        said.err.contains(&format!("`{}` exists", own.display())),
        "{said:?}"
    );

    let place = folder.path().join("restored.db");
    let url = format!("sqlite:{}", place.display());
    let said = restore(&to, &url).await;
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(run(&["fsck", "--db", &url]).await.code, 0);
    let all = records(&server).await;
    let restored = Database::Sqlite { folder };
    std::fs::rename(&place, restored.url().trim_start_matches("sqlite:")).unwrap();
    let second = TestServer::start(&restored).await;
    let kept = records(&second).await;
    assert!(kept.len() >= before && kept.len() <= all.len());
    assert_eq!(
        kept,
        all[all.len() - kept.len()..],
        "the same rows, newest first"
    );
    second.stop().await;
    Arc::into_inner(server).unwrap().stop().await;
}

#[tokio::test]
async fn a_damaged_or_foreign_backup_is_not_restored_and_leaves_nothing() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let value = br#"{"kind":"TaskRun","metadata":{"name":"first"}}"#;
    server
        .given_record("ci/results/r/records/x", "tekton.dev/v1.TaskRun", value)
        .await;
    let folder = tempfile::tempdir().unwrap();
    let good = folder.path().join("good.db");
    assert_eq!(backup(&database.url(), &good).await.code, 0);
    server.stop().await;
    let bad = folder.path().join("bad.db");
    let to = folder.path().join("new.db");
    let url = format!("sqlite:{}", to.display());
    let whole = std::fs::read(&good).unwrap();
    let half = whole[..whole.len() / 2].to_vec();
    for (bytes, why) in [
        (b"a letter ".repeat(999), "is not a SQLite database"),
        (half, "damaged"),
    ] {
        std::fs::write(&bad, bytes).unwrap();
        let said = restore(&bad, &url).await;
        said.fails(1, why);
    }
    // A sound file whose rows are not.
    std::fs::write(&bad, &whole).unwrap();
    let pool = sqlx::SqlitePool::connect(&format!("sqlite:{}", bad.display())).await;
    let pool = pool.unwrap();
    let spoil = "DELETE FROM bodies";
    sqlx::query(spoil).execute(&pool).await.unwrap();
    pool.close().await;
    let said = restore(&bad, &url).await;
    said.fails(1, "body-missing: ci/results/r/records/x");
    assert!(
        said.err.contains("is damaged; nothing was restored"),
        "{said:?}"
    );
    assert_eq!(files(folder.path()), [bad, good], "nothing was left");
}

#[tokio::test]
async fn postgres_is_backed_up_by_its_own_tools_as_the_document_shows() {
    let Some(database) = postgres_or_skip().await else {
        return;
    };
    let server = TestServer::start(&database).await;
    for at in 0..20 {
        let name = format!("ci/results/r/records/x{at}");
        let value = format!("{{\"n\": {at}, \"text\": \"{}\"}}", "y".repeat(3000));
        server
            .given_record(&name, "tekton.dev/v1.TaskRun", value.as_bytes())
            .await;
    }
    let said = backup(&database.url(), Path::new("/nowhere/x.db")).await;
    said.fails(1, "pg_dump");

    let folder = tempfile::tempdir().unwrap();
    let restored = Database::postgres().await.unwrap();
    let bin = PathBuf::from(variable("HINDSIGHT_TEST_PG_BIN").unwrap());
    let document = include_str!("../../../docs/operate.md");
    for tool in ["pg_dump", "pg_restore"] {
        let line = document.lines().find(|line| line.starts_with(tool));
        let line = line.expect("the document shows the tool");
        let words = line.split_whitespace().skip(1).map(|word| {
            word.replace(
                "postgres://hindsight:secret@127.0.0.1:5432/hindsight",
                &database.url(),
            )
            .replace(
                "postgres://hindsight:secret@127.0.0.1:5432/restored",
                &restored.url(),
            )
        });
        let mut command = Command::new(bin.join(tool));
        let output = command.args(words).current_dir(folder.path()).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let said = run(&["fsck", "--db", &restored.url()]).await;
    assert_eq!(said.code, 0, "{said:?}");
    let second = TestServer::start(&restored).await;
    assert_eq!(records(&second).await, records(&server).await);
    server.stop().await;
    second.stop().await;
    database.remove().await;
    restored.remove().await;
}
