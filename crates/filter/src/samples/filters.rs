//! Random filters.

use proptest::{prelude::*, sample::select};
use serde_json::Value;

use super::{NAMES, TEXTS, TIMES, TYPES};

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

/// The text of a filter of records.
pub fn record_filter() -> impl Strategy<Value = String> {
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

/// Numbers of every type, with fields of the payload and with each other.
fn number_test() -> impl Strategy<Value = String> {
    let field = select(vec![
        "data.spec.n",
        "data.spec.params[0].value",
        "double(data.spec.n)",
        "int(data.spec.n)",
        "uint(data.spec.n)",
        "data.spec.n + 1",
        "data.spec.n * 2",
        "-data.spec.n",
        "data.spec.n % 7",
        "size(data.spec.params)",
        "size(data.kind)",
    ]);
    let value = select(vec![
        "0",
        "-1",
        "7",
        "7u",
        "7.0",
        "0.5",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615u",
        "9007199254740993",
        "9007199254740993.0",
        "1e300",
        "-0.0",
        "double('NaN')",
    ]);
    (field, select(&OPERATORS[..]), value)
        .prop_map(|(field, operator, value)| format!("{field} {operator} {value}"))
}

/// What a clock shows, here and elsewhere, and how long things took.
fn clock_test() -> impl Strategy<Value = String> {
    let time = select(vec![
        "create_time",
        "data.status.startTime",
        "data.metadata.creationTimestamp",
        "timestamp(data.status.completionTime)",
    ]);
    let part = select(vec![
        "getFullYear",
        "getMonth",
        "getDate",
        "getDayOfMonth",
        "getDayOfWeek",
        "getDayOfYear",
        "getHours",
        "getMinutes",
        "getSeconds",
        "getMilliseconds",
    ]);
    let zone = select(vec![
        "",
        "'UTC'",
        "'Europe/Berlin'",
        "'America/St_Johns'",
        "'+05:30'",
        "'-12:00'",
        "'Nowhere/Else'",
    ]);
    let parts = (time, part, zone, select(&OPERATORS[..]), 0..32_u32)
        .prop_map(|(time, part, zone, op, n)| format!("{time}.{part}({zone}) {op} {n}"))
        .prop_filter("a zone that is refused", |text| !text.contains("Nowhere"));
    let length = select(vec!["0s", "1us", "1ns", "24h", "-1h", "8760h"]);
    let lengths = (select(&OPERATORS[..]), length).prop_map(|(op, length)| {
        format!("data.status.completionTime - data.status.startTime {op} duration('{length}')")
    });
    let of_two_kinds = select(vec![
        "taskrun.status.completionTime - pipelinerun.status.startTime >= duration('0s')",
        "data.status.completionTime - taskrun.status.startTime >= duration('0s')",
        "taskrun.status.completionTime - data.status.startTime >= duration('0s')",
    ]);
    prop_oneof![6 => parts, 2 => lengths, 1 => of_two_kinds.prop_map(str::to_owned)]
}

/// Functions that have no column.
fn called_test() -> impl Strategy<Value = String> {
    let field = || {
        select(vec![
            "data.kind",
            "data.metadata.name",
            "parent",
            "data_type",
            "data.spec.n",
        ])
    };
    let text = || select(&TEXTS[..]).prop_map(quoted);
    let made = (field(), text(), text()).prop_flat_map(|(field, a, b)| {
        select(vec![
            format!("{field}.lowerAscii() == {a}"),
            format!("string({field}).upperAscii() == {a}"),
            format!("{field}.trim() == {a}"),
            format!("{field}.replace({a}, {b}) == {b}"),
            format!("{field}.split({a}).size() == 1"),
            format!("{field}.split({a}).exists(x, x == {b})"),
            format!("{field}.substring(1) == {a}"),
            format!("{field}.indexOf({a}) == 1"),
            format!("{field}.lastIndexOf({a}) >= 0"),
            format!("{field} + {a} == {b}"),
            format!("[{field}, {a}].join('') == {b}"),
            format!("bytes({field}).size() > 1"),
            format!("type({field}) == string"),
        ])
    });
    let pattern = select(vec![
        "^a", "a|b", "[%_]", "^$", "(?i)A", "\\\\d{4}", "日", ".",
    ]);
    let matched =
        (field(), pattern).prop_map(|(field, pattern)| format!("{field}.matches('{pattern}')"));
    prop_oneof![4 => made, 1 => matched]
}

/// Elements of lists and keys of maps.
fn element_test() -> impl Strategy<Value = String> {
    (
        select(vec![
            "data.spec.params",
            "taskrun.spec.params",
            "data.status.conditions",
        ]),
        select(&TEXTS[..]).prop_map(quoted),
    )
        .prop_flat_map(|(list, text)| {
            select(vec![
                format!("{list}.exists(p, p.name == 'env' && p.value == {text})"),
                format!("{list}.all(p, has(p.value) && p.value != {text})"),
                format!("{list}.exists_one(p, p.reason == {text})"),
                format!("{list}.filter(p, p.status == {text}).size() == 1"),
                format!("{list}.map(p, p.name).exists(n, n == 'env')"),
                format!("{text} in {list}.map(p, p.value)"),
                format!("{list}.exists(p, p.name == 'list' && {text} in p.value)"),
                format!("{list}[1].value == {text}"),
                format!("{list}[-1].status == {text}"),
                format!("{list}.contains({text})"),
                format!("data.metadata.labels.exists(k, k == {text})"),
                format!("data.metadata.labels.all(k, v, v >= {text})"),
                format!("{text} in data.metadata.labels"),
                format!("data.metadata.labels[data.kind] == {text}"),
            ])
        })
}

/// Parts of payloads that may be indexed.
fn part_test() -> impl Strategy<Value = String> {
    let part = select(vec![
        "data.flag",
        "data.spec.params[0].value",
        "taskrun.spec.params[0].value",
        "data.status.conditions[1].reason",
        "data.spec.params.filter(p, p.name == 'env')[0].value",
        "data.spec.params.filter(p, p.name == 'n')[0].value",
    ]);
    let made = select(vec!["data.metadata.creation_timestamp", "data.flag"]);
    let list = || select(vec!["data.spec.params", "pipelinerun.spec.params"]);
    let text = || select(&TEXTS[..]).prop_map(quoted);
    let number = select(vec![
        "0",
        "7",
        "-1",
        "0.5",
        "9007199254740993",
        "-0.0",
        "7u",
    ]);
    let absent = select(vec![
        "!has(data.flag)",
        "data.flag == null",
        "has(data.flag)",
        "data.flag != null",
        "data.flag != dyn(null)",
        "parent != dyn(null)",
        "data.kind == dyn(null)",
        "!(data.kind == [null, 'a'][0])",
        "data.spec.params[0].value == null",
        "data.flag",
        "!data.flag",
    ]);
    let texts =
        (list(), select(&OPERATORS[..]), text(), text()).prop_flat_map(|(list, operator, a, b)| {
            select(vec![
                format!("{list}.exists(p, p.name == 'env' && p.value {operator} {a})"),
                format!("{list}.exists(p, p.value in [{a}, {b}] && p.name == 'env')"),
                format!("{list}.exists(p, p.name == 'env' && !(p.value in [{a}, {b}]))"),
                format!("{list}.exists(p, 'env' == p.name && p.value.startsWith({a}))"),
                format!("{list}.exists(p, p.name == 'env' && !p.value.startsWith({a}))"),
                format!("{list}.exists(p, p.name == 'env' && (p.value == {a} || parent == {b}))"),
                format!("{list}.exists(p, p.name == 'env' && p.value == null)"),
                format!("{list}.exists(k, p, p.name == 'env' && p.value == {a})"),
            ])
        });
    let numbers = (list(), select(&OPERATORS[..]), number).prop_map(|(list, operator, n)| {
        format!("{list}.exists(p, p.name == 'n' && p.value {operator} {n})")
    });
    prop_oneof![
        3 => text_test(part.clone(), select(&TEXTS[..])),
        1 => dynamic_test(part),
        1 => time_test(made),
        1 => absent.prop_map(str::to_owned),
        3 => texts,
        2 => numbers,
    ]
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
