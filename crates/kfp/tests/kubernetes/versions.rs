//! Versions of pipelines.

use hindsight_kfp::{
    content::of_version,
    model::{Change, NewVersion, PipelineVersion, Spec, Status},
    spec::Documents,
    store::PipelineStore,
};
use hindsight_runtime::error::ErrorKind;
use serde_json::json;

use crate::fixtures::{
    API, GROUP, all_versions, ask, pipeline, pipeline_object, refuses, sim, spec, tags, uid,
    version, version_object,
};

#[tokio::test]
async fn kfp_21_a_version_that_a_request_makes_is_an_object_with_owner_label_and_condition() {
    let (sim, store) = sim();
    let made = store.create_pipeline(pipeline("hello")).await.unwrap();
    let platform = json!({"platforms": {"kubernetes": {}}});
    let new = NewVersion {
        display_name: "First".into(),
        description: "d".into(),
        tags: tags(&[("team", "a")]),
        package_url: "https://a.example/p.yaml".into(),
        code_source_url: "https://b.example".into(),
        original_id: Some("old".into()),
        spec: Spec {
            platform: Some(platform.clone()),
            ..spec("hello")
        },
        ..version("v1")
    };
    let version = store.create_version(&made.id, new).await.unwrap();
    let object = sim
        .get(GROUP, "pipelineversions", "ci", "hello-v1")
        .unwrap();
    assert_eq!(version.id, uid(&object));
    assert_eq!(
        object["spec"],
        json!({
            "displayName": "First", "description": "d", "pipelineName": "hello", "versionName": "v1",
            "pipelineSpec": spec("hello").pipeline, "platformSpec": platform,
            "codeSourceURL": "https://b.example", "pipelineSpecURI": "https://a.example/p.yaml", "tags": {"team": "a"},
        })
    );
    let metadata = &object["metadata"];
    let content = of_version(&spec("hello").pipeline, Some(&platform)).unwrap();
    assert_eq!(
        metadata["labels"],
        json!({"pipelines.kubeflow.org/pipeline-id": made.id, "pipelines.kubeflow.org/pipeline": "hello",
            "hindsight.dev/pipeline-content": content})
    );
    assert_eq!(
        metadata["ownerReferences"],
        json!([{"apiVersion": API, "kind": "Pipeline", "name": "hello", "uid": made.id}])
    );
    let ready = json!({"type": "PipelineVersionStatus", "status": "True", "reason": "READY", "message": "READY"});
    assert_eq!(object["status"]["conditions"], json!([ready]));
    let read = store.version(&made.id, &version.id).await.unwrap();
    assert_eq!(read, version);
    assert_eq!(read.original_id.as_deref(), Some("old"));
    assert_eq!(read.spec.unwrap().platform, Some(platform));
}

#[tokio::test]
async fn kfp_29_kfp_31_a_version_that_others_make_is_usable_by_its_id_at_once() {
    let (sim, store) = sim();
    let pipeline = uid(&sim.create(pipeline_object("ci", "hello")).unwrap());
    // Without the webhook it has neither label nor owner.
    let bare = uid(&sim.create(version_object("hello", "hello")).unwrap());
    sim.create(version_object("other", "foreign")).unwrap();
    let found = store.version(&pipeline, &bare).await.unwrap();
    let expected = PipelineVersion {
        id: bare.clone(),
        pipeline_id: pipeline.clone(),
        name: "hello".into(),
        display_name: "hello".into(),
        description: String::new(),
        tags: tags(&[]),
        created_at: found.created_at,
        package_url: String::new(),
        code_source_url: String::new(),
        status: Status::Ready,
        spec: Ok(spec("hello")),
        original_id: None,
    };
    assert_eq!(found, expected);
    let page = store
        .versions(&all_versions(&pipeline, &ask(0, "", "", "")))
        .await
        .unwrap();
    assert_eq!(page.items, [found]);
    sim.delete(GROUP, "pipelineversions", "ci", "hello")
        .unwrap();
    let gone = format!("PipelineVersion {bare} not found");
    refuses(
        store.version(&pipeline, &bare).await,
        ErrorKind::Missing,
        &gone,
    );
}

