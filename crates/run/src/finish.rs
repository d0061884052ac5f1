//! Whether a run is finished, as each kind says it.

use serde_json::Value;

use super::{Completion, Outcome, json};

/// What an object says about its own end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finish<'a> {
    /// The run will not change any more.
    pub done: bool,
    /// How it ended; [`Outcome::Unknown`] while it has not.
    pub outcome: Outcome,
    /// The reason the object gives.
    pub reason: Option<&'a str>,
    /// The message the object gives.
    pub message: Option<&'a str>,
}

impl<'a> Finish<'a> {
    /// Reads the end of `object`, of a kind that says it by `completion`.
    pub fn of(object: &'a Value, completion: Completion) -> Self {
        match completion {
            Completion::Succeeded => by_succeeded(object),
            Completion::CompleteOrFailed => by_complete_or_failed(object),
            Completion::Phase => by_phase(object),
            Completion::RayJob => by_ray_job(object),
            Completion::Deletion => Self {
                done: json::at(object, "/metadata/deletionTimestamp").is_some(),
                ..Self::OPEN
            },
            Completion::Never => Self::OPEN,
            Completion::Declared(reader) => {
                let (done, outcome) = reader.finish(object);
                Self {
                    done,
                    outcome: if done { outcome } else { Outcome::Unknown },
                    ..Self::OPEN
                }
            }
        }
    }

    const OPEN: Finish<'static> = Finish {
        done: false,
        outcome: Outcome::Unknown,
        reason: None,
        message: None,
    };
}

fn conditions(object: &Value) -> &[Value] {
    json::at(object, "/status/conditions")
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn condition<'a>(object: &'a Value, of_type: &str) -> Option<&'a Value> {
    conditions(object)
        .iter()
        .find(|c| text(c, "type") == Some(of_type))
}

/// The reasons come first because they are finer than the condition's status; a reason that
/// is not listed falls back to the status, so that a new one is never `Unknown`.
fn by_succeeded(object: &Value) -> Finish<'_> {
    let Some(condition) = condition(object, "Succeeded") else {
        return Finish::OPEN;
    };
    let status = text(condition, "status").unwrap_or("Unknown");
    let reason = text(condition, "reason");
    let done = matches!(status, "True" | "False");
    let outcome = match (done, reason.unwrap_or_default()) {
        (false, _) => Outcome::Unknown,
        (_, "TaskRunTimeout" | "PipelineRunTimeout" | "CustomRunTimedOut" | "RunTimedOut") => {
            Outcome::Timeout
        }
        (
            _,
            "TaskRunCancelled"
            | "Cancelled"
            | "PipelineRunCancelled"
            | "CustomRunCancelled"
            | "CancelledRunningFinally"
            | "StoppedRunningFinally"
            | "RunCancelled",
        ) => Outcome::Cancelled,
        _ if status == "True" => Outcome::Success,
        _ => Outcome::Failure,
    };
    Finish {
        done,
        outcome,
        reason,
        message: text(condition, "message"),
    }
}

fn by_complete_or_failed(object: &Value) -> Finish<'_> {
    let is_true = |c: &&Value| text(c, "status") == Some("True");
    let complete = condition(object, "Complete").filter(is_true);
    let failed = condition(object, "Failed").filter(is_true);
    let (condition, outcome) = match (failed, complete) {
        (Some(c), _) if text(c, "reason") == Some("DeadlineExceeded") => (c, Outcome::Timeout),
        (Some(c), _) => (c, Outcome::Failure),
        (None, Some(c)) => (c, Outcome::Success),
        (None, None) => {
            return Finish::OPEN;
        }
    };
    let reason = text(condition, "reason").or_else(|| text(condition, "type"));
    Finish {
        done: true,
        outcome,
        reason,
        message: text(condition, "message"),
    }
}

fn by_phase(object: &Value) -> Finish<'_> {
    let status = object.get("status").unwrap_or(&Value::Null);
    let phase = text(status, "phase").filter(|phase| !phase.is_empty());
    let stopped = matches!(
        json::at(object, "/spec/shutdown").and_then(Value::as_str),
        Some("Stop" | "Terminate")
    );
    let message = text(status, "message");
    let outcome = match phase {
        Some("Succeeded") => Outcome::Success,
        Some("Failed" | "Error") if stopped => Outcome::Cancelled,
        Some("Failed" | "Error") if message == Some("Step exceeded its deadline") => {
            Outcome::Timeout
        }
        Some("Failed" | "Error") => Outcome::Failure,
        _ => Outcome::Unknown,
    };
    Finish {
        done: outcome != Outcome::Unknown,
        outcome,
        reason: phase,
        message,
    }
}

/// A job that may be tried again is not finished: its deployment says when no more will come.
/// Operators that are too old to say are believed about the job itself.
fn by_ray_job(object: &Value) -> Finish<'_> {
    let status = object.get("status").unwrap_or(&Value::Null);
    let filled = |key| text(status, key).filter(|text| !text.is_empty());
    let (job, deployment) = (filled("jobStatus"), filled("jobDeploymentStatus"));
    let is_over = |job| matches!(job, "SUCCEEDED" | "FAILED" | "STOPPED");
    let done = match deployment {
        Some(deployment) => matches!(deployment, "Complete" | "Failed"),
        None => job.is_some_and(is_over),
    };
    let reason = filled("reason");
    let outcome = match (done, job, reason) {
        (false, ..) => Outcome::Unknown,
        (_, _, Some("DeadlineExceeded")) => Outcome::Timeout,
        (_, Some("SUCCEEDED"), _) if deployment != Some("Failed") => Outcome::Success,
        (_, Some("STOPPED"), _) => Outcome::Cancelled,
        _ => Outcome::Failure,
    };
    Finish {
        done,
        outcome,
        reason: reason.or(job).or(deployment),
        message: filled("message"),
    }
}
