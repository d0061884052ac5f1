//! Random orders.

use proptest::{prelude::*, sample::select};

use crate::order::MAX_KEYS;

/// The text of an order of records.
pub fn record_order() -> impl Strategy<Value = String> {
    order(vec![
        "create_time",
        "update_time",
        "duration",
        "parent",
        "uid",
        "name",
        "result_name",
        "data_type",
        "data.kind",
        "data.metadata.name",
        "data.metadata.labels['a']",
        "data.metadata.labels[\"x y\"]",
        "data.metadata.creationTimestamp",
        "data.status.startTime",
        "data.status.phase",
        "data.status.conditions[0].reason",
    ])
}

/// The text of an order of results.
pub fn result_order() -> impl Strategy<Value = String> {
    order(vec![
        "create_time",
        "update_time",
        "duration",
        "parent",
        "uid",
        "summary.start_time",
        "summary.end_time",
        "summary.status",
        "summary.type",
        "summary.record",
        "annotations.a",
        "annotations['x y']",
        "summary.annotations['a']",
    ])
}

fn order(fields: Vec<&'static str>) -> impl Strategy<Value = String> {
    let key = (select(fields), select(vec!["", " asc", " desc", " DESC"]));
    let keys = prop_oneof![
        1 => Just(0..=0),
        3 => Just(1..=1),
        4 => Just(2..=3),
        1 => Just(4..=MAX_KEYS),
    ];
    keys.prop_flat_map(move |count| prop::collection::vec(key.clone(), count))
        .prop_map(|keys| {
            let keys: Vec<_> = keys
                .iter()
                .map(|(field, direction)| format!("{field}{direction}"))
                .collect();
            keys.join(", ")
        })
}
