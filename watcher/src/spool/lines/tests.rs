//! Lines that were not confirmed are there at the next start, as far as their files are whole.

use std::{fs, path::Path};

use hindsight_proto::v1::{AppendLogRequest, LogLines};

use super::{DIR, FILE, LineSpool};

fn call(name: &str, text: &str) -> AppendLogRequest {
    AppendLogRequest {
        name: name.to_owned(),
        source: None,
        lines: Some(LogLines {
            text: text.into(),
            ..LogLines::default()
        }),
        seal: false,
    }
}

fn open(dir: &Path) -> LineSpool {
    LineSpool::open(dir, u64::MAX).unwrap()
}

fn sizes(dir: &Path) -> Vec<u64> {
    let files = fs::read_dir(dir.join(DIR)).unwrap();
    let sizes = files.map(|file| file.unwrap().metadata().unwrap().len());
    sizes.collect()
}

fn names(spool: &LineSpool) -> Vec<String> {
    let calls = spool.left().into_iter().flat_map(|id| spool.read(id));
    calls.map(|call| call.name).collect()
}

#[test]
fn what_was_not_confirmed_is_there_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let spool = open(dir.path());
    let stored = spool.put(&call("stored", "a\n"));
    spool.release(stored);
    assert_eq!(sizes(dir.path()), [0], "a file of which all is stored");
    let stored = spool.put(&call("stored too", "b\n"));
    spool.put(&call("waits", "c\n"));
    spool.release(stored);
    drop(spool);
    let spool = open(dir.path());
    assert_eq!(names(&spool), ["stored too", "waits"]);
    spool.put(&call("new", "d\n"));
    assert_eq!(names(&spool), ["stored too", "waits", "new"]);
    for id in spool.left() {
        spool.drop_file(id);
    }
    assert_eq!(sizes(dir.path()), [0; 0]);
}

#[test]
fn a_file_that_is_full_goes_once_all_of_it_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let spool = open(dir.path());
    let quarter = "x".repeat(usize::try_from(FILE).unwrap() / 4);
    let put: Vec<_> = (0..5).map(|_| spool.put(&call("c", &quarter))).collect();
    let ids: Vec<_> = put.into_iter().map(Option::unwrap).collect();
    assert!(ids[0] == ids[3] && ids[0] != ids[4], "{ids:?}");
    spool.release(ids[..3].iter().copied());
    assert_eq!(sizes(dir.path()).len(), 2);
    spool.release([ids[3]]);
    assert_eq!(sizes(dir.path()).len(), 1);
}

#[test]
fn no_more_is_kept_than_there_is_room_for() {
    let dir = tempfile::tempdir().unwrap();
    let spool = LineSpool::open(dir.path(), 100).unwrap();
    let first = spool.put(&call("c", &"x".repeat(60)));
    assert!(first.is_some());
    assert_eq!(spool.put(&call("c", &"x".repeat(60))), None);
    spool.release(first);
    assert!(spool.put(&call("c", &"x".repeat(60))).is_some());
}

#[test]
fn a_call_that_is_not_whole_ends_its_file() {
    let dir = tempfile::tempdir().unwrap();
    for damage in [
        // Cut, zeros where something was, and a bit that was turned.
        |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() - 1),
        |bytes: &mut Vec<u8>| {
            let half = bytes.len() / 2;
            bytes[half..].fill(0);
        },
        |bytes: &mut Vec<u8>| *bytes.last_mut().unwrap() ^= 1,
    ] {
        let spool = open(dir.path());
        spool.put(&call("whole", "a\n"));
        spool.put(&call("damaged", "b\n"));
        let id = spool.left()[0];
        let path = spool.path(id);
        let mut bytes = fs::read(&path).unwrap();
        damage(&mut bytes);
        fs::write(&path, bytes).unwrap();
        drop(spool);
        let spool = open(dir.path());
        assert_eq!(names(&spool), ["whole"]);
        spool.drop_file(id);
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_no_reason_to_stop() {
    let dir = tempfile::tempdir().unwrap();
    let spool = open(dir.path());
    fs::remove_dir_all(dir.path().join(DIR)).unwrap();
    assert_eq!(spool.put(&call("c", "a\n")), None);
    fs::create_dir(dir.path().join(DIR)).unwrap();
    assert!(spool.put(&call("c", "a\n")).is_some());
}
