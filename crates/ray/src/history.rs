//! Clusters as the history keeps them: the last state of a RayCluster object, and a list of events.

use hindsight_proto::ray_v1::Cluster;
use hindsight_run::{View, keys};
use k8s_openapi::api::core::v1::Event;
use prost_types::Timestamp;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    events,
    names::{MANAGED_BY, MANAGER},
    object::{read, timestamp},
};

/// The kind of clusters, whatever the version of their objects.
pub const KIND: &str = "RayCluster";

pub use crate::object::USER;

/// The label of RayCluster objects that are shown, and its value.
#[must_use]
pub fn managed_label() -> (&'static str, &'static str) {
    (MANAGED_BY, MANAGER)
}

/// A stored list of events. Each is read by itself, so that one of another form leaves the others.
#[derive(Deserialize)]
struct EventList<'a> {
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

/// A cluster of the history whose events are not read yet.
#[derive(Debug)]
pub struct Stored {
    cluster: Cluster,
    uid: String,
}

impl Stored {
    /// The cluster of a RayCluster object. One that is gone has the time of its deletion: the one that the object says, else
    /// the one at which the watcher noticed.
    #[must_use]
    pub fn read(object: &Value) -> Self {
        let view = View::new(object);
        let mut cluster = read(object);
        // Kubernetes tells whole seconds; when the watcher noticed is finer.
        cluster.deleted_at = view.ended().map(|ended| Timestamp {
            nanos: 0,
            ..timestamp(ended)
        });
        // They are of the record, not of the object.
        for key in [keys::CLOSED, keys::CLOSED_AT, keys::CLOSED_UID] {
            cluster.annotations.remove(key);
        }
        let uid = view.uid().unwrap_or_default().to_owned();
        Self { cluster, uid }
    }

    /// The cluster with the events about it in the JSON of a stored list, newest last.
    #[must_use]
    pub fn with_events(self, list: &[u8]) -> Cluster {
        let list = serde_json::from_slice::<EventList>(list);
        let items = list.map(|list| list.items).unwrap_or_default();
        let about = items.into_iter().filter_map(|event| {
            let event: Event = serde_json::from_str(event.get()).ok()?;
            (event.involved_object.uid.as_deref() == Some(self.uid.as_str())).then_some(event)
        });
        Cluster {
            events: events::in_order(about.collect()),
            ..self.cluster
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_of_another_form_leaves_the_others() {
        let object = json!({"metadata": {"name": "a", "uid": "u"}});
        let event = |reason: &str, uid: &str, count: Value| {
            json!({
                "metadata": {"name": reason}, "involvedObject": {"uid": uid}, "reason": reason, "count": count,
            })
        };
        let items = [
            event("first", "u", 1.into()),
            event("odd", "u", "many".into()),
            event("foreign", "v", 1.into()),
            event("last", "u", 3.into()),
        ];
        let reasons = |events: &str| {
            let told = Stored::read(&object).with_events(events.as_bytes()).events;
            told.into_iter()
                .map(|event| event.reason)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            reasons(&json!({ "items": items }).to_string()),
            ["first", "last"]
        );
        for none in ["", "{}", "[1]", r#"{"items": null}"#, r#"{"items": {}}"#] {
            assert!(reasons(none).is_empty(), "{none}");
        }
    }
}
