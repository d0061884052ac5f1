//! The definitions are those that are installed, and have the fields of Kubeflow.

use serde_json::{Value, json};

use super::{definitions, pipeline_versions, pipelines};

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../deploy/components/pipelines/crds.yaml"
);

#[test]
#[expect(clippy::disallowed_methods, reason = "tests may read the environment")]
fn kfp_01_the_file_that_is_installed_is_the_definitions() {
    if std::env::var_os("HINDSIGHT_TEST_BLESS").is_some() {
        let head = "# Made of crates/kfp/src/crds.rs: HINDSIGHT_TEST_BLESS=1 cargo test -p hindsight-kfp crds\n";
        let texts = definitions().map(|definition| serde_saphyr::to_string(&definition).unwrap());
        std::fs::write(FILE, format!("{head}{}", texts.join("---\n"))).unwrap();
    }
    let text = std::fs::read_to_string(FILE).unwrap();
    let file: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    assert_eq!(file, definitions());
    let names = definitions().map(|definition| definition["metadata"]["name"].clone());
    assert_eq!(
        names,
        [
            "pipelines.pipelines.kubeflow.org",
            "pipelineversions.pipelines.kubeflow.org"
        ]
    );
}

fn version(definition: &Value) -> &Value {
    let version = &definition["spec"]["versions"][0];
    assert_eq!(version["name"], "v2beta1");
    version
}

fn fields(schema: &Value) -> Vec<&str> {
    schema["properties"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn kfp_02_pipelines_have_a_description_a_display_name_and_tags() {
    let definition = pipelines();
    let version = version(&definition);
    assert_eq!(version["subresources"], Value::Null);
    let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(fields(spec), ["displayName", "description", "tags"]);
}

#[test]
fn kfp_03_versions_have_a_pipeline_spec_of_any_form() {
    let definition = pipeline_versions();
    let spec = &version(&definition)["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(spec["required"], json!(["pipelineSpec"]));
    assert_eq!(
        fields(spec),
        [
            "displayName",
            "description",
            "codeSourceURL",
            "pipelineName",
            "versionName",
            "pipelineSpec",
            "platformSpec",
            "pipelineSpecURI",
            "tags"
        ]
    );
    for any in ["pipelineSpec", "platformSpec"] {
        let any = &spec["properties"][any];
        assert_eq!(
            (&any["type"], &any["x-kubernetes-preserve-unknown-fields"]),
            (&Value::Null, &json!(true))
        );
    }
}

#[test]
fn kfp_04_kfp_05_a_version_has_the_condition_ready_by_default() {
    let definition = pipeline_versions();
    let version = version(&definition);
    assert_eq!(version["subresources"], json!({"status": {}}));
    let status = &version["schema"]["openAPIV3Schema"]["properties"]["status"];
    let ready = json!({"message": "READY", "reason": "READY", "status": "True", "type": "PipelineVersionStatus"});
    assert_eq!(status["default"], json!({"conditions": [ready]}));
    let condition = &status["properties"]["conditions"]["items"];
    assert_eq!(fields(condition), ["type", "status", "reason", "message"]);
    assert_eq!(
        condition["required"],
        json!(["type", "status", "reason", "message"])
    );
}