#[tokio::test]
async fn a_version_belongs_to_the_pipeline_that_owns_it_whatever_it_names() {
    let (sim, store) = sim();
    let first = store.create_pipeline(pipeline("first")).await.unwrap();
    let second = store.create_pipeline(pipeline("second")).await.unwrap();
    let version = store.create_version(&first.id, version("v")).await.unwrap();
    let gone = format!("PipelineVersion {} not found", version.id);
    refuses(
        store.version(&second.id, &version.id).await,
        ErrorKind::Missing,
        &gone,
    );
    refuses(
        store.delete_version(&second.id, &version.id).await,
        ErrorKind::Missing,
        &gone,
    );
    // A pipeline of the same name that was made later is another one.
    let stale = sim.get(GROUP, "pipelineversions", "ci", "first-v").unwrap();
    store.delete_pipeline(&first.id, true).await.unwrap();
    let again = store.create_pipeline(pipeline("first")).await.unwrap();
    let mut left = version_object("first", "first-v");
    left["metadata"]["ownerReferences"] = stale["metadata"]["ownerReferences"].clone();
    sim.create(left).unwrap();
    let page = store
        .versions(&all_versions(&again.id, &ask(0, "", "", "")))
        .await
        .unwrap();
    assert_eq!(page.items, []);
}

#[tokio::test]
async fn kfp_50_a_version_is_known_by_its_name_under_either_name_of_its_object() {
    let (sim, store) = sim();
    let hello = store.create_pipeline(pipeline("hello")).await.unwrap();
    let other = store.create_pipeline(pipeline("other")).await.unwrap();
    let why = |name: &str| {
        format!(
            "Failed to create a new pipeline version. The name {name} already exist. Specify a new name"
        )
    };
    store
        .create_version(&hello.id, version("hello"))
        .await
        .unwrap();
    assert!(sim.get(GROUP, "pipelineversions", "ci", "hello").is_some());
    refuses(
        store.create_version(&hello.id, version("hello")).await,
        ErrorKind::Exists,
        &why("hello"),
    );
    // One version name under two pipelines.
    store.create_version(&hello.id, version("v")).await.unwrap();
    store.create_version(&other.id, version("v")).await.unwrap();
    refuses(
        store.create_version(&hello.id, version("v")).await,
        ErrorKind::Exists,
        &why("v"),
    );
    // One that others made under its bare name.
    sim.create(version_object("hello", "bare")).unwrap();
    refuses(
        store.create_version(&hello.id, version("bare")).await,
        ErrorKind::Exists,
        &why("bare"),
    );
    store
        .create_version(&other.id, version("bare"))
        .await
        .unwrap();
    let long = "v".repeat(250);
    let error = store
        .create_version(&hello.id, version(&long))
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("exceeds the Kubernetes 253-character naming limit"),
        "{error}"
    );
}

#[tokio::test]
async fn kfp_43_a_pipeline_and_its_version_are_made_together_or_neither() {
    let (sim, store) = sim();
    let (made, version_made) = store
        .create_both(pipeline("hello"), version("hello"))
        .await
        .unwrap();
    assert_eq!(
        store.version(&made.id, &version_made.id).await.unwrap(),
        version_made
    );
    // The version is refused when the pipeline is there already.
    let fault = kubesim::Fault::denied_by_webhook("v", "no")
        .resource("pipelineversions")
        .verb("create");
    sim.faults().plan(fault);
    let outcome = store
        .create_both(pipeline("second"), version("second"))
        .await;
    let error = outcome.unwrap_err();
    assert!(
        error.to_string().contains("denied the request: no"),
        "{error}"
    );
    assert!(sim.get(GROUP, "pipelines", "ci", "second").is_none());
    // A name that no version can have makes no pipeline.
    store
        .create_both(pipeline("third"), version("A b"))
        .await
        .unwrap_err();
    assert!(sim.get(GROUP, "pipelines", "ci", "third").is_none());
}

