//! The requests of the Tekton Results command line and of consoles, as they send them.

use hindsight_proto::v1alpha2 as pb;
use serde_json::{Value, json};

use super::{http, some_runs, strictly};
use crate::support::{
    http::{Http, Reply, target},
    server::on_each,
};

const PIPELINE_RUNS: &str = "(data_type==\"tekton.dev/v1.PipelineRun\" || \
                             data_type==\"tekton.dev/v1beta1.PipelineRun\")";
const TASK_RUNS: &str = "(data_type==\"tekton.dev/v1.TaskRun\" || \
                         data_type==\"tekton.dev/v1beta1.TaskRun\")";
const LISTED: &str = "records.name,records.uid,records.create_time,records.update_time,\
                      records.data.value.metadata,records.data.value.status,next_page_token";
const LOGGED: &str = "records.name,records.uid,records.data.value";

/// As the Tekton CLI lists: the message is in the query and, again, in the body.
async fn list(http: &mut Http, parent: &str, query: &[(&str, &str)]) -> Reply {
    let mut body = json!({"parent": parent});
    for (key, value) in query {
        let (key, value) = match *key {
            "page_size" => ("pageSize", json!(value.parse::<i32>().unwrap())),
            "order_by" => ("orderBy", json!(value)),
            "page_token" => ("pageToken", json!(value)),
            _ => (*key, json!(value)),
        };
        body[key] = value;
    }
    let headers = [
        ("authorization", "Bearer x"),
        ("accept", "application/json"),
        ("content-type", "application/json"),
    ];
    let target = target(&format!("{parent}/records"), query);
    http.send("GET", &target, &headers, body.to_string()).await
}

fn names(page: &pb::ListRecordsResponse) -> Vec<&str> {
    let mut names: Vec<_> = page
        .records
        .iter()
        .map(|record| record.name.rsplit('/').next().unwrap())
        .collect();
    names.sort_unstable();
    names
}

fn value(record: &pb::Record) -> Value {
    serde_json::from_slice(&record.data.as_ref().unwrap().value).unwrap()
}

