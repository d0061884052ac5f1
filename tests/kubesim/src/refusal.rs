//! The answers that say no, in the form of `meta/v1` `Status`. It decides no rule; the rooms that do
//! pick one of these.

use serde_json::{Value, json};

/// A request the simulated server refuses, with the status code and reason a real one gives.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// HTTP status code of the answer, such as 404.
    pub code: u16,
    /// Machine-readable reason, such as `NotFound`; empty where the server gives none.
    pub reason: &'static str,
    /// What a person reads.
    pub message: String,
    /// The `details` of the Status.
    pub(crate) details: Option<Box<Value>>,
    /// Where a list that expired may go on.
    pub(crate) resume: Option<String>,
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
        let mut title = self.plural.to_owned();
        if !self.group.is_empty() {
            title = format!("{title}.{}", self.group);
        }
        if !self.name.is_empty() {
            title = format!("{title} \"{}\"", self.name);
        }
        title
    }

    fn details(&self) -> Value {
        let mut details = json!({});
        for (field, text) in [("name", self.name), ("kind", self.plural)] {
            if !text.is_empty() {
                details[field] = text.into();
            }
        }
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
            details: None,
            resume: None,
            retry_after: None,
        }
    }

    /// The request is not well formed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn not_found(about: About<'_>) -> Self {
        Self {
            details: Some(Box::new(about.details())),
            ..Self::new(404, "NotFound", format!("{} not found", about.title()))
        }
    }

    pub(crate) fn exists(about: About<'_>) -> Self {
        Self {
            details: Some(Box::new(about.details())),
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
            details: Some(Box::new(about.details())),
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
        let reason = match why.split(':').next().unwrap_or_default() {
            "Too long" => "FieldValueTooLong",
            "Required value" => "FieldValueRequired",
            "Forbidden" => "FieldValueForbidden",
            _ => "FieldValueInvalid",
        };
        details["causes"] = json!([{"reason": reason, "message": why, "field": field}]);
        Self {
            details: Some(Box::new(details)),
            ..Self::new(
                422,
                "Invalid",
                format!("{title} is invalid: {field}: {why}"),
            )
        }
    }

    pub(crate) fn forbidden(about: About<'_>, why: &str) -> Self {
        let message = match about.title().as_str() {
            "" => format!("forbidden: {why}"),
            title => format!("{title} is forbidden: {why}"),
        };
        Self {
            details: Some(Box::new(about.details())),
            ..Self::new(403, "Forbidden", message)
        }
    }

    pub(crate) fn gone(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(crate) fn too_large_version(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let details = json!({
                "retryAfterSeconds": 1,
                "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        });
        Self {
            details: Some(Box::new(details)),
            retry_after: Some(1),
            ..Self::new(504, "Timeout", message)
        }
    }

    /// The refusal as a `Status` object.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.as_ref().clone();
        }
        if let Some(resume) = &self.resume {
            status["metadata"]["continue"] = resume.as_str().into();
        }
        status["code"] = self.code.into();
        status
    }
}
