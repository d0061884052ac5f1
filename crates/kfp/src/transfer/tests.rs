//! Manifests of two stores that differ in what names can be.

use std::sync::Arc;

use hindsight_storage::{
    resolve::{Options, Schema, open},
    testing::{Database as _, SqliteFile},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Described, Event, Manifests, Names, Stored, export, import, read};
use crate::{
    Database,
    kubernetes::KubernetesStore,
    model::{NewPipeline, NewVersion, Pipeline, PipelineVersion, Spec, Status, Tags},
    query::{ListAsk, Query, Scope},
    store::PipelineStore,
};

async fn database() -> (Arc<dyn PipelineStore>, SqliteFile) {
    let file = SqliteFile::fresh().await;
    let options = Options {
        schema: Schema::Migrate,
        ..Options::default()
    };
    let opened = open(&file.url(), &options).await.unwrap();
    (Arc::new(Database::new(opened.pipelines)), file)
}

fn spec(name: &str) -> Spec {
    Spec {
        pipeline: json!({"pipelineInfo": {"name": name}, "root": {"executorLabel": "yes"}, "schemaVersion": "2.1.0"}),
        platform: Some(json!({"platforms": {"kubernetes": {"platform": "012"}}})),
    }
}

fn time(second: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(second).unwrap()
}

fn a_pipeline(name: &str) -> NewPipeline {
    NewPipeline {
        namespace: String::new(),
        name: name.to_owned(),
        display_name: format!("{name}: shown"),
        description: "two\nlines, and \"more\"".to_owned(),
        tags: Tags::from([("team".to_owned(), "on".to_owned())]),
        original_id: None,
        now: time(1_000),
    }
}

fn a_version(name: &str, second: i64) -> NewVersion {
    NewVersion {
        name: name.to_owned(),
        display_name: format!("{name}: shown"),
        description: "~".to_owned(),
        tags: Tags::from([("n".to_owned(), "1e3".to_owned())]),
        package_url: "https://a.example/p.yaml".to_owned(),
        code_source_url: "https://b.example".to_owned(),
        spec: spec("p"),
        original_id: None,
        now: time(second),
    }
}

/// The pipelines of a store with their versions, oldest first.
async fn all(store: &dyn PipelineStore) -> Vec<(Pipeline, Vec<PipelineVersion>)> {
    let query = |scope| Query::new(scope, &ListAsk::default(), usize::MAX).unwrap();
    let scope = Scope::Pipelines {
        namespace: store.default_namespace().to_owned(),
    };
    let mut found = Vec::new();
    for pipeline in store.pipelines(&query(scope)).await.unwrap().items {
        let scope = Scope::Versions {
            pipeline_id: pipeline.id.clone(),
        };
        let mut versions = store.versions(&query(scope)).await.unwrap().items;
        versions.sort_by(|left, right| left.name.cmp(&right.name));
        found.push((pipeline, versions));
    }
    found.sort_by(|(left, _), (right, _)| left.name.cmp(&right.name));
    found
}

/// The files that an export writes.
async fn exported(store: &Arc<dyn PipelineStore>, target: Option<&str>) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let write = |file: &str, text: &str| {
        files.push((file.to_owned(), text.to_owned()));
        Ok(())
    };
    let source = Stored(Arc::clone(store));
    let count = export(&source, &[String::new()], target, write, |_event| {})
        .await
        .unwrap();
    assert_eq!(
        (count.pipelines, count.failures.as_slice()),
        (files.len(), &[][..])
    );
    files
}

