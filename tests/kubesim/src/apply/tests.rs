//! Server-side apply: who owns what, and what happens to what nobody owns any more.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Applied, apply};
use crate::{
    fields::{Operation, Writer},
    refusal::{About, Refusal},
};

const ABOUT: About<'_> = About {
    group: "g",
    plural: "things",
    kind: "Thing",
    name: "a",
};

fn by(name: &str) -> Writer {
    Writer {
        name: name.into(),
        operation: Operation::Apply,
        subresource: String::new(),
        api_version: "g/v1".into(),
    }
}

fn config(metadata: Value) -> Value {
    json!({"apiVersion": "g/v1", "kind": "Thing", "metadata": metadata})
}

fn run(live: &Value, who: &str, metadata: Value, force: bool) -> Result<Value, Refusal> {
    let Applied {
        mut object,
        ownership,
    } = apply(
        live,
        &config(metadata),
        &by(who),
        force,
        Timestamp::UNIX_EPOCH,
        ABOUT,
    )?;
    object["metadata"]["managedFields"] = ownership.to_value();
    Ok(object)
}

#[test]
fn a_key_that_is_no_longer_applied_goes() {
    let live = json!({"metadata": {"labels": {"other": "x"}}});
    let live = run(&live, "me", json!({"labels": {"a": "1", "b": "2"}}), false).expect("applies");
    let live = run(&live, "me", json!({"labels": {"b": "2"}}), false).expect("applies");
    assert_eq!(live["metadata"]["labels"], json!({"other": "x", "b": "2"}));
}

#[test]
fn a_key_that_somebody_else_applies_too_stays() {
    let live = run(&json!({}), "me", json!({"labels": {"a": "1"}}), false).expect("applies");
    let live = run(&live, "you", json!({"labels": {"a": "1"}}), false).expect("equal values share");
    let live = run(&live, "me", json!({}), false).expect("applies");
    assert_eq!(live["metadata"]["labels"], json!({"a": "1"}));
}

#[test]
fn a_foreign_field_conflicts_unless_forced() {
    let live = run(
        &json!({}),
        "me",
        json!({"annotations": {"x/y": "1"}}),
        false,
    )
    .expect("applies");
    let refusal = run(&live, "you", json!({"annotations": {"x/y": "2"}}), false)
        .expect_err("the field is of `me`");
    assert_eq!(refusal.code, 409);
    assert_eq!(
        refusal.message,
        "Apply failed with 1 conflict: conflict with \"me\": .metadata.annotations.x/y"
    );
    let live = run(&live, "you", json!({"annotations": {"x/y": "2"}}), true).expect("forced");
    assert_eq!(live["metadata"]["annotations"], json!({"x/y": "2"}));
    let live = run(&live, "me", json!({}), false).expect("`me` owns nothing to remove");
    assert_eq!(live["metadata"]["annotations"], json!({"x/y": "2"}));
}

#[test]
fn finalizers_are_a_set_and_owners_are_told_apart_by_uid() {
    let live = json!({"metadata": {
        "finalizers": ["theirs"],
        "ownerReferences": [{"uid": "1", "name": "one"}],
    }});
    let mine = json!({"finalizers": ["mine"], "ownerReferences": [{"uid": "2", "name": "two"}]});
    let live = run(&live, "me", mine, false).expect("applies");
    assert_eq!(live["metadata"]["finalizers"], json!(["theirs", "mine"]));
    let live = run(&live, "me", json!({}), false).expect("applies");
    assert_eq!(live["metadata"]["finalizers"], json!(["theirs"]));
    assert_eq!(
        live["metadata"]["ownerReferences"],
        json!([{"uid": "1", "name": "one"}])
    );
}
