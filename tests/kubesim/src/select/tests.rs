//! Label and field selectors, by example.

use serde_json::json;

use super::Selector;
use crate::{
    kinds::{Kind, built_in},
    objects::Stored,
};

fn events() -> Kind {
    let mut kinds = built_in().into_iter();
    kinds
        .find(|kind| kind.group.is_empty() && kind.plural == "events")
        .expect("events are built in")
}

fn object() -> Stored {
    Stored::new(&json!({"metadata": {
        "name": "a",
        "namespace": "n",
        "labels": {"app": "web", "tier": "", "weight": "7", "tekton.dev/pipeline": "nightly"},
    }, "involvedObject": {"uid": "u", "name": "run"}}))
}

#[track_caller]
fn selects(labels: &str, expected: bool) {
    let selector = Selector::parse(labels, "", &events()).expect("the selector parses");
    assert_eq!(selector.matches(&object()), expected, "{labels}");
}

#[track_caller]
fn fields(fields: &str, expected: bool) {
    let selector = Selector::parse("", fields, &events()).expect("the selector parses");
    assert_eq!(selector.matches(&object()), expected, "{fields}");
}

#[test]
fn labels_and_fields_must_both_fit() {
    selects("app=web,!gone", true);
    selects("app=db", false);
    let refusal = Selector::parse("app=a b", "", &events()).expect_err("two words");
    assert_eq!(refusal.code, 400);
}

#[test]
fn field_selectors_compare_name_and_namespace() {
    fields("metadata.name=a", true);
    fields("metadata.name==a,metadata.namespace=n", true);
    fields("metadata.name!=b", true);
    fields("metadata.name!=a", false);
    fields("metadata.namespace=m", false);
    fields("involvedObject.uid=u", true);
    fields("involvedObject.uid=u,involvedObject.name=b", false);
    fields("involvedObject.kind=Pod", false);
    let refusal = Selector::parse("", "spec.x=1", &events()).expect_err("an unknown field");
    assert_eq!(refusal.message, "field label not supported: spec.x");
}
