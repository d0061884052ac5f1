//! Lists of runs.

use hindsight_proto::v1::{ListRunsRequest, ListRunsResponse, RunRow};
use serde_json::{Value, json};
use tonic::{Code, Status};

use super::objects::{given, record, release};
use crate::support::{
    each_database,
    http::Http,
    objects::{TASK_RUN, bytes},
    process::run,
    server::{TestServer, on_each, refused},
};

const PATH: &str = "/apis/hindsight.dev/v1/parents/-/results/-/runs";

fn query(query: &str) -> ListRunsRequest {
    ListRunsRequest {
        parent: "-/results/-".to_owned(),
        query: query.to_owned(),
        ..ListRunsRequest::default()
    }
}

async fn list(server: &TestServer, ask: ListRunsRequest) -> Result<ListRunsResponse, Status> {
    Ok(server.client().runs().list_runs(ask).await?.into_inner())
}

async fn names(server: &TestServer, words: &str) -> Vec<String> {
    let found = list(server, query(words)).await.unwrap();
    found.runs.into_iter().map(|run| run.name).collect()
}

/// Three runs of a pipeline, a task of one of them, a workflow, a definition and a text.
pub(super) async fn some(server: &TestServer) {
    for (run, hour, reason) in [
        ("release-1", 8, "Succeeded"),
        ("release-2", 9, "Failed"),
        ("release-3", 10, "PipelineRunTimeout"),
    ] {
        let mut object = release(run, hour, "a1", reason);
        object["metadata"]["labels"]["team"] = json!(if hour == 9 { "web" } else { "ops" });
        given(server, &object).await;
    }
    let mut task = release("release-2-test", 9, "a1", "Failed");
    task["kind"] = json!("TaskRun");
    task["metadata"]["labels"]["tekton.dev/pipelineRun"] = json!("release-2");
    let name = "shop/results/release-2/records/test";
    server.given_record(name, TASK_RUN, &bytes(&task)).await;
    let workflow = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": {"name": "etl", "namespace": "data", "uid": "etl",
            "creationTimestamp": "2026-03-02T11:00:00Z"},
        "status": {"phase": "Running", "startedAt": "2026-03-02T11:00:01.5Z"},
    });
    let of_type = |kind: &str| format!("{kind}/results/x/records/x");
    server
        .given_record(
            &of_type("data"),
            "argoproj.io/v1alpha1.Workflow",
            &bytes(&workflow),
        )
        .await;
    let definition = "pipelines.kubeflow.org/v2beta1.Pipeline";
    server
        .given_record(&of_type("kfp"), definition, b"{}")
        .await;
    server.given_record(&of_type("text"), "note", b"{}").await;
}

#[tokio::test]
async fn a_row_says_of_a_run_what_its_payload_says() {
    on_each(|server| async move {
        some(&server).await;
        let mut ask = query("release-2-test");
        ask.label_keys = vec!["team".to_owned(), "tekton.dev/pipelineRun".to_owned()];
        let found = list(&server, ask).await.unwrap();
        let filter = "data.metadata.name.contains(\"release-2-test\")";
        assert_eq!(found.query_filter, filter);
        let [row] = found.runs.as_slice() else {
            panic!("{found:?}")
        };
        let stored = server.get_record(&row.record).await.unwrap();
        let time = |text: &str| {
            let time: jiff::Timestamp = text.parse().unwrap();
            Some(prost_types::Timestamp {
                seconds: time.as_second(),
                nanos: 0,
            })
        };
        let text = str::to_owned;
        let wanted = RunRow {
            record: text("shop/results/release-2/records/test"),
            cluster: String::new(),
            cluster_name: String::new(),
            message: String::new(),
            signature: row.signature.clone(),
            attempt: None,
            r#type: text("tekton.dev/v1.TaskRun"),
            engine: text("tekton"),
            kind: text("TaskRun"),
            namespace: text("shop"),
            name: text("release-2-test"),
            uid: text("release-2-test"),
            pipeline: text("release"),
            parent_run: text("release-2"),
            outcome: text("FAILURE"),
            reason: text("Failed"),
            created: time("2026-03-02T09:00:00Z"),
            start_time: time("2026-03-02T09:00:04Z"),
            end_time: time("2026-03-02T09:07:05Z"),
            queue_seconds: Some(4.0),
            duration_seconds: Some(421.0),
            labels: [(text("tekton.dev/pipelineRun"), text("release-2"))].into(),
            create_time: stored.create_time,
            update_time: stored.update_time,
        };
        assert_eq!(*row, wanted);
    })
    .await;
}

