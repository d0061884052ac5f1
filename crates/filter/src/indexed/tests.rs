//! What paths are read, what they find, and what indexes hold of it.

use proptest::{prelude::*, sample::select};
use serde_json::json;

use super::*;

fn path(text: &str) -> Path {
    text.parse().unwrap()
}

#[test]
fn a_path_is_shown_as_it_is_written() {
    for text in [
        "data.kind",
        "data.spec.params[name==\"env\"].value",
        "data.status.conditions[0].message",
        "data.metadata.annotations[\"example.com/team\"]",
        "data.spec[\"a \\\"b\\\"\"][key==\"it's\"]",
    ] {
        assert_eq!(path(text).to_string(), text);
    }
    let spelled = path("data['spec'].params[ name == 'env' ].value");
    assert_eq!(spelled, path("data.spec.params[name==\"env\"].value"));
}

#[test]
fn what_is_no_path_is_refused_with_place_and_advice() {
    for (text, told) in [
        ("spec.a", "column 1: a path begins with `data`"),
        ("data", "column 1: `data` is the whole payload"),
        ("data.", "column 6: a name belongs after `.`"),
        ("data.a-b", "column 7: want steps such as"),
        ("data.a[", "column 8: want steps such as"),
        ("data.a[0", "column 9: a `]` belongs here"),
        ("data.a[name]", "column 12: elements are chosen by a text"),
        ("data.a[name==env].b", "column 14: a text in quotes"),
        ("data.a[name==\"env].b", "column 14: a text in quotes"),
        ("data.a['x].b", "column 8: this text has no end"),
        ("data.a[-1]", "column 8: want steps such as"),
        (
            "data.a[x==\"1\"].b[y==\"2\"]",
            "column 1: a path chooses elements",
        ),
    ] {
        let error = text.parse::<Path>().unwrap_err().to_string();
        assert!(error.starts_with(told), "{text}: {error}");
    }
    let long = format!("data{}", ".a".repeat(17));
    assert!(long.parse::<Path>().is_err());
    assert!(format!("data.{}", "a".repeat(600)).parse::<Path>().is_err());
}

#[test]
fn values_of_the_wanted_type_are_kept_each_once() {
    let fields = Fields::new(vec![
        (1, path("data.spec.params[name==\"env\"].value"), Kind::Text),
        (2, path("data.spec.retries"), Kind::Number),
        (3, path("data.spec.flag"), Kind::Bool),
        (4, path("data.status.steps[1].at"), Kind::Time),
    ]);
    let payload = json!({
        "spec": {
            "params": [
                {"name": "env", "value": "prod"},
                {"name": "env", "value": "prod"},
                {"name": "env", "value": "test"},
                {"name": "env", "value": 5},
                {"name": "other", "value": "x"},
                "env",
            ],
            "retries": 3,
            "flag": true,
        },
        "status": {"steps": [{"at": "soon"}, {"at": "2026-01-01T00:00:00Z"}]},
    });
    let keys = fields.keys(payload.to_string().as_bytes());
    let shown: Vec<_> = keys
        .iter()
        .map(|(field, key)| {
            let (_, _, kind) = &fields.fields[usize::try_from(*field).unwrap() - 1];
            (*field, shown(*kind, key))
        })
        .collect();
    let text = |text: &str| text.to_owned();
    assert_eq!(
        shown,
        [
            (1, text("\"prod\"")),
            (1, text("\"test\"")),
            (2, text("3")),
            (3, text("true")),
            (4, text("2026-01-01T00:00:00Z")),
        ]
    );
    assert_eq!(fields.keys(b"no json"), []);
    assert_eq!(Fields::default().keys(b"{}"), []);
}

#[test]
fn a_long_text_keeps_its_beginning() {
    let key = Kind::Text.key(&json!("é".repeat(200))).unwrap();
    assert_eq!(key, "é".repeat(KEY_CHARS));
    assert_eq!(Asked::of(&Value::text(&"é".repeat(KEY_CHARS))), None);
    assert!(Asked::of(&Value::text(&"é".repeat(KEY_CHARS - 1))).is_some());
}

fn number() -> impl Strategy<Value = Json> {
    prop_oneof![
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        (-3_i64..3).prop_map(Json::from),
        select(vec![
            json!(0.0),
            json!(-0.0),
            json!(9_007_199_254_740_993_i64)
        ]),
    ]
}

proptest! {
    #[test]
    fn keys_are_ordered_as_numbers_are(a in number(), b in number()) {
        let (Some(x), Some(y)) = (a.as_f64(), b.as_f64()) else { return Ok(()) };
        let keys = (Kind::Number.key(&a), Kind::Number.key(&b));
        let (Some(m), Some(n)) = keys else { return Ok(()) };
        prop_assert_eq!(m.cmp(&n), x.partial_cmp(&y).unwrap());
        prop_assert_eq!(shown(Kind::Number, &m).parse::<f64>().unwrap(), x);
    }

    #[test]
    fn keys_are_ordered_as_times_are(a in -9_i64..9, b in any::<i32>()) {
        let time = |us: i64| Timestamp::from_microsecond(us).unwrap();
        let (a, b) = (time(a), time(i64::from(b) * 1_000));
        prop_assert_eq!(time_key(a).cmp(&time_key(b)), a.cmp(&b));
        prop_assert_eq!(shown(Kind::Time, &time_key(a)), a.to_string());
    }
}
