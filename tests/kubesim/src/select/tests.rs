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
fn every_form_of_label_requirement_has_its_meaning() {
    for matching in [
        "",
        "app",
        "!gone",
        "app=web",
        "app==web",
        "app = web",
        "app!=db",
        "gone!=db",
        "tier=",
        "tier=,app",
        "app in (db, web)",
        "app in (db,web),weight>6",
        "app notin (db)",
        "gone notin (db)",
        "tier in (,x)",
        "weight<8,weight>6",
        "tekton.dev/pipeline=nightly",
    ] {
        selects(matching, true);
    }
    for missing in [
        "!app",
        "gone",
        "app=db",
        "app!=web",
        "app in (db)",
        "gone in (db)",
        "app notin (web,db)",
        "weight>7",
        "app>1",
        "app,gone",
    ] {
        selects(missing, false);
    }
}

#[test]
fn malformed_label_selectors_are_refused() {
    for bad in [
        "=",
        "app=(a)",
        "app in web",
        "app in (web",
        "app web",
        "a,,b",
        "app=a b",
        "-a",
        "w>x",
        "a=b/c",
    ] {
        let refusal = Selector::parse(bad, "", &events()).expect_err(bad);
        assert_eq!(refusal.code, 400, "{bad}");
    }
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
