//! The answers that say no, in the form of `meta/v1` `Status`. It decides no rule; the rooms that do
//! pick one of these.

use serde_json::{Value, json};

/// A request the simulated server refuses, with the status code and reason a real one gives.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, such as `NotFound`.
    pub reason: &'static str,
    /// What a person reads.
    pub message: String,
    /// The `details` of the Status; null when there is none.
    pub details: Value,
    /// The `metadata` of the Status; an empty object for most.
    pub metadata: Value,
    /// Seconds for the `Retry-After` header.
    pub retry_after: Option<u32>,
}

/// What a refusal is about: `taskruns.tekton.dev "a"`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) group: &'a str,
    pub(crate) plural: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
}

impl About<'_> {
    fn title(&self) -> String {
        match self.group {
            "" => format!("{} \"{}\"", self.plural, self.name),
            group => format!("{}.{group} \"{}\"", self.plural, self.name),
        }
    }

    fn details(&self) -> Value {
        let mut details = json!({"name": self.name, "kind": self.plural});
        if !self.group.is_empty() {
            details["group"] = self.group.into();
        }
        details
    }
}

impl Refusal {
    /// A refusal with any code and reason.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: Value::Null,
            metadata: json!({}),
            retry_after: None,
        }
    }

    /// The request is not well formed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn not_found(about: About<'_>) -> Self {
        Self {
            details: about.details(),
            ..Self::new(404, "NotFound", format!("{} not found", about.title()))
        }
    }

    pub(crate) fn exists(about: About<'_>) -> Self {
        Self {
            details: about.details(),
            ..Self::new(
                409,
                "AlreadyExists",
                format!("{} already exists", about.title()),
            )
        }
    }

    pub(crate) fn conflict(about: About<'_>, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {}: {why}", about.title());
        Self {
            details: about.details(),
            ..Self::new(409, "Conflict", message)
        }
    }

    pub(crate) fn invalid(about: About<'_>, field: &str, why: &str) -> Self {
        let title = match about.group {
            "" => format!("{} \"{}\"", about.kind, about.name),
            group => format!("{}.{group} \"{}\"", about.kind, about.name),
        };
        let mut details = about.details();
        details["kind"] = about.kind.into();
        details["causes"] =
            json!([{"reason": "FieldValueInvalid", "message": why, "field": field}]);
        Self {
            details,
            ..Self::new(
                422,
                "Invalid",
                format!("{title} is invalid: {field}: {why}"),
            )
        }
    }

    pub(crate) fn forbidden(about: About<'_>, why: &str) -> Self {
        Self {
            details: about.details(),
            ..Self::new(
                403,
                "Forbidden",
                format!("{} is forbidden: {why}", about.title()),
            )
        }
    }

    pub(crate) fn gone(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(crate) fn too_large_version(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        Self {
            details: json!({
                "retryAfterSeconds": 1,
                "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            }),
            retry_after: Some(1),
            ..Self::new(504, "Timeout", message)
        }
    }

    /// The refusal as a `Status` object.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        });
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status["code"] = self.code.into();
        status
    }
}
