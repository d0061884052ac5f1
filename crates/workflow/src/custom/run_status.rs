//! The status of a custom run. Its controller writes it; fields that it does not know stay as they are.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::next::Event;

/// The type of the one condition that Tekton asks for.
const SUCCEEDED: &str = "Succeeded";

/// How far a custom run is, as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunStatus(Map<String, Value>);

/// The workflow of the attempt that is under way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claim {
    /// Name of the workflow.
    pub name: String,
    /// UID of the workflow; empty where it is yet to be created.
    pub uid: String,
}

impl RunStatus {
    pub(crate) fn read(status: Option<&Value>) -> Self {
        let fields = status.and_then(Value::as_object);
        Self(fields.cloned().unwrap_or_default())
    }

    /// The status as it is written.
    #[must_use]
    pub fn value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub(crate) fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    pub(crate) fn unset(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Whether the run has ended: its condition is `True` or `False`.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.of_condition("status"), Some("True" | "False"))
    }

    /// Whether the run has ended well.
    #[must_use]
    pub fn is_successful(&self) -> bool {
        self.of_condition("status") == Some("True")
    }

    /// The reason of its condition.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.of_condition("reason")
    }

    pub(crate) fn message(&self) -> Option<&str> {
        self.of_condition("message")
    }

    /// How many attempts have failed before the one that is under way.
    #[must_use]
    pub fn attempt(&self) -> usize {
        self.list("retriesStatus").map_or(0, Vec::len)
    }

    /// The workflow of the attempt that is under way, or that was the last one.
    #[must_use]
    pub fn claim(&self) -> Option<Claim> {
        let workflow = self.0.get("extraFields")?.get("workflow")?;
        let text = |field: &str| workflow[field].as_str().unwrap_or_default().to_owned();
        Some(Claim {
            name: text("name"),
            uid: text("uid"),
        })
    }

    /// Whether the end of the workflow of this name is still to be written.
    #[must_use]
    pub fn awaits(&self, workflow: &str) -> bool {
        !self.is_done() && self.claim().is_some_and(|claim| claim.name == workflow)
    }

    pub(crate) fn start_time(&self) -> Option<Timestamp> {
        self.0.get("startTime")?.as_str()?.parse().ok()
    }

    pub(crate) fn set_claim(&mut self, claim: &Claim) {
        let mut workflow = json!({"name": claim.name});
        if !claim.uid.is_empty() {
            workflow["uid"] = claim.uid.as_str().into();
        }
        let extra = self.0.entry("extraFields").or_insert_with(|| json!({}));
        if !extra.is_object() {
            *extra = json!({});
        }
        extra["workflow"] = workflow;
    }

    pub(crate) fn start(&mut self, now: Timestamp) {
        self.0
            .insert("startTime".to_owned(), now.to_string().into());
    }

    pub(crate) fn complete(&mut self, at: Timestamp) {
        self.0
            .insert("completionTime".to_owned(), at.to_string().into());
    }

    pub(crate) fn set_results(&mut self, results: &[(String, String)]) {
        let results = results.iter();
        let results = results.map(|(name, value)| json!({"name": name, "value": value}));
        self.0.insert("results".to_owned(), results.collect());
    }

    /// Sets the condition. The time of its transition stays while its status does.
    pub(crate) fn say(&mut self, status: &str, reason: &str, message: &str, now: Timestamp) {
        let since = match self.succeeded() {
            Some(known) if known["status"] == status => known["lastTransitionTime"].clone(),
            _ => now.to_string().into(),
        };
        let condition = json!({
            "type": SUCCEEDED, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": since,
        });
        let mut conditions = self.list("conditions").cloned().unwrap_or_default();
        match conditions
            .iter_mut()
            .find(|known| known["type"] == SUCCEEDED)
        {
            Some(known) => *known = condition,
            None => conditions.push(condition),
        }
        self.0.insert("conditions".to_owned(), conditions.into());
    }

    /// Puts what is known of this attempt among those that have failed, and begins with none.
    pub(crate) fn put_aside(&mut self) {
        let mut attempts = self.list("retriesStatus").cloned().unwrap_or_default();
        let fields = [
            "conditions",
            "startTime",
            "completionTime",
            "results",
            "extraFields",
        ];
        let mut attempt = Map::new();
        for field in fields {
            let taken = match field {
                "conditions" => self.0.get(field).cloned(),
                _ => self.0.remove(field),
            };
            attempt.extend(taken.map(|value| (field.to_owned(), value)));
        }
        attempts.push(Value::Object(attempt));
        self.0.insert("retriesStatus".to_owned(), attempts.into());
    }

    /// What this status tells of whom had `old` before.
    pub(crate) fn told_since(&self, old: &Self) -> Option<Event> {
        let message = self.message().unwrap_or_default();
        if self.is_done() {
            let reason = self.reason().unwrap_or_default();
            return Some(match self.is_successful() {
                true => Event::normal("Succeeded", message),
                false => Event::warning("Failed", format!("{reason}: {message}")),
            });
        }
        if self.attempt() > old.attempt() {
            return Some(Event::warning("Retried", message));
        }
        let is_started = old.start_time().is_none() && self.start_time().is_some();
        is_started.then(|| Event::normal("Started", message))
    }

    fn list(&self, field: &str) -> Option<&Vec<Value>> {
        self.0.get(field)?.as_array()
    }

    fn of_condition(&self, field: &str) -> Option<&str> {
        self.succeeded()?[field].as_str()
    }

    fn succeeded(&self) -> Option<&Value> {
        let mut conditions = self.list("conditions")?.iter();
        conditions.find(|condition| condition["type"] == SUCCEEDED)
    }
}