#[tokio::test]
async fn kfp_27_kfp_28_everything_goes_from_a_database_into_kubernetes_and_back() {
    let (first, _kept) = database().await;
    let made = first
        .create_pipeline(a_pipeline("Train All!"))
        .await
        .unwrap();
    for (name, second) in [("v1", 2_000), ("2026-01-31 10-00-00", 3_000)] {
        first
            .create_version(&made.id, a_version(name, second))
            .await
            .unwrap();
    }
    let files = exported(&first, Some("ci")).await;
    assert_eq!(files[0].0, "ci.train-all.yaml");

    let sim = kubesim::Sim::new();
    for (kind, plural) in [
        ("Pipeline", "pipelines"),
        ("PipelineVersion", "pipelineversions"),
    ] {
        sim.install(kubesim::Crd::namespaced(
            "pipelines.kubeflow.org",
            "v2beta1",
            kind,
            plural,
        ));
    }
    sim.namespace("ci");
    let objects = KubernetesStore::of_namespace(sim.client(), "ci");
    let described = read(&files, time(9_000)).unwrap();
    let count = import(&objects, described.clone(), |_event| {}).await;
    assert_eq!(
        (count.pipelines, count.versions, count.failures.as_slice()),
        (1, 2, &[][..])
    );
    let before = all(&*first).await;
    let after = all(&objects).await;
    let (pipeline, versions) = &after[0];
    assert_eq!(pipeline.name, "train-all");
    assert_eq!(pipeline.display_name, "Train All!: shown");
    assert_eq!(pipeline.original_id.as_ref(), Some(&before[0].0.id));
    assert_eq!(
        (&pipeline.description, &pipeline.tags),
        (&before[0].0.description, &before[0].0.tags)
    );
    let names: Vec<_> = versions
        .iter()
        .map(|version| version.name.as_str())
        .collect();
    assert_eq!(names, ["2026-01-31-10-00-00", "v1"]);
    for (before, after) in before[0].1.iter().zip(versions) {
        let expected = PipelineVersion {
            id: after.id.clone(),
            pipeline_id: pipeline.id.clone(),
            name: after.name.clone(),
            created_at: after.created_at,
            original_id: Some(before.id.clone()),
            ..before.clone()
        };
        assert_eq!(*after, expected);
    }
    // Again: nothing is changed.
    let again = import(&objects, described, |_event| {}).await;
    assert_eq!(
        (again.pipelines, again.versions, again.unchanged),
        (0, 0, 3)
    );
    assert_eq!(all(&objects).await, after);

    // And back, into an empty database.
    let objects: Arc<dyn PipelineStore> = Arc::new(objects);
    let (second, _kept) = database().await;
    let mut back = read(&exported(&objects, None).await, time(9_000)).unwrap();
    for described in &mut back {
        described.namespace.clear();
        described
            .pipeline
            .iter_mut()
            .for_each(|new| new.namespace.clear());
    }
    let count = import(&*second, back, |_event| {}).await;
    assert_eq!(
        (count.pipelines, count.versions, count.failures.as_slice()),
        (1, 2, &[][..])
    );
    let end = all(&*second).await;
    assert_eq!(end[0].0.original_id.as_ref(), Some(&pipeline.id));
    let specs = |versions: &[PipelineVersion]| -> Vec<_> {
        versions
            .iter()
            .map(|version| version.spec.clone())
            .collect()
    };
    assert_eq!(specs(&end[0].1), specs(&before[0].1));
}

#[tokio::test]
async fn times_of_versions_stay_from_a_database_into_a_database() {
    let (first, _kept) = database().await;
    let made = first.create_pipeline(a_pipeline("p")).await.unwrap();
    first
        .create_version(&made.id, a_version("v", 2_000))
        .await
        .unwrap();
    let (second, _kept) = database().await;
    let described = read(&exported(&first, None).await, time(9_000)).unwrap();
    import(&*second, described, |_event| {}).await;
    let (pipeline, versions) = all(&*second).await.remove(0);
    assert_eq!(
        (pipeline.created_at, versions[0].created_at),
        (time(1_000), time(2_000))
    );
}

