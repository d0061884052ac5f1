//! Kubernetes events about RayCluster objects.

use std::collections::BTreeMap;

use hindsight_proto::ray_v1::ClusterEvent;
use k8s_openapi::api::core::v1::Event;

use crate::object::timestamp;

/// Events about one object, newest last.
pub(crate) fn in_order(mut events: Vec<Event>) -> Vec<ClusterEvent> {
    events.sort_by_key(last);
    events.into_iter().map(read).collect()
}

/// Events by the namespace and UID of the objects that they are about, newest last.
pub(crate) fn by_object(mut events: Vec<Event>) -> BTreeMap<(String, String), Vec<ClusterEvent>> {
    events.sort_by_key(last);
    let mut found: BTreeMap<_, Vec<ClusterEvent>> = BTreeMap::new();
    for event in events {
        let namespace = event.metadata.namespace.clone().unwrap_or_default();
        let uid = event.involved_object.uid.clone().unwrap_or_default();
        found.entry((namespace, uid)).or_default().push(read(event));
    }
    found
}

/// When an event was seen first. Those of the new form say it in another field.
fn first(event: &Event) -> Option<jiff::Timestamp> {
    let first = event.event_time.as_ref().map(|time| time.0);
    first.or(event.first_timestamp.as_ref().map(|time| time.0))
}

fn last(event: &Event) -> Option<jiff::Timestamp> {
    let series = event
        .series
        .as_ref()
        .and_then(|series| series.last_observed_time.as_ref());
    let last = series.map(|time| time.0);
    last.or(event.last_timestamp.as_ref().map(|time| time.0))
        .or(first(event))
}

fn read(event: Event) -> ClusterEvent {
    let id = event.metadata.name.clone().unwrap_or_default();
    let cluster = event.involved_object.name.clone().unwrap_or_default();
    let series = event.series.as_ref().and_then(|series| series.count);
    ClusterEvent {
        name: format!("{cluster}-{id}"),
        id,
        created_at: event
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|time| timestamp(time.0)),
        first_timestamp: first(&event).map(timestamp),
        last_timestamp: last(&event).map(timestamp),
        reason: event.reason.unwrap_or_default(),
        message: event.message.unwrap_or_default(),
        r#type: event.type_.unwrap_or_default(),
        count: series.or(event.count).unwrap_or(1),
    }
}
