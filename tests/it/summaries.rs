//! GetRecordListSummary: counts and times, as dashboards read them.

use hindsight_proto::v1alpha2 as pb;
use prost_types::value::Kind;
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::support::{
    objects::{TASK_RUN, bytes, task_run},
    server::{TestServer, on_each, refused},
};

async fn summary(
    server: &TestServer,
    filter: &str,
    summary: &str,
    group_by: &str,
    order_by: &str,
) -> Result<Value, Status> {
    let request = pb::RecordListSummaryRequest {
        parent: "-/results/-".to_owned(),
        filter: filter.to_owned(),
        summary: summary.to_owned(),
        group_by: group_by.to_owned(),
        order_by: order_by.to_owned(),
    };
    let reply = server
        .rpc()
        .get_record_list_summary(request)
        .await?
        .into_inner();
    Ok(reply
        .summary
        .into_iter()
        .map(|group| {
            let fields = group.fields.into_iter().map(|(key, value)| {
                let value = match value.kind.unwrap() {
                    Kind::NumberValue(number) => json!(number),
                    Kind::StringValue(text) => json!(text),
                    Kind::NullValue(_) => Value::Null,
                    other => panic!("{other:?}"),
                };
                (key, value)
            });
            Value::Object(fields.collect())
        })
        .collect())
}

async fn given(server: &TestServer) {
    for (n, reason, seconds) in [
        (0, "Succeeded", 60),
        (1, "Failed", 30),
        (2, "TaskRunTimeout", 90),
        (3, "Succeeded", 61),
    ] {
        let mut run = task_run(&format!("b-{n}"), reason);
        run["metadata"]["namespace"] = json!(if n < 2 { "one" } else { "two" });
        run["status"]["startTime"] = json!("2026-03-01T23:59:30Z");
        let end = format!(
            "2026-03-02T00:{:02}:{:02}Z",
            (seconds - 30) / 60,
            (seconds - 30) % 60
        );
        run["status"]["completionTime"] = json!(end);
        let name = format!("ci/results/r/records/{n}");
        server.given_record(&name, TASK_RUN, &bytes(&run)).await;
    }
    server
        .given_record("ci/results/r/records/log", "other", b"\"no run\"")
        .await;
}

#[tokio::test]
async fn records_are_counted_and_timed() {
    on_each(|server| async move {
        given(&server).await;
        assert_eq!(summary(&server, "", "", "", "").await.unwrap(), json!([{"total": 5.0}]));
        let all = "total,succeeded,failed,cancelled,running,others,avg_duration,max_duration,min_duration,total_duration,last_runtime";
        assert_eq!(
            summary(&server, "data_type == TASK_RUN", all, "", "").await.unwrap(),
            json!([{
                "total": 4.0, "succeeded": 2.0, "failed": 1.0, "cancelled": 0.0, "running": 0.0,
                "others": 1.0, "avg_duration": "00:01:00.25", "max_duration": "00:01:30",
                "min_duration": "00:00:30", "total_duration": "00:04:01",
                "last_runtime": 1_772_409_570.0,
            }])
        );
        // Each is the same whatever is asked for beside it.
        let whole = summary(&server, "", all, "", "").await.unwrap();
        let measures: Vec<&str> = all.split(',').collect();
        for measure in &measures {
            let alone = summary(&server, "", measure, "", "").await.unwrap();
            assert_eq!(alone, json!([{*measure: whole[0][measure]}]));
        }
        let backwards: Vec<&str> = measures.into_iter().rev().collect();
        let backwards = summary(&server, "", &backwards.join(","), "", "").await.unwrap();
        assert_eq!(backwards, whole);
        assert_eq!(
            summary(&server, "name == 'none'", "total,avg_duration", "", "").await.unwrap(),
            json!([{"total": 0.0, "avg_duration": null}])
        );
    })
    .await;
}

#[tokio::test]
async fn records_are_grouped_and_ordered() {
    on_each(|server| async move {
        given(&server).await;
        let runs = "data_type == TASK_RUN";
        assert_eq!(
            summary(
                &server,
                runs,
                "total, max_duration",
                "namespace",
                "max_duration DESC"
            )
            .await
            .unwrap(),
            json!([
                {"group_value": "two", "total": 2.0, "max_duration": "00:01:30"},
                {"group_value": "one", "total": 2.0, "max_duration": "00:01:00"},
            ])
        );
        assert_eq!(
            summary(&server, runs, "total", "day completionTime", "")
                .await
                .unwrap(),
            json!([{"group_value": 1_772_409_600.0, "total": 4.0}])
        );
        assert_eq!(
            summary(&server, runs, "total", "week startTime", "")
                .await
                .unwrap(),
            json!([{"group_value": 1_771_804_800.0, "total": 4.0}])
        );
        assert_eq!(
            summary(&server, runs, "total", "pipeline", "total asc")
                .await
                .unwrap(),
            json!([
                {"group_value": "one/nightly", "total": 2.0},
                {"group_value": "two/nightly", "total": 2.0},
            ])
        );
        assert_eq!(
            summary(&server, "false", "total", "day", "").await.unwrap(),
            json!([])
        );
    })
    .await;
}

#[tokio::test]
async fn what_the_database_adds_up_is_what_payloads_say() {
    on_each(|server| async move {
        given(&server).await;
        let mut run = task_run("late", "Cancelled");
        run["metadata"]["namespace"] = json!(null);
        run["metadata"]["annotations"] = json!({"pipelinesascode.tekton.dev/repository": "a/b"});
        run["status"]["startTime"] = json!("2026-05-01T12:00:00.25Z");
        run["status"]["completionTime"] = json!("2026-04-29T10:00:00Z");
        server
            .given_record("ci/results/s/records/x", TASK_RUN, &bytes(&run))
            .await;
        let all = "total,succeeded,failed,cancelled,running,others,avg_duration,max_duration,min_duration,total_duration,last_runtime";
        let (stored, read) = ("uid != ''", "size(uid) > 0");
        for by in ["", "namespace", "pipeline", "minute", "day startTime", "year completionTime"] {
            let pushed = summary(&server, stored, all, by, "").await.unwrap();
            let evaluated = summary(&server, read, all, by, "").await.unwrap();
            assert_eq!(pushed, evaluated, "{by}");
        }
        assert_eq!(
            summary(&server, "", "total", "repository", "total asc").await.unwrap(),
            json!([
                {"group_value": "/", "total": 1.0},
                {"group_value": "/a/b", "total": 1.0},
                {"group_value": "one/", "total": 2.0},
                {"group_value": "two/", "total": 2.0},
            ])
        );
        assert_eq!(
            summary(&server, "parent == 'ci' && result_name == 's'", "min_duration", "", "")
                .await
                .unwrap(),
            json!([{"min_duration": null}]),
            "a duration below zero does not count"
        );
    })
    .await;
}

#[tokio::test]
async fn wrong_summaries_are_refused_with_what_is_wanted() {
    on_each(|server| async move {
        for (measures, group_by, order_by, says) in [
            ("totals", "", "", "summary `totals` is not known"),
            (
                "total",
                "fortnight",
                "",
                "group_by `fortnight` is not known",
            ),
            (
                "total",
                "day created",
                "",
                "group_by `day created` is not known",
            ),
            ("total", "day", "failed asc", "not among the summaries"),
            ("total", "day", "asc total", "`asc` is no summary"),
            ("total", "", "total asc", "ask for group_by"),
        ] {
            let answer = summary(&server, "", measures, group_by, order_by).await;
            refused(answer, Code::InvalidArgument, says);
        }
    })
    .await;
}
