//! `hindsight pipelines export` and `import`, and the requests of Kubeflow's own migration tool.

use std::{collections::BTreeSet, path::Path};

use serde_json::{Value, json};

use super::{PIPELINES, Scene, Store, encoded, id, on_each, scene, spec};
use crate::support::{
    Database,
    process::{Said, run},
};

/// Three pipelines with two versions each, whose names no object could have in a database.
async fn filled(scene: &Scene) -> Vec<Value> {
    let mut made = Vec::new();
    for number in 1..=3 {
        let name = match scene.store {
            Store::Kubernetes => format!("train-{number}"),
            _ => format!("Train {number}"),
        };
        let body = json!({"name": name, "description": "yes", "tags": {"team": "on"}});
        let pipeline = scene.ask("POST", PIPELINES, &body).await.ok();
        for version in ["v1", "v2"] {
            let target = format!(
                "{PIPELINES}/upload_version?name={version}&pipelineid={}&description=no&code_source_url={}&tags={}",
                id(&pipeline),
                encoded("https://git.example/a"),
                encoded(r#"{"n": "1"}"#),
            );
            scene
                .send_file(&target, "a.yaml", spec("hello").as_bytes())
                .await
                .ok();
        }
        made.push(pipeline);
    }
    made
}

/// The manifests in a folder, by file.
fn manifests(folder: &Path) -> Vec<(String, Vec<Value>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, serde_saphyr::from_multiple(&text).unwrap())
    };
    files.iter().map(read).collect()
}

async fn pipelines(arguments: &[&str]) -> Said {
    let arguments: Vec<_> = std::iter::once("pipelines")
        .chain(arguments.iter().copied())
        .collect();
    run(&arguments).await
}

#[tokio::test]
async fn kfp_28_pipelines_of_a_server_are_exported_and_imported_again() {
    on_each(async |scene| {
        let made = filled(&scene).await;
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let out = out.to_str().unwrap();
        let export = [
            "export",
            "--from",
            &scene.server.url,
            "--to-namespace",
            "ci",
            "-o",
            out,
        ];
        pipelines(&export)
            .await
            .prints(0, "3 pipelines with 6 versions written");
        let first = manifests(Path::new(out));
        let files: Vec<_> = first.iter().map(|(file, _)| file.as_str()).collect();
        assert_eq!(
            files,
            ["ci.train-1.yaml", "ci.train-2.yaml", "ci.train-3.yaml"]
        );
        // Versions of one second are in the order of their ids.
        let [pipeline, versions @ ..] = first[0].1.as_slice() else {
            panic!("one pipeline with two versions");
        };
        let is_first = |version: &&Value| version["spec"]["versionName"] == "v1";
        let version = versions.iter().find(is_first).unwrap();
        assert_eq!(
            pipeline["metadata"]["annotations"]["pipelines.kubeflow.org/original-id"],
            made[0]["pipeline_id"]
        );
        assert_eq!(pipeline["spec"]["displayName"], made[0]["display_name"]);
        assert_eq!(version["metadata"]["name"], "train-1-v1");
        let spec = version["spec"].as_object().unwrap();
        let fields: BTreeSet<_> = spec.keys().map(String::as_str).collect();
        let expected = [
            "codeSourceURL",
            "description",
            "displayName",
            "pipelineName",
            "pipelineSpec",
            "tags",
            "versionName",
        ];
        assert_eq!(fields, expected.into());
        assert_eq!(
            (&spec["description"], &spec["versionName"]),
            (&json!("no"), &json!("v1"))
        );
        // A second export writes the same.
        pipelines(&export)
            .await
            .prints(0, "3 pipelines with 6 versions written");
        assert_eq!(manifests(Path::new(out)), first);

        let target = Database::sqlite();
        let db = target.url();
        run(&["migrate", "--db", &db]).await.prints(0, "");
        let import = ["import", out, "--db", &db];
        pipelines(&import)
            .await
            .prints(0, "3 pipelines with 6 versions created");
        pipelines(&import).await.prints(
            0,
            "0 pipelines with 0 versions created, 9 were there already",
        );
        let again = folder.path().join("again");
        let again = again.to_str().unwrap();
        pipelines(&["export", "--db", &db, "-o", again])
            .await
            .prints(0, "3 pipelines with 6 versions written");
        let second = manifests(Path::new(again));
        for ((_, first), (_, second)) in first.iter().zip(&second) {
            for (first, second) in first.iter().zip(second) {
                assert_eq!(first["spec"], second["spec"]);
            }
        }
        target.remove().await;
        scene
    })
    .await;
}

