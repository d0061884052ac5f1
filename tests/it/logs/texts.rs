//! Logs of containers as one text, and the records that tell of them.

use serde_json::{Value, json};

use super::{append, get_log, message, seal, tekton};
use crate::support::{
    objects::{PIPELINE_RUN, TASK_RUN, bytes},
    server::{TestServer, on_each},
};
use hindsight_proto::v1alpha2 as pb;

fn task_run(name: &str, task: &str, minute: u32) -> Value {
    json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": name, "namespace": "shop", "uid": name,
            "labels": {"tekton.dev/pipelineTask": task, "tekton.dev/pipelineRun": "release"},
            "ownerReferences": [{"kind": "PipelineRun", "name": "release", "uid": "release"}]},
        "status": {"startTime": format!("2026-03-02T09:{minute:02}:00Z"),
            "completionTime": "2026-03-02T09:59:00Z",
            "conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded"}]},
    })
}

async fn given(server: &TestServer) {
    let run = json!({
        "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
        "metadata": {"name": "release", "namespace": "shop", "uid": "release"},
        "status": {"startTime": "2026-03-02T09:00:00Z", "completionTime": "2026-03-02T09:59:00Z",
            "conditions": [{"type": "Succeeded", "status": "True", "reason": "Succeeded"}]},
    });
    let name = |id: &str| format!("shop/results/release/records/{id}");
    server
        .given_record(&name("release"), PIPELINE_RUN, &bytes(&run))
        .await;
    for (run, task, minute) in [("run-b", "build", 1), ("run-a", "test", 5)] {
        let run_object = task_run(run, task, minute);
        server
            .given_record(&name(run), TASK_RUN, &bytes(&run_object))
            .await;
        let log = format!("shop/results/release/logs/{run}");
        append(
            server,
            vec![
                message(&log, "step-one", 0, b"first\nlast without end"),
                message(&log, "step-two", 0, format!("{task} two\n").as_bytes()),
                message(&log, "sidecar-dind", 0, b"noise\n"),
            ],
        )
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn a_text_is_what_tkn_prints() {
    on_each(|server| async move {
        given(&server).await;
        let (text, _) = get_log(&server, "shop/results/release/logs/run-b")
            .await
            .unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "[one] first\n[one] last without end\n\n[two] build two\n\n"
        );
        let (text, _) = get_log(&server, "shop/results/release/logs/release")
            .await
            .unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "[build : one] first\n[build : one] last without end\n\n[build : two] build two\n\n\
             [test : one] first\n[test : one] last without end\n\n[test : two] test two\n\n"
        );
    })
    .await;
}

#[tokio::test]
async fn lines_are_stored_where_another_record_has_the_name_of_that_of_their_log() {
    on_each(|server| async move {
        let log = "shop/results/r/logs/run";
        append(&server, vec![message(log, "step-a", 0, b"one\n")])
            .await
            .unwrap();
        let all = pb::ListRecordsRequest {
            parent: "shop/results/r".to_owned(),
            ..Default::default()
        };
        let told = server.rpc().list_records(all).await.unwrap().into_inner();
        let [told] = told.records.as_slice() else {
            panic!("{told:?}");
        };
        server.delete_record(&told.name).await.unwrap();
        server.given_record(&told.name, "note", b"{}").await;
        let more = message(log, "step-a", 1, b"two\n");
        append(&server, vec![more, seal(log, "step-a")])
            .await
            .unwrap();
        let stored = append(&server, vec![message(log, "step-b", 0, b"three\n")]);
        assert_eq!(stored.await.unwrap().containers.len(), 1);
        let (text, _) = get_log(&server, log).await.unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text, "[a] one\n[a] two\n\n[b] three\n\n");
    })
    .await;
}

#[tokio::test]
async fn the_record_of_a_log_is_made_with_its_first_line_and_told_when_it_is_whole() {
    on_each(|server| async move {
        given(&server).await;
        let list = async || {
            let request = pb::ListRecordsRequest {
                parent: "shop/results/release".to_owned(),
                filter: r#"data.spec.resource.uid == "run-a""#.to_owned(),
                ..pb::ListRecordsRequest::default()
            };
            let found = tekton(&server)
                .await
                .list_logs(request)
                .await
                .unwrap()
                .into_inner();
            assert_eq!(found.records.len(), 1);
            let record = found.records.into_iter().next().unwrap();
            let told: Value = serde_json::from_slice(&record.data.unwrap().value).unwrap();
            (record.name, told)
        };
        let (name, told) = list().await;
        assert_eq!(told["spec"]["resource"]["kind"], "TaskRun");
        assert_eq!(told["metadata"]["name"], "run-a-log");
        assert_eq!(told["status"]["isStored"], false);
        let log = "shop/results/release/logs/run-a";
        let seals = ["step-one", "step-two", "sidecar-dind"].map(|it| seal(log, it));
        append(&server, seals.to_vec()).await.unwrap();
        let (same, told) = list().await;
        assert_eq!(same, name);
        assert_eq!(told["status"]["isStored"], true);
        assert_eq!(told["status"]["size"], 22 + 9 + 6);
        let (by_record, _) = get_log(&server, &name).await.unwrap();
        let (by_run, _) = get_log(&server, log).await.unwrap();
        assert_eq!(by_record, by_run);

        server
            .delete_record("shop/results/release/records/run-a")
            .await
            .unwrap();
        assert!(
            get_log(&server, log).await.is_err(),
            "logs go with their run"
        );
    })
    .await;
}

#[tokio::test]
async fn a_task_without_a_log_does_not_hide_those_of_the_others_nor_one_of_a_matrix_another() {
    on_each(|server| async move {
        given(&server).await;
        let name = |id: &str| format!("shop/results/release/records/{id}");
        // Two of one task of a matrix, and one of which nothing is stored.
        for (run, minute) in [("run-c", 7), ("run-d", 8), ("run-e", 6)] {
            let object = task_run(run, "scan", minute);
            server
                .given_record(&name(run), TASK_RUN, &bytes(&object))
                .await;
        }
        for run in ["run-c", "run-d"] {
            let log = format!("shop/results/release/logs/{run}");
            let text = format!("of {run}\n");
            append(&server, vec![message(&log, "step-one", 0, text.as_bytes())])
                .await
                .unwrap();
        }
        let (text, _) = get_log(&server, "shop/results/release/logs/release")
            .await
            .unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with("[build : one] first\n"), "{text}");
        let end = "[scan : one] of run-c\n\n[scan : one] of run-d\n\n";
        assert!(text.ends_with(end), "{text}");
    })
    .await;
}
