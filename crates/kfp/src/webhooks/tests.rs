//! Reviews of versions of one simulated cluster.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hindsight_run::json;
use kubesim::{Crd, Sim};
use serde_json::{Value, json};

use super::{Admission, NameCheck, Webhook};
use crate::content;

/// A cluster with the pipeline `p` in the namespace `ci`, and its uid.
fn sim() -> (Sim, String) {
    let sim = Sim::new();
    for (kind, plural) in [
        ("Pipeline", "pipelines"),
        ("PipelineVersion", "pipelineversions"),
    ] {
        sim.install(Crd::namespaced(
            "pipelines.kubeflow.org",
            "v2beta1",
            kind,
            plural,
        ));
    }
    sim.namespace("ci").namespace("dev");
    (sim.clone(), pipeline(&sim, "ci", "p"))
}

fn pipeline(sim: &Sim, namespace: &str, name: &str) -> String {
    let object = json!({
        "apiVersion": "pipelines.kubeflow.org/v2beta1", "kind": "Pipeline",
        "metadata": {"name": name, "namespace": namespace},
    });
    let made = sim.create(object).unwrap();
    made["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// A version of the pipeline `p`, whose name and that in its spec are `name`.
fn version(name: &str) -> Value {
    json!({
        "apiVersion": "pipelines.kubeflow.org/v2beta1", "kind": "PipelineVersion",
        "metadata": {"name": name, "namespace": "ci"},
        "spec": {
            "pipelineName": "p",
            "pipelineSpec": {"pipelineInfo": {"name": name}, "root": {}, "schemaVersion": "2.1.0"},
        },
    })
}

fn create(object: &Value) -> Value {
    json!({"request": {"uid": "u", "operation": "CREATE", "namespace": "ci", "object": object}})
}

fn update(before: &Value, object: &Value) -> Value {
    json!({"request": {
        "uid": "u", "operation": "UPDATE", "namespace": "ci", "object": object, "oldObject": before,
    }})
}

async fn ask(sim: &Sim, names: NameCheck, webhook: Webhook, review: &Value) -> Value {
    let admission = Admission::new(sim.client(), names);
    let answer = admission
        .answer(webhook, review.to_string().as_bytes())
        .await
        .unwrap();
    let answer = json::parse(answer.as_bytes()).unwrap();
    assert_eq!(answer["kind"], "AdmissionReview");
    assert_eq!(answer["response"]["uid"], "u");
    answer["response"].clone()
}

/// What the validating webhook says, of a refusal the message.
async fn judge(sim: &Sim, review: &Value) -> Result<(), String> {
    let response = ask(sim, NameCheck::Enforce, Webhook::Validate, review).await;
    match response["allowed"].as_bool().unwrap() {
        true => Ok(()),
        false => {
            assert_eq!(response["status"]["code"], 400);
            assert_eq!(response["status"]["reason"], "BadRequest");
            Err(response["status"]["message"].as_str().unwrap().to_owned())
        }
    }
}

/// The operations of the patch of the mutating webhook.
async fn mutate(sim: &Sim, review: &Value) -> Result<Vec<Value>, String> {
    let response = ask(sim, NameCheck::Enforce, Webhook::Mutate, review).await;
    if response["allowed"] == false {
        return Err(response["status"]["message"].as_str().unwrap().to_owned());
    }
    let Some(patch) = response["patch"].as_str() else {
        return Ok(Vec::new());
    };
    assert_eq!(response["patchType"], "JSONPatch");
    let patch = json::parse(&STANDARD.decode(patch).unwrap()).unwrap();
    Ok(patch.as_array().unwrap().clone())
}

/// The object once the mutating webhook changed it.
async fn mutated(sim: &Sim, object: &Value) -> Value {
    let mut object = object.clone();
    for step in mutate(sim, &create(&object)).await.unwrap() {
        let path = step["path"].as_str().unwrap();
        let (parent, key) = path.rsplit_once('/').unwrap();
        let parent = object.pointer_mut(parent).unwrap();
        match parent {
            Value::Array(items) if key == "-" => items.push(step["value"].clone()),
            Value::Array(items) => items[key.parse::<usize>().unwrap()] = step["value"].clone(),
            other => other[key.replace("~1", "/")] = step["value"].clone(),
        }
    }
    object
}

#[tokio::test]
async fn kfp_10_what_is_no_review_gets_no_answer() {
    let (sim, _) = sim();
    let admission = Admission::new(sim.client(), NameCheck::Enforce);
    for (body, why) in [
        ("{}", "it is no AdmissionReview: request.uid is missing"),
        ("", "EOF while parsing a value at line 1 column 0"),
    ] {
        let answer = admission.answer(Webhook::Validate, body.as_bytes()).await;
        assert_eq!(answer, Err(why.to_owned()));
    }
}

#[tokio::test]
async fn kfp_11_the_pipeline_is_one_of_the_same_namespace() {
    let (sim, _) = sim();
    pipeline(&sim, "dev", "elsewhere");
    let missing = "The spec.pipelineName doesn't map to an existing Pipeline object";
    for name in [
        json!("elsewhere"),
        json!(null),
        json!(""),
        json!("p/x"),
        json!("../p"),
        json!("P"),
    ] {
        let mut object = version("v");
        object["spec"]["pipelineName"] = name;
        assert_eq!(judge(&sim, &create(&object)).await, Err(missing.to_owned()));
        assert_eq!(
            mutate(&sim, &create(&object)).await,
            Err(missing.to_owned())
        );
    }
    assert_eq!(judge(&sim, &create(&version("v"))).await, Ok(()));
    // One that was made a moment ago counts: nothing is cached.
    let mut object = version("v");
    object["spec"]["pipelineName"] = json!("new");
    assert!(judge(&sim, &create(&object)).await.is_err());
    pipeline(&sim, "ci", "new");
    assert_eq!(judge(&sim, &create(&object)).await, Ok(()));
}

#[tokio::test]
async fn kfp_11_a_cluster_that_does_not_answer_refuses_with_the_reason() {
    let (sim, _) = sim();
    let fault = kubesim::Fault::status(500).resource("pipelines");
    sim.faults().plan(fault.lasting());
    let why = judge(&sim, &create(&version("v"))).await.unwrap_err();
    assert!(
        why.starts_with("Failed to get the Pipeline ci/p: "),
        "{why}"
    );
}

#[tokio::test]
async fn kfp_12_without_a_version_name_the_object_is_called_as_the_pipeline_in_its_spec() {
    let (sim, _) = sim();
    let mut object = version("v");
    object["metadata"]["name"] = json!("w");
    let why = "The object name \"w\" is not spec.pipelineSpec.pipelineInfo.name, which is \"v\"; rename the object, \
               or set spec.versionName";
    assert_eq!(judge(&sim, &create(&object)).await, Err(why.to_owned()));
    let warned = ask(&sim, NameCheck::Warn, Webhook::Validate, &create(&object)).await;
    assert_eq!(
        (&warned["allowed"], &warned["warnings"]),
        (&json!(true), &json!([why]))
    );
}

#[tokio::test]
async fn kfp_12_with_a_version_name_the_object_has_that_or_both_names() {
    let (sim, _) = sim();
    for (name, fits) in [
        ("one", true),
        ("p-one", true),
        ("v", false),
        ("one-p", false),
    ] {
        let mut object = version("v");
        object["metadata"]["name"] = json!(name);
        object["spec"]["versionName"] = json!("one");
        let verdict = judge(&sim, &create(&object)).await;
        assert_eq!(verdict.is_ok(), fits, "{name}: {verdict:?}");
    }
}

#[tokio::test]
async fn kfp_07_kfp_13_a_spec_is_judged_as_that_of_an_upload() {
    let (sim, _) = sim();
    for (spec, why) in [
        (
            json!(null),
            "unknown template format: pipelineSpec is `null`; want a pipeline spec",
        ),
        (
            json!({"pipelineInfo": {"name": "v"}, "root": {"dags": {}}, "schemaVersion": "2.1.0"}),
            "failed to parse pipeline spec YAML: pipelineSpec: root.dags is not a field of the schema; want one of \
             inputDefinitions, outputDefinitions, dag, executorLabel, singlePlatformSpecs, taskConfigPassthroughs",
        ),
        (
            json!({"pipelineInfo": {"name": "v"}, "root": {}, "schemaVersion": "2.0.0"}),
            "KFP only supports schema version 2.1.0, but the pipeline spec has version 2.0.0",
        ),
    ] {
        let mut object = version("v");
        object["spec"]["pipelineSpec"] = spec;
        let why = format!("The pipeline spec is invalid: {why}");
        assert_eq!(judge(&sim, &create(&object)).await, Err(why));
    }
    let mut object = version("v");
    object["spec"]["platformSpec"] = json!({"platforms": {"kubernetes": {"x": 1}}});
    let why = judge(&sim, &create(&object)).await.unwrap_err();
    assert!(
        why.contains("platformSpec: platforms.kubernetes.x is not a field"),
        "{why}"
    );
    object["spec"]["platformSpec"] = json!({"platforms": {"vertex": {}}});
    assert_eq!(judge(&sim, &create(&object)).await, Ok(()));
    object["spec"]["tags"] = json!({"a.b": "c"});
    let why = judge(&sim, &create(&object)).await.unwrap_err();
    assert_eq!(why, "tag key \"a.b\" must not contain '.' character");
}

#[tokio::test]
async fn kfp_14_of_a_spec_only_display_name_and_tags_change() {
    let (sim, _) = sim();
    let before = version("v");
    let with = |path: &str, value: Value| {
        let mut object = before.clone();
        let (parent, key) = path.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[key] = value;
        object
    };
    for free in [
        with("/spec/displayName", json!("New")),
        with("/spec/tags", json!({"a": "b"})),
        with("/metadata/labels", json!({"a": "b"})),
        with("/metadata/finalizers", json!(["a.b/c"])),
        with("/status", json!({"conditions": []})),
    ] {
        assert_eq!(judge(&sim, &update(&before, &free)).await, Ok(()), "{free}");
    }
    let fixed =
        "Pipeline spec is immutable; only mutable fields (display_name, tags) can be updated";
    for changed in [
        with("/spec/description", json!("New")),
        with("/spec/pipelineName", json!("q")),
        with("/spec/versionName", json!("w")),
        with("/spec/codeSourceURL", json!("x")),
        with("/spec/pipelineSpec/root", json!({"dag": {}})),
        with("/spec/platformSpec", json!({})),
    ] {
        assert_eq!(
            judge(&sim, &update(&before, &changed)).await,
            Err(fixed.to_owned()),
            "{changed}"
        );
    }
    let tagged = with("/spec/tags", json!({"": "b"}));
    assert_eq!(
        judge(&sim, &update(&before, &tagged)).await,
        Err("tag key cannot be empty".to_owned())
    );
}

#[tokio::test]
async fn kfp_15_kfp_16_a_version_gets_owner_and_labels_once() {
    let (sim, uid) = sim();
    let made = mutated(&sim, &version("v")).await;
    let owner = json!({
        "apiVersion": "pipelines.kubeflow.org/v2beta1", "kind": "Pipeline", "name": "p", "uid": uid,
        "blockOwnerDeletion": true,
    });
    assert_eq!(made["metadata"]["ownerReferences"], json!([owner]));
    let content = content::of_version(&made["spec"]["pipelineSpec"], None).unwrap();
    let labels = json!({"pipelines.kubeflow.org/pipeline-id": uid, "pipelines.kubeflow.org/pipeline": "p",
        "hindsight.dev/pipeline-content": content});
    assert_eq!(made["metadata"]["labels"], labels);
    assert_eq!(mutate(&sim, &create(&made)).await, Ok(Vec::new()));
    assert_eq!(mutate(&sim, &update(&made, &made)).await, Ok(Vec::new()));
}

#[tokio::test]
async fn kfp_15_kfp_16_what_is_wrong_is_corrected_and_what_is_foreign_stays() {
    let (sim, uid) = sim();
    let mut object = version("v");
    let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "x"});
    let wrong = json!({
        "apiVersion": "pipelines.kubeflow.org/v2beta1", "kind": "Pipeline", "name": "q", "uid": "y", "controller": true,
    });
    object["metadata"]["ownerReferences"] = json!([foreign, wrong]);
    object["metadata"]["labels"] = json!({"pipelines.kubeflow.org/pipeline-id": "y", "mine": "z",
        "hindsight.dev/pipeline-content": "x"});
    let made = mutated(&sim, &object).await;
    let owner = json!({
        "apiVersion": "pipelines.kubeflow.org/v2beta1", "kind": "Pipeline", "name": "p", "uid": uid,
        "controller": true, "blockOwnerDeletion": true,
    });
    assert_eq!(made["metadata"]["ownerReferences"], json!([foreign, owner]));
    let content = content::of_version(&made["spec"]["pipelineSpec"], None).unwrap();
    assert_eq!(
        made["metadata"]["labels"],
        json!({"pipelines.kubeflow.org/pipeline-id": uid, "pipelines.kubeflow.org/pipeline": "p", "mine": "z",
            "hindsight.dev/pipeline-content": content})
    );
    object["metadata"]["ownerReferences"] = json!([foreign]);
    let made = mutated(&sim, &object).await;
    assert_eq!(made["metadata"]["ownerReferences"][1]["uid"], json!(uid));
}

