//! What is put is there after a restart; what is damaged is not taken for a run.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{Error, Spool, version};
use crate::{content::Digest, ledger::Uid};

fn state(uid: &str, version: u64) -> Value {
    json!({"metadata": {"uid": uid, "resourceVersion": version.to_string()}})
}

fn put(spool: &Spool, state: &Value) -> Result<(), Error> {
    let uid = Uid::from(state["metadata"]["uid"].as_str().unwrap());
    spool.put(&uid, state, state.to_string().as_bytes())
}

fn open(dir: &Path) -> Spool {
    Spool::open(dir.to_owned(), 1000).unwrap()
}

fn states(spool: &Spool) -> Vec<Value> {
    let uids = spool.uids().into_iter();
    let mut states: Vec<Value> = uids.filter_map(|uid| spool.state(&uid).unwrap()).collect();
    states.sort_by_key(ToString::to_string);
    states
}

fn files(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = names
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| !["lock", "logs"].contains(&name.as_str()))
        .collect();
    names.sort();
    names
}

#[test]
fn what_is_put_is_there_after_a_restart_in_its_newest_state() {
    let dir = tempfile::tempdir().unwrap();
    let spool = open(dir.path());
    assert!(states(&spool).is_empty());
    for one in [state("a", 1), state("a", 3), state("a", 2), state("b", 1)] {
        put(&spool, &one).unwrap();
    }
    drop(spool);
    let spool = open(dir.path());
    assert_eq!(states(&spool), [state("a", 3), state("b", 1)]);
    assert_eq!(
        spool.get(&"a".into()).unwrap().unwrap(),
        state("a", 3).to_string().as_bytes()
    );
    spool.remove(&"a".into());
    assert!(!spool.has(&"a".into()));
    assert_eq!((spool.size().0, files(dir.path()).len()), (1, 1));
    spool.remove(&"b".into());
    assert_eq!((spool.size(), files(dir.path()).len()), ((0, 0), 0));
}

#[test]
fn what_is_stored_is_removed_unless_a_later_state_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let spool = open(dir.path());
    let ended = |version| {
        let mut ended = state("a", version);
        ended["status"] = json!("ended");
        ended
    };
    let stored = |state: &Value| {
        spool.remove_stored(&"a".into(), Digest::of(state), version(state));
        !spool.has(&"a".into())
    };
    put(&spool, &ended(3)).unwrap();
    assert!(!stored(&state("a", 2)));
    // As the run was before something was written on it that is no content.
    assert!(stored(&ended(2)));
    put(&spool, &ended(3)).unwrap();
    assert!(stored(&state("a", 4)));
    assert_eq!((spool.size(), files(dir.path()).len()), ((0, 0), 0));
}

#[test]
fn no_more_is_kept_than_was_agreed() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(dir.path().to_owned(), 120).unwrap();
    put(&spool, &state("a", 1)).unwrap();
    put(&spool, &state("b", 1)).unwrap();
    assert!(matches!(
        put(&spool, &state("c", 1)),
        Err(Error::Full { limit: 120 })
    ));
    spool.remove(&"a".into());
    put(&spool, &state("c", 1)).unwrap();
    assert_eq!(spool.size().0, 2);
}

#[test]
fn what_is_damaged_is_moved_aside_and_what_was_being_written_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let spool = open(dir.path());
    put(&spool, &state("a", 1)).unwrap();
    put(&spool, &state("b", 1)).unwrap();
    let damaged = files(dir.path())[0].clone();
    drop(spool);
    fs::write(dir.path().join(&damaged), "{\"metadata\"").unwrap();
    fs::write(dir.path().join(".half"), "{").unwrap();
    fs::write(dir.path().join("notes.txt"), "not ours").unwrap();
    let spool = open(dir.path());
    assert_eq!((states(&spool).len(), spool.size().0), (1, 1));
    assert_eq!(
        files(&dir.path().join("corrupt")),
        [damaged, "notes.txt".to_owned()]
    );
    assert_eq!(files(dir.path()).len(), 2);
}

#[test]
fn what_is_damaged_later_is_noticed_when_it_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let spool = open(dir.path());
    put(&spool, &state("a", 1)).unwrap();
    fs::write(dir.path().join(&files(dir.path())[0]), "").unwrap();
    assert_eq!(spool.get(&"a".into()).unwrap(), None);
    assert!(!spool.has(&"a".into()));
    assert_eq!(files(dir.path()), ["corrupt"]);
}

#[test]
fn a_directory_serves_one_watcher() {
    let dir = tempfile::tempdir().unwrap();
    let _spool = open(dir.path());
    let second = Spool::open(dir.path().to_owned(), 1000);
    assert!(matches!(second, Err(Error::InUse { .. })));
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(Spool::open(file, 1000), Err(Error::Io { .. })));
}

#[test]
fn a_state_that_is_put_by_several_at_once_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let spool = Spool::open(dir.path().to_owned(), 1 << 20).unwrap();
    for n in 0..50 {
        let uid = format!("u{n}");
        let run = state(&uid, 1);
        let bytes = serde_json::to_vec(&run).unwrap();
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| spool.put(&Uid::from(uid.as_str()), &run, &bytes).unwrap());
            }
        });
        let kept = spool.get(&Uid::from(uid.as_str())).unwrap();
        assert_eq!(kept, Some(bytes), "{uid}");
    }
    assert_eq!(spool.size().0, 50);
}
