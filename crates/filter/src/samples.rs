//! Random rows, filters and orders, drawn from few values so that they meet.

pub mod clients;
mod filters;
pub mod known;
mod orders;

use std::collections::BTreeMap;

use proptest::{prelude::*, sample::select};
use serde_json::{Map, Value, json};

pub use self::{
    filters::{quoted, record_filter, result_filter},
    orders::{record_order, result_order},
};
use crate::model::{Etag, Payload, Record, RunResult, Summary};

pub(super) const TEXTS: [&str; 22] = [
    "",
    "a",
    "ab",
    "b",
    "A",
    "a%",
    "_b",
    "it's \"q\"",
    "back\\slash",
    "日本",
    "%",
    "_",
    "\\%",
    "a\0b",
    "\u{1}\u{2}",
    "\u{10ffff}é",
    "e\u{301}",
    "$1 ? ''; DROP TABLE records; --",
    "5",
    "2026-01-01T00:00:00Z",
    "2026-01-01T01:00:00+01:00",
    "2026-01-01T00:00:00.000001Z",
];
pub(super) const TIMES: [&str; 4] = [
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.000001Z",
    "2026-01-01T00:00:00.0000019Z",
    "2027-01-01T00:00:00Z",
];
/// Times at the edges, in other zones and in other spellings, and what is nearly a time.
const ODD_TIMES: [&str; 9] = [
    "2026-03-29T01:30:00+01:00",
    "2025-12-31T23:59:59.9999999Z",
    "1969-12-31T23:59:59.999999Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "9999-12-30T23:59:59+02:00",
    "2026-01-01t00:00:00z",
    "2026-01-01 00:00:00Z",
    "2026-02-30T00:00:00Z",
];
/// Keys that libraries used here give a meaning.
pub const PRIVATE_KEYS: [&str; 5] = [
    "$serde_json::private::RawValue",
    "$serde_json::private::Number",
    "$__toml_private_datetime",
    "$__serde_spanned_private_value",
    "$serde::private::Content",
];
const IDS: [&str; 4] = ["a", "b", "ab", "B"];
pub(super) const NAMES: [&str; 8] = [
    "a",
    "b",
    "a/results/b/records/a",
    "a/results/a",
    "b/results/ab/records/b",
    "a/b",
    "results/",
    "",
];
pub(super) const TYPES: [&str; 5] = [
    "tekton.dev/v1.TaskRun",
    "pipeline.tekton.dev/TaskRun",
    "tekton.dev/v1.PipelineRun",
    "argoproj.io/v1alpha1.Workflow",
    "text/plain",
];

fn time(text: &str) -> jiff::Timestamp {
    hindsight_proto::time::parse(text).expect("the sample is a time")
}

fn leaf_value() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![
        6 => select(&TEXTS[..]).prop_map(|text| Some(json!(text))),
        2 => Just(None),
        1 => select(vec![json!(null), json!(5), json!(0.5), json!(true), json!(["a"]),
            json!({"a": "b"}), json!({"0": {"reason": "a"}})]).prop_map(Some),
        1 => select(&PRIVATE_KEYS[..]).prop_map(|key| Some(json!({key: "\"a\""}))),
    ]
}

fn object(fields: &'static [&'static str]) -> impl Strategy<Value = Value> {
    prop::collection::vec(leaf_value(), fields.len()).prop_map(|values| {
        let pairs = fields.iter().zip(values);
        let members = pairs.filter_map(|(key, value)| Some(((*key).to_owned(), value?)));
        Value::Object(members.collect::<Map<_, _>>())
    })
}

fn times(fields: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let value = prop_oneof![
        4 => select(&TIMES[..]).prop_map(|text| Some(json!(text))),
        1 => select(&ODD_TIMES[..]).prop_map(|text| Some(json!(text))),
        2 => leaf_value(),
    ];
    prop::collection::vec(value, fields.len()).prop_map(|values| {
        let pairs = fields.iter().zip(values);
        let members = pairs.filter_map(|(key, value)| Some(((*key).to_owned(), value?)));
        Value::Object(members.collect::<Map<_, _>>())
    })
}

/// Numbers at the edges of 64 bits and of what a double tells apart.
fn number() -> impl Strategy<Value = Value> {
    select(vec![
        json!(0),
        json!(1),
        json!(-1),
        json!(7),
        json!(0.5),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(9_007_199_254_740_993_i64),
        json!(9_007_199_254_740_992.0),
        json!(1e300),
        json!(-0.0),
        json!("7"),
        json!(null),
    ])
}

