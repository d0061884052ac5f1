//! Runs that left the cluster before they were seen to finish. The last state that is stored of such
//! a run gets annotations that say so; without them it would be running in the history for ever.

use jiff::Timestamp;
use serde_json::Value;

use super::{View, keys};
use hindsight_proto::time;

/// That a run left the cluster before it was seen to finish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed<'a> {
    /// When it was found to be gone.
    pub at: Timestamp,
    /// Why its end is not known.
    pub reason: &'a str,
}

impl<'a> View<'a> {
    /// What the stored object says of an end that was not seen. `None` if the object tells its end
    /// itself, or has the annotations of another run.
    pub fn closed(&self) -> Option<Closed<'a>> {
        let reason = self.annotation(keys::CLOSED)?;
        let at = self.annotation(keys::CLOSED_AT).and_then(time::parse)?;
        let is_own = self.uid().is_some() && self.annotation(keys::CLOSED_UID) == self.uid();
        (is_own && !self.finish().done).then_some(Closed { at, reason })
    }

    /// The object with annotations that say so. `None` if the object tells its end itself, was closed
    /// before, or has no UID.
    pub fn close(&self, closed: Closed<'_>) -> Option<Value> {
        if self.finish().done || self.closed().is_some() {
            return None;
        }
        let uid = self.uid()?.to_owned();
        let mut object = self.object().clone();
        let metadata = object.get_mut("metadata")?.as_object_mut()?;
        let mut annotations = self.annotations().cloned().unwrap_or_default();
        let texts = [
            (keys::CLOSED, closed.reason.to_owned()),
            (keys::CLOSED_AT, closed.at.to_string()),
            (keys::CLOSED_UID, uid),
        ];
        for (key, text) in texts {
            annotations.insert(key.to_owned(), Value::String(text));
        }
        metadata.insert("annotations".to_owned(), Value::Object(annotations));
        Some(object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const AT: Timestamp = Timestamp::constant(1_772_000_000, 0);

    const CLOSED: Closed<'_> = Closed {
        at: AT,
        reason: "deleted before it finished",
    };

    fn running() -> Value {
        json!({
            "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
            "metadata": {"name": "build", "uid": "u", "annotations": {"a": "b"}},
            "status": {"startTime": "2026-02-25T06:00:00Z",
                "conditions": [{"type": "Succeeded", "status": "Unknown", "reason": "Running"}]},
        })
    }

    #[test]
    fn a_closed_run_has_an_end_and_a_reason_and_no_outcome() {
        let closed = View::new(&running()).close(CLOSED).unwrap();
        let view = View::new(&closed);
        assert_eq!(view.closed(), Some(CLOSED));
        assert_eq!(view.ended(), Some(AT));
        assert_eq!(view.annotation("a"), Some("b"));
        assert!(!view.finish().done);
        assert_eq!(view.close(CLOSED), None);
    }

    #[test]
    fn a_run_that_tells_its_end_is_not_closed() {
        let mut done = View::new(&running()).close(CLOSED).unwrap();
        done["status"]["conditions"][0]["status"] = json!("True");
        assert_eq!(View::new(&done).closed(), None);
        assert_eq!(View::new(&done).ended(), None);
        assert_eq!(View::new(&done).close(CLOSED), None);
    }

    #[test]
    fn annotations_of_another_run_close_nothing() {
        let mut copied = View::new(&running()).close(CLOSED).unwrap();
        copied["metadata"]["uid"] = json!("v");
        assert_eq!(View::new(&copied).closed(), None);
        assert_eq!(View::new(&copied).ended(), None);
        let again = View::new(&copied).close(CLOSED).unwrap();
        assert_eq!(View::new(&again).closed(), Some(CLOSED));
    }
}
