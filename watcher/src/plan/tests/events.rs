//! What is planned about the events of a run.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::rules::{check, collecting, now, plan, remembered, run, running};
use crate::{
    content::EVENT_LIST,
    plan::{EventRecord, Presence, Remembered, Step},
    policy::Policy,
};

#[test]
fn events_are_stored_once_and_before_the_run_goes() {
    let policy = |collect: bool| Policy {
        store_events: true,
        ..if collect {
            collecting(|_| ())
        } else {
            Policy {
                store_incomplete: false,
                ..Policy::default()
            }
        }
    };
    let done = run(|_| ());
    let memory = remembered(None);
    check(
        &done,
        &memory,
        &policy(false),
        &["store", "store", "annotate"],
    );
    check(&running(), &memory, &policy(false), &[]);
    let steps = plan(Some(&done), &memory, &policy(false), now());
    let record = "ci/results/u/records/u-events";
    assert_eq!(steps[1].to_string(), format!("store events as {record}"));
    let Step::Annotate(annotations) = &steps[2] else {
        panic!("{steps:?}");
    };
    assert_eq!(annotations[EVENT_LIST], record);
    // What the run says of itself is enough, unless it is to go.
    let marked = run(|run| run["metadata"]["annotations"] = json!(annotations));
    let stored = remembered(Some(&done));
    check(&marked, &stored, &policy(false), &[]);
    check(&marked, &stored, &policy(true), &["store", "delete"]);
    let all = Remembered {
        events: EventRecord::Own,
        ..stored.clone()
    };
    check(&marked, &all, &policy(true), &["delete"]);
    // What another run says is not.
    let copy = run(|run| {
        run["metadata"]["uid"] = json!("v");
        run["metadata"]["annotations"] = json!(annotations);
    });
    check(
        &copy,
        &memory,
        &policy(false),
        &["store", "store", "annotate"],
    );
    // Those of a run that is gone are told by the cluster for a while.
    let gone = Remembered {
        presence: Presence::Gone,
        ..stored
    };
    check(&done, &gone, &policy(false), &["store", "forget"]);
}

#[test]
fn events_of_a_run_that_tekton_results_stored_stay_where_they_are() {
    let policy = Policy {
        store_events: true,
        ..Policy::default()
    };
    let theirs = run(|run| {
        run["metadata"]["annotations"] = json!({
            "results.tekton.dev/record": "ci/results/u/records/u",
            EVENT_LIST: "ci/results/u/records/5d1b",
        });
    });
    let steps = plan(Some(&theirs), &remembered(None), &policy, now());
    let [Step::Store(_), Step::Annotate(annotations)] = &steps[..] else {
        panic!("{steps:?}");
    };
    assert_eq!(annotations[EVENT_LIST], "ci/results/u/records/5d1b");
}

#[test]
fn events_do_not_hold_a_run_longer_than_was_agreed() {
    let policy = Policy {
        store_events: true,
        finalizers: true,
        store_deadline: SignedDuration::from_mins(10),
        ..Policy::default()
    };
    let deleted = |minutes: i64| {
        run(|run| {
            run["metadata"]["finalizers"] = json!(["results.tekton.dev/taskrun"]);
            let asked = now() - SignedDuration::from_mins(minutes);
            run["metadata"]["deletionTimestamp"] = json!(asked.to_string());
        })
    };
    let memory = |run: &Value| remembered(Some(run));
    let (early, late) = (deleted(9), deleted(11));
    check(&early, &memory(&early), &policy, &["store", "take"]);
    check(&late, &memory(&late), &policy, &["take"]);
}

#[test]
fn events_of_a_cluster_are_copied_every_half_hour_and_when_it_is_gone() {
    let policy = Policy {
        store_events: true,
        ..Policy::default()
    };
    let cluster = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": {"name": "a", "namespace": "ci", "uid": "u", "resourceVersion": "1"}, "spec": {}});
    let copied = |minutes: i64| Remembered {
        events: EventRecord::Until(now() - SignedDuration::from_mins(minutes)),
        ..remembered(Some(&cluster))
    };
    let words = |memory: &Remembered| -> Vec<String> {
        let steps = plan(Some(&cluster), memory, &policy, now());
        steps.iter().map(ToString::to_string).collect()
    };
    let again = |minutes: i64| {
        let at = now() + SignedDuration::from_mins(minutes);
        format!("look again at {at}")
    };
    let store = "store events as ci/results/u/records/u-events".to_owned();
    assert_eq!(words(&copied(29)), [again(1)]);
    assert_eq!(words(&copied(30)), [store.clone(), again(30)]);
    let gone = Remembered {
        presence: Presence::Gone,
        ..copied(0)
    };
    // Events that cannot be read do not leave it open.
    assert_eq!(words(&gone), ["close: deleted", &store, "forget"]);
    let wanted = plan(Some(&cluster), &gone, &Policy::default(), now());
    assert_eq!(wanted.len(), 2, "{wanted:?}");
}
