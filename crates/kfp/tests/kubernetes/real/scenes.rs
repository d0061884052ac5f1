//! The scenes.

use hindsight_kfp::{
    model::{Change, NewPipeline, Status},
    store::PipelineStore,
};
use hindsight_runtime::error::{ErrorKind, HasKind};
use kube::{Resource as _, api::DeleteParams};
use serde_json::{Value, json};

use super::World;
use crate::fixtures::{
    API, all_pipelines, all_versions, ask, pipeline, pipeline_object, spec, tags, uid, version,
    version_object,
};

const MANIFESTS: &str = include_str!("../../../testdata/manifests.yaml");

pub(super) async fn kfp_21_what_requests_make_is_seen_by_kubectl_and_the_other_way_round(
    world: World,
) {
    let store = &world.store;
    let new = NewPipeline {
        tags: tags(&[("a", "1"), ("b", "2")]),
        ..pipeline("hello")
    };
    let made = store.create_pipeline(new).await.unwrap();
    let first = store.create_version(&made.id, version("v1")).await.unwrap();
    let object = world.get("PipelineVersion", "hello-v1").await.unwrap();
    assert_eq!(uid(&object), first.id);
    let owner = &object["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["uid"], &owner["kind"]),
        (&json!(made.id), &json!("Pipeline"))
    );
    if world.has_webhooks {
        assert_eq!(owner["blockOwnerDeletion"], true);
    }
    assert_eq!(
        object["metadata"]["labels"]["pipelines.kubeflow.org/pipeline-id"],
        json!(made.id)
    );
    assert_eq!(object["status"]["conditions"][0]["reason"], "READY");

    world.create(pipeline_object("", "other")).await.unwrap();
    let page = store
        .pipelines(&all_pipelines("", &ask(0, "", "name", "")))
        .await
        .unwrap();
    let names = page.items.iter().map(|pipeline| pipeline.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["hello", "other"]);
    let bare = uid(&world.create(version_object("hello", "bare")).await.unwrap());
    let found = store.version(&made.id, &bare).await.unwrap();
    assert_eq!(
        (found.name.as_str(), found.spec),
        ("bare", Ok(spec("bare")))
    );
    let change = Change {
        display_name: Some("New".into()),
        tags: Some(tags(&[("b", "3")])),
    };
    let changed = store
        .update_pipeline(&made.id, change.clone())
        .await
        .unwrap();
    assert_eq!(
        (changed.display_name.as_str(), changed.tags),
        ("New", tags(&[("b", "3")]))
    );
    let changed = store.update_version(&made.id, &bare, change).await.unwrap();
    assert_eq!(changed.display_name, "New");
    assert_eq!(
        world.get("PipelineVersion", "bare").await.unwrap()["spec"]["tags"],
        json!({"b": "3"})
    );

    store.delete_version(&made.id, &first.id).await.unwrap();
    assert!(world.get("PipelineVersion", "hello-v1").await.is_none());
    world
        .objects("PipelineVersion")
        .delete("bare", &DeleteParams::default())
        .await
        .unwrap();
    let gone = store.version(&made.id, &bare).await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::Missing);
}

pub(super) async fn kfp_29_manifests_of_the_sdk_are_applied_and_a_second_time_changes_nothing(
    world: World,
) {
    let documents: Vec<Value> = serde_saphyr::from_multiple(MANIFESTS).unwrap();
    let mut applied = Vec::new();
    for _ in 0..3 {
        for document in &documents {
            let object = world.apply(document.clone()).await.unwrap();
            applied.push(object);
        }
    }
    // The server completes its own notes of who manages what with the second apply, and nothing with the third.
    assert_eq!(applied[2..4], applied[4..]);
    let content = |object: &Value| {
        let mut object = object.clone();
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.retain(|key, _| !matches!(key.as_str(), "resourceVersion" | "managedFields"));
        object
    };
    let content: Vec<_> = applied.iter().map(content).collect();
    assert_eq!(content[..2], content[2..4]);
    let found = world.store.pipeline_by_name("", "hello").await.unwrap();
    let page = world
        .store
        .versions(&all_versions(&found.id, &ask(0, "", "", "")))
        .await
        .unwrap();
    assert_eq!(page.total, 1);
    let found = &page.items[0];
    assert_eq!(
        (found.name.as_str(), found.status),
        ("hello", Status::Ready)
    );
    let spec = found.spec.as_ref().unwrap();
    assert_eq!(spec.pipeline["pipelineInfo"]["name"], "hello");
    assert!(spec.platform.is_some());
    // What the object holds is what was applied, so that GitOps sees no difference.
    let object = world.get("PipelineVersion", "hello").await.unwrap();
    assert_eq!(object["spec"], documents[1]["spec"]);
}

