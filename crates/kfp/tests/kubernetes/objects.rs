//! Pipelines.

use hindsight_kfp::{
    kubernetes::KubernetesStore,
    model::{Change, NewPipeline},
    store::PipelineStore,
};
use hindsight_runtime::error::ErrorKind;
use serde_json::json;

use crate::fixtures::{
    GROUP, all_pipelines, ask, pipeline, pipeline_object, refuses, sim, tags, uid, version,
};

#[tokio::test]
async fn kfp_06_kfp_21_a_pipeline_that_a_request_makes_is_an_object_whose_uid_is_its_id() {
    let (sim, store) = sim();
    let new = NewPipeline {
        display_name: "Hello!".into(),
        description: "Says it.".into(),
        tags: tags(&[("team", "a")]),
        original_id: Some("old".into()),
        // A server with one user has one namespace.
        namespace: "dev".into(),
        ..pipeline("hello")
    };
    let made = store.create_pipeline(new).await.unwrap();
    let object = sim.get(GROUP, "pipelines", "ci", "hello").unwrap();
    assert_eq!(made.id, uid(&object));
    assert_eq!(made.namespace, "ci");
    assert_eq!(
        object["spec"],
        json!({"displayName": "Hello!", "description": "Says it.", "tags": {"team": "a"}})
    );
    assert_eq!(
        object["metadata"]["annotations"],
        json!({"pipelines.kubeflow.org/original-id": "old"})
    );
    assert_eq!(store.pipeline(&made.id).await.unwrap(), made);
    assert_eq!(store.pipeline_by_name("", "hello").await.unwrap(), made);
    sim.delete(GROUP, "pipelines", "ci", "hello").unwrap();
    let gone = format!("Pipeline {} not found", made.id);
    refuses(store.pipeline(&made.id).await, ErrorKind::Missing, &gone);
    refuses(
        store.pipeline_by_name("", "hello").await,
        ErrorKind::Missing,
        "Namespace/Pipeline ci/hello not found",
    );
}

#[tokio::test]
async fn kfp_21_a_pipeline_that_others_make_is_listed_at_once() {
    let (sim, store) = sim();
    let object = sim.create(pipeline_object("ci", "a.b")).unwrap();
    sim.create(pipeline_object("dev", "elsewhere")).unwrap();
    let page = store
        .pipelines(&all_pipelines("", &ask(0, "", "", "")))
        .await
        .unwrap();
    assert_eq!(page.total, 1);
    let found = &page.items[0];
    assert_eq!(
        (
            found.id.as_str(),
            found.name.as_str(),
            found.display_name.as_str()
        ),
        (uid(&object).as_str(), "a.b", "a.b")
    );
    // The SDK looks for the display name, which the object does not have.
    let filter = r#"{"predicates":[{"operation":1,"key":"display_name","stringValue":"a.b"}]}"#;
    let page = store
        .pipelines(&all_pipelines("", &ask(0, "", "", filter)))
        .await
        .unwrap();
    assert_eq!(page.total, 1);
    assert_eq!(store.pipeline(&uid(&object)).await.unwrap().name, "a.b");
}

#[tokio::test]
async fn kfp_40_a_name_is_given_once_in_a_namespace() {
    let (sim, store) = sim();
    sim.create(pipeline_object("dev", "hello")).unwrap();
    store.create_pipeline(pipeline("hello")).await.unwrap();
    let why =
        "Failed to create a new pipeline. The name hello already exists. Please specify a new name";
    refuses(
        store.create_pipeline(pipeline("hello")).await,
        ErrorKind::Exists,
        why,
    );
}

#[tokio::test]
async fn kfp_50_a_name_that_no_object_can_have_is_refused() {
    let (sim, store) = sim();
    sim.clear_calls();
    for name in ["Hello", "a_b", "a/b", "../a", "a b"] {
        let error = store.create_pipeline(pipeline(name)).await.unwrap_err();
        let begin = format!("Invalid pipeline name \"{name}\": a lowercase RFC 1123 subdomain");
        assert!(error.to_string().starts_with(&begin), "{error}");
        let why = format!("Namespace/Pipeline ci/{name} not found");
        refuses(
            store.pipeline_by_name("", name).await,
            ErrorKind::Missing,
            &why,
        );
    }
    for id in ["", "x", "../a", "a,b"] {
        refuses(
            store.pipeline(id).await,
            ErrorKind::Missing,
            &format!("Pipeline {id} not found"),
        );
    }
    assert!(sim.calls().all().is_empty());
}

