//! A fault for requests to come: what it does to them, and which ones it meets.

use std::time::Duration;

use crate::{calls::Call, refusal::Refusal};

/// How the requests a fault meets end.
#[derive(Debug, Clone)]
pub(crate) enum Effect {
    /// Refused before anything happens.
    Answer(Refusal),
    /// The connection breaks before anything happens.
    Break,
    /// The request takes effect, but the connection breaks before the answer.
    LoseAnswer,
    /// Nothing happens for a while, then what was asked for.
    Wait(Duration),
    /// It is read from how things were at this version.
    Stale(u64),
    /// No answer comes, and the connection stays open.
    Hang,
    /// The answer ends after so many bytes.
    Part(usize, Ending),
}

/// What comes after a part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Nothing, on a connection that stays open.
    Silence,
    /// The end of the connection.
    Break,
    /// The end of the answer, as if that were all of it.
    End,
}

/// A fault for the next requests that match it.
#[derive(Debug, Clone)]
pub struct Fault {
    pub(super) effect: Effect,
    verb: Option<String>,
    group: Option<String>,
    resource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    user: Option<String>,
    /// For ever without a number.
    pub(super) left: Option<u32>,
}

impl Fault {
    /// Answers with `code` instead of doing anything: 429 and 503 come with `Retry-After: 1`.
    pub fn status(code: u16) -> Self {
        let (reason, message) = match code {
            401 => ("Unauthorized", "Unauthorized"),
            403 => ("Forbidden", "forbidden by a simulated fault"),
            404 => (
                "NotFound",
                "the server could not find the requested resource",
            ),
            409 => (
                "Conflict",
                "the object has been modified; please apply your changes to the latest version and try again",
            ),
            410 => ("Expired", "too old resource version"),
            429 => (
                "TooManyRequests",
                "too many requests, please try again later",
            ),
            503 => (
                "ServiceUnavailable",
                "the server is currently unable to handle the request",
            ),
            504 => ("Timeout", "the request did not complete in time"),
            _ => (
                "InternalError",
                "an error on the server has prevented the request from succeeding",
            ),
        };
        let mut refusal = Refusal::new(code, reason, message);
        refusal.retry_after = matches!(code, 429 | 503).then_some(1);
        Self::new(Effect::Answer(refusal))
    }

    /// Refuses with an answer of the test's own, such as that of a quota.
    pub fn refusal(refusal: Refusal) -> Self {
        Self::new(Effect::Answer(refusal))
    }

    /// Refuses as an admission webhook does that does not like the object.
    pub fn denied_by_webhook(webhook: &str, why: &str) -> Self {
        let message = format!("admission webhook \"{webhook}\" denied the request: {why}");
        Self::refusal(Refusal::new(400, "", message))
    }

    /// Refuses as the server does when an admission webhook that must be asked does not answer.
    pub fn webhook_unreachable(webhook: &str) -> Self {
        let message = format!(
            "Internal error occurred: failed calling webhook \"{webhook}\": failed to call webhook: Post \"https://{webhook}.svc:443/\": context deadline exceeded"
        );
        Self::refusal(Refusal::new(500, "InternalError", message))
    }

    /// Refuses as the server does when the webhook that converts a kind between its versions fails.
    pub fn conversion_failed(api_version: &str, kind: &str) -> Self {
        let message = format!(
            "conversion webhook for {api_version}, Kind={kind} failed: Post \"https://converter.svc:443/\": connect: connection refused"
        );
        Self::refusal(Refusal::new(500, "", message))
    }

    /// Takes the request and never answers, as a half-open connection does.
    pub fn silent() -> Self {
        Self::new(Effect::Hang)
    }

    /// Answers with the first `bytes` bytes; then nothing comes, on a connection that stays open.
    pub fn stalled_after(bytes: usize) -> Self {
        Self::new(Effect::Part(bytes, Ending::Silence))
    }

    /// Answers with the first `bytes` bytes; then the connection breaks.
    pub fn broken_after(bytes: usize) -> Self {
        Self::new(Effect::Part(bytes, Ending::Break))
    }

    /// Answers with the first `bytes` bytes, as if they were the whole answer.
    pub fn ended_after(bytes: usize) -> Self {
        Self::new(Effect::Part(bytes, Ending::End))
    }

    /// Breaks the connection before the request takes effect.
    pub fn broken() -> Self {
        Self::new(Effect::Break)
    }

    /// Lets the request take effect, then breaks the connection instead of answering.
    pub fn lost_answer() -> Self {
        Self::new(Effect::LoseAnswer)
    }

    /// Lets the request wait before anything happens, while others go on.
    pub fn slow(delay: Duration) -> Self {
        Self::new(Effect::Wait(delay))
    }

    /// Answers a `get` or `list` from how things were at `version`, as a server does whose view
    /// lags behind; from the oldest state that is remembered, if that one is forgotten. Other
    /// requests are as ever.
    pub fn stale(version: u64) -> Self {
        Self::new(Effect::Stale(version))
    }

    /// Only for requests of this verb.
    #[must_use]
    pub fn verb(mut self, verb: &str) -> Self {
        self.verb = Some(verb.into());
        self
    }

    /// Only for requests on this resource, by its plural.
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// Only for requests on this API group.
    #[must_use]
    pub fn group(mut self, group: &str) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Only for requests in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only for requests of this user.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Only for requests on objects of this name.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// For the next `count` matching requests; one without this.
    #[must_use]
    pub fn times(mut self, count: u32) -> Self {
        self.left = Some(count);
        self
    }

    /// For every matching request, until `Faults::clear`.
    #[must_use]
    pub fn lasting(mut self) -> Self {
        self.left = None;
        self
    }

    /// Seconds in the `Retry-After` header of the answer.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        if let Effect::Answer(refusal) = &mut self.effect {
            refusal.retry_after = Some(seconds);
        }
        self
    }

    fn new(effect: Effect) -> Self {
        Self {
            effect,
            verb: None,
            group: None,
            resource: None,
            namespace: None,
            name: None,
            user: None,
            left: Some(1),
        }
    }

    pub(super) fn meets(&self, call: &Call) -> bool {
        let fits = |wanted: &Option<String>, found: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == found)
        };
        self.left != Some(0)
            && fits(&self.verb, call.verb)
            && fits(&self.group, &call.group)
            && fits(&self.resource, &call.resource)
            && fits(&self.namespace, &call.namespace)
            && fits(&self.name, &call.name)
            && fits(&self.user, &call.user)
    }
}