pub(super) async fn kfp_05_kfp_07_the_definitions_give_a_condition_and_want_a_spec(world: World) {
    world.create(pipeline_object("", "hello")).await.unwrap();
    let made = world
        .create(version_object("hello", "hello"))
        .await
        .unwrap();
    let ready = json!({"message": "READY", "reason": "READY", "status": "True", "type": "PipelineVersionStatus"});
    assert_eq!(made["status"]["conditions"], json!([ready]));
    for (field, value) in [
        ("pipelineSpec", json!(null)),
        ("versionName", json!("A b")),
        ("tags", json!({"a": 1})),
    ] {
        let mut object = version_object("hello", "other");
        object["spec"][field] = value;
        let refused = world.create(object).await.unwrap_err();
        assert!(matches!(refused.code, 400 | 422), "{field}: {refused:?}");
    }
    let mut object = version_object("hello", "other");
    object["spec"]
        .as_object_mut()
        .unwrap()
        .remove("pipelineSpec");
    let refused = world.create(object).await.unwrap_err();
    assert!(matches!(refused.code, 400 | 422), "{refused:?}");
}

pub(super) async fn kfp_10_to_16_webhooks_answer_in_the_words_that_kubectl_shows(world: World) {
    if !world.has_webhooks {
        eprintln!("skipped: the API server does not reach a webhook on this machine");
        return;
    }
    let refusal = async |object: Value| {
        let status = world.create(object).await.unwrap_err();
        assert_eq!((status.code, status.reason.as_str()), (400, "BadRequest"));
        let said =
            r#"admission webhook "pipelineversions.pipelines.kubeflow.org" denied the request: "#;
        status
            .message
            .strip_prefix(said)
            .unwrap_or(&status.message)
            .to_owned()
    };
    assert_eq!(
        refusal(version_object("missing", "v")).await,
        "The spec.pipelineName doesn't map to an existing Pipeline object"
    );
    let pipeline = uid(&world.create(pipeline_object("", "hello")).await.unwrap());
    let mut object = version_object("hello", "v");
    object["spec"]["pipelineSpec"]["schemaVersion"] = json!("1");
    assert_eq!(
        refusal(object).await,
        "The pipeline spec is invalid: KFP only supports schema version 2.1.0, but the pipeline spec has version 1"
    );
    let mut object = version_object("hello", "v");
    object["metadata"]["name"] = json!("w");
    let said = refusal(object).await;
    assert!(said.starts_with("The object name \"w\" is not"), "{said}");
    let mut object = version_object("hello", "v");
    object["metadata"] = json!({"generateName": "v-"});
    let said = refusal(object).await;
    assert!(said.starts_with("The object name \"v-"), "{said}");
    // A wrong owner and a wrong label are corrected.
    let mut object = version_object("hello", "v");
    object["metadata"]["labels"] = json!({"pipelines.kubeflow.org/pipeline-id": "wrong"});
    object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": API, "kind": "Pipeline", "name": "x", "uid": "wrong"}]);
    let made = world.create(object).await.unwrap();
    assert_eq!(
        made["metadata"]["ownerReferences"][0]["uid"],
        json!(pipeline)
    );
    assert_eq!(
        made["metadata"]["labels"]["pipelines.kubeflow.org/pipeline-id"],
        json!(pipeline)
    );
}

