//! The requests of web consoles and portals, as they send them.

use hindsight_proto::v1alpha2 as pb;
use serde_json::{Value, json};

use super::{http, some_runs, strictly};
use crate::support::{
    http::{Http, Reply},
    objects::{PIPELINE_RUN, TASK_RUN, bytes, task_run},
    server::{TestServer, on_each},
};

const RUNS: &str =
    "data_type in [\"tekton.dev/v1.PipelineRun\",\"tekton.dev/v1beta1.PipelineRun\"]";

/// Three builds of one component, a day apart, and a test.
async fn builds(server: &TestServer) {
    for (day, kind, title) in [
        (1, "build", "Fix the lock"),
        (2, "build", "Add a door"),
        (3, "build", "Paint it"),
        (4, "test", "Fix the door"),
    ] {
        let mut run = task_run(&format!("shop-{day}"), "Succeeded");
        let at = |time: &str| json!(format!("2026-03-0{day}T{time}Z"));
        run["kind"] = json!("PipelineRun");
        run["metadata"]["creationTimestamp"] = at("10:00:00");
        run["metadata"]["labels"]["ci.example/kind"] = json!(kind);
        run["metadata"]["labels"]["ci.example/sha"] = json!(format!("c0ffee{day}"));
        run["metadata"]["annotations"] = json!({"ci.example/title": title});
        run["status"]["startTime"] = at("10:00:05");
        run["status"]["completionTime"] = at("10:02:05");
        let name = format!("ci/results/b{day}/records/b{day}");
        server.given_record(&name, PIPELINE_RUN, &bytes(&run)).await;
    }
}