#[tokio::test]
async fn kfp_16_a_label_has_as_much_of_a_long_name_as_it_can() {
    let (sim, _) = sim();
    let name = format!("{}-.{}", "a".repeat(61), "b".repeat(10)).replace("-.", "-b");
    pipeline(&sim, "ci", &name);
    let dotted = format!("{}.b", "a".repeat(62));
    pipeline(&sim, "ci", &dotted);
    for (name, label) in [
        (&name, format!("{}-b", "a".repeat(61))),
        (&dotted, "a".repeat(62)),
    ] {
        let mut object = version("v");
        object["spec"]["pipelineName"] = json!(name);
        let made = mutated(&sim, &object).await;
        assert_eq!(
            made["metadata"]["labels"]["pipelines.kubeflow.org/pipeline"],
            json!(label)
        );
    }
}

#[tokio::test]
async fn versions_that_are_being_deleted_pass_both_webhooks() {
    let (sim, _) = sim();
    let mut before = version("v");
    before["spec"]["pipelineName"] = json!("gone");
    before["metadata"]["deletionTimestamp"] = json!("2026-03-01T10:00:00Z");
    before["metadata"]["finalizers"] = json!(["a.b/c"]);
    let mut after = before.clone();
    after["metadata"]["finalizers"] = json!([]);
    let review = update(&before, &after);
    assert_eq!(mutate(&sim, &review).await, Ok(Vec::new()));
    assert_eq!(judge(&sim, &review).await, Ok(()));
    let mut delete = create(&json!(null));
    delete["request"]["operation"] = json!("DELETE");
    assert_eq!(judge(&sim, &delete).await, Ok(()));
}
