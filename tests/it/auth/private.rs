//! Files that hold payloads, keys or names are their owner's alone.

use std::{
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Stdio,
};

use crate::support::process::{hindsight, run};

fn mode(path: &Path) -> u32 {
    let found =
        std::fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    found.permissions().mode() & 0o777
}

#[tokio::test]
async fn the_database_its_log_backups_and_the_audit_log_are_their_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (db, audit) = (
        format!("sqlite:{}", at("h.db").display()),
        at("audit.jsonl"),
    );
    let mut server = hindsight()
        .args([
            "serve",
            "--db",
            &db,
            "--listen",
            "127.0.0.1:0",
            "--metrics-listen",
            "off",
        ])
        .args(["--audit-log", audit.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It stays open: the server goes on writing to it.
    let mut log = BufReader::new(server.stderr.take().unwrap()).lines();
    let serving = log.any(|line| line.unwrap().contains("serving"));
    assert!(serving, "the server starts");
    for name in ["h.db", "h.db-wal", "h.db-shm", "audit.jsonl"] {
        assert_eq!(mode(&at(name)), 0o600, "{name}");
    }
    let backup = at("backup.db");
    let said = run(&["backup", "--db", &db, "--to", backup.to_str().unwrap()]).await;
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(mode(&backup), 0o600);
    server.kill().unwrap();
    server.wait().unwrap();
}
