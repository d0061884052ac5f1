//! What the validating webhook answers to an AdmissionReview.

use serde_json::{Value, json};

use crate::{change::check_change, object::Workflow, validate::check_spec};

/// The answer to a review, or why it is none.
///
/// A refusal has the status 400, which `kubectl` shows as `BadRequest` with all that is wrong.
pub fn review(review: &Value) -> Result<Value, String> {
    let request = &review["request"];
    let uid = request["uid"].as_str();
    let uid = uid.ok_or("it is no AdmissionReview: request.uid is missing")?;
    let problems = problems(request);
    let mut response = json!({"uid": uid, "allowed": problems.is_empty()});
    if !problems.is_empty() {
        let message = problems.join("; ");
        response["status"] = json!({"code": 400, "reason": "BadRequest", "message": message});
    }
    Ok(json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
    }))
}

/// Everything that is wrong with what is asked for.
fn problems(request: &Value) -> Vec<String> {
    let is_whole = matches!(request["subResource"].as_str(), None | Some(""));
    match request["operation"].as_str() {
        Some("CREATE") if is_whole => match Workflow::read(&request["object"]) {
            Ok(workflow) => check_spec(&workflow),
            Err(why) => vec![why],
        },
        Some("UPDATE") if is_whole => check_change(&request["oldObject"], &request["object"]),
        _ => Vec::new(),
    }
}
