//! Importing what kubectl printed: everything is stored, under the names the watcher would
//! give, byte for byte, and a second time changes nothing.

use std::{io::Write as _, path::PathBuf, process::Stdio};

use hindsight::import::minify;
use hindsight_proto::v1alpha2 as pb;
use serde_json::Value;

use crate::support::{
    Database, TestServer,
    objects::TASK_RUN,
    process::{Said, hindsight, run},
    server::on_each,
};

const FILES: [&str; 5] = [
    "pipelineruns",
    "taskruns",
    "customruns",
    "workflows",
    "jobs",
];

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(format!("{name}.json"))
}

async fn import(server: &TestServer, files: &[String]) -> Said {
    let mut arguments = vec!["import".to_owned()];
    arguments.extend(files.iter().cloned());
    arguments.extend(["--server".to_owned(), server.url.clone()]);
    run(&arguments).await
}

async fn everything(server: &TestServer) -> (Vec<pb::Result>, Vec<pb::Record>) {
    let mut rpc = server.rpc();
    let request = pb::ListResultsRequest {
        parent: "-".to_owned(),
        page_size: 1000,
        ..Default::default()
    };
    let results = rpc
        .list_results(request)
        .await
        .unwrap()
        .into_inner()
        .results;
    let request = pb::ListRecordsRequest {
        parent: "-/results/-".to_owned(),
        page_size: 1000,
        ..Default::default()
    };
    let records = rpc
        .list_records(request)
        .await
        .unwrap()
        .into_inner()
        .records;
    (results, records)
}

/// The objects of all fixtures, each as its own compact text and its parsed form.
fn objects() -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for name in FILES {
        let text = std::fs::read_to_string(fixture(name)).unwrap();
        let list: std::collections::BTreeMap<String, Box<serde_json::value::RawValue>> =
            serde_json::from_str(&text).unwrap();
        let items: Vec<Box<serde_json::value::RawValue>> =
            serde_json::from_str(list["items"].get()).unwrap();
        all.extend(
            items
                .iter()
                .map(|i| (minify(i.get()), serde_json::from_str(i.get()).unwrap())),
        );
    }
    all
}

#[tokio::test]
async fn every_object_is_stored_byte_for_byte_and_a_second_import_changes_nothing() {
    on_each(|server| async move {
        let files: Vec<_> = FILES
            .iter()
            .map(|name| fixture(name).display().to_string())
            .collect();
        let said = import(&server, &files).await;
        said.prints(0, "14 created, 0 updated, 0 unchanged, 0 refused");
        let before = everything(&server).await;
        assert_eq!((before.0.len(), before.1.len()), (8, 14));
        for (text, object) in objects() {
            let uid = object["metadata"]["uid"].as_str().unwrap();
            let record = before
                .1
                .iter()
                .find(|r| r.name.ends_with(uid))
                .expect("it is stored");
            let data = record.data.as_ref().unwrap();
            assert_eq!(std::str::from_utf8(&data.value).unwrap(), text);
            let data_type = format!(
                "{}.{}",
                object["apiVersion"].as_str().unwrap(),
                object["kind"].as_str().unwrap()
            );
            assert_eq!(data.r#type, data_type);
        }

        let said = import(&server, &files).await;
        assert!(
            said.out
                .contains("0 created, 0 updated, 14 unchanged, 0 refused"),
            "{said:?}"
        );
        assert_eq!(
            everything(&server).await,
            before,
            "the same etags and times"
        );
    })
    .await;
}

#[tokio::test]
async fn another_server_is_imported_byte_for_byte_and_twice_changes_nothing() {
    on_each(|server| async move {
        let database = Database::sqlite();
        let source = TestServer::start(&database).await;
        let files: Vec<_> = FILES.map(|name| fixture(name).display().to_string()).into();
        import(&source, &files).await;
        // Bytes that other JSON libraries change, more than a page of them, and what is no run.
        let exact = |at: usize| {
            format!(
                r#"{{"apiVersion":"tekton.dev/v1", "kind":"TaskRun","metadata":{{"name":"x{at}","namespace":"big","uid":"00000000-0000-4000-8000-{at:012}"}},"n":9007199254740993, "e":1.0e2}}"#
            )
        };
        for at in 0..230 {
            let name = format!("big/results/r{at}/records/x");
            let bytes = exact(at);
            source.given_record(&name, TASK_RUN, bytes.as_bytes()).await;
        }
        let log = "results.tekton.dev/v1alpha3.Log";
        source.given_record("big/results/r0/records/log", log, b"{}").await;
        source.given_record("big/results/r0/records/odd", "odd", b"no JSON").await;

        let command = ["import", "results-api", &source.url, "--server", &server.url];
        let said = run(&command).await;
        assert_eq!(said.code, 1, "{said:?}");
        let counted = "244 created, 0 updated, 0 unchanged, 1 refused";
        assert!(said.out.contains(counted), "{said:?}");
        assert!(said.err.contains("refused big/results/r0/records/odd"), "{said:?}");
        assert!(said.err.contains("skipped 1 records"), "{said:?}");
        let before = everything(&server).await;
        for (text, _) in objects() {
            let is_same = |r: &&pb::Record| r.data.as_ref().unwrap().value == text.as_bytes();
            assert_eq!(before.1.iter().filter(is_same).count(), 1, "{text}");
        }
        for at in 0..230 {
            let text = exact(at);
            let is_same = |r: &&pb::Record| r.data.as_ref().unwrap().value == text.as_bytes();
            assert_eq!(before.1.iter().filter(is_same).count(), 1, "{text}");
        }
        let said = run(&command).await;
        let counted = "0 created, 0 updated, 244 unchanged, 1 refused";
        assert!(said.out.contains(counted), "{said:?}");
        assert_eq!(everything(&server).await, before);
        source.stop().await;
    })
    .await;
}

#[tokio::test]
async fn an_input_without_objects_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for text in ["null", "[]"] {
        let file = folder.path().join("empty.json");
        std::fs::write(&file, text).unwrap();
        let said = run(&["import", file.to_str().unwrap()]).await;
        said.fails(2, "no objects");
    }
}

