//! What label selectors mean and what they refuse.

use crate::{
    Body, Filter, Language, Row, Selection,
    condition::Ability,
    model::{Payload, Record, Resource},
};

fn selected(text: &str, resource: Resource) -> Result<Filter, String> {
    let selection = Selection {
        filter: text,
        language: Language::Labels,
        ..Selection::default()
    };
    Filter::select(&selection, resource).map_err(|error| error.to_string())
}

fn matches(text: &str, payload: &str) -> bool {
    let filter = selected(text, Resource::Records).unwrap_or_else(|e| panic!("{text}: {e}"));
    let record = Record {
        name: "ci/results/r/records/x".parse().unwrap(),
        uid: String::new(),
        etag: crate::model::Etag::from_text("e"),
        create_time: jiff::Timestamp::UNIX_EPOCH,
        update_time: jiff::Timestamp::UNIX_EPOCH,
        data: Some(Payload {
            data_type: "tekton.dev/v1.TaskRun".to_owned(),
            value: payload.as_bytes().to_vec().into(),
        }),
    };
    let body = Body::of(&record);
    let row = Row::Record {
        record: &record,
        body: &body,
    };
    filter.matches(&row).unwrap()
}

const RUN: &str = r#"{"metadata":{"labels":{"app":"build","tekton.dev/pipeline":"nightly",
    "keep":"","weight":"7"}}}"#;

#[test]
fn a_selector_means_what_kubectl_means() {
    for text in [
        "app",
        "app=build",
        " app == build ",
        "app!=test",
        "other!=x",
        "!other",
        "! other",
        "app in (test, build)",
        "app in (build,)",
        "app notin (test)",
        "other notin (test)",
        "keep=",
        "keep==",
        "keep in ()",
        "tekton.dev/pipeline=nightly,app=build",
        "weight>6,weight<8",
        "in,!notin",
    ] {
        let payload = RUN.replace("\"app\"", "\"in\":\"\",\"app\"");
        assert!(matches(text, &payload), "{text}");
    }
    for text in [
        "other",
        "app=test",
        "app=Build",
        "app!=build",
        "!app",
        "app in (test)",
        "app notin (build, test)",
        "app=build,other=x",
        "weight>7",
        "app>1",
        "other<1",
    ] {
        assert!(!matches(text, RUN), "{text}");
    }
    assert!(matches("!app,app!=x,app notin (y)", "{}"));
    assert!(!matches("app", "{}"));
}

#[test]
fn labels_are_asked_of_the_database() {
    let told = |text| {
        let filter = selected(text, Resource::Records).unwrap();
        filter.explain(&|_| Ability::Exact)
    };
    assert_eq!(
        told("app=shop,env in (a,b)"),
        "engine: data.metadata.labels[\"app\"] = \"shop\" and data.metadata.labels[\"env\"] one of \
         [\"a\", \"b\"]\nleft over: nothing"
    );
    assert_eq!(
        told("app=shop,tier!=test"),
        "engine: data.metadata.labels[\"app\"] = \"shop\" and (data.metadata.labels[\"tier\"] is \
         not set or data.metadata.labels[\"tier\"] is set and not = \"test\")\n\
         left over: the whole filter, on the payload of each row that the engine returns"
    );
}

#[test]
fn nonsense_is_refused_with_its_place() {
    for (text, why) in [
        (
            "app in (a",
            "column 10: the end is not expected here; want `,` or `)`",
        ),
        (
            "app (a)",
            "column 5: `(` is not expected here; want one of `=`, `==`, `!=`, `in`, \
          `notin`, `<` and `>`",
        ),
        (
            "a b=c",
            "column 3: `b` is not expected here; want one of `=`, `==`, `!=`, `in`, \
          `notin`, `<` and `>`",
        ),
        (
            "app=a b",
            "column 7: `b` is not expected here; want `,` or the end",
        ),
        ("=x", "column 1: `=` is not expected here; want a label"),
        ("a,", "column 3: the end is not expected here; want a label"),
        ("a=b,,c", "column 5: `,` is not expected here; want a label"),
        (
            "a>b",
            "column 3: `b` is not expected here; want a whole number",
        ),
        (
            "a=é",
            "column 3: `é` has no meaning here; want for example \
          `app=shop,tier!=test,env in (a,b),!keep`",
        ),
        (
            "a='b'",
            "column 3: `'` has no meaning here; want for example \
          `app=shop,tier!=test,env in (a,b),!keep`",
        ),
        (
            "/a=b",
            "column 1: `/a` is no label; want `name` or `example.com/name`",
        ),
        (
            "a=-b",
            "column 3: `-b` is no value of a label; want up to 63 letters, digits, `-`, `_` \
          and `.`, with a letter or digit at both ends",
        ),
    ] {
        assert_eq!(
            selected(text, Resource::Records).unwrap_err(),
            format!("label selector {why}"),
            "{text}"
        );
    }
    assert_eq!(
        selected("app=shop", Resource::Results).unwrap_err(),
        "label selector column 1: results have no labels; select records, or write a filter on \
         `annotations[\"key\"]`"
    );
    let many = vec!["a"; 1_001].join(",");
    assert_eq!(
        selected(&many, Resource::Records).unwrap_err(),
        "label selector column 2001: more than 1000 requirements"
    );
    let many = vec!["a"; 1_000].join(",");
    selected(&many, Resource::Records).unwrap();
}
