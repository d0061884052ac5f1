//! How lines wait, are taken and are given back.

use super::*;

fn on_disk(folder: &std::path::Path) -> OnDisk {
    let spool = Spool::open(folder.to_owned(), 1 << 20).unwrap();
    OnDisk::new(Arc::new(spool), AppendLogRequest::default())
}

/// The numbers of the lines that another watcher finds.
fn found(folder: &std::path::Path) -> Vec<i64> {
    let spool = Spool::open(folder.to_owned(), 1 << 20).unwrap();
    let files = spool.lines().left().into_iter();
    let calls = files.flat_map(|file| spool.lines().read(file));
    let lines = calls.filter_map(|call| call.lines);
    let numbers = lines.flat_map(|of| numbered(&of).map(|line| line.number).collect::<Vec<_>>());
    numbers.collect()
}

#[tokio::test]
async fn lines_are_taken_once_they_are_on_disk_so_that_those_found_there_have_no_gap() {
    let folder = tempfile::tempdir().unwrap();
    let disk = on_disk(folder.path());
    let (outbox, now) = (Outbox::new(7, 100, Some(50), Some(disk)), Instant::now());
    outbox.push(Some(60), b"a\n", now);
    assert!(outbox.take().is_none(), "it is in memory alone");
    outbox.spool();
    assert_eq!(outbox.take().unwrap().lines.first_line, 7);
    outbox.push(Some(61), b"b\n", now);
    outbox.spool();
    drop(outbox);
    assert_eq!(found(folder.path()), [7, 8]);
}

#[tokio::test]
async fn lines_are_numbered_and_wait_until_they_are_stored() {
    let (outbox, now) = (Outbox::new(7, 100, Some(50), None), Instant::now());
    assert!(outbox.push(Some(60), b"a\n", now));
    assert!(!outbox.push(Some(55), b"b\n", now));
    assert!(!outbox.push_hole("missing\n", 0, now));
    let batch = outbox.take().unwrap();
    assert_eq!(batch.lines.first_line, 7);
    assert_eq!(batch.lines.text, b"a\nb\nmissing\n");
    assert_eq!(batch.lines.times, [60, -5, 0]);
    assert_eq!(batch.lines.holes, [9]);
    assert!(!batch.seal);
    assert!(outbox.push(Some(70), b"c\n", now));
    assert!(outbox.take().is_none(), "one at a time");
    assert!(outbox.stored(false));
    outbox.end();
    let batch = outbox.take().unwrap();
    assert_eq!((batch.lines.first_line, batch.seal), (10, true));
    assert!(!outbox.stored(true));
    assert_eq!(outbox.flushed().await, Written::Over);
    assert_eq!(outbox.bytes(), 114);
}

#[tokio::test]
async fn what_fits_nothing_waits_on_after_what_is_stored() {
    let (outbox, now) = (Outbox::new(7, 100, Some(50), None), Instant::now());
    outbox.push(Some(60), b"a\n", now);
    outbox.push(Some(61), b"b\n", now);
    let refused = outbox.take().unwrap();
    outbox.push(Some(65), b"c\n", now);
    outbox.push_hole("missing\n", 0, now);
    outbox.end();
    outbox.fail(refused.lines);
    assert_eq!(outbox.flushed().await, Written::Failed);
    assert!(outbox.take().is_none(), "it waits for what is stored");
    assert_eq!(outbox.first_time(), Some(60));
    // Another watcher stored the line of 60, after another one.
    outbox.resume((9, 110, Some(60)), |time| time == 60);
    let batch = outbox.take().unwrap();
    assert_eq!(batch.lines.first_line, 9);
    assert_eq!(batch.lines.text, b"b\nc\nmissing\n");
    assert_eq!(batch.lines.times, [61, 4, 0]);
    assert_eq!((batch.lines.holes, batch.seal), (vec![11], true));
    assert_eq!(outbox.bytes(), 122);
    assert!(!outbox.stored(true));
}

#[tokio::test]
async fn a_log_that_is_cut_ends_with_a_hole_in_the_place_of_what_was_refused() {
    let (outbox, now) = (Outbox::new(3, 0, Some(50), None), Instant::now());
    outbox.push(Some(60), b"refused\n", now);
    let refused = outbox.take().unwrap();
    outbox.push(Some(70), b"later\n", now);
    outbox.cut(refused.lines.first_line, "missing\n", 0, now);
    outbox.push(Some(80), b"too late\n", now);
    assert_eq!(outbox.stopped().await, Written::Over);
    let last = outbox.take().unwrap();
    assert_eq!((last.lines.first_line, last.seal), (3, true));
    assert_eq!(
        (&*last.lines.text, last.lines.holes),
        (&b"missing\n"[..], vec![3])
    );
    assert!(!outbox.stored(true));
    assert!(outbox.take().is_none());
}

#[tokio::test]
async fn a_reader_waits_while_too_much_waits() {
    let (outbox, now) = (Outbox::new(0, 0, None, None), Instant::now());
    let (most, full) = (1_000, Notify::new());
    assert_eq!(outbox.room(most, &full).await, None);
    outbox.push(Some(1), &vec![b'x'; most], now);
    tokio::select! {
        biased;
        _ = outbox.room(most, &full) => panic!("there is no room"),
        () = full.notified() => {}
    }
    outbox.take().unwrap();
    assert_eq!(outbox.room(most, &full).await, None);
    outbox.fail(LogLines::default());
    assert_eq!(outbox.room(most, &full).await, Some(Written::Failed));
}

#[tokio::test]
async fn lines_that_the_server_lost_are_read_again_with_those_that_follow() {
    let (outbox, now) = (Outbox::new(7, 100, Some(50), None), Instant::now());
    outbox.push(Some(60), b"a\n", now);
    outbox.end();
    outbox.fail(outbox.take().unwrap().lines);
    outbox.resume((6, 90, Some(40)), |_| false);
    assert_eq!(outbox.flushed().await, Written::Stored);
    assert_eq!((outbox.bytes(), outbox.last_time()), (90, Some(40)));
}
