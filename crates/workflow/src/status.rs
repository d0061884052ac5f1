//! The status of a workflow, which the controller alone writes.

use std::{collections::BTreeMap, fmt};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::spec::ObjectReference;

/// Type of the condition of a workflow all of whose steps are complete.
pub(crate) const COMPLETE: &str = "Complete";
/// Type of the condition of a workflow that has failed.
pub(crate) const FAILED: &str = "Failed";
/// Type of the condition of a workflow that starts no further steps and fails once those that run have
/// ended. A Job has a condition of the same name and meaning.
pub(crate) const FAILURE_TARGET: &str = "FailureTarget";

/// How far a workflow is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// `Running`, `Complete` or `Failed`: the conditions in one word, for lists.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// Steps that are complete, of all, as in `3/20`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub progress: String,
    /// At most one of each type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// When the controller saw the workflow first; it does not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// When the workflow ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
    /// The steps that were started, by their names.
    #[serde(default)]
    pub statuses: BTreeMap<String, StepStatus>,
}

/// How far a step is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct StepStatus {
    /// Whether the step has succeeded; it does not become false again.
    #[serde(default)]
    pub complete: bool,
    /// The Job, or the external object. Without a UID it is yet to be created, or to be found.
    #[serde(default)]
    pub reference: ObjectReference,
}

/// A fact about a workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// `Complete`, `Failed` or `FailureTarget`.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// When it was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<Timestamp>,
    /// When it became so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
    /// Why, as one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Why a workflow failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A Job failed, or cannot be created.
    StepFailed,
    /// It took longer than its deadline.
    DeadlineExceeded,
    /// An external object failed.
    ExternalWorkflowFailed,
    /// It is not valid.
    InvalidSpec,
    /// A Job that is not its own has the name of one of its Jobs.
    JobNameConflict,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Status {
    /// Whether the workflow has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.is(COMPLETE) || self.is(FAILED)
    }

    /// Whether the workflow has ended and failed.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        self.is(FAILED)
    }

    /// The condition that says why the workflow failed or is going to.
    #[must_use]
    pub fn failure(&self) -> Option<&Condition> {
        self.condition(FAILED)
            .or_else(|| self.condition(FAILURE_TARGET))
    }

    /// Whether this step has succeeded.
    #[must_use]
    pub fn is_complete(&self, step: &str) -> bool {
        self.statuses.get(step).is_some_and(|step| step.complete)
    }

    fn is(&self, r#type: &str) -> bool {
        self.condition(r#type).is_some()
    }

    fn condition(&self, r#type: &str) -> Option<&Condition> {
        self.conditions
            .iter()
            .find(|condition| condition.r#type == r#type && condition.status == "True")
    }

    /// Brings up to date what follows from the rest.
    pub(crate) fn sum_up<'s>(&mut self, steps: impl Iterator<Item = &'s String>) {
        let phase = match (self.is_failed(), self.is_finished()) {
            (true, _) => FAILED,
            (false, true) => COMPLETE,
            (false, false) => "Running",
        };
        phase.clone_into(&mut self.phase);
        let (mut complete, mut all) = (0_usize, 0_usize);
        for step in steps {
            all += 1;
            complete += usize::from(self.is_complete(step));
        }
        self.progress = format!("{complete}/{all}");
    }

    /// Makes a condition true.
    pub(crate) fn say(
        &mut self,
        r#type: &str,
        now: Timestamp,
        reason: Option<String>,
        message: Option<String>,
    ) {
        self.conditions.retain(|known| known.r#type != r#type);
        self.conditions.push(Condition {
            r#type: r#type.to_owned(),
            status: "True".to_owned(),
            last_probe_time: Some(now),
            last_transition_time: Some(now),
            reason,
            message,
        });
    }
}
