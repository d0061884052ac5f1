//! Creating, reading, changing and deleting.

use std::sync::Arc;

use hindsight_kfp::{
    Error,
    model::{Change, NewPipeline, NewVersion, Spec, Tags},
    query::{ListAsk, Query, Scope},
    store::PipelineStore,
};
use hindsight_runtime::error::{ErrorKind, HasKind as _};
use serde_json::json;

use crate::{at, on_databases, pipeline, tags, version};

const NOWHERE: &str = "00000000-0000-4000-8000-000000000000";

#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>, kind: ErrorKind, why: &str) {
    let error = outcome.unwrap_err();
    assert_eq!(error.to_string(), why);
    assert_eq!(error.kind(), kind);
}

async fn versions_of(store: &dyn PipelineStore, pipeline_id: &str) -> Result<u64, Error> {
    let scope = Scope::Versions {
        pipeline_id: pipeline_id.to_owned(),
    };
    let query = Query::new(scope, &ListAsk::default(), usize::MAX).unwrap();
    Ok(store.versions(&query).await?.total)
}

#[tokio::test]
async fn what_is_created_is_read_by_id_and_by_name() {
    on_databases(async |store| {
        let new = NewPipeline {
            description: "line\nline \u{1F600}".to_owned(),
            tags: tags(&[("team", "a"), ("é", "")]),
            original_id: Some("before".to_owned()),
            ..pipeline("hello")
        };
        let made = store.create_pipeline(new.clone()).await.unwrap();
        assert_eq!(
            (
                &made.name,
                &made.display_name,
                &made.description,
                &made.tags
            ),
            (&new.name, &new.display_name, &new.description, &new.tags)
        );
        assert_eq!(made.created_at, new.now);
        assert_eq!(store.pipeline(&made.id).await.unwrap(), made);
        assert_eq!(store.pipeline_by_name("", "hello").await.unwrap(), made);
        let new = NewVersion {
            description: "d".to_owned(),
            tags: tags(&[("a", "b")]),
            package_url: "https://example.com/a.yaml".to_owned(),
            code_source_url: "https://example.com".to_owned(),
            spec: Spec {
                platform: Some(json!({"platforms": {"kubernetes": {}}})),
                ..crate::spec("hello")
            },
            original_id: Some("before".to_owned()),
            ..version("v1")
        };
        let first = store.create_version(&made.id, new.clone()).await.unwrap();
        assert_eq!(first.spec, Ok(new.spec));
        assert_eq!(
            (
                &first.name,
                &first.tags,
                &first.package_url,
                &first.code_source_url
            ),
            (&new.name, &new.tags, &new.package_url, &new.code_source_url)
        );
        assert_eq!(store.version(&made.id, &first.id).await.unwrap(), first);
    })
    .await;
}

#[tokio::test]
async fn what_is_not_there_is_missing() {
    on_databases(async |store| {
        let missing = ErrorKind::Missing;
        let no_pipeline = format!("Pipeline {NOWHERE} not found");
        let no_version = format!("PipelineVersion {NOWHERE} not found");
        let made = store.create_pipeline(pipeline("a")).await.unwrap();
        let other = store.create_pipeline(pipeline("b")).await.unwrap();
        let first = store.create_version(&made.id, version("v")).await.unwrap();
        refused(store.pipeline(NOWHERE).await, missing, &no_pipeline);
        refused(
            store.pipeline_by_name("", "c").await,
            missing,
            "Namespace/Pipeline /c not found",
        );
        refused(
            store.create_version(NOWHERE, version("v")).await,
            missing,
            &no_pipeline,
        );
        refused(versions_of(&*store, NOWHERE).await, missing, &no_pipeline);
        refused(store.version(&made.id, NOWHERE).await, missing, &no_version);
        let elsewhere = format!("PipelineVersion {} not found", first.id);
        refused(
            store.version(&other.id, &first.id).await,
            missing,
            &elsewhere,
        );
        refused(
            store.delete_version(&other.id, &first.id).await,
            missing,
            &elsewhere,
        );
        let change = Change::default;
        refused(
            store.update_pipeline(NOWHERE, change()).await,
            missing,
            &no_pipeline,
        );
        let update = store.update_version(&other.id, &first.id, change()).await;
        refused(update, missing, &elsewhere);
        refused(
            store.delete_pipeline(NOWHERE, true).await,
            missing,
            &no_pipeline,
        );
        assert_eq!(versions_of(&*store, &made.id).await.unwrap(), 1);
    })
    .await;
}

#[tokio::test]
async fn kfp_40_a_name_is_taken_once_in_a_namespace_and_once_in_a_pipeline() {
    on_databases(async |store| {
        let exists = ErrorKind::Exists;
        let taken =
            "Failed to create a new pipeline. The name a already exists. Please specify a new name";
        let made = store.create_pipeline(pipeline("a")).await.unwrap();
        refused(store.create_pipeline(pipeline("a")).await, exists, taken);
        let both = NewPipeline {
            tags: tags(&[("x", "y")]),
            ..pipeline("a")
        };
        refused(store.create_both(both, version("v")).await, exists, taken);
        let elsewhere = NewPipeline {
            namespace: "team".to_owned(),
            ..pipeline("a")
        };
        let (other, _) = store.create_both(elsewhere, version("v")).await.unwrap();
        store.create_version(&made.id, version("v")).await.unwrap();
        refused(
            store.create_version(&made.id, version("v")).await,
            exists,
            "Failed to create a new pipeline version. The name v already exist. Specify a new name",
        );
        assert_eq!(versions_of(&*store, &made.id).await.unwrap(), 1);
        assert_eq!(versions_of(&*store, &other.id).await.unwrap(), 1);
    })
    .await;
}

