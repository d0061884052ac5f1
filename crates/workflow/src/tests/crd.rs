//! The definition of the kind is the one that is installed.

use serde_json::Value;

use crate::crd::definition;

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../deploy/workflow/crd.yaml"
);

#[test]
#[expect(clippy::disallowed_methods, reason = "tests may read the environment")]
fn the_file_that_is_installed_is_the_definition() {
    if std::env::var_os("HINDSIGHT_TEST_BLESS").is_some() {
        let head = "# Made of crates/workflow/src/crd.rs: HINDSIGHT_TEST_BLESS=1 cargo test -p hindsight-workflow\n";
        let text = serde_saphyr::to_string(&definition()).unwrap();
        std::fs::write(FILE, format!("{head}{text}")).unwrap();
    }
    let text = std::fs::read_to_string(FILE).unwrap();
    let file: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(file, definition());
}

/// The rules of structural schemas that can be seen here: every node has a type, and only one of
/// `properties` and `additionalProperties`.
#[test]
fn wf_01_the_schema_is_structural_and_has_the_fields_of_the_status_beside_the_spec() {
    let definition = definition();
    let version = &definition["spec"]["versions"][0];
    let schema = &version["schema"]["openAPIV3Schema"];
    let mut waiting = vec![("".to_owned(), schema)];
    let mut count = 0;
    while let Some((path, node)) = waiting.pop() {
        count += 1;
        assert!(node["type"].is_string(), "{path} has no type");
        let has = |key: &str| node.get(key).is_some();
        assert!(
            !(has("properties") && has("additionalProperties")),
            "{path}"
        );
        assert!(node.get("default").is_none(), "{path}");
        for (name, child) in node["properties"].as_object().into_iter().flatten() {
            waiting.push((format!("{path}.{name}"), child));
        }
        for key in ["additionalProperties", "items"] {
            if let Some(child) = node.get(key) {
                waiting.push((format!("{path}[]"), child));
            }
        }
    }
    assert!(count > 50);
    assert_eq!(version["subresources"]["status"], serde_json::json!({}));
    let keys = |node: &Value| -> Vec<String> {
        let members = node["properties"].as_object().unwrap();
        members.keys().cloned().collect()
    };
    assert_eq!(
        keys(&schema["properties"]["spec"]),
        ["metadata", "activeDeadlineSeconds", "selector", "steps"]
    );
}

#[test]
fn wf_61_lists_show_status_steps_start_and_age() {
    let definition = definition();
    let columns = definition["spec"]["versions"][0]["additionalPrinterColumns"].as_array();
    let names: Vec<&str> = columns
        .unwrap()
        .iter()
        .filter_map(|column| column["name"].as_str())
        .collect();
    assert_eq!(names, ["Status", "Steps", "Started", "Age"]);
}