#[tokio::test]
async fn words_select_runs() {
    on_each(|server| async move {
        some(&server).await;
        for (words, wanted) in [
            ("", "etl release-2-test release-3 release-2 release-1"),
            ("failed -is:child", "release-3 release-2"),
            ("status:failed kind:pr", "release-2"),
            ("timeout", "release-3"),
            ("-status:timeout ns:shop is:top", "release-2 release-1"),
            ("running", "etl"),
            ("-pipeline:release", "etl"),
            ("reason:Running", "etl"),
            ("label:team=web", "release-2"),
            (
                "-label:team=web pipeline:release is:top",
                "release-3 release-1",
            ),
            ("took>7m took<8m release-1", "release-1"),
            ("since:2026-03-02T10:00 until:2026-03-03", "etl release-3"),
            ("run.outcome == TIMEOUT", "release-3"),
            (
                "data.spec.params.exists(p, p.value == 'a1') && run.outcome == SUCCESS",
                "release-1",
            ),
        ] {
            assert_eq!(names(&server, words).await.join(" "), wanted, "{words}");
        }
    })
    .await;
}

#[tokio::test]
async fn runs_of_a_cluster_are_found_by_its_id_and_its_name() {
    for database in each_database().await {
        let more = [("cluster_names", "6c2a=production")];
        let server = TestServer::start_with(&database, &more).await;
        for (parent, run) in [
            ("cluster/6c2a/namespace/shop", "here"),
            ("cluster/6c2a/namespace/data", "there"),
            ("cluster/6c2/namespace/shop", "near"),
            ("cluster/east/namespace/shop", "east"),
            ("shop", "nowhere"),
        ] {
            let mut object = release(run, 8, "a1", "Succeeded");
            let namespace = parent.rsplit('/').next();
            object["metadata"]["namespace"] = namespace.into();
            let name = format!("{parent}/results/{run}/records/{run}");
            let kind = "tekton.dev/v1.PipelineRun";
            server.given_record(&name, kind, &bytes(&object)).await;
        }
        for (words, wanted) in [
            ("cluster:production", "there here"),
            ("cluster:6c2a", "there here"),
            ("run.cluster in ['production', 'east']", "east there here"),
            ("-cluster:production,east", "nowhere near"),
            ("cluster:6c*", "near there here"),
            ("cluster:west", ""),
            ("!has(run.cluster)", "nowhere"),
        ] {
            let mut ask = query(words);
            ask.order_by = "create_time desc".to_owned();
            let found = list(&server, ask).await.unwrap();
            let names: Vec<_> = found.runs.iter().map(|run| run.name.as_str()).collect();
            assert_eq!(names.join(" "), wanted, "{words}");
        }
        let found = list(&server, query("name:here")).await.unwrap();
        let row = &found.runs[0];
        assert_eq!((&*row.cluster, &*row.cluster_name), ("6c2a", "production"));
        // The commands take either, with a namespace of the cluster.
        let ask = ["--cluster", "production", "--server", &server.url];
        let runs = ["runs", "-n", "data", "--columns", "name,cluster"];
        let said = run(&[&runs[..], &ask].concat()).await;
        assert_eq!(said.out, "name\tcluster\nthere\tproduction\n", "{said:?}");
        let stats = ["stats", "-A", "--by", "cluster", "-o", "json"];
        let said = run(&[&stats[..], &ask[2..]].concat()).await;
        let said: Value = serde_json::from_str(&said.out).unwrap();
        let groups = said["groups"].as_array().unwrap().iter();
        let mut counts: Vec<_> = groups
            .map(|group| {
                (
                    group["keys"]["cluster"].clone(),
                    group["measures"]["count"].clone(),
                )
            })
            .collect();
        counts.sort_by_key(|(cluster, _)| cluster.to_string());
        let wanted = [("6c2", 1), ("6c2a", 2), ("east", 1)];
        let mut wanted: Vec<_> = wanted
            .iter()
            .map(|(cluster, count)| (json!(cluster), json!(count)))
            .collect();
        wanted.push((Value::Null, json!(1)));
        assert_eq!(counts, wanted);
        let said = run(&[&["stats", "-A", "-o", "json"][..], &ask].concat()).await;
        assert!(said.out.contains("\"count\":2"), "{said:?}");
        server.stop().await;
        database.remove().await;
    }
}

