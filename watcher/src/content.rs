//! Whether two versions of an object say the same about the run.
//!
//! An object changes without the run changing: the API server counts versions, controllers
//! put finalizers on and take them off, and the watcher itself writes annotations. Only what
//! is left after taking those away is the run's content, and only that must be stored again
//! when it changes, or be equal before the object may be collected.

use std::fmt;

use serde_json::{Number, Value};
use sha2::{Digest as _, Sha256};

use hindsight_run::keys;

use crate::policy::STORED_DIGEST;

/// Annotation of Tekton Results' watcher: where the run's log is kept.
pub const LOG: &str = "results.tekton.dev/log";
/// Annotation of Tekton Results' watcher: where the run's events are kept.
pub const EVENT_LIST: &str = "results.tekton.dev/eventlist";

/// Whether a part of the run is not in its object: Argo keeps the status of the nodes of a very large
/// workflow in a database of its own, and deletes it there when the object goes.
pub fn is_partial(object: &Value) -> bool {
    let is_argo = object["apiVersion"]
        .as_str()
        .is_some_and(|version| version.starts_with("argoproj.io/"));
    let offloaded = object.pointer("/status/offloadNodeStatusVersion");
    is_argo
        && offloaded
            .and_then(Value::as_str)
            .is_some_and(|v| !v.is_empty())
}

/// Key of what stands for an object that cannot be read; its value says why. No field of an object of
/// Kubernetes has a slash in its name.
pub const UNREADABLE: &str = "hindsight.dev/unreadable";

/// Fields of `metadata` that are not content. `deletionTimestamp` is content: that somebody
/// asked for the end of a run is worth keeping.
const NOT_CONTENT: &[&str] = &[
    "deletionGracePeriodSeconds",
    "finalizers",
    "managedFields",
    "resourceVersion",
];

/// Annotations that watchers write about a run; they say where it is stored, not what it is.
/// `resultAnnotations` and `recordSummaryAnnotations` are the user's and therefore content.
const BOOKKEEPING: &[&str] = &[
    keys::RESULT,
    keys::RECORD,
    keys::STORED,
    keys::CHILD_READY,
    LOG,
    EVENT_LIST,
    STORED_DIGEST,
];

/// SHA-256 of an object's content. It does not depend on the order of keys or on spaces, so
/// that a copy can be compared that a server stored as a JSON value and not as bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `object`'s content.
    pub fn of(object: &Value) -> Self {
        let mut hash = Sha256::new();
        feed(&mut hash, object, Place::Root);
        Self(hash.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Whether `a` and `b` are the same run in the same state: equal but for bookkeeping.
///
/// The UID is content, so two runs never are the same, whatever their names.
pub fn same_content(a: &Value, b: &Value) -> bool {
    Digest::of(a) == Digest::of(b)
}

/// Where in an object a value stands, as far as something there is not content.
#[derive(Debug, Clone, Copy)]
enum Place {
    Root,
    Metadata,
    Annotations,
    Elsewhere,
}

impl Place {
    /// The place of the member `key`, or `None` if that is not content.
    fn member(self, key: &str, value: &Value) -> Option<Self> {
        match self {
            Self::Root if key == "metadata" => Some(Self::Metadata),
            Self::Metadata if NOT_CONTENT.contains(&key) => None,
            Self::Metadata if key == "annotations" => {
                // Without the bookkeeping an empty map may be left where none was before.
                let left = value
                    .as_object()
                    .is_none_or(|map| map.keys().any(|key| !BOOKKEEPING.contains(&key.as_str())));
                left.then_some(Self::Annotations)
            }
            Self::Annotations if BOOKKEEPING.contains(&key) => None,
            _ => Some(Self::Elsewhere),
        }
    }
}

fn feed(hash: &mut Sha256, value: &Value, place: Place) {
    match value {
        Value::Null => hash.update(b"n"),
        Value::Bool(true) => hash.update(b"t"),
        Value::Bool(false) => hash.update(b"f"),
        Value::Number(number) => {
            hash.update(b"#");
            hash.update(plain(number));
            hash.update(b";");
        }
        Value::String(text) => feed_text(hash, text),
        Value::Array(items) => {
            hash.update(b"[");
            for item in items {
                feed(hash, item, Place::Elsewhere);
            }
            hash.update(b"]");
        }
        Value::Object(map) => {
            let mut members: Vec<(&str, &Value, Place)> = map
                .iter()
                .filter_map(|(key, value)| Some((key.as_str(), value, place.member(key, value)?)))
                .collect();
            members.sort_unstable_by_key(|(key, ..)| *key);
            hash.update(b"{");
            for (key, value, place) in members {
                feed_text(hash, key);
                feed(hash, value, place);
            }
            hash.update(b"}");
        }
    }
}

fn feed_text(hash: &mut Sha256, text: &str) {
    hash.update(b"s");
    hash.update(text.len().to_le_bytes());
    hash.update(text.as_bytes());
}

/// One spelling for each number: databases give 1 back for 1.0.
fn plain(number: &Number) -> String {
    match number.as_f64() {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is whole and below 2^53"
        )]
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9.0e15 => {
            (float as i64).to_string()
        }
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::same_content;

    #[test]
    fn bookkeeping_is_not_content() {
        let before = json!({"kind": "TaskRun", "metadata": {"uid": "u", "resourceVersion": "1"}});
        let after = json!({
            "metadata": {
                "resourceVersion": "2", "managedFields": [{}], "finalizers": ["x"],
                "annotations": {
                    "results.tekton.dev/result": "r", "results.tekton.dev/record": "c",
                    "results.tekton.dev/stored": "true",
                    "results.tekton.dev/childReadyForDeletion": "true"},
                "uid": "u"},
            "kind": "TaskRun"});
        assert!(same_content(&before, &after));
    }

    #[test]
    fn what_the_run_or_its_user_says_is_content() {
        let run = json!({"metadata": {"uid": "u"}, "status": {"n": 1}});
        for other in [
            json!({"metadata": {"uid": "v"}, "status": {"n": 1}}),
            json!({"metadata": {"uid": "u"}, "status": {"n": 2}}),
            json!({"metadata": {"uid": "u"}, "status": {"n": "1"}}),
            json!({"metadata": {"uid": "u"}, "status": {"n": [1]}}),
            json!({"metadata": {"uid": "u", "deletionTimestamp": "t"}, "status": {"n": 1}}),
            json!({"metadata": {"uid": "u", "annotations": {"a": "b"}}, "status": {"n": 1}}),
            json!({"metadata": {"uid": "u", "annotations":
                {"results.tekton.dev/resultAnnotations": "{}"}}, "status": {"n": 1}}),
            json!({"metadata": {"uid": "u"}, "status": {"n": 1, "metadata": {"finalizers": []}}}),
        ] {
            assert!(!same_content(&run, &other), "{other}");
        }
    }

    #[test]
    fn a_whole_number_has_one_spelling() {
        assert!(same_content(&json!({"n": 1.0}), &json!({"n": 1})));
        assert!(!same_content(&json!({"n": 1.5}), &json!({"n": 1})));
    }
}
