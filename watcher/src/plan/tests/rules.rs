//! The rules that fixtures alone do not show.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use hindsight_run::View;

use crate::{
    plan::{
        Annotations, DELETED_UNFINISHED, Finished, Presence, Remembered, ServerCopy, Step,
        VANISHED, VANISHED_FINAL, upload,
    },
    policy::{Collect, Policy},
};

pub(super) fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

pub(super) fn run(change: impl FnOnce(&mut Value)) -> Value {
    let mut run = json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": "a", "namespace": "ci", "uid": "u", "resourceVersion": "1",
            "annotations": {}, "labels": {}},
        "spec": {},
        "status": {"completionTime": "2026-03-01T10:00:00Z", "conditions": [
            {"type": "Succeeded", "status": "True", "reason": "Succeeded"}]},
    });
    change(&mut run);
    run
}

pub(super) fn running() -> Value {
    run(|run| run["status"] = json!({"startTime": "2026-03-01T10:00:00Z"}))
}

pub(super) fn remembered(copy: Option<&Value>) -> Remembered {
    let mut remembered = Remembered {
        finished: Finished::Later(now()),
        ..Remembered::new(now())
    };
    if let Some(copy) = copy {
        let upload = upload(&View::new(copy), &Policy::default()).unwrap();
        remembered.stored(&upload.grouping.record, &View::new(copy));
        remembered.annotations = Annotations::Written;
    }
    remembered
}

pub(super) fn collecting(change: impl FnOnce(&mut Collect)) -> Policy {
    let mut collect = Collect::default();
    change(&mut collect);
    Policy {
        collect: Some(collect),
        ..Policy::default()
    }
}

pub(super) fn plan(
    object: Option<&Value>,
    remembered: &Remembered,
    policy: &Policy,
    now: Timestamp,
) -> Vec<Step> {
    crate::plan::plan(object.map(View::new).as_ref(), remembered, policy, now)
}