#[tokio::test]
async fn kfp_44_of_a_version_display_name_and_tags_change() {
    let (sim, store) = sim();
    let made = store.create_pipeline(pipeline("hello")).await.unwrap();
    let before = store
        .create_version(
            &made.id,
            NewVersion {
                tags: tags(&[("a", "1")]),
                ..version("v")
            },
        )
        .await
        .unwrap();
    let change = Change {
        display_name: Some("New".into()),
        tags: Some(tags(&[("b", "2")])),
    };
    // Another change comes between the read and the write.
    sim.faults().plan(
        kubesim::Fault::status(409)
            .resource("pipelineversions")
            .verb("patch"),
    );
    let after = store
        .update_version(&made.id, &before.id, change)
        .await
        .unwrap();
    let expected = PipelineVersion {
        display_name: "New".into(),
        tags: tags(&[("b", "2")]),
        ..before
    };
    assert_eq!(after, expected);
}

#[tokio::test]
async fn a_version_that_waits_for_finalizers_is_being_deleted_and_holds_up_no_pipeline() {
    let (sim, store) = sim();
    let made = store.create_pipeline(pipeline("hello")).await.unwrap();
    let version = store.create_version(&made.id, version("v")).await.unwrap();
    sim.merge(
        GROUP,
        "pipelineversions",
        "ci",
        "hello-v",
        json!({"metadata": {"finalizers": ["a.b/c"]}}),
        "test",
    )
    .unwrap();
    store.delete_version(&made.id, &version.id).await.unwrap();
    let left = store.version(&made.id, &version.id).await.unwrap();
    assert_eq!(left.status, Status::Deleting);
    store.delete_pipeline(&made.id, false).await.unwrap();
}

#[tokio::test]
async fn kfp_22_a_version_whose_spec_is_broken_is_listed_with_the_reason() {
    let (sim, store) = sim();
    let made = store.create_pipeline(pipeline("hello")).await.unwrap();
    let good = store
        .create_version(&made.id, version("good"))
        .await
        .unwrap();
    for (name, broken, why) in [
        (
            "unknown",
            json!({"root": {"x": 1}, "pipelineInfo": {"name": "a"}}),
            "root.x is not a field",
        ),
        ("null", json!(null), "there is no pipelineSpec"),
    ] {
        let mut object = version_object("hello", name);
        object["spec"]["pipelineSpec"] = broken;
        let id = uid(&sim.create(object).unwrap());
        let spec = store.version(&made.id, &id).await.unwrap().spec;
        assert!(
            spec.as_ref().is_err_and(|error| error.contains(why)),
            "{spec:?}"
        );
    }
    let filter = r#"{"predicates":[{"operation":"EQUALS","key":"name","stringValue":"good"}]}"#;
    let page = store
        .versions(&all_versions(&made.id, &ask(0, "", "", filter)))
        .await
        .unwrap();
    assert_eq!((page.items, page.total), (vec![good], 1));
    let page = store
        .versions(&all_versions(&made.id, &ask(0, "", "", "")))
        .await
        .unwrap();
    assert_eq!(page.total, 3);
}

#[tokio::test]
async fn kfp_31_what_the_sdk_compiles_comes_back_in_the_normal_form() {
    let (_sim, store) = sim();
    let text = include_str!("../../testdata/with-secret.yaml");
    let documents = Documents::parse(text.as_bytes()).unwrap();
    let made = store.create_pipeline(pipeline("hello")).await.unwrap();
    let new = NewVersion {
        spec: documents.clone().into(),
        ..version("v")
    };
    let version = store.create_version(&made.id, new).await.unwrap();
    let spec = store
        .version(&made.id, &version.id)
        .await
        .unwrap()
        .spec
        .unwrap();
    assert_eq!(spec, documents.into());
}
