//! Payloads that are made to be read in two ways, and what must hold of each: what columns hold of
//! it, and what filters see of it, is the same.

use std::{fmt::Write as _, sync::LazyLock};

use hindsight_filter::model::{Etag, Payload, Record, Resource, Tier};
use hindsight_filter::{
    Body, Filter, Row,
    columns::{object_columns, of_record},
    condition::{Ability, Column},
    outline::outline,
};
use hindsight_run::json;

/// Keys of the fields that columns are made of, and keys that libraries used here give a meaning,
/// as they are and escaped.
const KEYS: [&str; 20] = [
    "kind",
    "metadata",
    "name",
    "labels",
    "a",
    "creationTimestamp",
    "managedFields",
    "spec",
    "taskRef",
    "params",
    "status",
    "startTime",
    "completionTime",
    "conditions",
    "reason",
    "$serde_json::private::RawValue",
    "\\u0024serde_json::private::RawValue",
    "$serde_json::private::Number",
    "$__toml_private_datetime",
    "0",
];

const SCALARS: [&str; 16] = [
    "\"a\"",
    "\"\"",
    "\"Failed\"",
    "\"2026-03-01T10:00:00Z\"",
    "\"9999-12-31T23:59:59Z\"",
    "\"0001-01-01T00:00:00Z\"",
    "\"\\u0061\"",
    "\"\\ud800\"",
    "\"\\\"a\\\"\"",
    "\"[1]\"",
    "null",
    "true",
    "5",
    "-0.0",
    "1e999",
    "18446744073709551616",
];

/// The longest payload that is made, roughly.
const LONGEST: usize = 16 << 10;
/// Deeper than JSON is read.
const DEEPEST: usize = 140;

/// A payload that these bytes choose.
pub fn payload(choices: &[u8]) -> String {
    let mut made = String::new();
    let mut choices = choices.iter().copied();
    object(&mut choices, 0, &mut made);
    made
}

fn choose(choices: &mut impl Iterator<Item = u8>, of: usize) -> usize {
    usize::from(choices.next().unwrap_or_default()) % of
}

fn object(choices: &mut impl Iterator<Item = u8>, depth: usize, made: &mut String) {
    made.push('{');
    for member in 0..choose(choices, 6) {
        let comma = if member == 0 { "" } else { "," };
        let key = KEYS[choose(choices, KEYS.len())];
        let _infallible = write!(made, "{comma}\"{key}\":");
        value(choices, depth + 1, made);
    }
    made.push('}');
}

fn value(choices: &mut impl Iterator<Item = u8>, depth: usize, made: &mut String) {
    let kind = choose(choices, 16);
    if depth > DEEPEST || made.len() > LONGEST || kind < 5 {
        made.push_str(SCALARS[choose(choices, SCALARS.len())]);
        return;
    }
    match kind {
        // A text of JSON.
        5 | 6 => {
            let mut inner = String::new();
            value(choices, depth + 1, &mut inner);
            inner.truncate(LONGEST);
            made.push_str(&serde_json::Value::from(inner).to_string());
        }
        7 => {
            let depth = choose(choices, DEEPEST);
            made.push_str(&"[".repeat(depth));
            value(choices, DEEPEST + 1, made);
            made.push_str(&"]".repeat(depth));
        }
        8 | 9 => {
            made.push('[');
            for item in 0..choose(choices, 4) {
                made.push_str(if item == 0 { "" } else { "," });
                value(choices, depth + 1, made);
            }
            made.push(']');
        }
        _ => object(choices, depth, made),
    }
}

static FILTERS: LazyLock<Vec<Filter>> = LazyLock::new(|| {
    let texts = [
        "data.kind",
        "data.metadata.name",
        "data.metadata.labels['a']",
        "data.metadata.labels['$serde_json::private::RawValue']",
        "data.spec.taskRef.name",
        "data.status.conditions[0].reason",
    ];
    let texts = texts.into_iter().flat_map(|part| {
        [
            format!("{part} == 'a'"),
            format!("{part} != 'a'"),
            format!("{part}.startsWith('F') || data.spec.params == 5"),
            format!("!has({part})"),
            format!("{part} != dyn(null)"),
        ]
    });
    let times = ["data.status.startTime", "data.metadata.creationTimestamp"];
    let times = times.into_iter().flat_map(|part| {
        [
            format!("{part} > timestamp('2026-01-01T00:00:00Z')"),
            format!("{part} <= timestamp('9999-12-31T23:59:59Z')"),
        ]
    });
    let others = [
        "data.status.completionTime - data.status.startTime >= duration('0s')",
        "data.metadata.labels.contains('a') && data.kind.matches('a')",
        "data.status.conditions.exists(c, c.reason == 'Failed')",
    ];
    let all = texts.chain(times).chain(others.map(str::to_owned));
    all.map(|text| Filter::compile(&text, Resource::Records).expect("the filter makes sense"))
        .collect()
});

/// A payload is JSON to all who read it or to none, and the database, which asks columns, agrees with
/// the evaluator, which asks the payload, about every filter.
pub fn check(choices: &[u8]) {
    let text = payload(choices);
    let parsed = json::parse(text.as_bytes());
    assert_eq!(outline(text.as_bytes()).is_ok(), parsed.is_ok(), "{text}");
    if let Ok(value) = &parsed {
        let again = json::parse(value.to_string().as_bytes());
        assert_eq!(again.ok().as_ref(), Some(value), "{text}");
    }
    let record = Record {
        name: "ci/results/r/records/x".parse().expect("the name is legal"),
        uid: "u-1".to_owned(),
        etag: Etag::from_text("e"),
        create_time: "2026-03-01T10:00:00Z".parse().expect("it is a time"),
        update_time: "2026-03-01T10:05:00Z".parse().expect("it is a time"),
        data: Some(Payload::new(
            "tekton.dev/v1.TaskRun".to_owned(),
            text.into_bytes().into(),
        )),
    };
    let object = record.data.as_ref().map(object_columns).unwrap_or_default();
    let column = |column: &Column| of_record(&record, Tier::Hot, &object, column);
    let whole = Body::of(&record);
    for filter in FILTERS.iter() {
        let on = |body: &Body| {
            let record = &record;
            filter.matches(&Row::Record {
                record,
                tier: Tier::Hot,
                body,
            })
        };
        let (matched, cut) = (on(&whole), on(&filter.body(&record)));
        assert_eq!(cut, matched, "{} on {}", filter.text(), payload(choices));
        let split = filter.split(&|_| Ability::Exact);
        let returned = split.condition.passes(&column);
        let matched = matched.unwrap_or_default();
        let agrees = returned == matched || (returned && split.residual);
        assert!(agrees, "{} on {}", filter.text(), payload(choices));
    }
}