#[track_caller]
pub(super) fn check(object: &Value, remembered: &Remembered, policy: &Policy, expected: &[&str]) {
    let steps = plan(Some(object), remembered, policy, now());
    let steps: Vec<String> = steps
        .iter()
        .map(|step| step.to_string().split(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(steps, expected);
}

#[test]
fn the_echo_of_our_own_annotations_is_not_stored_again() {
    let before = run(|_| ());
    let mut memory = remembered(None);
    let steps = plan(Some(&before), &memory, &Policy::default(), now());
    let [Step::Store(upload), Step::Annotate(annotations)] = &steps[..] else {
        panic!("{steps:?}");
    };
    memory.stored(&upload.grouping.record, &View::new(&before));
    memory.annotations = Annotations::Written;
    let echo = run(|run| {
        run["metadata"]["resourceVersion"] = json!("2");
        run["metadata"]["managedFields"] = json!([{"manager": "tekton-results-watcher"}]);
        run["metadata"]["annotations"] = json!(annotations);
    });
    check(&echo, &memory, &Policy::default(), &[]);
    // Nor after a restart, once the server was asked.
    let mut memory = Remembered {
        finished: Finished::AtFirstSight(now()),
        ..remembered(None)
    };
    check(&echo, &memory, &Policy::default(), &["trust"]);
    check(&echo, &memory, &verified_at_once(), &["ask"]);
    memory.answered(&upload.grouping.record, Some(&View::new(&before)));
    check(&echo, &memory, &Policy::default(), &[]);
}

fn verified_at_once() -> Policy {
    Policy {
        verify_within: SignedDuration::ZERO,
        ..Policy::default()
    }
}

/// A finished run as it looks after it was stored and marked.
fn marked() -> Value {
    let before = run(|_| ());
    let steps = plan(Some(&before), &remembered(None), &Policy::default(), now());
    let [Step::Store(_), Step::Annotate(annotations)] = &steps[..] else {
        panic!("{steps:?}");
    };
    run(|run| run["metadata"]["annotations"] = json!(annotations))
}

#[test]
fn only_a_run_that_is_exactly_as_it_was_stored_is_trusted_and_not_for_long() {
    let memory = Remembered {
        finished: Finished::AtFirstSight(now()),
        ..remembered(None)
    };
    let trusted = marked();
    check(&trusted, &memory, &Policy::default(), &["trust"]);
    let [Step::Trust(until)] = plan(Some(&trusted), &memory, &Policy::default(), now())[..] else {
        panic!("it is trusted");
    };
    assert!(until <= now() + SignedDuration::from_hours(1));
    // What is collected is asked about first.
    check(&trusted, &memory, &collecting(|_| ()), &["ask"]);
    let mut touched = trusted.clone();
    touched["metadata"]["annotations"]["signed"] = json!("yes");
    check(&touched, &memory, &Policy::default(), &["ask"]);
    // A copy of it has another UID.
    let mut copy = trusted.clone();
    copy["metadata"]["uid"] = json!("other");
    check(&copy, &memory, &Policy::default(), &["store", "annotate"]);
    // If it vanishes unseen, it was stored all the same.
    let gone = Remembered {
        server: ServerCopy::Trusted,
        presence: Presence::Gone,
        ..memory
    };
    assert_eq!(plan(None, &gone, &Policy::default(), now()), [Step::Forget]);
}

#[test]
fn what_others_write_on_a_stored_run_is_stored() {
    let memory = remembered(Some(&run(|_| ())));
    let signed = run(|run| run["metadata"]["annotations"]["chains.tekton.dev/signed"] = json!("t"));
    check(&signed, &memory, &Policy::default(), &["store"]);
}

#[test]
fn a_run_that_asks_for_another_result_is_stored_there_as_well() {
    let memory = remembered(Some(&run(|_| ())));
    let moved = run(|run| {
        run["metadata"]["annotations"]["results.tekton.dev/result"] = json!("ci/results/mine");
    });
    check(&moved, &memory, &Policy::default(), &["store"]);
}

#[test]
fn a_delete_is_held_from_when_it_was_asked_for_however_long_ago_the_run_ended() {
    let deleted = |minutes: i64| {
        run(|run| {
            run["status"]["completionTime"] = json!("2026-02-01T10:00:00Z");
            run["metadata"]["finalizers"] = json!(["results.tekton.dev/taskrun"]);
            let asked = now() - SignedDuration::from_mins(minutes);
            run["metadata"]["deletionTimestamp"] = json!(asked.to_string());
        })
    };
    let policy = Policy {
        finalizers: true,
        store_deadline: SignedDuration::from_mins(10),
        ..Policy::default()
    };
    // First it is stored; whatever comes after that is not done if that fails.
    check(&deleted(9), &remembered(None), &policy, &["store", "take"]);
    check(&deleted(11), &remembered(None), &policy, &["take"]);
}

#[test]
fn a_run_deleted_unfinished_is_stored_and_closed() {
    let mut memory = Remembered {
        presence: Presence::Gone,
        ..Remembered::new(now())
    };
    let steps = plan(Some(&running()), &memory, &Policy::default(), now());
    assert!(
        matches!(
            &steps[..],
            [
                Step::Store(_),
                Step::Close {
                    reason: DELETED_UNFINISHED
                },
                Step::Forget
            ]
        ),
        "{steps:?}"
    );
    let Step::Store(upload) = &steps[0] else {
        panic!("{steps:?}")
    };
    memory.stored(&upload.grouping.record, &View::new(&running()));
    memory.close();
    check(&running(), &memory, &Policy::default(), &["forget"]);
}

#[test]
fn a_run_that_vanished_unseen_is_closed_or_lost() {
    let gone = |memory: Remembered| {
        plan(
            None,
            &Remembered {
                presence: Presence::Gone,
                ..memory
            },
            &Policy::default(),
            now(),
        )
    };
    assert_eq!(gone(remembered(Some(&run(|_| ())))), [Step::Forget]);
    assert_eq!(
        gone(remembered(Some(&running()))),
        [Step::Close { reason: VANISHED }, Step::Forget]
    );
    assert_eq!(
        gone(Remembered::new(now())),
        [Step::Lose { reason: VANISHED }, Step::Forget]
    );
    assert_eq!(
        gone(remembered(None)),
        [
            Step::Lose {
                reason: VANISHED_FINAL
            },
            Step::Forget
        ]
    );
}

#[test]
fn an_unknown_object_needs_nothing_while_it_is_not_gone() {
    assert_eq!(plan(None, &remembered(None), &Policy::default(), now()), []);
}

#[test]
fn runs_of_other_controllers_are_left_alone_unless_they_were_named() {
    let managed = |by: &str| run(|run| run["spec"]["managedBy"] = json!(by));
    let none = remembered(None);
    for by in [
        "",
        "  ",
        "tekton.dev/pipeline",
        " tekton.dev/pipeline ",
        "hindsight.dev/pipelinerun",
    ] {
        check(
            &managed(by),
            &none,
            &Policy::default(),
            &["store", "annotate"],
        );
    }
    check(&managed("other"), &none, &Policy::default(), &["forget"]);
    let policy = Policy {
        managed_by: ["other".to_owned()].into(),
        ..Policy::default()
    };
    check(&managed("other"), &none, &policy, &["store", "annotate"]);
    // A finalizer that a delete waits for holds it nevertheless.
    let mut held = managed("other");
    held["metadata"]["finalizers"] = json!(["results.tekton.dev/taskrun"]);
    check(&held, &none, &Policy::default(), &["forget"]);
    held["metadata"]["deletionTimestamp"] = json!("2026-03-01T11:59:00Z");
    check(&held, &none, &Policy::default(), &["store", "take"]);
}

#[test]
fn a_cluster_has_its_own_tenants() {
    let policy = Policy {
        cluster: Some("east".parse().unwrap()),
        ..Policy::default()
    };
    let steps = plan(Some(&run(|_| ())), &remembered(None), &policy, now());
    assert_eq!(
        steps[0].to_string(),
        "store cluster/east/namespace/ci/results/u/records/u"
    );
    for id in ["", "a/b", "-", "a b"] {
        assert!(id.parse::<crate::policy::ClusterId>().is_err(), "{id}");
    }
}

#[test]
fn a_run_that_is_no_longer_watched_is_let_go_and_looked_at_until_its_end_is_stored() {
    let kind = hindsight_run::Kind::named("tekton.dev", "TaskRun").unwrap();
    let policy = Policy {
        selectors: vec![(kind, "team=a".parse().unwrap())],
        finalizers: true,
        ..collecting(|_| ())
    };
    let none = remembered(None);
    let mut running = running();
    running["metadata"]["finalizers"] = json!(["results.tekton.dev/taskrun"]);
    check(&running, &none, &policy, &["take"]);
    running["metadata"]["finalizers"] = json!([]);
    check(&running, &none, &policy, &["look"]);
    let finished = run(|_| ());
    check(&finished, &none, &policy, &["store", "forget"]);
    // Others may collect it; it is not ours any more.
    check(
        &finished,
        &remembered(Some(&finished)),
        &policy,
        &["forget"],
    );
    let selected = run(|run| run["metadata"]["labels"] = json!({"team": "a"}));
    check(
        &selected,
        &remembered(Some(&selected)),
        &policy,
        &["delete"],
    );
}
