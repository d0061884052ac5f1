//! Random filters.

mod leaves;

use proptest::{prelude::*, sample::select};
use serde_json::Value;

use super::{NAMES, TEXTS, TIMES, TYPES};
use leaves::{called_test, clock_test, element_test, number_test, part_test};

/// What no column answers, and asks for parts of a payload in every way.
const OTHERS: [&str; 9] = [
    "data.status.conditions.filter(c, c.reason == 'a').exists(d, d.status == 'b')",
    "data.status.conditions.map(c, c.status).exists(s, s == data.kind)",
    "data.metadata.exists(k, k == 'uid') && data.metadata.exists(k, v, v == 'a')",
    "data.metadata.labels.all(k, v, k == 'a' || data.metadata[k] == v)",
    "size(data.status.conditions) == 1 || size(data.metadata.labels) > 1",
    "data.metadata[data.kind] == 'a' || data.status.conditions[-1].reason == 'b'",
    "type(data.spec) == map || data.spec == {'taskRef': {'name': 'a'}}",
    "data.status.conditions.exists(c, data.metadata.labels.exists(l, l == c.reason))",
    "data.contains('a') || data.metadata == data.status",
];

/// What is kept of runs beside their payloads.
const RUN_TESTS: [&str; 16] = [
    "run.outcome == SUCCESS",
    "!(run.outcome in ['FAILURE', CANCELLED])",
    "run.outcome >= 0 || run.phase != null",
    "!has(run.pipeline) || run.pipeline != 'a'",
    "!has(run.signature) || run.signature >= '1h'",
    "run.signature in ['1a', ''] || run.signature.startsWith('1')",
    "run.cluster in ['east', 'west'] || run.cluster == 'a'",
    "!has(run.cluster) || run.cluster != 'east'",
    "!has(run.labels['a']) || run.labels['a'] > 'a'",
    "has(run.end_time) && !has(run.start_time)",
    "!('b_c' in run.labels)",
    "run != null && has(run.labels)",
    "run.end_time - run.start_time >= duration('1s')",
    "!(run.end_time - run.start_time > duration('0s'))",
    "run.labels == data.metadata.labels || run.labels.contains('a')",
    "run.pipeline == data.kind || size(run.labels) > 1",
];

/// Fields of records that are texts, and some that are not.
const RECORD_TEXTS: [&str; 24] = [
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
    "run.pipeline",
    "run.cluster",
    "run.task",
    "run.signature",
    "run.reason",
    "run.labels['a']",
    "run.labels.b_c",
];

/// The text of a filter of records.
pub fn record_filter() -> impl Strategy<Value = String> {
    let text = select(&RECORD_TEXTS[..]);
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
        "run.start_time",
        "run.endTime",
    ]);
    let name = select(vec!["name", "result_name"]);
    let others = select(
        [
            &OTHERS[..],
            &[
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
            ],
            &RUN_TESTS[..],
        ]
        .concat(),
    );
    combined(prop_oneof![
        4 => text_test(text, select(&TEXTS[..])),
        2 => text_test(name, select(&NAMES[..])),
        2 => dynamic_test(dynamic),
        2 => time_test(times),
        2 => others.prop_map(str::to_owned),
        1 => text_test(select(vec!["data_type"]), select(&TYPES[..])),
        2 => number_test(),
        1 => clock_test(),
        2 => called_test(),
        2 => element_test(),
        2 => part_test(),
    ])
}

/// The text of a filter of results.
pub fn result_filter() -> impl Strategy<Value = String> {
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
pub fn quoted(text: &str) -> String {
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
