//! What the webhook answers.

use serde_json::{Value, json};

use super::{job, object};
use crate::admission::review;

fn ask(operation: &str, old: &Value, new: &Value) -> Value {
    let request = json!({"uid": "7", "operation": operation, "object": new, "oldObject": old});
    let mut answer = review(&json!({"request": request})).unwrap();
    assert_eq!(
        (&answer["kind"], &answer["response"]["uid"]),
        (&json!("AdmissionReview"), &json!("7"))
    );
    answer["response"].take()
}

#[test]
fn wf_03_a_cycle_is_refused_at_admission_with_its_steps() {
    let good = object(&json!({"steps": {"a": job(&[]), "b": job(&["a"])}}));
    assert_eq!(
        ask("CREATE", &Value::Null, &good),
        json!({"uid": "7", "allowed": true})
    );
    let bad = object(&json!({"steps": {"a": job(&["b"]), "b": job(&["a"]), "c": job(&["x"])}}));
    let message = "step \"c\": depends on \"x\", which is not a step; \
                   spec.steps: the dependencies are a cycle: a -> b -> a";
    assert_eq!(
        ask("CREATE", &Value::Null, &bad),
        json!({"uid": "7", "allowed": false, "status": {"code": 400, "reason": "BadRequest", "message": message}})
    );
    // What was let through is changed in other ways, and goes.
    let mut released = bad.clone();
    released["metadata"]["finalizers"] = json!([]);
    assert_eq!(ask("UPDATE", &bad, &released)["allowed"], true);
    assert_eq!(ask("DELETE", &bad, &Value::Null)["allowed"], true);
}

#[test]
fn wf_40_a_change_of_a_running_step_is_refused_at_admission() {
    let mut old = object(&json!({"steps": {"a": job(&[])}}));
    old["status"] = json!({"statuses": {"a": {"complete": false, "reference": {"kind": "Job"}}}});
    let mut new = old.clone();
    new["spec"]["steps"]["a"]["jobTemplate"]["spec"]["suspend"] = json!(true);
    let answer = ask("UPDATE", &old, &new);
    assert_eq!(
        answer["status"]["message"],
        "cannot modify running step \"a\""
    );
}

#[test]
fn what_is_no_review_is_no_answer() {
    assert!(review(&json!({"uid": "7"})).is_err());
    assert!(review(&json!([])).is_err());
}
