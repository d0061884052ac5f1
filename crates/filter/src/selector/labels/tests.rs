//! What label selectors mean and what they refuse.

use hindsight_run::selector::Selector;

use crate::{
    Body, Filter, Language, Row, Selection,
    condition::Ability,
    model::{Payload, Record, Resource, Tier},
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
        data: Some(Payload::new(
            "tekton.dev/v1.TaskRun".to_owned(),
            payload.as_bytes().to_vec().into(),
        )),
    };
    let body = Body::of(&record);
    let row = Row::Record {
        record: &record,
        tier: Tier::Hot,
        body: &body,
    };
    filter.matches(&row).unwrap()
}

const RUN: &str = r#"{"metadata":{"labels":{"app":"build","tekton.dev/pipeline":"nightly",
    "keep":"","weight":"7"}}}"#;

#[test]
fn records_match_where_the_labels_of_their_objects_do() {
    let object: serde_json::Value = serde_json::from_str(RUN).unwrap();
    let labels = &object["metadata"]["labels"];
    for requirement in [
        "app",
        "!app",
        "app=build",
        "app!=build",
        "app in (test, build)",
        "app notin (test, build)",
        "other",
        "!other",
        "other!=x",
        "other in (x,y)",
        "other notin (x,y)",
        "keep=",
        "keep in (,x)",
        "weight>6",
        "weight<7",
        "app>1",
        "other<1",
    ] {
        for text in [requirement.to_owned(), format!("keep,{requirement}")] {
            let selector: Selector = text.parse().unwrap();
            let expected = selector.matches(|key| labels[key].as_str());
            assert_eq!(matches(&text, RUN), expected, "{text}");
        }
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
    assert_eq!(
        selected("app in (a", Resource::Records).unwrap_err(),
        "label selector column 10: the end is not expected here; want `,` or `)`"
    );
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
