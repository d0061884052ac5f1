//! Logs: what was appended is there once, in order, and goes with its run.

use std::sync::Arc;

use hindsight_logs::{Lines, Reader, Selection, Window, ends};
use jiff::Timestamp;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::{
    World,
    fixtures::{Dice, record, record_name, result, result_name},
};
use crate::seam::{
    Change, Error, LogAppend, LogChunks, LogKey, LogKind, LogSource, LogStore, StoredLog,
};

const RUN: &str = "p/results/r/records/run";

pub(crate) fn store(world: &World) -> Arc<dyn LogStore> {
    Arc::clone(world.logs.as_ref().expect("the store keeps logs"))
}

pub(crate) fn key(run: &str, container: &str) -> LogKey {
    LogKey {
        run: record_name(run),
        kind: LogKind::Container,
        source: LogSource {
            pod: "pod".to_owned(),
            container: container.to_owned(),
            restart: 0,
        },
    }
}

pub(super) fn now() -> Timestamp {
    Timestamp::from_second(1_700_000_000).expect("it is a time")
}

/// Lines of a text, of which each is a microsecond later than the one before.
pub(crate) fn lines(first: i64, text: &str) -> Lines {
    let times = (first..).take(ends(text.as_bytes()).count()).collect();
    Lines::new(first, text.to_owned().into(), times, Vec::new()).expect("they are lines")
}

pub(crate) async fn append(
    logs: &dyn LogStore,
    key: &LogKey,
    parts: Vec<Lines>,
) -> Result<StoredLog, Error> {
    let append = LogAppend {
        key: key.clone(),
        parts,
    };
    let mut outcomes = logs.append_logs(&[append], now()).await;
    outcomes.pop().expect("one append has one outcome")
}

/// What a selection gives: the text, and the numbers of the lines.
pub(crate) async fn read(
    logs: &dyn LogStore,
    row: i64,
    selection: Selection,
) -> (Vec<u8>, Vec<i64>) {
    let chunks = LogChunks::new(logs, row);
    let mut reader = Reader::open(&chunks, selection).await.unwrap();
    let (mut text, mut numbers) = (Vec::new(), Vec::new());
    while let Some(lines) = reader.next(&chunks).await.unwrap() {
        text.extend_from_slice(&lines.text);
        numbers.extend(lines.first..lines.end());
    }
    (text, numbers)
}

async fn given_result(world: &World, name: &str) {
    world.given([Change::InsertResult(result(name, 0))]).await;
}

pub(super) async fn lines_are_read_back_whatever_the_appends_were(world: World) {
    given_result(&world, "p/results/r").await;
    let logs = store(&world);
    let mut dice = Dice::new(7);
    for (at, most) in [3, 40, 20_000].into_iter().enumerate() {
        let key = key(RUN, &format!("step-{at}"));
        let (mut all, mut next, mut stored) = (String::new(), 0, None);
        for _ in 0..60 {
            let mut text = String::new();
            for _ in 0..dice.below(4) + 1 {
                text.push_str(&"word ".repeat(dice.below(most)));
                text.push('\n');
            }
            // Now and then a line has no end, and the next one is another all the same.
            if dice.once_in(9) {
                text.push_str("cut");
            }
            let part = lines(next, &text);
            next = part.end();
            all.push_str(&text);
            stored = Some(append(&*logs, &key, vec![part]).await.unwrap());
        }
        let stored = stored.expect("something was appended");
        assert_eq!(
            (stored.lines, stored.bytes),
            (next, i64::try_from(all.len()).unwrap())
        );
        assert_eq!((stored.first_us, stored.last_us), (Some(0), Some(next - 1)));
        let found = logs.log(&key).await.unwrap();
        assert_eq!(found.as_ref(), Some(&stored));
        let whole = read(&*logs, stored.row, Selection::default()).await;
        assert_eq!(whole, (all.clone().into_bytes(), (0..next).collect()));
        let selection = |first_line, tail, since, until| Selection {
            first_line,
            tail,
            window: Window { since, until },
        };
        let middle = next / 2;
        for (selection, expected) in [
            (selection(middle, 0, i64::MIN, i64::MAX), middle..next),
            (selection(0, 5, i64::MIN, i64::MAX), next - 5..next),
            (selection(0, 0, middle, middle + 7), middle..middle + 7),
            (selection(0, 3, i64::MIN, middle), middle - 3..middle),
            (selection(next, 0, i64::MIN, i64::MAX), 0..0),
        ] {
            let (_, numbers) = read(&*logs, stored.row, selection).await;
            assert_eq!(numbers, expected.collect::<Vec<_>>(), "{selection:?}");
        }
    }
    let all = logs.logs(&record_name(RUN)).await.unwrap();
    assert_eq!(all.len(), 3);
    assert!(all.iter().all(|log| log.stored_bytes > 0));
    assert_eq!(
        logs.logs(&record_name("p/results/r/records/other"))
            .await
            .unwrap(),
        []
    );
}