#[tokio::test]
async fn runs_are_listed_with_metadata_and_status_alone() {
    on_each(|server| async move {
        some_runs(&server).await;
        let mut http = http(&server).await;
        let query = [
            ("fields", LISTED),
            ("filter", PIPELINE_RUNS),
            ("order_by", "create_time desc"),
            ("page_size", "50"),
        ];
        let reply = list(&mut http, "ci/results/-", &query).await;
        let page: pb::ListRecordsResponse = strictly(&reply, "ListRecordsResponse");
        assert_eq!(names(&page), ["p1", "p2"]);
        for record in &page.records {
            assert!(!record.uid.is_empty());
            assert!(record.create_time.is_some() && record.update_time.is_some());
            assert_eq!(record.etag, "", "not asked for");
            assert_eq!(record.data.as_ref().unwrap().r#type, "", "not asked for");
            let run = value(record);
            let keys: Vec<_> = run.as_object().unwrap().keys().collect();
            assert_eq!(keys, ["metadata", "status"]);
            assert_eq!(run["metadata"]["labels"]["team"], "blue");
            assert!(run["status"]["conditions"][0]["reason"].is_string());
        }
        let everywhere = list(&mut http, "-/results/-", &query).await;
        let page: pb::ListRecordsResponse = strictly(&everywhere, "ListRecordsResponse");
        assert_eq!(names(&page), ["p1", "p2", "p3"]);
    })
    .await;
}

#[tokio::test]
async fn every_filter_of_its_commands_selects_what_it_means() {
    on_each(|server| async move {
        some_runs(&server).await;
        let uid = server
            .get_record("ci/results/r1/records/p1")
            .await
            .unwrap()
            .uid;
        let cases: [(String, &[&str]); 11] = [
            (
                format!("{PIPELINE_RUNS} && data.metadata.name.contains(\"p2\")"),
                &["p2"],
            ),
            (
                format!(
                    "{PIPELINE_RUNS} && data.metadata.labels[\"team\"]==\"blue\" && \
                     data.metadata.labels[\"tekton.dev/pipeline\"]==\"nightly\""
                ),
                &["p1", "p2"],
            ),
            (
                format!(
                    "{TASK_RUNS} && data.metadata.labels['tekton.dev/pipelineRun'] == 'build-p1'"
                ),
                &["t1", "t2"],
            ),
            (
                format!("{TASK_RUNS} && data.metadata.name==\"build-t2\""),
                &["t2"],
            ),
            (
                format!(
                    "{PIPELINE_RUNS} && data.metadata.name==\"build-p1\" && \
                     data.metadata.uid==\"uid-build-p1\""
                ),
                &["p1"],
            ),
            ("name==\"p1\"".to_owned(), &["p1"]),
            (format!("name.endsWith(\"records/{uid}\")"), &[]),
            (
                "data_type in [\"tekton.dev/v1.PipelineRun\",\"tekton.dev/v1beta1.PipelineRun\"] \
                 && data.metadata.labels[\"team\"] != \"red\""
                    .to_owned(),
                &["p1", "p2"],
            ),
            (
                "data_type == \"tekton.dev/v1.TaskRun\" && \
                 data.metadata.labels.contains(\"team\") && \
                 !data.metadata.labels.contains(\"crew\")"
                    .to_owned(),
                &["t1", "t2"],
            ),
            (
                "data.metadata.labels[\"team\"] in [\"blue\",\"red\"] && \
                 data.metadata.name.startsWith(\"build-t\")"
                    .to_owned(),
                &["t1", "t2"],
            ),
            (
                "data.metadata.creationTimestamp > \"2026-01-01T00:00:00Z\" && \
                 data_type == \"tekton.dev/v1.TaskRun\""
                    .to_owned(),
                &["t1", "t2"],
            ),
        ];
        let mut http = http(&server).await;
        for (filter, expected) in cases {
            let query = [
                ("filter", filter.as_str()),
                ("order_by", "create_time desc"),
                ("page_size", "5"),
            ];
            let reply = list(&mut http, "ci/results/-", &query).await;
            let page: pb::ListRecordsResponse = strictly(&reply, "ListRecordsResponse");
            assert_eq!(names(&page), expected, "{filter}");
            if expected.is_empty() {
                assert_eq!(reply.text(), "{}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_described_run_comes_whole_and_a_missing_one_leads_to_a_list() {
    on_each(|server| async move {
        some_runs(&server).await;
        let mut http = http(&server).await;
        let missing = http.get("ci/results/p1/records/p1", &[]).await;
        assert_eq!(missing.status, 404, "{}", missing.text());
        let query = [
            ("fields", LOGGED),
            ("filter", "name==\"p1\""),
            ("page_size", "5"),
        ];
        let reply = list(&mut http, "ci/results/-", &query).await;
        let page: pb::ListRecordsResponse = strictly(&reply, "ListRecordsResponse");
        let stored = server.get_record("ci/results/r1/records/p1").await.unwrap();
        let [record] = page.records.as_slice() else {
            panic!("{page:?}")
        };
        assert_eq!(record.name, stored.name);
        assert_eq!(
            record.data.as_ref().unwrap().value,
            stored.data.as_ref().unwrap().value,
            "the value is as it was stored"
        );
        let reply = http.get("ci/results/r1/records/p1", &[]).await;
        let whole: pb::Record = strictly(&reply, "Record");
        assert_eq!(whole, stored);
    })
    .await;
}

#[tokio::test]
async fn pages_follow_each_other_by_the_token_that_was_asked_for() {
    on_each(|server| async move {
        some_runs(&server).await;
        let mut http = http(&server).await;
        let (mut seen, mut token) = (Vec::new(), String::new());
        loop {
            let mut query = vec![
                ("fields", LISTED),
                ("order_by", "create_time desc"),
                ("page_size", "2"),
            ];
            if !token.is_empty() {
                query.push(("page_token", token.as_str()));
            }
            let reply = list(&mut http, "-/results/-", &query).await;
            let page: pb::ListRecordsResponse = strictly(&reply, "ListRecordsResponse");
            assert!(page.records.len() <= 2);
            seen.extend(page.records.into_iter().map(|record| record.name));
            token = page.next_page_token;
            if token.is_empty() {
                break;
            }
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 5);
    })
    .await;
}