#[tokio::test]
async fn kfp_28_what_is_not_imported_is_told_and_the_exit_code_says_so() {
    let scene = scene(Store::Sqlite, &[]).await.unwrap();
    filled(&scene).await;
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let db = scene.database.url();
    pipelines(&["export", "--db", &db, "-o", out])
        .await
        .prints(0, "3 pipelines with 6 versions");
    let file = folder.path().join("train-1.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("python:3.11", "python:3.12")).unwrap();
    let target = Database::sqlite();
    let other = target.url();
    run(&["migrate", "--db", &other]).await.prints(0, "");
    pipelines(&["import", out, "--db", &other])
        .await
        .prints(0, "3 pipelines with 6 versions created");
    std::fs::write(&file, text).unwrap();
    let said = pipelines(&["import", out, "--db", &other]).await;
    said.prints(
        1,
        "0 pipelines with 0 versions created, 7 were there already, 2 could not be",
    );
    said.fails(
        1,
        "pipeline `train-1`: version `v1`: there is one of this name whose pipelineSpec differs",
    );
    pipelines(&["import", folder.path().join("none.yaml").to_str().unwrap()])
        .await
        .fails(2, "none.yaml");
    let nowhere = ["export", "--from", "http://127.0.0.1:1", "-o", out];
    pipelines(&nowhere)
        .await
        .fails(5, "http://127.0.0.1:1/apis/v2beta1/pipelines");
    target.remove().await;
    scene.end().await;
}

#[tokio::test]
async fn kfp_28_a_cluster_is_exported_and_imported_by_its_kubeconfig() {
    let scene = scene(Store::Kubernetes, &[]).await.unwrap();
    let made = filled(&scene).await;
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let kubeconfig = scene.listening.kubeconfig().display().to_string();
    let export = [
        "export",
        "--kubeconfig",
        &kubeconfig,
        "--to-namespace",
        "dev",
        "-o",
        out,
    ];
    pipelines(&export)
        .await
        .prints(0, "3 pipelines with 6 versions written");
    let import = ["import", out, "--kubeconfig", &kubeconfig];
    pipelines(&import)
        .await
        .prints(0, "3 pipelines with 6 versions created");
    pipelines(&import).await.prints(0, "9 were there already");
    let copied = scene
        .sim
        .get("pipelines.kubeflow.org", "pipelines", "dev", "train-1")
        .unwrap();
    assert_eq!(
        copied["metadata"]["annotations"]["pipelines.kubeflow.org/original-id"],
        made[0]["pipeline_id"]
    );
    scene.end().await;
}

#[tokio::test]
async fn kfp_28_the_migration_tool_of_kubeflow_reads_every_page() {
    on_each(async |scene| {
        let made = filled(&scene).await;
        // It pastes tokens as they are, and names parameters that there are not.
        let pages = async |path: &str, key: &str| {
            let (mut items, mut token) = (Vec::new(), String::new());
            loop {
                let target = format!(
                    "{path}?page_token={token}&page_size=2&order_by=created_at&namespace=kubeflow"
                );
                let page = scene.get(&target).await;
                items.extend(page[key].as_array().unwrap().iter().cloned());
                token = page["next_page_token"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                if token.is_empty() {
                    return items;
                }
            }
        };
        let found = pages(PIPELINES, "pipelines").await;
        assert_eq!(found.len(), made.len());
        for pipeline in &found {
            let versions = pages(
                &format!("{PIPELINES}/{}/versions", id(pipeline)),
                "pipeline_versions",
            )
            .await;
            let names: BTreeSet<_> = versions
                .iter()
                .map(|version| version["name"].as_str().unwrap())
                .collect();
            assert_eq!(names, ["v1", "v2"].into());
            assert!(
                versions
                    .iter()
                    .all(|version| version["pipeline_spec"]["root"].is_object())
            );
        }
        scene
    })
    .await;
}

#[tokio::test]
async fn kfp_01_the_definitions_are_printed_as_they_are_installed() {
    let said = pipelines(&["crds"]).await;
    assert_eq!(said.code, 0);
    let printed: Vec<Value> = serde_saphyr::from_multiple(&said.out).unwrap();
    assert_eq!(printed, hindsight_kfp::crds::definitions());
}
