//! When a stored run is deleted, and what keeps it.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::rules::{check, collecting, now, plan, remembered, run, running};
use crate::{
    plan::{Annotations, Finished, Others, Presence, Remembered, Step},
    policy::Policy,
};

#[test]
fn a_run_waits_for_its_grace_which_counts_from_its_end() {
    let done = run(|_| ());
    let memory = remembered(Some(&done));
    for (minutes, expected) in [
        (121, "look"),
        (119, "delete"),
        (0, "delete"),
        (-1, "delete"),
    ] {
        let policy = collecting(|c| c.grace = SignedDuration::from_mins(minutes));
        check(&done, &memory, &policy, &[expected]);
    }
    let forever = collecting(|c| c.grace = SignedDuration::MAX);
    check(&done, &memory, &forever, &[]);
}

#[test]
fn without_a_stated_end_the_grace_counts_from_when_it_was_seen_finished() {
    let done = run(|run| {
        run["status"]
            .as_object_mut()
            .unwrap()
            .remove("completionTime");
    });
    let memory = remembered(Some(&done));
    let steps = plan(Some(&done), &memory, &collecting(|_| ()), now());
    assert_eq!(
        steps,
        [Step::LookAgain("2026-03-01T12:10:00Z".parse().unwrap())]
    );
}

#[test]
fn a_negative_grace_is_none_and_nobody_looks_again_at_once_for_ever() {
    let done = run(|run| {
        run["status"]
            .as_object_mut()
            .unwrap()
            .remove("completionTime");
    });
    let negative = collecting(|c| c.grace = SignedDuration::from_mins(-1));
    check(&done, &remembered(Some(&done)), &negative, &["delete"]);
    let asked = Remembered {
        presence: Presence::DeleteRequested,
        ..remembered(Some(&done))
    };
    check(&done, &asked, &negative, &[]);
    // What has to wait is looked at when that is over, and not before.
    let waiting = Remembered {
        others: Some(Box::new(Others {
            waits_for: Some("a child".to_owned()),
            ..Others::default()
        })),
        ..remembered(Some(&done))
    };
    assert_eq!(plan(Some(&done), &waiting, &negative, now()), []);
}

#[test]
fn only_runs_with_the_wanted_labels_go() {
    let done = run(|run| run["metadata"]["labels"]["app"] = json!("x"));
    let memory = remembered(Some(&done));
    let select = |text: &str| collecting(|c| c.selector = text.parse().unwrap());
    check(&done, &memory, &select("app=x"), &["delete"]);
    check(&done, &memory, &select("app=y"), &[]);
}

#[test]
fn owners_keep_their_runs_and_only_pipeline_runs_always() {
    let owned_by = |kind: &str| {
        run(|run| {
            run["metadata"]["ownerReferences"] = json!([{"kind": kind, "name": "o", "uid": "o"}]);
        })
    };
    for (kind, check_owner, expected) in [
        ("PipelineRun", true, &[] as &[&str]),
        ("PipelineRun", false, &[]),
        ("CronWorkflow", true, &[]),
        ("CronWorkflow", false, &["delete"]),
    ] {
        let done = owned_by(kind);
        let policy = collecting(|c| c.check_owner = check_owner);
        check(&done, &remembered(Some(&done)), &policy, expected);
    }
}

#[test]
fn a_run_whose_newest_state_is_not_stored_is_stored_before_it_goes() {
    let stored = run(|_| ());
    let changed = run(|run| run["status"]["extra"] = json!(1));
    check(
        &changed,
        &remembered(Some(&stored)),
        &collecting(|_| ()),
        &["store", "delete"],
    );
}

#[test]
fn a_stored_unfinished_state_lets_nothing_go() {
    let running = running();
    let mut memory = remembered(Some(&running));
    memory.finished = Finished::No;
    let policy = Policy {
        store_incomplete: true,
        ..collecting(|c| c.grace = SignedDuration::ZERO)
    };
    check(&running, &memory, &policy, &[]);
    check(&run(|_| ()), &memory, &policy, &["store", "delete"]);
}

#[test]
fn what_is_deleted_already_is_not_deleted_again() {
    let done = run(|_| ());
    let memory = Remembered {
        presence: Presence::DeleteRequested,
        ..remembered(Some(&done))
    };
    check(&done, &memory, &collecting(|_| ()), &[]);
}

#[test]
fn a_run_that_is_due_is_deleted_and_not_annotated_before() {
    let run = run(|_| ());
    let mut memory = remembered(Some(&run));
    memory.annotations = Annotations::Unwritten;
    check(&run, &memory, &collecting(|_| ()), &["delete"]);
    check(
        &run,
        &remembered(None),
        &collecting(|_| ()),
        &["store", "delete"],
    );
    let patient = collecting(|collect| collect.grace = SignedDuration::from_hours(10));
    check(&run, &memory, &patient, &["annotate", "look"]);
    // Of one that was deleted by us a finalizer of others is waited for.
    memory.presence.request_delete();
    check(&run, &memory, &collecting(|_| ()), &[]);
}

#[test]
fn a_run_on_which_no_annotations_are_taken_is_collected_all_the_same() {
    let run = run(|_| ());
    let mut memory = remembered(Some(&run));
    memory.annotations = Annotations::Unwritten;
    memory.annotations = Annotations::Refused;
    check(&run, &memory, &Policy::default(), &[]);
    check(&run, &memory, &collecting(|_| ()), &["delete"]);
}

#[test]
fn a_workflow_whose_nodes_are_in_a_database_stays() {
    let workflow = |version: Value| {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
            "metadata": {"name": "a", "namespace": "ci", "uid": "u", "resourceVersion": "1"},
            "status": {"phase": "Succeeded", "finishedAt": "2026-03-01T10:00:00Z",
                "offloadNodeStatusVersion": version},
        })
    };
    for (version, steps) in [
        (json!("fnv:1"), &[][..]),
        (json!(""), &["delete"]),
        (json!(null), &["delete"]),
    ] {
        let run = workflow(version);
        check(&run, &remembered(Some(&run)), &collecting(|_| ()), steps);
    }
}