fn params() -> impl Strategy<Value = Value> {
    let param = (select(vec!["env", "n", "list"]), leaf_value(), number());
    let param = param.prop_map(|(name, value, number)| match (name, value) {
        ("n", _) => json!({"name": name, "value": number}),
        ("list", value) => json!({"name": name, "value": [value, number]}),
        (_, value) => json!({"name": name, "value": value}),
    });
    prop::collection::vec(param, 0..3).prop_map(Value::Array)
}

fn payload() -> impl Strategy<Value = Value> {
    let conditions = prop_oneof![
        prop::collection::vec(object(&["reason", "status"]), 0..3).prop_map(Value::Array),
        object(&["0"]),
    ];
    let metadata = (
        object(&["name", "namespace", "uid"]),
        times(&["creationTimestamp", "creation_timestamp"]),
        object(&["a", "x y", "b_c"]),
    );
    let status = (
        times(&["startTime", "completionTime"]),
        object(&["phase"]),
        conditions,
    );
    let spec = (object(&["name"]), params(), number());
    (object(&["kind", "flag", "spec"]), metadata, status, spec).prop_map(
        |(mut root, (mut metadata, made, labels), (mut status, phase, conditions), spec)| {
            join(&mut metadata, made);
            metadata["labels"] = labels;
            join(&mut status, phase);
            status["conditions"] = conditions;
            root["metadata"] = metadata;
            root["status"] = status;
            let (task, params, number) = spec;
            if !root["spec"].is_string() {
                root["spec"] = json!({"taskRef": task, "params": params, "n": number});
            }
            root
        },
    )
}

fn join(object: &mut Value, with: Value) {
    if let (Value::Object(object), Value::Object(with)) = (object, with) {
        object.extend(with);
    }
}

/// A record, whose payload is a run, other JSON or no JSON.
pub fn record_row() -> impl Strategy<Value = Record> {
    let bytes = prop_oneof![
        8 => payload().prop_map(|json| json.to_string().into_bytes()),
        1 => Just(b"no json".to_vec()),
    ];
    let data = prop::option::weighted(0.95, (select(&TYPES[..]), bytes));
    let ids = (select(&IDS[..]), select(&IDS[..]), select(&IDS[..]));
    (ids, select(&TEXTS[..]), select(&TIMES[..2]), data).prop_map(
        |((parent, result, id), uid, created, data)| Record {
            name: format!("{parent}/results/{result}/records/{id}")
                .parse()
                .expect("a sample is well formed"),
            uid: uid.to_owned(),
            etag: Etag::from_text("e"),
            create_time: time(created),
            update_time: time("2026-06-01T00:00:00Z"),
            data: data.map(|(data_type, value)| Payload::new(data_type.to_owned(), value.into())),
        },
    )
}

/// A result, with or without a summary.
pub fn result_row() -> impl Strategy<Value = RunResult> {
    let texts = || {
        prop::collection::btree_map(
            select(vec!["a", "x y"]).prop_map(str::to_owned),
            select(&TEXTS[..]).prop_map(str::to_owned),
            0..3,
        )
    };
    let at = || prop::option::of(select(&TIMES[..2]));
    let summary = (select(&TYPES[..]), at(), at(), 0_i32..6, texts()).prop_map(
        |(data_type, start, end, status, annotations): (_, _, _, _, BTreeMap<_, _>)| Summary {
            record: "a/results/b/records/a"
                .parse()
                .expect("a sample is well formed"),
            data_type: data_type.to_owned(),
            start_time: start.map(time),
            end_time: end.map(time),
            status,
            annotations,
        },
    );
    let ids = (select(&IDS[..]), select(&IDS[..]));
    (
        ids,
        select(&TEXTS[..]),
        texts(),
        prop::option::weighted(0.8, summary),
    )
        .prop_map(|((parent, id), uid, annotations, summary)| RunResult {
            name: format!("{parent}/results/{id}")
                .parse()
                .expect("a sample is well formed"),
            uid: uid.to_owned(),
            etag: Etag::from_text("e"),
            create_time: time(TIMES[0]),
            update_time: time(TIMES[1]),
            annotations,
            summary,
        })
}
