//! What is accepted, what it becomes, and how the rest is refused.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Documents, check, schema};
use crate::model::Spec;

const SAMPLES: &[(&str, &str)] = &[
    (
        include_str!("../../testdata/add-numbers.yaml"),
        include_str!("../../testdata/add-numbers.json"),
    ),
    (
        include_str!("../../testdata/train-all.yaml"),
        include_str!("../../testdata/train-all.json"),
    ),
    (
        include_str!("../../testdata/with-secret.yaml"),
        include_str!("../../testdata/with-secret.json"),
    ),
];

fn minimal() -> Value {
    json!({"pipelineInfo": {"name": "p"}, "root": {}, "schemaVersion": "2.1.0"})
}

#[track_caller]
fn refuses(text: &str, because: &str) {
    assert_eq!(
        Documents::parse(text.as_bytes()).unwrap_err().to_string(),
        because
    );
}

/// A minimal pipeline whose component has these members is refused so.
#[track_caller]
fn refuses_root(root: &Value, because: &str) {
    let mut spec = minimal();
    spec["root"] = root.clone();
    let because = format!("failed to parse pipeline spec YAML: {because}");
    refuses(
        &spec.to_string(),
        &because.replacen("ROOT", "document 1: root", 1),
    );
}

#[track_caller]
fn becomes_root(root: &Value, expected: &Value) {
    let mut spec = minimal();
    spec["root"] = root.clone();
    let read = Documents::parse(spec.to_string().as_bytes()).unwrap();
    assert_eq!(&read.pipeline()["root"], expected);
}

/// Numbers without a point where they are integers.
fn plain(value: &Value) -> Value {
    check::any(value)
}

/// As PyYAML writes it: what follows a dash is deeper than the key of the list, not than the dash.
#[test]
fn texts_in_quotes_go_on_below_the_dash_of_their_item() {
    let text = "schemaVersion: 2.1.0\npipelineInfo: {name: p}\nroot: {}\ndeploymentSpec:\n  executors:\n    e:\n      \
                container:\n        image: i\n        command:\n        - -c\n        - 'x=$(y)\n\n\n        z\n\n        '\n";
    let read = Documents::parse(text.as_bytes()).unwrap();
    let container = &read.pipeline()["deploymentSpec"]["executors"]["e"]["container"];
    assert_eq!(container["command"], json!(["-c", "x=$(y)\n\nz\n"]));
}

#[test]
fn kfp_13_pipelines_that_the_sdk_compiles_are_read_as_protocol_buffers_read_them() {
    for (yaml, expected) in SAMPLES {
        let read = Documents::parse(yaml.as_bytes()).unwrap();
        let expected = hindsight_run::json::parse(expected.as_bytes()).unwrap();
        assert_eq!(plain(read.pipeline()), plain(&expected["pipeline"]));
        let platform = expected.get("platform").map(plain);
        assert_eq!(read.platform().map(plain), platform);
        let again = Documents::of(read.pipeline(), read.platform()).unwrap();
        assert_eq!(again, read);
    }
}

#[test]
fn kfp_46_a_platform_spec_stands_beside_the_pipeline_spec_in_answers() {
    let shown = |text: &str| {
        let read = Documents::parse(text.as_bytes()).unwrap();
        let both = (read.pipeline().clone(), read.platform().cloned());
        (both, Spec::from(read).shown())
    };
    let ((pipeline, platform), alone) = shown(SAMPLES[0].0);
    assert_eq!((platform, alone), (None, pipeline));
    let ((pipeline, platform), both) = shown(SAMPLES[2].0);
    let expected = json!({"pipeline_spec": pipeline, "platform_spec": platform.unwrap()});
    assert_eq!(both, expected);
}