#[tokio::test]
async fn what_is_asked_wrongly_is_refused_with_the_remedy() {
    on_each(|server| async move {
        let ask = |words: &str| list(&server, query(words));
        let unknown = "query column 8: unknown word `pipline`; did you mean `pipeline`?";
        refused(
            ask("failed pipline:a").await,
            Code::InvalidArgument,
            unknown,
        );
        let cel = "query is CEL because of its `==`: filter column 1: unknown name `kind`";
        refused(ask("kind == 'a'").await, Code::InvalidArgument, cel);
        let mut many = query("");
        many.label_keys = vec!["a".to_owned(); 21];
        refused(
            list(&server, many).await,
            Code::InvalidArgument,
            "at most 20",
        );
        let mut zone = query("since:today");
        zone.time_zone = "Nowhere".to_owned();
        refused(
            list(&server, zone).await,
            Code::InvalidArgument,
            "time_zone `Nowhere`",
        );
    })
    .await;
}

#[tokio::test]
async fn pages_of_relative_times_continue() {
    on_each(|server| async move {
        some(&server).await;
        let mut ask = ListRunsRequest {
            order_by: "run.start_time desc, run.pipeline".to_owned(),
            page_size: 2,
            ..query("since:5200w -is:child")
        };
        let mut seen = Vec::new();
        loop {
            let page = list(&server, ask.clone()).await.unwrap();
            seen.extend(page.runs.into_iter().map(|run| run.name));
            if page.next_page_token.is_empty() {
                break;
            }
            ask.page_token = page.next_page_token;
        }
        assert_eq!(seen, ["etl", "release-3", "release-2", "release-1"]);
        let first = list(
            &server,
            ListRunsRequest {
                page_size: 1,
                ..query("failed")
            },
        );
        let other = ListRunsRequest {
            page_token: first.await.unwrap().next_page_token,
            ..query("timeout")
        };
        let foreign = "the page token belongs to another list";
        refused(list(&server, other).await, Code::InvalidArgument, foreign);
    })
    .await;
}

#[tokio::test]
async fn a_browser_lists_runs() {
    on_each(|server| async move {
        some(&server).await;
        let mut http = Http::one(&server.url).await;
        let path = format!("{PATH}?query=failed%20is:top&pageSize=1&labelKeys=team");
        let told = http.send("GET", &path, &[], "").await.ok();
        assert_eq!(told["runs"].as_array().unwrap().len(), 1);
        let row = &told["runs"][0];
        assert_eq!(row["record"], record("release-3"));
        assert_eq!(
            (&row["outcome"], &row["durationSeconds"]),
            (&json!("TIMEOUT"), &json!(421))
        );
        assert_eq!(row["labels"], json!({"team": "ops"}));
        assert_ne!(told["nextPageToken"], Value::Null);
        let wrong = http
            .send("GET", &format!("{PATH}?query=stats:x"), &[], "")
            .await;
        assert_eq!(wrong.status, 400);
        let labelled = format!("{PATH}?labelSelector=team%3Dweb");
        let told = http.send("GET", &labelled, &[], "").await.ok();
        assert_eq!(told["runs"][0]["name"], "release-2");
    })
    .await;
}
