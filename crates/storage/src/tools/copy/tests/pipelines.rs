//! Copies of pipelines of Kubeflow.

use super::copied;
use crate::{
    conformance::{
        backends::{Database, PostgresDatabase, SqliteFile, execute},
        fixtures::{pipeline, version},
        tests::postgres_server,
    },
    driver::options::{Options, Schema},
    seam::{PipelineChange, PipelineKey},
    store::resolve::{Opened, open},
    tools::copy::Count,
};

async fn tables(url: &str) -> Opened {
    let options = Options {
        schema: Schema::Migrate,
        ..Options::default()
    };
    open(url, &options).await.unwrap()
}

/// Two pipelines, of which the first has three versions.
async fn fill(database: &Opened) {
    let tables = &database.pipelines;
    let (hello, first) = (pipeline("a", "hello"), version("a", "v1"));
    let made = tables.create_pipeline(&hello, Some(&first));
    made.await.unwrap();
    for name in ["v2", "v3"] {
        tables.create_version(&version("a", name)).await.unwrap();
    }
    let mut other = pipeline("b", "other");
    other.namespace = "team".to_owned();
    tables.create_pipeline(&other, None).await.unwrap();
}

async fn holds_the_same(from: &str, to: &str) {
    let source = tables(from).await;
    fill(&source).await;
    let (outcome, said) = copied(from, to).await;
    assert_eq!(
        (said, outcome.pipelines.created, outcome.verified),
        (vec![], 5, 5)
    );
    let target = tables(to).await;
    for id in ["a", "b"] {
        let key = PipelineKey::Id(id);
        let (held, was) = (
            target.pipelines.pipeline(key),
            source.pipelines.pipeline(key),
        );
        assert_eq!(held.await.unwrap(), was.await.unwrap());
    }
    let held = target.pipelines.version("a", "a-v2").await.unwrap();
    assert_eq!(held, Some(version("a", "v2")));

    // A version is gone, as after a copy that was cut off.
    assert!(target.pipelines.delete_version("a", "a-v3").await.unwrap());
    let (outcome, said) = copied(from, to).await;
    let wanted = Count {
        created: 1,
        unchanged: 4,
        ..Count::default()
    };
    assert_eq!(
        (said, outcome.pipelines, outcome.verified),
        (vec![], wanted, 5)
    );
    source.maintenance.close().await;
    target.maintenance.close().await;
}

#[tokio::test]
async fn pipelines_are_copied_with_their_versions_and_once() {
    let (a, b) = (SqliteFile::fresh().await, SqliteFile::fresh().await);
    holds_the_same(&a.url(), &b.url()).await;
    let Some(server) = postgres_server() else {
        return;
    };
    let c = PostgresDatabase::fresh(&server).await;
    let d = SqliteFile::fresh().await;
    holds_the_same(&SqliteFile::fresh().await.url(), &c.url()).await;
    let (outcome, said) = copied(&c.url(), &d.url()).await;
    assert_eq!((said, outcome.pipelines.created), (vec![], 5), "and back");
    c.remove().await;
}

#[tokio::test]
async fn pipelines_that_the_target_has_otherwise_are_kept_and_said() {
    let (from, to) = (SqliteFile::fresh().await, SqliteFile::fresh().await);
    let (source, target) = (tables(&from.url()).await, tables(&to.url()).await);
    fill(&source).await;
    let mut taken = pipeline("x", "hello");
    taken.tags.clear();
    target
        .pipelines
        .create_pipeline(&taken, None)
        .await
        .unwrap();
    let mut other = pipeline("b", "other");
    other.namespace = "team".to_owned();
    target
        .pipelines
        .create_pipeline(&other, None)
        .await
        .unwrap();
    let shown = PipelineChange {
        display_name: Some("Changed".to_owned()),
        tags: None,
    };
    assert!(target.pipelines.update_pipeline("b", &shown).await.unwrap());
    let (outcome, said) = copied(&from.url(), &to.url()).await;
    let below = |name| format!("refused pipelines/hello/versions/{name}: its pipeline was refused");
    assert_eq!(
        said,
        [
            "refused pipelines/hello: the target has another of this name, which was kept"
                .to_owned(),
            below("v1"),
            below("v2"),
            below("v3"),
            "refused team/pipelines/other: the target has another state of it, which was kept"
                .to_owned(),
        ]
    );
    assert_eq!((outcome.pipelines.refused, outcome.verified), (5, 0));
    let held = target
        .pipelines
        .pipeline(PipelineKey::Id("b"))
        .await
        .unwrap();
    assert_eq!(held.unwrap().display_name, "Changed");
    source.maintenance.close().await;
    target.maintenance.close().await;
}

#[tokio::test]
async fn a_version_that_is_spoilt_as_it_comes_is_found_afterwards() {
    let (from, to) = (SqliteFile::fresh().await, SqliteFile::fresh().await);
    let (source, target) = (tables(&from.url()).await, tables(&to.url()).await);
    fill(&source).await;
    let spoil = "CREATE TRIGGER spoil AFTER INSERT ON pipeline_versions WHEN new.name = 'v2' BEGIN \
                 UPDATE pipeline_versions SET spec = '{}' WHERE name = 'v2'; END";
    execute(&to.url(), spoil, "").await;
    let (outcome, said) = copied(&from.url(), &to.url()).await;
    assert_eq!(said, ["found copy-differs pipelines/hello/versions/v2"]);
    assert_eq!((outcome.pipelines.created, outcome.verified), (5, 4));
    source.maintenance.close().await;
    target.maintenance.close().await;
}
