//! What the ledger remembers, counts and forgets.

use jiff::Timestamp;
use serde_json::{Value, json};

use hindsight_run::{Kind, View};

use super::{Ledger, State, Uid};

fn task_run(uid: &str, name: &str, done: bool, owner: Option<&str>) -> Value {
    json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {
            "uid": uid, "name": name, "namespace": "ci", "resourceVersion": "7",
            "ownerReferences": owner.map(|uid| json!([
                {"kind": "PipelineRun", "name": "p", "uid": uid}])),
        },
        "status": {"conditions": [
            {"type": "Succeeded", "status": if done { "True" } else { "Unknown" }}]},
    })
}

fn see(ledger: &mut Ledger, object: &Value, list: u32) -> Uid {
    let kind = Kind::of(object).unwrap();
    ledger
        .saw(kind, &View::new(object), list, Timestamp::UNIX_EPOCH)
        .unwrap()
        .0
}

fn store(ledger: &mut Ledger, uid: &Uid, object: &Value) {
    let name = format!("ci/results/{uid}/records/{uid}").parse().unwrap();
    ledger
        .get_mut(uid)
        .unwrap()
        .remembered
        .stored(&name, &View::new(object));
}

fn counts(ledger: &Ledger) -> Vec<(&'static str, u64)> {
    ledger
        .counts()
        .into_iter()
        .map(|((state, _), n)| (state, n))
        .collect()
}

#[test]
fn a_run_goes_from_seen_to_collected() {
    let mut ledger = Ledger::new();
    let uid = see(&mut ledger, &task_run("u", "a", false, None), 1);
    assert_eq!(counts(&ledger), [("seen", 1)]);
    let done = task_run("u", "a", true, None);
    see(&mut ledger, &done, 1);
    assert_eq!(counts(&ledger), [("final_seen", 1)]);
    store(&mut ledger, &uid, &done);
    assert!(matches!(
        ledger.get(&uid).unwrap().state(),
        State::Stored { version, .. } if version.to_string() == "7"
    ));
    ledger
        .get_mut(&uid)
        .unwrap()
        .remembered
        .presence
        .request_delete();
    ledger
        .get_mut(&uid)
        .unwrap()
        .remembered
        .presence
        .set_gone(true);
    ledger.forget(&uid);
    assert_eq!(counts(&ledger), [("collected", 1)]);
    assert!(ledger.is_empty());
}

#[test]
fn a_lost_run_is_listed_with_its_reason() {
    let mut ledger = Ledger::new();
    let uid = see(&mut ledger, &task_run("u", "a", false, None), 1);
    ledger.get_mut(&uid).unwrap().error = Some("server away".into());
    ledger.lose(&uid, "vanished", Timestamp::UNIX_EPOCH);
    assert_eq!(counts(&ledger), [("lost", 1)]);
    let lost = ledger.lost(10);
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].reason, "vanished (server away)");
    assert_eq!(
        (lost[0].namespace.as_str(), lost[0].name.as_str()),
        ("ci", "a")
    );
}

#[test]
fn the_list_of_lost_runs_is_bounded_but_its_count_is_not() {
    let mut ledger = Ledger::new();
    for n in 0..1100 {
        let uid = see(
            &mut ledger,
            &task_run(&format!("u{n}"), "a", false, None),
            1,
        );
        ledger.lose(&uid, "vanished", Timestamp::UNIX_EPOCH);
    }
    assert_eq!(ledger.lost(usize::MAX).len(), 1000);
    assert_eq!(ledger.lost(1)[0].uid.as_str(), "u1099");
    assert_eq!(counts(&ledger), [("lost", 1100)]);
}

#[test]
fn finished_runs_that_are_not_stored_are_listed() {
    let mut ledger = Ledger::new();
    see(&mut ledger, &task_run("running", "a", false, None), 1);
    let stored = task_run("stored", "b", true, None);
    let uid = see(&mut ledger, &stored, 1);
    store(&mut ledger, &uid, &stored);
    let waiting = see(&mut ledger, &task_run("waiting", "c", true, None), 1);
    ledger.get_mut(&waiting).unwrap().error = Some("no".into());
    let list = ledger.unstored_finals(10);
    assert_eq!(list.len(), 1);
    assert_eq!(
        (list[0].uid.as_str(), list[0].reason.as_str()),
        ("waiting", "no")
    );
    assert!(ledger.unstored_finals(0).is_empty());
}

#[test]
fn a_run_missing_from_a_new_list_is_found() {
    let mut ledger = Ledger::new();
    see(&mut ledger, &task_run("stays", "a", false, None), 1);
    see(&mut ledger, &task_run("goes", "b", false, None), 1);
    see(&mut ledger, &task_run("stays", "a", false, None), 2);
    let kind = Kind::of_type("tekton.dev/v1.TaskRun").unwrap();
    assert_eq!(ledger.unlisted(kind, 2), [Uid::from("goes")]);
    let other = Kind::of_type("tekton.dev/v1.PipelineRun").unwrap();
    assert!(ledger.unlisted(other, 2).is_empty());
}

#[test]
fn children_of_children_go_with_their_owner() {
    let mut ledger = Ledger::new();
    see(
        &mut ledger,
        &task_run("child", "a", false, Some("owner")),
        1,
    );
    see(
        &mut ledger,
        &task_run("grandchild", "b", false, Some("child")),
        1,
    );
    let mut found = ledger.descendants(&Uid::from("owner"));
    found.sort();
    assert_eq!(found, [Uid::from("child"), Uid::from("grandchild")]);
    ledger.forget(&Uid::from("child"));
    assert!(ledger.descendants(&Uid::from("owner")).is_empty());
}

#[test]
fn a_name_belongs_to_the_newest_run_that_has_it() {
    let mut ledger = Ledger::new();
    let kind = Kind::of_type("tekton.dev/v1.TaskRun").unwrap();
    let old = see(&mut ledger, &task_run("old", "a", true, None), 1);
    see(&mut ledger, &task_run("new", "a", false, None), 1);
    ledger.forget(&old);
    assert_eq!(ledger.named(kind, "ci", "a").unwrap().0.as_str(), "new");
    assert!(ledger.named(kind, "other", "a").is_none());
}

#[test]
fn an_entry_is_hundreds_of_bytes() {
    assert!(
        size_of::<super::Entry>() <= 400,
        "{}",
        size_of::<super::Entry>()
    );
}

#[test]
fn a_run_that_is_adopted_later_is_known_to_its_owner() {
    let mut ledger = Ledger::new();
    let child = see(&mut ledger, &task_run("c", "c", false, None), 1);
    let owner = Uid::from("o");
    assert_eq!(ledger.descendants(&owner), []);
    see(&mut ledger, &task_run("c", "c", true, Some("o")), 1);
    assert_eq!(ledger.descendants(&owner), std::slice::from_ref(&child));
    see(&mut ledger, &task_run("c", "c", true, Some("p")), 1);
    assert_eq!(ledger.descendants(&owner), []);
    assert_eq!(
        ledger.descendants(&Uid::from("p")),
        std::slice::from_ref(&child)
    );
    ledger.forget(&child);
    assert_eq!(ledger.descendants(&Uid::from("p")), []);
}