#[tokio::test]
async fn kfp_28_what_cannot_be_imported_is_told_and_the_rest_is_imported() {
    let (store, _kept) = database().await;
    let made = store.create_pipeline(a_pipeline("p")).await.unwrap();
    store
        .create_version(&made.id, a_version("v1", 2_000))
        .await
        .unwrap();
    let other = NewVersion {
        spec: spec("other"),
        description: "x".to_owned(),
        ..a_version("v1", 2_000)
    };
    let described = |name: &str, versions| Described {
        pipeline: None,
        namespace: String::new(),
        name: name.to_owned(),
        versions,
    };
    let mut told = Vec::new();
    let count = import(
        &*store,
        vec![
            described("missing", Vec::new()),
            described("p", vec![other, a_version("v2", 3_000)]),
        ],
        |event| {
            if let Event::Failed(why) = event {
                told.push(why.to_owned());
            }
        },
    )
    .await;
    let failures = [
        "pipeline `missing`: Namespace/Pipeline /missing not found",
        "pipeline `p`: version `v1`: there is one of this name whose pipelineSpec and description differs",
    ];
    assert_eq!(count.failures, failures);
    assert_eq!(told, failures);
    assert_eq!(
        (count.pipelines, count.versions, count.unchanged),
        (0, 1, 1)
    );
}

#[test]
fn kfp_28_a_version_without_a_spec_is_told_and_not_written() {
    let mut names = Names::default();
    let pipeline = Pipeline {
        id: "i".to_owned(),
        namespace: String::new(),
        name: "p".to_owned(),
        display_name: String::new(),
        description: String::new(),
        tags: Tags::new(),
        created_at: time(0),
        original_id: None,
    };
    let mut manifests = Manifests::of(&pipeline, None, &mut names);
    let version = PipelineVersion {
        id: "v".to_owned(),
        pipeline_id: "i".to_owned(),
        name: "v".to_owned(),
        display_name: String::new(),
        description: String::new(),
        tags: Tags::new(),
        created_at: time(0),
        package_url: String::new(),
        code_source_url: String::new(),
        status: Status::Ready,
        spec: Err("broken".to_owned()),
        original_id: None,
    };
    assert_eq!(
        manifests.add(&version, &mut names),
        Err("broken".to_owned())
    );
    assert_eq!(manifests.versions(), 0);
}

#[test]
fn manifests_that_are_none_are_refused_with_their_place() {
    let refuses = |text: &str, why: &str| {
        let files = [("a.yaml".to_owned(), text.to_owned())];
        assert_eq!(
            read(&files, time(0)).unwrap_err(),
            format!("a.yaml, document 1: {why}")
        );
    };
    refuses(
        "kind: Pod",
        "its kind is `Pod`; want Pipeline or PipelineVersion",
    );
    refuses(
        "kind: Pipeline\napiVersion: v1",
        "its apiVersion is `v1`; want pipelines.kubeflow.org/v2beta1",
    );
    let begin = "kind: PipelineVersion\napiVersion: pipelines.kubeflow.org/v2beta1\n";
    refuses(begin, "it has no metadata.name");
    refuses(
        &format!("{begin}metadata: {{name: a}}\nspec: {{pipelineName: p}}"),
        "unknown template format: pipelineSpec is `null`; want a pipeline spec",
    );
}

#[test]
fn kfp_29_manifests_of_the_sdk_are_read() {
    let text = include_str!("../../testdata/manifests.yaml").to_owned();
    let described = read(&[("m.yaml".to_owned(), text)], time(0)).unwrap();
    let [described] = described.try_into().unwrap();
    assert_eq!(
        (described.namespace.as_str(), described.name.as_str()),
        ("ci", "hello")
    );
    assert_eq!(described.pipeline.unwrap().description, "Says hello.");
    assert_eq!(described.versions[0].name, "hello");
}

proptest! {
    /// Also parsers of YAML 1.1, as that of kubectl, for which more words are no strings.
    #[test]
    fn kfp_28_texts_of_manifests_are_what_they_were(text in "(yes|no|on|off|y|n|~|null|0x1F|0o7|012|1_000|1e3|\\.inf|12:30|=|<<|[ -~\n\té]{0,40})") {
        let mut object = json!({"a": text, "b": [text]});
        object[&text] = json!(1);
        let written = serde_saphyr::to_string(&object).unwrap();
        let lenient = serde_saphyr::options! { strict_booleans: false };
        for options in [lenient, serde_saphyr::options! { strict_booleans: true }] {
            let read: Value = serde_saphyr::from_str_with_options(&written, options).unwrap();
            prop_assert_eq!(&read, &object, "{}", written);
        }
    }
}