pub(super) async fn what_is_stored_already_is_passed_over_and_a_gap_is_refused(world: World) {
    let logs = store(&world);
    let key = key(RUN, "step");
    let refused = append(&*logs, &key, vec![lines(0, "a\n")]).await;
    assert!(matches!(refused, Err(Error::Missing(_))), "{refused:?}");
    given_result(&world, "p/results/r").await;
    let refused = append(&*logs, &key, vec![lines(1, "b\n")]).await;
    assert!(
        matches!(refused, Err(Error::OutOfSequence { next: 0, given: 1 })),
        "{refused:?}"
    );
    append(&*logs, &key, vec![lines(0, "a\nb\n")])
        .await
        .unwrap();
    let again = append(&*logs, &key, vec![lines(0, "a\nb\n")])
        .await
        .unwrap();
    assert_eq!(again.lines, 2);
    let more = append(&*logs, &key, vec![lines(1, "B\nc\n"), lines(3, "d\n")]).await;
    assert_eq!(more.unwrap().lines, 4);
    let refused = append(&*logs, &key, vec![lines(5, "f\n")]).await;
    assert!(
        matches!(refused, Err(Error::OutOfSequence { next: 4, given: 5 })),
        "{refused:?}"
    );
    // Another writer has numbered other lines alike.
    let other = Lines {
        times: vec![100, 101],
        ..lines(3, "x\ny\n")
    };
    let refused = append(&*logs, &key, vec![other]).await;
    assert!(matches!(refused, Err(Error::OtherLine(3))), "{refused:?}");
    let row = logs.log(&key).await.unwrap().unwrap().row;
    let (text, _) = read(&*logs, row, Selection::default()).await;
    assert_eq!(text, b"a\nb\nc\nd\n");
}

