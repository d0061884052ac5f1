//! Logs of a copy: the same lines, times and digests, and what is said where they cannot be.

use super::{Depots, Event, Logs, Outcome, Verify, copied, copy};
use crate::{
    conformance::{
        World,
        backends::{Database, PostgresDatabase, SqliteFile, execute},
        fixtures::result,
        logs::{append, key, lines, read, store},
        tests::postgres_server,
    },
    seam::{Change, LogKey, LogKind, LogSource, LogStore, StoredLog},
};
use hindsight_filter::model::RecordName;
use hindsight_logs::{MAX_LINE, Selection};
use jiff::Timestamp;

const RUN: &str = "p/results/r/records/run";
const OTHER: &str = "p/results/r/records/other";

/// What is stored of the logs of a run: which source, when it began and ended, its digest and its text.
async fn all(
    world: &World,
    run: &str,
) -> Vec<(LogKey, Vec<Option<i64>>, Option<Vec<u8>>, Vec<u8>)> {
    let logs = store(world);
    let run: RecordName = run.parse().unwrap();
    let mut all = Vec::new();
    for log in logs.logs(&run).await.unwrap() {
        let StoredLog {
            key,
            first_us,
            last_us,
            lines,
            holes,
            sha256,
            ..
        } = log;
        let (text, _) = read(&*logs, log.row, Selection::default()).await;
        all.push((
            key,
            vec![first_us, last_us, Some(lines), Some(holes)],
            sha256,
            text,
        ));
    }
    all.sort();
    all
}

async fn seal(logs: &dyn LogStore, key: &LogKey) {
    logs.seal_log(key, Timestamp::UNIX_EPOCH).await.unwrap();
}

async fn upload(logs: &dyn LogStore, run: &str, text: &str) {
    let key = LogKey {
        run: run.parse().unwrap(),
        kind: LogKind::Uploading,
        source: LogSource::default(),
    };
    append(logs, &key, vec![lines(0, text)]).await.unwrap();
    logs.replace_upload(&key, Timestamp::UNIX_EPOCH)
        .await
        .unwrap();
}

async fn given(world: &World) {
    world
        .given([Change::InsertResult(result("p/results/r", 0))])
        .await;
    let logs = store(world);
    let long = format!("{}\nend", "x".repeat(MAX_LINE + 10));
    let step = key(RUN, "step-build");
    let many: String = (0..200_000).map(|at| format!("line {at}\n")).collect();
    append(&*logs, &step, vec![lines(0, &many)]).await.unwrap();
    append(&*logs, &step, vec![lines(200_000, &long)])
        .await
        .unwrap();
    seal(&*logs, &step).await;
    seal(&*logs, &key(RUN, "step-empty")).await;
    append(&*logs, &key(RUN, "step-open"), vec![lines(0, "a\nb\n")])
        .await
        .unwrap();
    upload(&*logs, OTHER, "uploaded\n").await;
}

async fn without_logs(from: &str, to: &str) -> Outcome {
    let mut tell = |event| assert!(!matches!(event, Event::Stage { what: "logs", .. }));
    let (depots, what) = (Depots::default(), (Logs::No, Verify::Yes));
    copy(from, to, &depots, what, &mut tell).await.unwrap()
}

async fn holds_the_same(from: &str, to: &str) {
    let source = World::open(from).await;
    given(&source).await;
    without_logs(from, to).await;
    let target = World::open(to).await;
    assert_eq!(all(&target, RUN).await, vec![]);
    // As after a copy that was cut off.
    let (ours, theirs) = (store(&source), store(&target));
    append(
        &*theirs,
        &key(RUN, "step-build"),
        vec![lines(0, "line 0\nline 1\n")],
    )
    .await
    .unwrap();
    let (outcome, said) = copied(from, to).await;
    assert_eq!(said, [""; 0]);
    assert_eq!((outcome.logs.created, outcome.logs.updated), (3, 1));
    for run in [RUN, OTHER] {
        assert_eq!(all(&target, run).await, all(&source, run).await);
    }
    let (outcome, said) = copied(from, to).await;
    assert_eq!(
        (said, outcome.logs.unchanged, outcome.log_bytes),
        (vec![], 4, 0)
    );
    append(&*ours, &key(RUN, "step-open"), vec![lines(2, "c\n")])
        .await
        .unwrap();
    seal(&*ours, &key(RUN, "step-open")).await;
    let (outcome, said) = copied(from, to).await;
    assert_eq!(
        (said, outcome.logs.updated, outcome.log_bytes),
        (vec![], 1, 2)
    );
    assert_eq!(all(&target, RUN).await, all(&source, RUN).await);
    source.maintenance.close().await;
    target.maintenance.close().await;
}

#[tokio::test]
async fn logs_are_copied_and_a_copy_goes_on_where_one_stopped() {
    let (a, b) = (SqliteFile::fresh().await, SqliteFile::fresh().await);
    holds_the_same(&a.url(), &b.url()).await;
    let Some(server) = postgres_server() else {
        return;
    };
    let (c, d) = (
        PostgresDatabase::fresh(&server).await,
        SqliteFile::fresh().await,
    );
    holds_the_same(&c.url(), &d.url()).await;
    let (e, f) = (
        SqliteFile::fresh().await,
        PostgresDatabase::fresh(&server).await,
    );
    holds_the_same(&e.url(), &f.url()).await;
    c.remove().await;
    f.remove().await;
}

#[tokio::test]
async fn another_log_of_the_same_name_is_kept_and_said() {
    let (from, to) = (SqliteFile::fresh().await, SqliteFile::fresh().await);
    let (source, target) = (World::open(&from.url()).await, World::open(&to.url()).await);
    given(&source).await;
    target
        .given([Change::InsertResult(result("p/results/r", 0))])
        .await;
    let logs = store(&target);
    append(&*logs, &key(RUN, "step-build"), vec![lines(0, "other\n")])
        .await
        .unwrap();
    append(&*logs, &key(RUN, "step-open"), vec![lines(0, "a\nother\n")])
        .await
        .unwrap();
    seal(&*logs, &key(RUN, "step-open")).await;
    upload(&*logs, OTHER, "other\n").await;
    let kept = all(&target, OTHER).await;
    let (outcome, said) = copied(&from.url(), &to.url()).await;
    assert_eq!((outcome.logs.created, outcome.logs.refused), (1, 3));
    let said: Vec<_> = said
        .iter()
        .filter(|said| said.contains("another"))
        .collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(
        said[0].starts_with("refused p/results/r/logs/run pod/step-build/0: "),
        "{said:?}"
    );
    assert_eq!(all(&target, OTHER).await, kept);
    source.maintenance.close().await;
    target.maintenance.close().await;
}

#[tokio::test]
async fn a_damaged_log_is_refused_and_the_others_are_copied() {
    let (from, to) = (SqliteFile::fresh().await, SqliteFile::fresh().await);
    let source = World::open(&from.url()).await;
    given(&source).await;
    source.maintenance.close().await;
    let spoil = "DELETE FROM log_chunks WHERE first_line > 0 AND lines > 10";
    execute(&from.url(), spoil, "").await;
    let (outcome, said) = copied(&from.url(), &to.url()).await;
    assert_eq!((outcome.logs.created, outcome.logs.refused), (3, 1));
    assert!(said[0].contains("is not there"), "{said:?}");
}
