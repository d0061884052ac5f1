//! Objects of any form, and labels.

use super::{PipelineObject, VersionObject, label_of_name};

#[test]
fn a_spec_of_any_form_breaks_no_list_and_none_of_its_keys_has_a_meaning() {
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    let text = format!(
        r#"[{{"metadata":{{"name":"a","managedFields":{deep}}},"spec":{{"pipelineSpec":{{"$serde_json::private::RawValue":"["}}}}}},
            {{"metadata":{{"name":"b"}},"spec":{{"pipelineSpec":{deep}}}}},
            {{"metadata":{{"name":"c","creationTimestamp":"2026-03-01T10:00:00Z"}},"spec":{{"tags":null}},"status":null}}]"#
    );
    let objects: Vec<VersionObject> = serde_json::from_str(&text).unwrap();
    let why = |index: usize| objects[index].read("p").spec.unwrap_err();
    assert!(
        why(0).contains("it has `$serde_json::private::RawValue`"),
        "{}",
        why(0)
    );
    assert!(why(1).contains("recursion limit exceeded"), "{}", why(1));
    assert_eq!(why(2), "there is no pipelineSpec");
    let pipeline: PipelineObject = serde_json::from_str(r#"{"metadata":{"name":"a"}}"#).unwrap();
    assert_eq!(pipeline.read().display_name, "a");
}

#[test]
fn kfp_16_the_label_of_a_name_has_at_most_63_characters_and_ends_in_one_of_a_name() {
    assert_eq!(label_of_name("a.b"), "a.b");
    assert_eq!(label_of_name(&"a".repeat(64)), "a".repeat(63));
    assert_eq!(
        label_of_name(&format!("{}-.b", "a".repeat(61))),
        "a".repeat(61)
    );
}