async fn found(http: &mut Http, filter: &str) -> Vec<String> {
    let query = [
        ("filter", filter),
        ("order_by", "create_time desc"),
        ("page_size", "30"),
        ("PartialResponse", "true"),
        (
            "fields",
            "records.name,records.data.value.metadata.labels,next_page_token",
        ),
    ];
    let reply = http.get("ci/results/-/records", &query).await;
    let page: pb::ListRecordsResponse = strictly(&reply, "ListRecordsResponse");
    for record in &page.records {
        let cut: Value = serde_json::from_slice(&record.data.as_ref().unwrap().value).unwrap();
        assert_eq!(cut.as_object().unwrap().len(), 1, "{cut}");
        assert_eq!(cut["metadata"]["labels"]["team"], "blue");
    }
    let names = page.records.iter().map(|record| &record.name);
    names
        .map(|name| name.rsplit('/').next().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn runs_are_searched_by_name_label_commit_and_day() {
    on_each(|server| async move {
        builds(&server).await;
        let mut http = http(&server).await;
        let commit = |text: &str| {
            let texts = ["sha", "title", "url"].map(|key| {
                format!(
                    "data.metadata.labels[\"ci.example/{key}\"].contains(\"{text}\") || \
                     data.metadata.annotations[\"ci.example/{key}\"].contains(\"{text}\")"
                )
            });
            format!("{RUNS} && ({})", texts.join(" || "))
        };
        for (filter, names) in [
            (
                format!("{RUNS} && data.metadata.labels[\"ci.example/kind\"] == \"build\""),
                ["b3", "b2", "b1"].as_slice(),
            ),
            (
                format!("{RUNS} && data.metadata.labels[\"ci.example/kind\"] != \"build\""),
                &["b4"],
            ),
            (
                format!("{RUNS} && data.metadata.name.contains(\"op-2\")"),
                &["b2"],
            ),
            (
                format!("{RUNS} && data.metadata.creationTimestamp > \"2026-03-02T12:00:00Z\""),
                &["b4", "b3"],
            ),
            (
                format!("{RUNS} && data.metadata.labels.contains(\"ci.example/sha\")"),
                &["b4", "b3", "b2", "b1"],
            ),
            (
                format!("{RUNS} && !data.metadata.labels.contains(\"ci.example/sha\")"),
                &[],
            ),
            (commit("door"), &["b4", "b2"]),
            (commit("c0ffee3"), &["b3"]),
            (commit("c0ffee"), &["b4", "b3", "b2", "b1"]),
        ] {
            assert_eq!(found(&mut http, &filter).await, names, "{filter}");
        }
    })
    .await;
}

#[tokio::test]
async fn results_are_listed_by_their_summaries_and_annotations() {
    on_each(|server| async move {
        some_runs(&server).await;
        let mut http = http(&server).await;
        let annotated = json!({"annotations": {"repo": "shop"}});
        http.put("PATCH", "ci/results/r1", &annotated).await.ok();
        for (filter, count) in [
            ("annotations[\"repo\"] == \"shop\"", 1),
            (
                "summary.status == SUCCESS || annotations[\"repo\"] == \"shop\"",
                1,
            ),
            ("", 2),
        ] {
            let query = [("filter", filter), ("order_by", "create_time desc")];
            let reply = http.get("ci/results", &query).await;
            let page: pb::ListResultsResponse = strictly(&reply, "ListResultsResponse");
            assert_eq!(page.results.len(), count, "{filter}");
        }
        let tasks = [
            ("filter", "data_type == 'tekton.dev/v1.TaskRun'"),
            ("page_size", "50"),
        ];
        let reply = http.get("ci/results/r1/records", &tasks).await;
        let page: pb::ListRecordsResponse = strictly(&reply, "ListRecordsResponse");
        assert_eq!(page.records.len(), 2);
        let types = page
            .records
            .iter()
            .map(|r| &r.data.as_ref().unwrap().r#type);
        assert!(types.into_iter().all(|t| t == TASK_RUN));
    })
    .await;
}

#[tokio::test]
async fn overviews_count_runs_by_pipeline_and_by_day() {
    on_each(|server| async move {
        builds(&server).await;
        let mut http = http(&server).await;
        let filter = "data.status.startTime > timestamp('2026-03-02T00:00:00Z') && \
                      data.metadata.labels['ci.example/kind']=='build'";
        let mut ask = async |group: &'static str| -> Reply {
            let query = [
                ("summary", "total,succeeded,failed,avg_duration"),
                ("group_by", group),
                ("filter", filter),
            ];
            http.get("ci/results/-/records/summary", &query).await
        };
        let by_pipeline = ask("pipeline").await.ok();
        let whole = &by_pipeline["summary"];
        assert_eq!(whole.as_array().unwrap().len(), 1, "{by_pipeline}");
        assert_eq!(whole[0]["group_value"], "ci/nightly", "{by_pipeline}");
        assert_eq!(
            (&whole[0]["total"], &whole[0]["failed"]),
            (&json!(2), &json!(0))
        );
        assert_eq!(whole[0]["avg_duration"], "00:02:00", "{by_pipeline}");
        let by_day = ask("day startTime").await.ok();
        let days = by_day["summary"].as_array().unwrap();
        assert_eq!(days.len(), 2, "{by_day}");
        assert!(days.iter().all(|day| day["succeeded"] == 1), "{by_day}");
    })
    .await;
}

#[tokio::test]
async fn a_page_may_be_as_large_as_consoles_ask_for() {
    on_each(|server| async move {
        some_runs(&server).await;
        let mut http = http(&server).await;
        let reply = http
            .get("ci/results/-/records", &[("page_size", "10000")])
            .await;
        let page: pb::ListRecordsResponse = strictly(&reply, "ListRecordsResponse");
        assert_eq!((page.records.len(), page.next_page_token.as_str()), (4, ""));
    })
    .await;
}

#[tokio::test]
async fn a_log_that_is_not_kept_is_not_found_and_clients_can_tell() {
    on_each(|server| async move {
        some_runs(&server).await;
        let mut http = http(&server).await;
        let reply = http.get("ci/results/r1/logs/t1", &[]).await;
        assert_eq!(reply.status, 404, "{}", reply.text());
        let message = "`ci/results/r1/logs/t1` does not exist";
        assert_eq!(reply.json(), json!({"code": 5, "message": message}));
    })
    .await;
}