pub(super) async fn kfp_14_of_a_spec_only_display_name_and_tags_change(world: World) {
    if !world.has_webhooks {
        eprintln!("skipped: the API server does not reach a webhook on this machine");
        return;
    }
    world.create(pipeline_object("", "hello")).await.unwrap();
    world.create(version_object("hello", "v")).await.unwrap();
    let kind = "PipelineVersion";
    for free in [
        json!({"spec": {"displayName": "New", "tags": {"a": "b"}}}),
        json!({"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}}),
    ] {
        world.merge(kind, "v", free).await.unwrap();
    }
    for fixed in [
        json!({"description": "New"}),
        json!({"pipelineSpec": {"root": {"executorLabel": "f"}}}),
    ] {
        let refused = world
            .merge(kind, "v", json!({"spec": fixed}))
            .await
            .unwrap_err();
        assert!(refused.message.ends_with("Pipeline spec is immutable; only mutable fields (display_name, tags) can be updated"), "{refused:?}");
    }
    // A wrong label does not stay.
    let object = world
        .merge(
            kind,
            "v",
            json!({"metadata": {"labels": {"pipelines.kubeflow.org/pipeline": "x"}}}),
        )
        .await
        .unwrap();
    assert_eq!(
        object["metadata"]["labels"]["pipelines.kubeflow.org/pipeline"],
        "hello"
    );
}

pub(super) async fn a_version_whose_pipeline_is_gone_gives_up_its_finalizer(world: World) {
    world.create(pipeline_object("", "hello")).await.unwrap();
    let mut object = version_object("hello", "v");
    object["metadata"]["finalizers"] = json!(["contract.kubesim.dev/wait"]);
    world.create(object).await.unwrap();
    world
        .objects("PipelineVersion")
        .delete("v", &DeleteParams::default())
        .await
        .unwrap();
    world
        .objects("Pipeline")
        .delete("hello", &DeleteParams::background())
        .await
        .unwrap();
    assert!(world.get("Pipeline", "hello").await.is_none());
    world
        .merge(
            "PipelineVersion",
            "v",
            json!({"metadata": {"finalizers": null}}),
        )
        .await
        .unwrap();
    assert!(world.get("PipelineVersion", "v").await.is_none());
}

pub(super) async fn kfp_23_pages_go_on_when_items_vanish(world: World) {
    for name in ["a", "b", "c", "d", "e"] {
        world.create(pipeline_object("", name)).await.unwrap();
    }
    let list = async |token: &str| {
        let query = all_pipelines("", &ask(2, token, "name", ""));
        let page = world.store.pipelines(&query).await.unwrap();
        let names: Vec<_> = page
            .items
            .into_iter()
            .map(|pipeline| pipeline.name)
            .collect();
        (names, page.next)
    };
    let (first, token) = list("").await;
    for name in ["b", "c"] {
        world
            .objects("Pipeline")
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }
    let (second, token) = list(&token).await;
    assert_eq!(
        (first, second, token.as_str()),
        (
            vec!["a".into(), "b".into()],
            vec!["d".into(), "e".into()],
            ""
        )
    );
}

pub(super) async fn kfp_42_kfp_43_a_request_does_all_or_nothing(world: World) {
    let store = &world.store;
    let (made, first) = store
        .create_both(pipeline("hello"), version("hello"))
        .await
        .unwrap();
    let again = store
        .create_both(pipeline("hello"), version("hello"))
        .await
        .unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Exists);
    let refused = store.delete_pipeline(&made.id, false).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    if world.has_webhooks {
        // The webhook refuses the version when the pipeline is there already.
        let mut broken = version("second");
        broken.spec.pipeline = json!({"root": {}});
        let refused = store
            .create_both(pipeline("second"), broken)
            .await
            .unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
        assert!(world.get("Pipeline", "second").await.is_none());
    }
    assert_eq!(
        store.delete_pipeline(&made.id, true).await.unwrap(),
        [first.id]
    );
    let left = world
        .objects("PipelineVersion")
        .list(&kube::api::ListParams::default())
        .await
        .unwrap();
    assert!(left.items.iter().all(|object| object.meta().name.is_none()));
}
