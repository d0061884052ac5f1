//! What is left of a payload is what a filter reads of it.

use proptest::{prelude::*, sample::select};
use serde_json::json;

use super::*;

/// What `reads` names of a value: the slow and obvious way.
fn cut(value: &Value, reads: &Reads) -> Value {
    match value {
        _ if reads.whole => value.clone(),
        Value::Object(members) => {
            let kept = members.iter().filter_map(|(key, value)| {
                let value = match (reads.members.get(key), &reads.each) {
                    (Some(_), Some(_)) => value.clone(),
                    (Some(one), None) => cut(value, one),
                    (None, Some(one)) => cut(value, one),
                    (None, None) => return None,
                };
                Some((key.clone(), value))
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => match &reads.each {
            Some(each) => items.iter().map(|item| cut(item, each)).collect(),
            None => json!([]),
        },
        scalar => scalar.clone(),
    }
}

const SCALARS: [&str; 30] = [
    "null",
    "true",
    "false",
    "nul",
    "0",
    "-0",
    "-",
    "01",
    "1.",
    "1.5",
    "-12.25",
    "1e3",
    "1E999",
    "123456789012345678901234567890",
    "\"\"",
    "\"a\"",
    "\"日本\"",
    "\"a\\nb\"",
    "\"\\u0061\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud800\"",
    "\"\\x\"",
    "\"\\u12\"",
    "\"a\nb\"",
    "\"\u{7f}\u{1}\"",
    "\"long enough for words, \\\" and a quote\"",
    "\"open",
    "",
    "1 2",
    "\"{[,:]}\"",
];
const KEYS: [&str; 7] = [
    "\"$serde_json::private::RawValue\"",
    "\"a\"",
    "\"b\"",
    "\"\\u0061\"",
    "\"c d\"",
    "\"日\"",
    "a",
];

fn text() -> impl Strategy<Value = String> {
    let blank = || select(&["", "", "", " ", "\n ", "\t\r", "\u{b}"][..]);
    let scalar = prop_oneof![9 => select(&SCALARS[14..20]), 9 => select(&SCALARS[..3]), 1 => select(&SCALARS[..])];
    let leaf = (blank(), scalar).prop_map(|(blank, text)| format!("{blank}{text}{blank}"));
    leaf.prop_recursive(5, 40, 5, move |inner| {
        let key = prop_oneof![9 => select(&KEYS[..6]), 1 => select(&KEYS[..])];
        let member = (key, blank(), inner.clone());
        let member = member.prop_map(|(key, blank, value)| format!("{blank}{key}{blank}:{value}"));
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(member, 0..5)
                .prop_map(|members| format!("{{{}}}", members.join(","))),
        ]
    })
}

fn reads() -> impl Strategy<Value = Reads> {
    let leaf = any::<bool>().prop_map(|whole| Reads {
        whole,
        ..Reads::default()
    });
    leaf.prop_recursive(4, 12, 3, |inner| {
        let members = prop::collection::btree_map(
            select(&["a", "b", "c d", "日"][..]).prop_map(str::to_owned),
            inner.clone(),
            0..3,
        );
        (members, prop::option::of(inner.prop_map(Box::new))).prop_map(|(members, each)| Reads {
            whole: false,
            members,
            each,
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn what_is_kept_is_what_the_whole_parser_finds(
        text in text(),
        reads in reads(),
        broken in prop::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let mut bytes = text.into_bytes();
        if let Some((at, byte)) = broken && !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(kept) = prune(&bytes, &reads) {
            let whole = json::parse(&bytes).unwrap();
            prop_assert_eq!(kept.to_string(), cut(&whole, &reads).to_string());
        }
    }
}

fn of(path: &[&str]) -> Reads {
    path.iter().rev().fold(ALL, |inner, key| Reads {
        members: std::iter::once(((*key).to_owned(), inner)).collect(),
        ..Reads::default()
    })
}

#[test]
fn plain_payloads_need_no_other_parser() {
    let text = r#"{"a":{"b":"x\n\u00e9","c":[1,-2.5,{"d":"\""}]}, "e" : [ ] ,"f":{}}"#;
    let kept = prune(text.as_bytes(), &of(&["a", "b"])).unwrap();
    assert_eq!(kept, json!({"a": {"b": "x\né"}}));
    let pretty = serde_json::to_vec_pretty(&json!({"a": [{"b": 1}], "c": {}})).unwrap();
    assert_eq!(prune(&pretty, &of(&["c"])).unwrap(), json!({"c": {}}));
}

#[test]
fn of_members_of_one_name_the_last_counts() {
    let text = br#"{"a":{"b":1},"a":{"c":2},"\u0061":3}"#;
    assert_eq!(prune(text, &of(&["a", "b"])).unwrap(), json!({"a": 3}));
}

#[test]
fn what_is_broken_out_of_sight_is_left_to_the_whole_parser() {
    for text in [
        r#"{"a":1,"b":nul}"#,
        r#"{"a":1,"b":"\ud800"}"#,
        r#"{"a":1,"b":1e999}"#,
        r#"{"a":1,}"#,
        r#"{"a":1} x"#,
        "{\"a\":1,\"b\":\"\u{1}\"}",
    ] {
        assert_eq!(prune(text.as_bytes(), &of(&["a"])), None, "{text}");
    }
    assert_eq!(prune(b"{\"a\":1,\"b\":\"\xff\"}", &of(&["a"])), None);
    let deep = format!("{{\"a\":1,\"b\":{}{}}}", "[".repeat(500), "]".repeat(500));
    assert_eq!(prune(deep.as_bytes(), &of(&["a"])), None);
}
