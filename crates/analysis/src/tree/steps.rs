//! The steps of a TaskRun.

use hindsight_proto::time;
use hindsight_run::json;
use serde_json::Value;

use super::{MAX_MESSAGE, MAX_NAME, MAX_STEPS, State, Step, cut};

/// What `status.steps` of a TaskRun says.
pub(super) fn of(status: &Value) -> Vec<Step> {
    let list = status.get("steps").and_then(Value::as_array);
    let list = list.map_or(&[][..], Vec::as_slice);
    list.iter().take(MAX_STEPS).map(step).collect()
}

fn step(step: &Value) -> Step {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let name = cut(&text(step.get("name")), MAX_NAME);
    let why = text(step.get("terminationReason"));
    let Some(end) = step.get("terminated") else {
        let began = json::at(step, "/running/startedAt").and_then(Value::as_str);
        return Step {
            name,
            reason: cut(&text(json::at(step, "/waiting/reason")), MAX_NAME),
            message: message(&text(json::at(step, "/waiting/message"))),
            started: began.and_then(time::parse),
            ..Step::default()
        };
    };
    let at = |key: &str| end.get(key).and_then(Value::as_str).and_then(time::parse);
    let code = end.get("exitCode").and_then(Value::as_i64);
    let reason = text(end.get("reason"));
    let state = match (why.as_str(), code) {
        ("Skipped", _) => State::Skipped,
        ("TimeoutExceeded", _) => State::Timeout,
        ("Cancelled", _) => State::Cancelled,
        ("Continued", _) | (_, Some(0)) => State::Success,
        (_, Some(_)) => State::Failure,
        (_, None) => State::Unknown,
    };
    // The runtime says why a process was killed; the controller says what that was for.
    let reason = match reason.as_str() {
        "" | "Error" | "Completed" if !why.is_empty() => why,
        _ => reason,
    };
    Step {
        name,
        state,
        exit_code: code.and_then(|code| i32::try_from(code).ok()),
        reason: cut(&reason, MAX_NAME),
        message: message(&text(end.get("message"))),
        started: at("startedAt"),
        ended: at("finishedAt"),
    }
}

/// What is for people of a termination message; controllers pass results in it as JSON.
fn message(text: &str) -> String {
    match text.trim_start().starts_with("[{") {
        true => String::new(),
        false => cut(text, MAX_MESSAGE),
    }
}
