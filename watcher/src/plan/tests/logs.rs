//! How a run waits for its logs.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::rules::{check, collecting, now, plan, remembered, run, running};
use crate::{
    plan::{Finished, Others, Remembered, Step},
    policy::Policy,
};

fn open(copy: &Value) -> Remembered {
    Remembered {
        others: Some(Box::new(Others {
            logs_open: true,
            ..Others::default()
        })),
        finished: Finished::Later("2026-03-01T10:00:00Z".parse().unwrap()),
        ..remembered(Some(copy))
    }
}

#[test]
fn a_run_is_not_collected_while_its_logs_are_open_until_the_deadline() {
    let done = run(|_| ());
    let after = |minutes| Policy {
        logs_deadline: SignedDuration::from_mins(minutes),
        ..collecting(|_| ())
    };
    // It ended two hours ago.
    let steps = plan(Some(&done), &open(&done), &after(121), now());
    assert_eq!(
        steps,
        [Step::LookAgain("2026-03-01T12:01:00Z".parse().unwrap())]
    );
    check(&done, &open(&done), &after(120), &["delete"]);
    check(&done, &remembered(Some(&done)), &after(121), &["delete"]);
}

#[test]
fn a_run_that_ended_while_no_watcher_looked_waits_for_its_logs_too() {
    let done = run(|_| ());
    let policy = Policy {
        logs_deadline: SignedDuration::from_mins(10),
        ..collecting(|_| ())
    };
    // It ended two hours ago.
    for (seen, expected) in [("11:55", "look"), ("11:49", "delete")] {
        let since = format!("2026-03-01T{seen}:00Z").parse().unwrap();
        let remembered = Remembered {
            finished: Finished::AtFirstSight(since),
            ..open(&done)
        };
        check(&done, &remembered, &policy, &[expected]);
    }
}

#[test]
fn a_finalizer_stays_on_while_logs_are_open() {
    let held = run(|run| run["metadata"]["finalizers"] = json!(["results.tekton.dev/taskrun"]));
    let policy = |minutes| Policy {
        finalizers: true,
        logs_deadline: SignedDuration::from_mins(minutes),
        ..Policy::default()
    };
    check(&held, &open(&held), &policy(121), &["look"]);
    check(&held, &open(&held), &policy(119), &["take"]);
    check(&held, &remembered(Some(&held)), &policy(121), &["take"]);
}

#[test]
fn a_delete_waits_for_logs_no_longer_than_for_storing() {
    for object in [run(|_| ()), running()] {
        let mut held = object;
        held["metadata"]["finalizers"] = json!(["results.tekton.dev/taskrun"]);
        held["metadata"]["deletionTimestamp"] = json!("2026-03-01T11:55:00Z");
        let policy = |logs, store| Policy {
            finalizers: true,
            logs_deadline: SignedDuration::from_mins(logs),
            store_deadline: SignedDuration::from_mins(store),
            ..Policy::default()
        };
        for (logs, store, expected) in [
            (10, 6, "look"),
            (6, 10, "look"),
            (4, 10, "take"),
            (10, 4, "take"),
        ] {
            check(&held, &open(&held), &policy(logs, store), &[expected]);
        }
        check(&held, &remembered(Some(&held)), &policy(10, 10), &["take"]);
    }
}