/// Writers of the same lines, each in steps of its own, beside writers of other sources.
pub(super) async fn two_writers_of_one_log_do_not_interleave(world: World) {
    given_result(&world, "p/results/r").await;
    let replicas = world.replicas().await;
    let all: Arc<Vec<String>> = Arc::new((0..200).map(|at| format!("line {at}\n")).collect());
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4_usize {
        let logs = store(&replicas.0[writer % replicas.0.len()]);
        let all = Arc::clone(&all);
        writers.spawn(async move {
            let (shared, own) = (key(RUN, "shared"), key(RUN, &format!("own-{writer}")));
            let mut at = 0;
            while at < all.len() {
                let step = (writer + 1) * 3;
                let end = all.len().min(at + step);
                let part = lines(i64::try_from(at).unwrap(), &all[at..end].concat());
                let both = [&shared, &own].map(|key| LogAppend {
                    key: key.clone(),
                    parts: vec![part.clone()],
                });
                for outcome in logs.append_logs(&both, now()).await {
                    let stored = outcome.unwrap();
                    assert!(stored.lines >= i64::try_from(end).unwrap());
                }
                at = end;
            }
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended.unwrap();
    }
    replicas.close().await;
    let logs = store(&world);
    let sources = logs.logs(&record_name(RUN)).await.unwrap();
    assert_eq!(sources.len(), 5);
    for source in sources {
        let (text, numbers) = read(&*logs, source.row, Selection::default()).await;
        assert_eq!(String::from_utf8(text).unwrap(), all.concat());
        assert_eq!(numbers.len(), all.len());
        assert_eq!(source.bytes, i64::try_from(all.concat().len()).unwrap());
    }
}

pub(super) async fn a_sealed_log_has_its_digest_and_takes_nothing_more(world: World) {
    given_result(&world, "p/results/r").await;
    let logs = store(&world);
    let key = key(RUN, "step");
    let mut text = String::new();
    for at in 0..50 {
        let line = format!(
            "{} {at}\n",
            "word ".repeat(usize::try_from(at).unwrap() * 7 % 31)
        );
        append(&*logs, &key, vec![lines(at, &line)]).await.unwrap();
        text.push_str(&line);
    }
    let sealed = logs.seal_log(&key, now()).await.unwrap();
    assert_eq!(sealed.sha256, Some(Sha256::digest(&text).to_vec()));
    assert_eq!(logs.seal_log(&key, now()).await.unwrap(), sealed);
    let (whole, numbers) = read(&*logs, sealed.row, Selection::default()).await;
    assert_eq!((whole, numbers.len()), (text.into_bytes(), 50));
    let one = logs.next_chunk(sealed.row, 49, Window::default()).await;
    assert_eq!(
        one.unwrap().unwrap().head.lines,
        50,
        "small chunks are merged"
    );
    assert_eq!(
        append(&*logs, &key, vec![lines(0, "x\n")]).await.unwrap(),
        sealed
    );
    let refused = append(&*logs, &key, vec![lines(50, "x\n")]).await;
    assert!(matches!(refused, Err(Error::Sealed(50))), "{refused:?}");
    let empty = super::logs::key(RUN, "silent");
    let empty = logs.seal_log(&empty, now()).await.unwrap();
    assert_eq!(empty.sha256, Some(Sha256::digest([]).to_vec()));
}

/// Text of 4 MiB, of lines that have little in common but their words.
fn build_log() -> String {
    let mut dice = Dice::new(11);
    let mut text = String::new();
    while text.len() < 4 << 20 {
        let (word, number) = (dice.below(300), dice.below(100_000));
        text.push_str(&format!("step {word} of build wrote object {number}\n"));
    }
    text
}

pub(super) async fn a_sealed_log_is_packed_beside_its_readers(world: World) {
    given_result(&world, "p/results/r").await;
    let logs = store(&world);
    let (key, text) = (key(RUN, "step"), build_log());
    let all = lines(0, &text);
    let count = all.len();
    for at in (0..count).step_by(7000) {
        let part = all.slice(at..count.min(at + 7000));
        append(&*logs, &key, vec![part]).await.unwrap();
    }
    let most = std::num::NonZeroU32::new(1 << 20).unwrap();
    let later = now() + jiff::SignedDuration::from_secs(10);
    assert_eq!(world.maintenance.pack_logs(later, most).await.unwrap(), 0);
    let sealed = logs.seal_log(&key, now()).await.unwrap();
    assert_eq!(sealed.packed, 0, "a large log is packed later");
    assert_eq!(world.maintenance.pack_logs(now(), most).await.unwrap(), 0);
    // Servers pack the same log while it is read.
    let replicas = world.replicas().await;
    let mut packers = tokio::task::JoinSet::new();
    for replica in &replicas.0 {
        let maintenance = Arc::clone(&replica.maintenance);
        packers.spawn(async move { maintenance.pack_logs(later, most).await.unwrap() });
    }
    let tail = Selection {
        tail: 30_000,
        ..Selection::default()
    };
    let mut done = 0;
    let from = count - 30_000;
    while let Some(ended) = packers.join_next().await {
        done += ended.unwrap();
        let (whole, _) = read(&*logs, sealed.row, Selection::default()).await;
        assert!(whole == text.as_bytes(), "the text differs");
        let (_, numbers) = read(&*logs, sealed.row, tail).await;
        assert_eq!(
            (numbers.len(), numbers[0]),
            (30_000, i64::try_from(from).unwrap())
        );
    }
    replicas.close().await;
    let packed = logs.log(&key).await.unwrap().unwrap();
    assert_eq!(done, u64::try_from(packed.bytes).unwrap());
    assert_eq!((packed.packed, packed.lines), (packed.lines, sealed.lines));
    assert_eq!((packed.bytes, packed.sha256), (sealed.bytes, sealed.sha256));
    assert!(
        packed.stored_bytes < sealed.stored_bytes,
        "{} of {}",
        packed.stored_bytes,
        sealed.stored_bytes
    );
    assert_eq!(world.maintenance.pack_logs(later, most).await.unwrap(), 0);
}

pub(super) async fn logs_go_with_their_record_and_with_their_result(world: World) {
    given_result(&world, "p/results/r").await;
    given_result(&world, "p/results/s").await;
    let logs = store(&world);
    let runs = [RUN, "p/results/r/records/other", "p/results/s/records/run"];
    for run in runs {
        append(&*logs, &key(run, "step"), vec![lines(0, "a\n")])
            .await
            .unwrap();
        let run = record(run, 0, &json!({"kind": "TaskRun"}));
        world.given([Change::InsertRecord(run)]).await;
    }
    let left = async || {
        let mut left = Vec::new();
        for run in runs {
            left.push(logs.logs(&record_name(run)).await.unwrap().len());
        }
        left
    };
    assert_eq!(left().await, [1, 1, 1]);
    let name = record_name(RUN);
    world
        .given([Change::DeleteRecord { name, expect: None }])
        .await;
    assert_eq!(left().await, [0, 1, 1]);
    let name = result_name("p/results/r");
    world
        .given([Change::DeleteResult { name, expect: None }])
        .await;
    assert_eq!(left().await, [0, 0, 1]);
    assert_eq!(logs.delete_logs(&record_name(runs[2])).await.unwrap(), 1);
    assert_eq!(left().await, [0, 0, 0]);
}

pub(super) async fn an_upload_takes_the_place_of_the_one_before(world: World) {
    given_result(&world, "p/results/r").await;
    let logs = store(&world);
    let run = record_name(RUN);
    for (at, text) in ["first\n", "second", ""].into_iter().enumerate() {
        let key = LogKey {
            run: run.clone(),
            kind: LogKind::Uploading,
            source: LogSource {
                pod: format!("upload-{at}"),
                ..LogSource::default()
            },
        };
        if !text.is_empty() {
            append(&*logs, &key, vec![lines(0, text)]).await.unwrap();
            assert_eq!(
                logs.logs(&run).await.unwrap().len(),
                at.min(1),
                "it is not finished"
            );
        }
        let done = logs.replace_upload(&key, now()).await.unwrap();
        let all = logs.logs(&run).await.unwrap();
        assert_eq!(all, std::slice::from_ref(&done));
        let (read, _) = read(&*logs, done.row, Selection::default()).await;
        assert_eq!(read, text.as_bytes());
        if at == 0 {
            let left = LogKey {
                kind: LogKind::Uploading,
                ..key.clone()
            };
            append(&*logs, &left, vec![lines(0, "x")]).await.unwrap();
            assert_eq!(logs.delete_stale_uploads(&run, now()).await.unwrap(), 0);
            let later = Timestamp::from_second(1_700_000_001).unwrap();
            assert_eq!(logs.delete_stale_uploads(&run, later).await.unwrap(), 1);
            assert_eq!(logs.log(&left).await.unwrap(), None);
        }
    }
}