#[tokio::test]
async fn a_pipeline_run_and_its_children_share_a_result_that_is_summed_up() {
    on_each(|server| async move {
        // Children first: the result is made by them and summed up once its owner comes.
        for name in ["taskruns", "pipelineruns"] {
            import(&server, &[fixture(name).display().to_string()]).await;
        }
        let (results, records) = everything(&server).await;
        let about = |name: &str| {
            let is = |r: &&pb::Result| {
                r.annotations
                    .get("object.metadata.name")
                    .is_some_and(|about| about == name)
            };
            results.iter().find(is).expect("a result is about it")
        };
        let failed = about("release-001");
        let summary = failed.summary.as_ref().unwrap();
        assert_eq!(summary.status(), pb::record_summary::Status::Failure);
        assert_eq!(summary.r#type, "tekton.dev/v1.PipelineRun");
        assert_eq!(
            summary.end_time.unwrap().seconds - summary.start_time.unwrap().seconds,
            235
        );
        assert_eq!(summary.annotations["commit"], "c0ffee");
        assert_eq!(summary.annotations["attempt"], "1");
        assert_eq!(failed.annotations["tekton.dev/pipeline"], "release");
        let inside = records
            .iter()
            .filter(|r| r.name.starts_with(&failed.name))
            .count();
        assert_eq!(inside, 3);
        let cancelled = about("release-002").summary.as_ref().unwrap().status();
        assert_eq!(cancelled, pb::record_summary::Status::Cancelled);
        let running = about("lint-000").summary.as_ref().unwrap();
        assert_eq!(
            (running.status(), running.end_time),
            (pb::record_summary::Status::Unknown, None)
        );
    })
    .await;
}

#[tokio::test]
async fn yaml_on_standard_input_is_read_to_its_end() {
    on_each(|server| async move {
        let mut child = hindsight()
            .args(["import", "-", "--server", &server.url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let yaml = "apiVersion: tekton.dev/v1\nkind: TaskRun\nmetadata:\n  name: y\n  namespace: ci\n  uid: u-y\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: ci, uid: u-p}\n";
        child.stdin.take().unwrap().write_all(yaml.as_bytes()).unwrap();
        let said: Said =
            tokio::task::spawn_blocking(move || child.wait_with_output().unwrap().into())
                .await
                .unwrap();
        assert!(said.out.contains("2 created"), "{said:?}");
        let stored = server.get_record("ci/results/u-y/records/u-y").await.unwrap();
        assert_eq!(
            &stored.data.unwrap().value[..],
            br#"{"apiVersion":"tekton.dev/v1","kind":"TaskRun","metadata":{"name":"y","namespace":"ci","uid":"u-y"}}"#
        );
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_stored_is_listed_and_the_rest_is_stored() {
    on_each(|server| async move {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mixed.json");
        std::fs::write(
            &file,
            r#"{"kind":"List","items":[
                {"apiVersion":"v1","kind":"Pod","metadata":{"name":"no-uid","namespace":"ci"}},
                {"apiVersion":"v1","kind":"Pod","metadata":{"name":"ok","namespace":"ci","uid":"u"}}]}"#,
        )
        .unwrap();
        let said = import(&server, &[file.display().to_string()]).await;
        said.fails(1, "refused Pod/ci/no-uid: the object has no `metadata.uid`");
        assert!(said.out.contains("1 created, 0 updated, 0 unchanged, 1 refused"), "{said:?}");

        std::fs::write(&file, "{\"kind\": \"List\", \"items\": [{").unwrap();
        let said = import(&server, &[file.display().to_string()]).await;
        said.fails(2, "mixed.json: the input is not JSON");
        let said = import(&server, &["/no/such/file.json".to_owned()]).await;
        said.fails(2, "/no/such/file.json");
    })
    .await;
}

#[tokio::test]
async fn an_earlier_state_does_not_replace_the_end() {
    on_each(|server| async move {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.json");
        let state = |condition: &str, version: u32| {
            format!(
                r#"{{"apiVersion":"tekton.dev/v1","kind":"TaskRun","metadata":{{"name":"a","namespace":"ci","uid":"u","resourceVersion":"{version}"}},"status":{{"conditions":[{{"type":"Succeeded","status":"{condition}"}}]}}}}"#
            )
        };
        for (condition, version, effect) in [
            ("Unknown", 5, "1 created"),
            ("True", 7, "1 updated"),
            ("Unknown", 6, "1 unchanged"),
            ("True", 6, "1 unchanged"),
            ("False", 8, "1 updated"),
        ] {
            std::fs::write(&file, state(condition, version)).unwrap();
            let said = import(&server, &[file.display().to_string()]).await;
            assert!(said.out.contains(effect), "{condition} {version}: {said:?}");
        }
        let (results, _) = everything(&server).await;
        let summary = results[0].summary.as_ref().unwrap();
        assert_eq!(summary.status(), pb::record_summary::Status::Failure);
    })
    .await;
}
