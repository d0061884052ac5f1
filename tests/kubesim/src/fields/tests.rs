//! Ownership of fields, by path.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Operation, Ownership, Writer, leaves};

fn by(name: &str) -> Writer {
    Writer {
        name: name.into(),
        operation: Operation::Update,
        subresource: "status".into(),
        api_version: "g/v1".into(),
    }
}

fn object() -> Value {
    json!({
        "apiVersion": "g/v1",
        "metadata": {"name": "a", "labels": {"x/y": "1"}, "finalizers": ["f/\"quoted\""]},
        "spec": {"list": [1, 2], "empty": {}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })
}

#[test]
fn managed_fields_are_read_as_they_were_written() {
    let mut ownership = Ownership::default();
    ownership.record(&by("me"), &Value::Null, &object(), Timestamp::UNIX_EPOCH);
    let mut kept = object();
    kept["metadata"]["managedFields"] = ownership.to_value();
    assert_eq!(Ownership::of(&kept), ownership);
    let tree = &kept["metadata"]["managedFields"][0]["fieldsV1"];
    assert_eq!(
        tree["f:metadata"],
        json!({
            "f:labels": {"f:x/y": {}},
            "f:finalizers": {"v:\"f/\\\"quoted\\\"\"": {}},
        })
    );
    assert_eq!(tree["f:spec"], json!({"f:list": {}, "f:empty": {}}));
    assert_eq!(
        tree["f:status"]["f:conditions"]["k:{\"type\":\"Ready\"}"],
        json!({"f:type": {}, "f:status": {}})
    );
}

#[test]
fn a_changed_field_changes_its_owner_and_a_removed_one_loses_it() {
    let mut ownership = Ownership::default();
    let (old, mut new) = (object(), object());
    ownership.record(&by("me"), &Value::Null, &old, Timestamp::UNIX_EPOCH);
    new["spec"]["list"] = json!([3]);
    new["metadata"]["labels"] = json!({});
    ownership.record(&by("you"), &old, &new, Timestamp::UNIX_EPOCH);
    let mine = ownership.fields_of(&by("me")).expect("most is still mine");
    let yours = ownership
        .fields_of(&by("you"))
        .expect("the change is yours");
    assert!(mine.is_disjoint(yours));
    let mut all: Vec<_> = mine.union(yours).cloned().collect();
    all.sort();
    assert_eq!(all, leaves(&new).into_keys().collect::<Vec<_>>());
}

#[test]
fn what_the_server_owns_has_no_other_owner() {
    let object =
        json!({"kind": "A", "metadata": {"name": "a", "uid": "u", "resourceVersion": "1"}});
    assert!(leaves(&object).is_empty());
}
