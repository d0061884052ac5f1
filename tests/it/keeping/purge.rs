//! `hindsight purge` beside a server: what it prints, and its exit codes.

use crate::support::{
    Database, TestServer, each_database,
    process::{Said, run},
};

async fn purge(database: &Database, more: &[&str]) -> Said {
    let url = database.url();
    let mut arguments = vec!["purge", "--db", &url];
    arguments.extend(more);
    run(&arguments).await
}

#[tokio::test]
async fn what_is_purged_is_counted_confirmed_and_gone() {
    for database in each_database().await {
        let server = TestServer::start(&database).await;
        for (name, value) in [
            ("a/results/r/records/one", br#"{"token":"one"}"#),
            ("a/results/r/records/two", br#"{"token":"two"}"#),
            ("b/results/r/records/one", br#"{"token":"one"}"#),
        ] {
            server
                .given_record(name, "tekton.dev/v1.TaskRun", value)
                .await;
        }
        let said = purge(&database, &["--parent", "a", "--dry-run"]).await;
        assert_eq!(said.code, 0, "{said:?}");
        assert_eq!(said.out, "would purge 1 result, 2 records and 0 objects\n");

        let said = purge(&database, &["--parent", "a"]).await;
        assert_eq!(said.code, 2, "nobody can confirm: {said:?}");
        assert!(said.err.contains("add --yes to go on"), "{said:?}");
        let one = ["--record", "a/results/r/records/one", "--yes"];
        let said = purge(&database, &one).await;
        assert!(said.code == 0 || said.err.contains("is in use"), "{said:?}");
        assert_eq!(said.out, "purged 0 results, 1 record and 0 objects\n");
        assert!(said.err.contains("backups"), "{said:?}");
        server.stop().await;

        let said = purge(&database, &["--parent", "a", "--yes"]).await;
        assert_eq!(said.code, 0, "{said:?}");
        assert_eq!(said.out, "purged 1 result, 1 record and 0 objects\n");
        let said = purge(&database, &["--parent", "a", "--yes"]).await;
        said.fails(3, "there is nothing of the parent `a`");
        let said = purge(&database, &["--parent", "b", "--dry-run"]).await;
        assert_eq!(said.out, "would purge 1 result, 1 record and 0 objects\n");
        database.remove().await;
    }
}

#[tokio::test]
async fn a_purged_payload_is_not_in_the_file_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::Sqlite { folder };
    let server = TestServer::start(&database).await;
    // Nothing that compressing would change.
    let secret: Vec<u8> = (0..6000_u32)
        .flat_map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    server
        .given_record("a/results/r/records/x", "bytes", &secret)
        .await;
    server.stop().await;
    let Database::Sqlite { folder } = &database else {
        return;
    };
    let has = || {
        let files = std::fs::read_dir(folder.path()).unwrap();
        let mut bytes = files.flat_map(|file| std::fs::read(file.unwrap().path()).unwrap());
        let all: Vec<u8> = bytes.by_ref().collect();
        all.windows(64).any(|part| part == &secret[..64])
    };
    assert!(has(), "it is stored as it is");
    let said = purge(&database, &["--result", "a/results/r", "--yes"]).await;
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!has());
    database.remove().await;
}

#[tokio::test]
async fn a_purge_is_in_the_audit_log_before_and_after_it_or_does_nothing() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    server
        .given_record("a/results/r/records/x", "bytes", b"1")
        .await;
    server.stop().await;
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.jsonl");
    let at = log.display().to_string();
    let purged = async |more: &[&str]| purge(&database, &[&["--parent", "a"], more].concat()).await;
    let said = purged(&["--audit-log", "/nonexistent/audit.jsonl", "--yes"]).await;
    said.fails(1, "cannot write the audit log");
    let said = purged(&["--audit-log", "/dev/full", "--yes"]).await;
    said.fails(1, "cannot write the audit log");
    let said = purged(&["--audit-log", &at, "--dry-run"]).await;
    assert_eq!(said.out, "would purge 1 result, 1 record and 0 objects\n");
    assert!(!log.exists(), "nothing was done");
    let said = purged(&["--audit-log", &at, "--yes"]).await;
    assert_eq!(said.code, 0, "{said:?}");
    let text = std::fs::read_to_string(&log).unwrap();
    let mut lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for line in &mut lines {
        let time = line.as_object_mut().unwrap().remove("time").unwrap();
        time.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    }
    let uid = std::os::unix::fs::MetadataExt::uid(&log.metadata().unwrap());
    let wanted = ["PENDING", "OK"].map(|outcome| {
        serde_json::json!({"caller": format!("uid:{uid}"), "verb": "purge",
            "name": "a/results/-", "outcome": outcome})
    });
    assert_eq!(lines, wanted);
    database.remove().await;
}

#[tokio::test]
async fn it_must_be_said_what_is_purged() {
    for wrong in [
        &["--yes"][..],
        &["--parent", "a", "--result", "a/results/r"],
    ] {
        let mut arguments = vec!["purge", "--db", "sqlite:x.db"];
        arguments.extend(wrong);
        let said = run(&arguments).await;
        assert_eq!(said.code, 2, "{said:?}");
    }
    let said = run(&["purge", "--db", "sqlite:x.db", "--result", "a/b"]).await;
    assert_eq!(said.code, 2, "{said:?}");
}
