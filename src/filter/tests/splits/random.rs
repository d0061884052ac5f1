//! Random rows and filters, drawn from few values so that they meet.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use proptest::{prelude::*, sample::select};
use serde_json::{Map, Value, json};

use super::super::rows::time;
use crate::{
    filter::condition::{Ability, Test},
    model::{Etag, Payload, Record, RunResult, Summary},
};

const TEXTS: [&str; 14] = [
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
    "5",
    "2026-01-01T00:00:00Z",
    "2026-01-01T01:00:00+01:00",
    "2026-01-01T00:00:00.000001Z",
];
const TIMES: [&str; 4] = [
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.000001Z",
    "2026-01-01T00:00:00.0000019Z",
    "2027-01-01T00:00:00Z",
];
const IDS: [&str; 3] = ["a", "b", "ab"];
const NAMES: [&str; 8] = [
    "a",
    "b",
    "a/results/b/records/a",
    "a/results/a",
    "b/results/ab/records/b",
    "a/b",
    "results/",
    "",
];
const TYPES: [&str; 5] = [
    "tekton.dev/v1.TaskRun",
    "pipeline.tekton.dev/TaskRun",
    "tekton.dev/v1.PipelineRun",
    "argoproj.io/v1alpha1.Workflow",
    "text/plain",
];

/// What an engine makes of a test: anything, but always the same.
pub(super) fn ability(seed: u64, test: &Test) -> Ability {
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    test.column.hash(&mut hasher);
    test.negated.hash(&mut hasher);
    std::mem::discriminant(&test.is).hash(&mut hasher);
    match hasher.finish() % 4 {
        0 => Ability::None,
        1 => Ability::Superset,
        _ => Ability::Exact,
    }
}

fn leaf_value() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![
        6 => select(&TEXTS[..]).prop_map(|text| Some(json!(text))),
        2 => Just(None),
        1 => select(vec![json!(null), json!(5), json!(0.5), json!(true), json!(["a"]),
            json!({"a": "b"}), json!({"0": {"reason": "a"}})]).prop_map(Some),
    ]
}

fn object(fields: &'static [&'static str]) -> impl Strategy<Value = Value> {
    prop::collection::vec(leaf_value(), fields.len()).prop_map(|values| {
        let pairs = fields.iter().zip(values);
        let members = pairs.filter_map(|(key, value)| Some(((*key).to_owned(), value?)));
        Value::Object(members.collect::<Map<_, _>>())
    })
}

fn payload() -> impl Strategy<Value = Value> {
    let conditions = prop_oneof![
        prop::collection::vec(object(&["reason", "status"]), 0..3).prop_map(Value::Array),
        object(&["0"]),
    ];
    (
        object(&["kind", "flag", "spec"]),
        object(&[
            "name",
            "namespace",
            "uid",
            "creationTimestamp",
            "creation_timestamp",
        ]),
        object(&["a", "x y", "b_c"]),
        object(&["startTime", "completionTime", "phase"]),
        conditions,
        object(&["name"]),
    )
        .prop_map(
            |(mut root, mut metadata, labels, mut status, conditions, task)| {
                metadata["labels"] = labels;
                status["conditions"] = conditions;
                root["metadata"] = metadata;
                root["status"] = status;
                if !root["spec"].is_string() {
                    root["spec"] = json!({"taskRef": task});
                }
                root
            },
        )
}

pub(super) fn record_row() -> impl Strategy<Value = Record> {
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
                .unwrap(),
            uid: uid.to_owned(),
            etag: Etag::from_text("e"),
            create_time: time(created),
            update_time: time("2026-06-01T00:00:00Z"),
            data: data.map(|(data_type, value)| Payload {
                data_type: data_type.to_owned(),
                value: value.into(),
            }),
        },
    )
}

pub(super) fn result_row() -> impl Strategy<Value = RunResult> {
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
            record: "a/results/b/records/a".parse().unwrap(),
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
            name: format!("{parent}/results/{id}").parse().unwrap(),
            uid: uid.to_owned(),
            etag: Etag::from_text("e"),
            create_time: time(TIMES[0]),
            update_time: time(TIMES[1]),
            annotations,
            summary,
        })
}

pub(super) fn record_filter() -> impl Strategy<Value = String> {
    let text = select(vec![
        "parent",
        "uid",
        "data_type",
        "data.kind",
        "data.metadata.name",
        "data['metadata'].uid",
        "data.metadata.labels['a']",
        "data.metadata.labels['x y']",
        "data.metadata.labels.b_c",
        "data.status.conditions[0].reason",
        "data.status['conditions'][0]['status']",
        "taskrun.spec.task_ref.name",
        "taskrun.metadata.labels.b_c",
        "pipelinerun.metadata.name",
        "workflow.status.phase",
        "data.spec.taskRef.name",
        "data.other",
    ]);
    let dynamic = select(vec![
        "data.kind",
        "data.metadata.name",
        "data.metadata.labels['a']",
        "data.status.phase",
        "taskrun.metadata.name",
        "data.status.startTime",
        "taskrun.metadata.creation_timestamp",
        "data.metadata",
        "data.flag",
        "data.status.conditions[0]",
        "data.spec",
    ]);
    let times = select(vec![
        "create_time",
        "update_time",
        "data.status.startTime",
        "data.metadata.creationTimestamp",
        "taskrun.metadata.creation_timestamp",
        "data.status.completionTime",
        "data.kind",
    ]);
    let name = select(vec!["name", "result_name"]);
    let others = select(vec![
        "true",
        "false",
        "data.flag",
        "data.flag == true",
        "has(data.metadata.name)",
        "has(taskrun.metadata.name)",
        "has(data.status.conditions[0].reason)",
        "has(data.metadata.labels['a'])",
        "'a' in data.metadata.labels",
        "data.status.conditions.exists(c, c.reason == 'a')",
        "data.metadata.labels.contains('a')",
        "taskrun.status.conditions.all(c, c.status != 'b')",
        "data.kind + 'a' == 'aa'",
        "data.metadata.name.matches('^a')",
        "data.kind == data.metadata.name",
        "(data.kind == 'a' || taskrun.kind == 'b') == (parent == 'a')",
    ]);
    combined(prop_oneof![
        4 => text_test(text, select(&TEXTS[..])),
        2 => text_test(name, select(&NAMES[..])),
        2 => dynamic_test(dynamic),
        2 => time_test(times),
        2 => others.prop_map(str::to_owned),
        1 => text_test(select(vec!["data_type"]), select(&TYPES[..])),
    ])
}