#[tokio::test]
async fn kfp_44_display_name_and_tags_change_and_nothing_else() {
    let (sim, store) = sim();
    let made = store
        .create_pipeline(NewPipeline {
            description: "d".into(),
            tags: tags(&[("a", "1"), ("b", "2")]),
            ..pipeline("hello")
        })
        .await
        .unwrap();
    let change = |display_name: Option<&str>, tags: Option<_>| Change {
        display_name: display_name.map(str::to_owned),
        tags,
    };
    let id = &made.id;
    let changed = store
        .update_pipeline(id, change(Some("New"), None))
        .await
        .unwrap();
    assert_eq!(
        (changed.display_name.as_str(), &changed.tags),
        ("New", &made.tags)
    );
    let changed = store
        .update_pipeline(id, change(None, Some(tags(&[("b", "3"), ("c", "4")]))))
        .await
        .unwrap();
    assert_eq!(
        (changed.display_name.as_str(), changed.tags),
        ("New", tags(&[("b", "3"), ("c", "4")]))
    );
    let changed = store
        .update_pipeline(id, change(None, Some(tags(&[]))))
        .await
        .unwrap();
    assert_eq!(changed.tags, tags(&[]));
    assert_eq!(changed.description, "d");
    let object = sim.get(GROUP, "pipelines", "ci", "hello").unwrap();
    assert_eq!(object["spec"]["displayName"], "New");
}

#[tokio::test]
async fn kfp_42_a_pipeline_with_versions_is_deleted_with_them_or_not_at_all() {
    let (sim, store) = sim();
    let made = store.create_pipeline(pipeline("hello")).await.unwrap();
    let version = store.create_version(&made.id, version("v")).await.unwrap();
    let why = format!(
        "Failed to delete pipeline with id {} as it has existing pipeline versions (e.g. {}). Set cascade=true to \
         delete all versions",
        made.id, version.id
    );
    refuses(
        store.delete_pipeline(&made.id, false).await,
        ErrorKind::Invalid,
        &why,
    );
    assert_eq!(sim.count(GROUP, "pipelineversions"), 1);
    assert_eq!(
        store.delete_pipeline(&made.id, true).await.unwrap(),
        [version.id]
    );
    assert_eq!(
        (
            sim.count(GROUP, "pipelines"),
            sim.count(GROUP, "pipelineversions")
        ),
        (0, 0)
    );
    let gone = format!("Pipeline {} not found", made.id);
    refuses(
        store.delete_pipeline(&made.id, true).await,
        ErrorKind::Missing,
        &gone,
    );
}

#[tokio::test]
async fn with_many_users_a_pipeline_is_found_in_every_namespace() {
    let (sim, _) = sim();
    let store = KubernetesStore::of_cluster(sim.client(), "ci");
    refuses(
        store.create_pipeline(pipeline("hello")).await,
        ErrorKind::Invalid,
        "A namespace is required",
    );
    let new = NewPipeline {
        namespace: "dev".into(),
        ..pipeline("hello")
    };
    let made = store.create_pipeline(new).await.unwrap();
    assert_eq!(made.namespace, "dev");
    sim.create(pipeline_object("ci", "other")).unwrap();
    let names = async |namespace: &str| {
        let page = store
            .pipelines(&all_pipelines(namespace, &ask(0, "", "name", "")))
            .await;
        let names = page
            .unwrap()
            .items
            .into_iter()
            .map(|pipeline| pipeline.name);
        names.collect::<Vec<_>>()
    };
    assert_eq!(names("dev").await, ["hello"]);
    assert_eq!(names("").await, ["hello", "other"]);
    let fresh = KubernetesStore::of_cluster(sim.client(), "ci");
    assert_eq!(fresh.pipeline(&made.id).await.unwrap(), made);
    let version = fresh.create_version(&made.id, version("v")).await.unwrap();
    assert_eq!(
        sim.get(GROUP, "pipelineversions", "dev", "hello-v")
            .map(|object| uid(&object)),
        Some(version.id)
    );
}