#[test]
fn kfp_13_values_are_brought_into_the_normal_form() {
    let task = |task: Value| json!({"dag": {"tasks": {"t": task}}});
    for (written, read) in [
        (
            json!({"caching_options": {"enable_cache": false}, "dependentTasks": []}),
            json!({"cachingOptions": {}}),
        ),
        (
            json!({"retryPolicy": {"maxRetryCount": "3", "backoffDuration": "2.50s", "backoffFactor": 2.0}}),
            json!({"retryPolicy": {"maxRetryCount": 3, "backoffDuration": "2.500s", "backoffFactor": 2}}),
        ),
        (
            json!({"triggerPolicy": {"strategy": 2, "condition": null}}),
            json!({"triggerPolicy": {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"}}),
        ),
        (
            json!({"inputs": {"parameters": {
                "a": {"runtimeValue": {"constantValue": {"intValue": 7}}},
                "b": {"runtimeValue": {"constant": null}},
                "c": {"componentInputParameter": ""},
                "d": {"runtimeValue": {"constant": {"x": [1.0, 0.5, -0.0]}}},
            }}}),
            json!({"inputs": {"parameters": {
                "a": {"runtimeValue": {"constantValue": {"intValue": "7"}}},
                "b": {"runtimeValue": {"constant": null}},
                "c": {"componentInputParameter": ""},
                "d": {"runtimeValue": {"constant": {"x": [1, 0.5, -0.0]}}},
            }}}),
        ),
    ] {
        becomes_root(&task(written), &task(read));
    }
    becomes_root(
        &json!({"executorLabel": "", "inputDefinitions": {"parameters": {"a": {"type": "PRIMITIVE_TYPE_UNSPECIFIED", "literals": [null]}}}}),
        &json!({"executorLabel": "", "inputDefinitions": {"parameters": {"a": {"literals": [null]}}}}),
    );
}

#[test]
fn kfp_13_a_field_that_is_not_as_the_schema_says_is_named_with_its_value() {
    refuses_root(
        &json!({"dag": {"tasks": {"print text": {"componentRef": {"nam": "x"}}}}}),
        "ROOT.dag.tasks[`\"print text\"`].componentRef.nam is not a field of the schema; want one of name",
    );
    refuses_root(
        &json!({"inputDefinitions": {"parameters": {"a": {"parameterType": "STRNG"}}}}),
        "ROOT.inputDefinitions.parameters.a.parameterType is `\"STRNG\"`; want one of PARAMETER_TYPE_ENUM_UNSPECIFIED, \
         NUMBER_DOUBLE, NUMBER_INTEGER, STRING, BOOLEAN, LIST, STRUCT, TASK_FINAL_STATUS, TASK_CONFIG",
    );
    refuses_root(
        &json!({"executorLabel": 7}),
        "ROOT.executorLabel is `7`; want a string",
    );
    refuses_root(
        &json!({"executorLabel": "e", "dag": {}}),
        "ROOT.dag and `executorLabel` are both set; want one of them",
    );
    refuses_root(
        &json!({"executorLabel": "e", "executor_label": "e"}),
        "ROOT.executor_label is there twice, in lowerCamelCase and in snake_case",
    );
    refuses_root(&json!([]), "ROOT is a list; want an object");
    let task = |task: Value| json!({"dag": {"tasks": {"t": task}}});
    for (written, at, wanted) in [
        (
            json!({"dependentTasks": ["a", null]}),
            "dependentTasks[1] is `null`",
            "a string",
        ),
        (
            json!({"cachingOptions": {"enableCache": "true"}}),
            "cachingOptions.enableCache is `\"true\"`",
            "true or false",
        ),
        (
            json!({"retryPolicy": {"maxRetryCount": 1.5}}),
            "retryPolicy.maxRetryCount is `1.5`",
            "an integer of 32 bits",
        ),
        (
            json!({"retryPolicy": {"maxRetryCount": 2_147_483_648_u32}}),
            "retryPolicy.maxRetryCount is `2147483648`",
            "an integer of 32 bits",
        ),
        (
            json!({"retryPolicy": {"backoffFactor": "2x"}}),
            "retryPolicy.backoffFactor is `\"2x\"`",
            "a number",
        ),
        (
            json!({"retryPolicy": {"backoffDuration": "2m"}}),
            "retryPolicy.backoffDuration is `\"2m\"`",
            "a duration in seconds such as `3.5s`",
        ),
    ] {
        refuses_root(
            &task(written),
            &format!("ROOT.dag.tasks.t.{at}; want {wanted}"),
        );
    }
}

#[test]
fn kfp_13_documents_that_are_no_pipelines_are_refused() {
    let pipeline = minimal().to_string();
    refuses(
        "",
        "unknown template format: no pipeline spec is provided; want a document with `pipelineInfo`, `root` and `schemaVersion`",
    );
    refuses(
        "[1]",
        "unknown template format: document 1 is a list; want a pipeline spec",
    );
    refuses(
        "a: 1\nb: 2",
        "unknown template format: document 1 is neither a pipeline spec nor a platform spec; it has `a`, `b`",
    );
    refuses(
        "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nspec: {}",
        "unknown template format: document 1 is a workflow of Argo (`argoproj.io/v1alpha1`), which is a pipeline of KFP 1; want what KFP 2 compiles",
    );
    refuses(
        &format!("{pipeline}\n---\n{pipeline}"),
        "multiple pipeline specs provided",
    );
    let platform = "platforms: {kubernetes: {}}";
    refuses(
        &format!("{pipeline}\n---\n{platform}\n---\n{platform}"),
        "multiple platform specs provided",
    );
    refuses(
        &format!("{pipeline}\n---\nplatforms: {{kubernetes: {{deploymentSpec: {{executor: 1}}}}}}"),
        "failed to parse pipeline spec YAML: document 2: platforms.kubernetes.deploymentSpec.executor is not a field of the schema; want one of executors",
    );
    refuses(
        r#"{"pipelineInfo":{"name":"p"},"schemaVersion":"2.1.0"}"#,
        "failed to parse pipeline spec YAML: document 1 has no `root`; want the component that a run begins with",
    );
    refuses(
        r#"{"pipelineInfo":{"name":"p"},"root":{},"schemaVersion":"2.0.0"}"#,
        "KFP only supports schema version 2.1.0, but the pipeline spec has version 2.0.0",
    );
    let named = |name: &str| {
        let spec = json!({"pipelineInfo": {"name": name}, "root": {}, "schemaVersion": "2.1.0"});
        Documents::parse(spec.to_string().as_bytes()).map_err(|error| error.to_string())
    };
    assert_eq!(named("").unwrap_err(), "pipeline's name cannot be empty");
    assert_eq!(
        named(&"a".repeat(129)).unwrap_err(),
        "pipeline's name must contain no more than 128 characters; it has 129"
    );
    for name in ["-a", "A", "a_b", "a.b", "ä"] {
        assert_eq!(
            named(name).unwrap_err(),
            format!(
                "pipeline's name must contain only lowercase alphanumeric characters or '-' and must start with alphanumeric characters; got `{name}`"
            )
        );
    }
    assert_eq!(named(&"a".repeat(128)).unwrap().name().len(), 128);
    assert_eq!(named("0-").unwrap().name(), "0-");
}

#[test]
fn empty_documents_and_other_platforms_do_not_matter() {
    let pipeline = minimal().to_string();
    let text = format!(
        "# A comment.\n---\n---\nnull\n---\n{pipeline}\n---\nplatforms:\n  vertex: {{}}\n...\n"
    );
    let read = Documents::parse(text.as_bytes()).unwrap();
    assert_eq!((read.name(), read.platform()), ("p", None));
    let both = format!("{pipeline}\n---\nplatforms: {{vertex: {{}}, kubernetes: {{}}}}");
    let read = Documents::parse(both.as_bytes()).unwrap();
    assert_eq!(
        read.platform(),
        Some(&json!({"platforms": {"vertex": {}, "kubernetes": {}}}))
    );
}

#[test]
fn keys_that_a_library_gives_a_meaning_are_keys() {
    let mut spec = minimal();
    spec["deploymentSpec"] = json!({"$serde_json::private::RawValue": "[1]", "a": 1});
    let read = Documents::parse(spec.to_string().as_bytes()).unwrap();
    assert_eq!(read.pipeline()["deploymentSpec"], spec["deploymentSpec"]);
    let merged =
        "pipelineInfo: {name: p}\nroot: {}\nschemaVersion: 2.1.0\ndeploymentSpec:\n  <<: {a: 1}";
    assert!(Documents::parse(merged.as_bytes()).is_err());
    for twice in [r#"{"root":{},"root":{}}"#, "root: {}\nroot: {}"] {
        assert!(Documents::parse(twice.as_bytes()).is_err(), "{twice}");
    }
}

#[test]
fn texts_that_become_large_are_refused() {
    let with = |rest: &str| {
        let text = format!(
            "pipelineInfo: {{name: p}}\nroot: {{}}\nschemaVersion: 2.1.0\ndeploymentSpec:\n{rest}"
        );
        Documents::parse(text.as_bytes()).map_err(|error| error.to_string())
    };
    assert!(with("  a: &a {b: c}\n  d: [*a, *a]").is_ok());
    // Lists of lists of the same list.
    let mut bomb = "  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("  a{level}: &a{level} [{aliases}]\n"));
    }
    assert!(with(&bomb).is_err());
    // One long string, often.
    let long = format!(
        "  a: &a {}\n  b: [{}]",
        "x".repeat(1 << 20),
        "*a, ".repeat(90)
    );
    assert!(with(&long).is_err());
    assert!(with(&format!("  a: {}{}", "[".repeat(200), "]".repeat(200))).is_err());
    let json = json!({"pipelineInfo": {"name": "p"}, "deploymentSpec": {"a": vec![0; 250_001]}});
    assert!(Documents::parse(json.to_string().as_bytes()).is_err());
    let documents = vec![minimal().to_string(); 9].join("\n---\n");
    assert!(
        Documents::parse(documents.as_bytes())
            .unwrap_err()
            .to_string()
            .contains("more than 8 documents")
    );
    assert!(Documents::parse(b"\xff").is_err());
}

/// A value of this kind, often a right one.
fn of_kind(kind: &'static schema::Kind, levels: u32) -> BoxedStrategy<Value> {
    use schema::Kind;
    let right: BoxedStrategy<Value> = match kind {
        Kind::Text => "[a-z]{0,3}".prop_map(Value::from).boxed(),
        Kind::Bool => any::<bool>().prop_map(Value::from).boxed(),
        Kind::Int32 | Kind::Int64 => (0..3_i32).prop_map(Value::from).boxed(),
        Kind::Double => prop_oneof![Just(json!(0.5)), Just(json!(0))].boxed(),
        Kind::Duration => Just(json!("1.5s")).boxed(),
        Kind::Any => prop_oneof![Just(Value::Null), Just(json!([1.0]))].boxed(),
        Kind::Object => Just(json!({"a": {"b": 1}})).boxed(),
        Kind::Enum(names) => prop::sample::select(*names).prop_map(Value::from).boxed(),
        Kind::Message(_) | Kind::Map(_) if levels == 0 => Just(json!({})).boxed(),
        Kind::List(_) if levels == 0 => Just(json!([])).boxed(),
        Kind::Message(fields) => message(fields, levels - 1),
        Kind::List(kind) => prop::collection::vec(of_kind(kind, levels - 1), 0..3)
            .prop_map(Value::from)
            .boxed(),
        Kind::Map(kind) => prop::collection::vec(("[a-z.]{1,2}", of_kind(kind, levels - 1)), 0..3)
            .prop_map(|members| Value::Object(members.into_iter().collect()))
            .boxed(),
    };
    prop_oneof![40 => right, 1 => Just(json!(-1.5)), 1 => Just(Value::Null), 1 => Just(json!("x"))]
        .boxed()
}

fn message(fields: &'static [schema::Field], levels: u32) -> BoxedStrategy<Value> {
    let field = prop::sample::select((0..fields.len()).collect::<Vec<_>>());
    let member = (field, any::<bool>()).prop_flat_map(move |(index, is_snake)| {
        let field = &fields[index];
        let [camel, snake] = field.spellings();
        let name = if is_snake { snake } else { camel };
        of_kind(&field.kind, levels).prop_map(move |value| (name.clone(), value))
    });
    prop::collection::vec(member, 0..4)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
        .boxed()
}

proptest! {
    #[test]
    fn kfp_17_texts_and_objects_have_one_verdict_and_one_normal_form(
        root in message(schema::PIPELINE_SPEC, 9),
        platform in message(schema::PLATFORM_SPEC, 6),
    ) {
        let mut spec = root;
        for (name, value) in minimal().as_object().unwrap() {
            spec.as_object_mut().unwrap().entry(name.clone()).or_insert(value.clone());
        }
        let has_platform = !platform.as_object().unwrap().is_empty();
        let json = Documents::of(&spec, has_platform.then_some(&platform));
        let mut yaml = serde_saphyr::to_string(&spec).unwrap();
        if has_platform {
            yaml = format!("{yaml}\n---\n{}", serde_saphyr::to_string(&platform).unwrap());
        }
        let text = Documents::parse(yaml.as_bytes());
        prop_assert_eq!(text.is_ok(), json.is_ok(), "{:?} {:?}", text, json);
        if let (Ok(text), Ok(json)) = (text, json) {
            prop_assert_eq!(&text, &json);
            let again = Documents::of(json.pipeline(), json.platform()).unwrap();
            prop_assert_eq!(again, json);
        }
    }

    #[test]
    fn no_text_is_more_than_refused(text in "[-a-z0-9:{}\\[\\],&*!|> \n\"'#.]{0,200}") {
        drop(Documents::parse(text.as_bytes()));
    }
}