pub(super) fn result_filter() -> impl Strategy<Value = String> {
    let text = select(vec![
        "parent",
        "uid",
        "summary.type",
        "annotations['a']",
        "annotations['x y']",
        "summary.annotations.a",
        "summary.annotations['x y']",
    ]);
    let times = select(vec![
        "create_time",
        "update_time",
        "summary.start_time",
        "summary.end_time",
    ]);
    let status = (
        select(&OPERATORS[..]),
        select(vec!["1", "2u", "TIMEOUT", "'FAILURE'", "2.0", "2.5"]),
    )
        .prop_map(|(operator, value)| format!("summary.status {operator} {value}"));
    let others = select(vec![
        "true",
        "has(summary.start_time)",
        "has(summary.annotations.a)",
        "has(annotations['x y'])",
        "'a' in annotations",
        "'a' in summary.annotations",
        "summary == null",
        "summary != null",
        "summary.end_time == null",
        "summary.end_time != null",
        "annotations['a'] == null",
        "annotations['a'] != null",
        "summary.status in ['SUCCESS', 3]",
        "annotations.contains('a')",
        "has(summary.status)",
        "has(summary.annotations)",
        "uid in []",
        "annotations['a'] in []",
        "summary.record == 'a/results/b/records/a'",
        "annotations.exists(k, v, v == 'a')",
    ]);
    combined(prop_oneof![
        3 => text_test(text, select(&TEXTS[..])),
        2 => time_test(times),
        2 => status,
        3 => others.prop_map(str::to_owned),
    ])
}

const OPERATORS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];

/// JSON's way of quoting text is also the language's.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn text_test(
    field: impl Strategy<Value = &'static str> + Clone,
    value: impl Strategy<Value = &'static str> + Clone,
) -> impl Strategy<Value = String> {
    let compared = (
        field.clone(),
        select(&OPERATORS[..]),
        value.clone(),
        any::<bool>(),
    )
        .prop_map(|(field, operator, value, mirrored)| match mirrored {
            false => format!("{field} {operator} {}", quoted(value)),
            true => format!("{} {operator} {field}", quoted(value)),
        });
    let functions = select(vec!["startsWith", "endsWith", "contains"]);
    let called = (field.clone(), functions, value.clone())
        .prop_map(|(field, function, value)| format!("{field}.{function}({})", quoted(value)));
    let one_of = (field, prop::collection::vec(value, 0..4)).prop_map(|(field, values)| {
        let values: Vec<_> = values.into_iter().map(quoted).collect();
        format!("{field} in [{}]", values.join(", "))
    });
    prop_oneof![3 => compared, 2 => called, 1 => one_of]
}

fn dynamic_test(field: impl Strategy<Value = &'static str>) -> impl Strategy<Value = String> {
    let values = select(vec![
        "null",
        "5",
        "0.5",
        "true",
        "'a'",
        "['a']",
        "{'a': 'b'}",
        "'2026-01-01T00:00:00Z'",
        "timestamp('2026-01-01T00:00:00Z')",
        "duration('5s')",
    ]);
    (field, select(&OPERATORS[..]), values, any::<bool>()).prop_map(
        |(field, operator, value, listed)| {
            let orderless = ["null", "[", "{"]
                .iter()
                .any(|start| value.starts_with(start));
            match (listed, orderless) {
                (true, _) => format!("{field} in ['a', {value}]"),
                (false, true) if operator != "!=" => format!("{field} == {value}"),
                (false, _) => format!("{field} {operator} {value}"),
            }
        },
    )
}

fn time_test(field: impl Strategy<Value = &'static str> + Clone) -> impl Strategy<Value = String> {
    let moved = select(vec!["", " + duration('1us')", " - duration('1ns')"]);
    let compared = (
        field.clone(),
        select(&OPERATORS[..]),
        select(&TIMES[..]),
        moved,
        any::<bool>(),
    )
        .prop_map(|(field, operator, time, moved, mirrored)| match mirrored {
            false => format!("{field} {operator} timestamp('{time}'){moved}"),
            true => format!("timestamp('{time}'){moved} {operator} {field}"),
        });
    let one_of =
        (field, prop::collection::vec(select(&TIMES[..]), 0..3)).prop_map(|(field, times)| {
            let times: Vec<_> = times
                .iter()
                .map(|time| format!("timestamp('{time}')"))
                .collect();
            format!("{field} in [{}]", times.join(", "))
        });
    prop_oneof![4 => compared, 1 => one_of]
}

fn combined(leaf: impl Strategy<Value = String> + 'static) -> impl Strategy<Value = String> {
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            2 => inner.clone().prop_map(|test| format!("!({test})")),
            3 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) && ({b})")),
            3 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) || ({b})")),
            1 => (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("({a}) ? ({b}) : ({c})")),
            1 => (inner, any::<bool>()).prop_map(|(a, truth)| format!("({a}) == {truth}")),
        ]
    })
}
