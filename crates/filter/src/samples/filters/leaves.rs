//! Tests of records that filters are made of.

use proptest::{prelude::*, sample::select};

use super::{OPERATORS, dynamic_test, quoted, text_test, time_test};
use crate::samples::TEXTS;

/// Numbers of every type, with fields of the payload and with each other.
pub(super) fn number_test() -> impl Strategy<Value = String> {
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
pub(super) fn clock_test() -> impl Strategy<Value = String> {
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
pub(super) fn called_test() -> impl Strategy<Value = String> {
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
pub(super) fn element_test() -> impl Strategy<Value = String> {
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
pub(super) fn part_test() -> impl Strategy<Value = String> {
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
