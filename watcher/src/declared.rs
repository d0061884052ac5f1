//! Kinds that the configuration declares: what is read off their objects, as expressions.
//!
//! An expression that has no answer takes nothing for granted: the object is not finished, its
//! outcome is unknown, and the time is not stated.

use jiff::Timestamp;
use serde_json::Value;

use hindsight_filter::Expression;
use hindsight_run::{Completion, Kind, Outcome, StatusReader};

use crate::policy::rules::OUTCOMES;

/// The kinds of the core group whose objects are in no namespace. Of others, the cluster tells.
const CLUSTER_SCOPED: [&str; 4] = ["ComponentStatus", "Namespace", "Node", "PersistentVolume"];

/// How one kind is read.
#[derive(Debug, PartialEq)]
pub(crate) struct Declared {
    /// Whether the object will not change any more.
    pub(crate) done: Expression,
    /// How it ended, as one of [`OUTCOMES`].
    pub(crate) outcome: Option<Expression>,
    /// When it began, as RFC 3339 text.
    pub(crate) started: Option<Expression>,
    /// When it ended, as RFC 3339 text.
    pub(crate) ended: Option<Expression>,
    /// The id of the result that it belongs to.
    pub(crate) group: Option<Expression>,
}

impl Declared {
    /// Makes the kind known.
    ///
    /// # Errors
    /// If it is one of those that need no declaration, or names are missing.
    pub(crate) fn declare(
        self,
        group: &str,
        version: &str,
        kind: &str,
        plural: &str,
    ) -> Result<&'static Kind, String> {
        for (key, text) in [("version", version), ("kind", kind), ("plural", plural)] {
            let legal = |c: char| c.is_ascii_alphanumeric();
            if text.is_empty() || !text.chars().all(legal) {
                return Err(format!("{key}: `{text}` is not a valid name in Kubernetes"));
            }
        }
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
        if !group.chars().all(legal) {
            return Err(format!(
                "group: `{group}` is not a valid API group; it is like `apps` or `example.dev`, and \
                 empty for the core group"
            ));
        }
        if group.is_empty() && CLUSTER_SCOPED.contains(&kind) {
            return Err(format!(
                "kind: `{kind}` is cluster-scoped; only kinds whose objects are in namespaces can be \
                 stored"
            ));
        }
        let mut known = Kind::all().into_iter();
        if let Some(known) = known.find(|known| (known.group, known.kind) == (group, kind)) {
            return match known.completion {
                // The same configuration was read before.
                Completion::Declared(_) => Ok(known),
                _ => Err(format!("{} is known without it", known.data_type())),
            };
        }
        let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
        Ok(Kind::declare(Kind {
            group: leak(group),
            version: leak(version),
            kind: leak(kind),
            plural: leak(plural),
            alias: None,
            completion: Completion::Declared(Box::leak(Box::new(self))),
            other_types: &[],
        }))
    }
}

fn text(expression: Option<&Expression>, object: &Value) -> Option<String> {
    expression?.text(object, &[])
}

impl StatusReader for Declared {
    fn finish(&self, object: &Value) -> (bool, Outcome) {
        let done = self.done.holds(object, &[]);
        let outcome = match (done, &self.outcome) {
            (false, _) | (_, None) => Outcome::Unknown,
            (_, Some(outcome)) => {
                let said = text(Some(outcome), object).unwrap_or_default();
                let known = OUTCOMES.iter().find(|(name, _)| *name == said);
                known.map_or(Outcome::Unknown, |(_, outcome)| *outcome)
            }
        };
        (done, outcome)
    }

    fn started(&self, object: &Value) -> Option<Timestamp> {
        text(self.started.as_ref(), object)?.parse().ok()
    }

    fn ended(&self, object: &Value) -> Option<Timestamp> {
        text(self.ended.as_ref(), object)?.parse().ok()
    }

    fn group(&self, object: &Value) -> Option<String> {
        text(self.group.as_ref(), object)
    }
}
