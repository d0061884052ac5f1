//! Parts of names.

use super::{
    Asked, equal, label,
    rows::{ROWS, SECOND, row},
};
use crate::{
    conformance::{
        World,
        fixtures::{everything, later_record, names, test},
    },
    seam::{Change, ListQuery},
};
use hindsight_filter::condition::{Column, Is, ObjectField, Value};
use hindsight_filter::model::Resource;

/// Parts of names, which their trigrams lead to if there are three characters.
pub(super) fn parts() -> Vec<Asked> {
    const NAME: Column = Column::Object(ObjectField::Name);
    let with = |part: &str| test(NAME, Is::Contains(part.to_owned()));
    let ends = |part: &str| test(NAME, Is::EndsWith(part.to_owned()));
    let types = ["tekton.dev/v1.CustomRun", "tekton.dev/v1.TaskRun"];
    let types = types.map(|text| Value::Text(text.to_owned()));
    vec![
        ("three characters", vec![with("123")], |at| {
            at.to_string().contains("123")
        }),
        ("a beginning", vec![with("run-99")], |at| {
            at.to_string().starts_with("99")
        }),
        ("an end", vec![ends("777")], |at| {
            at.to_string().ends_with("777")
        }),
        ("all names", vec![with("run-")], |_| true),
        ("its trigrams, and not itself", vec![with("-11-12")], |_| {
            false
        }),
        ("quotes", vec![with("\"q\" '")], |at| at == 11),
        ("no pattern", vec![with("'%_")], |at| at == 11),
        ("another letter", vec![with("rohre")], |_| false),
        ("another case", vec![with("RUN-1")], |_| false),
        ("a letter of two bytes", vec![with("röh")], |at| at == 11),
        ("a picture", vec![with("🚢🚀🚢")], |at| at == 14),
        ("a part of a long name", vec![with("x-needle")], |at| {
            at == 12
        }),
        ("an end of a long name", vec![ends("xx-needle")], |at| {
            at == 12
        }),
        (
            "what is longer than names",
            vec![with(&"y".repeat(2_000))],
            |_| false,
        ),
        (
            "a part, and one of two types",
            vec![
                with("-1234"),
                test(Column::DataType, Is::OneOf(types.to_vec())),
            ],
            |at| at.to_string().starts_with("1234"),
        ),
        (
            "a part, and an old type",
            vec![
                with("n-1"),
                equal(Column::DataType, "tekton.dev/v1.CustomRun"),
            ],
            |at| at < 60 && at.to_string().starts_with('1'),
        ),
        ("two parts", vec![with("n-12"), with("345")], |at| {
            at.to_string().starts_with("12") && at.to_string().contains("345")
        }),
        (
            "a part, and a label",
            vec![with("n-4"), label("era", "old")],
            |at| at < 400 && at.to_string().starts_with('4'),
        ),
    ]
}

/// A row that gets another name is found by its parts, and no longer by those of the one before.
pub(super) async fn renamed(world: &World) {
    let named = async |part: &str| {
        let query = ListQuery {
            condition: test(
                Column::Object(ObjectField::Name),
                Is::Contains(part.to_owned()),
            ),
            bodies: false,
            ..everything()
        };
        names(world, Resource::Records, &query).await
    };
    let old = row(20);
    let mut value = later_record(&old, ROWS * SECOND);
    let data = value.data.as_mut().expect("it has a payload");
    let json = String::from_utf8(data.value.to_vec()).expect("JSON is text");
    data.value = json.replace("run-20", "other-twenty").into_bytes().into();
    assert_eq!(named("r-twenty").await, Vec::<String>::new());
    let expect = old.etag.clone();
    let name = value.name.to_string();
    world.given([Change::ReplaceRecord { expect, value }]).await;
    assert_eq!(named("r-twenty").await, std::slice::from_ref(&name));
    assert!(!named("run-20").await.contains(&name));
}