#[tokio::test]
async fn kfp_44_an_update_changes_the_display_name_and_the_tags_alone() {
    on_databases(async |store| {
        let new = NewPipeline {
            tags: tags(&[("a", "1"), ("b", "2")]),
            ..pipeline("p")
        };
        let (made, first) = store.create_both(new, version("v")).await.unwrap();
        let shown = Change {
            display_name: Some("Shown".to_owned()),
            tags: None,
        };
        let replaced = Change {
            display_name: None,
            tags: Some(tags(&[("b", "3")])),
        };
        let cleared = Change {
            display_name: None,
            tags: Some(Tags::new()),
        };
        let mut expected = made.clone();
        expected.display_name = "Shown".to_owned();
        assert_eq!(
            store
                .update_pipeline(&made.id, shown.clone())
                .await
                .unwrap(),
            expected
        );
        expected.tags = tags(&[("b", "3")]);
        assert_eq!(
            store
                .update_pipeline(&made.id, replaced.clone())
                .await
                .unwrap(),
            expected
        );
        assert_eq!(tagged(&*store, "a", "1").await, 0);
        assert_eq!(tagged(&*store, "b", "3").await, 1);
        expected.tags = Tags::new();
        assert_eq!(
            store
                .update_pipeline(&made.id, cleared.clone())
                .await
                .unwrap(),
            expected
        );
        assert_eq!(tagged(&*store, "b", "3").await, 0);
        let mut expected = first.clone();
        let update = |change| store.update_version(&made.id, &first.id, change);
        expected.display_name = "Shown".to_owned();
        assert_eq!(update(shown).await.unwrap(), expected);
        expected.tags = tags(&[("b", "3")]);
        assert_eq!(update(replaced).await.unwrap(), expected);
        expected.tags = Tags::new();
        assert_eq!(update(cleared).await.unwrap(), expected);
    })
    .await;
}

async fn tagged(store: &dyn PipelineStore, key: &str, value: &str) -> u64 {
    let ask = ListAsk {
        filter: json!({"predicates": [{
            "operation": "EQUALS", "key": format!("tags.{key}"), "string_value": value,
        }]})
        .to_string(),
        ..ListAsk::default()
    };
    let scope = Scope::Pipelines {
        namespace: String::new(),
    };
    let query = Query::new(scope, &ask, usize::MAX).unwrap();
    store.pipelines(&query).await.unwrap().total
}

#[tokio::test]
async fn kfp_42_a_pipeline_is_deleted_with_its_versions_only_if_that_is_asked() {
    on_databases(async |store| {
        let (made, first) = store.create_both(pipeline("p"), version("v1")).await.unwrap();
        let second = NewVersion {
            now: at(1_700_000_001),
            ..version("v2")
        };
        let second = store.create_version(&made.id, second).await.unwrap();
        refused(
            store.delete_pipeline(&made.id, false).await,
            ErrorKind::Invalid,
            &format!(
                "Failed to delete pipeline with id {} as it has existing pipeline versions (e.g. {}). Set \
                 cascade=true to delete all versions",
                made.id, first.id
            ),
        );
        assert_eq!(versions_of(&*store, &made.id).await.unwrap(), 2);
        let gone = store.delete_pipeline(&made.id, true).await.unwrap();
        assert_eq!(gone, [first.id.clone(), second.id]);
        store.pipeline(&made.id).await.unwrap_err();
        store.version(&made.id, &first.id).await.unwrap_err();

        let (made, first) = store.create_both(pipeline("p"), version("v1")).await.unwrap();
        store.delete_version(&made.id, &first.id).await.unwrap();
        assert_eq!(store.delete_pipeline(&made.id, false).await.unwrap(), [""; 0]);
    })
    .await;
}

/// Versions are created and deleted while their pipeline is deleted: what was acknowledged is there, or went with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_version_is_left_without_its_pipeline_nor_lost_with_one_that_stays() {
    on_databases(async |store| {
        for round in 0..10 {
            let made = store
                .create_pipeline(pipeline(&format!("p{round}")))
                .await
                .unwrap();
            let creating: Vec<_> = (0..4)
                .map(|number| {
                    let (store, id) = (Arc::clone(&store), made.id.clone());
                    tokio::spawn(async move {
                        store
                            .create_version(&id, version(&format!("v{number}")))
                            .await
                    })
                })
                .collect();
            let deleted = store.delete_pipeline(&made.id, false).await;
            let mut created = 0;
            for version in creating {
                created += u64::from(version.await.unwrap().is_ok());
            }
            match deleted {
                Ok(_) => {
                    assert_eq!(created, 0);
                    store.pipeline(&made.id).await.unwrap_err();
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Invalid);
                    assert_eq!(versions_of(&*store, &made.id).await.unwrap(), created);
                }
            }
        }
    })
    .await;
}
