//! Creating, changing and removing over REST, seen from gRPC.

use hindsight_proto::v1alpha2 as pb;
use serde_json::json;
use tonic::Code;

use super::{http, some_runs, strictly};
use crate::support::server::{on_each, refused};

#[tokio::test]
async fn rest_and_grpc_give_equal_messages() {
    on_each(|server| async move {
        let mut http = http(&server).await;
        let result = json!({
            "name": "ci/results/r",
            "annotations": {"a.b/c": "é", "empty": ""},
            "summary": {
                "record": "ci/results/r/records/a", "type": "tekton.dev/v1.TaskRun",
                "startTime": "2026-03-01T10:00:00.000123Z", "status": "SUCCESS",
            },
            "createTime": "2001-01-01T00:00:00Z",
            "unknown": {"ignored": [1]},
        });
        let reply = http.put("POST", "ci/results", &result).await;
        let created: pb::Result = strictly(&reply, "Result");
        let stored = server.get_result("ci/results/r").await.unwrap();
        assert_eq!(created, stored);
        assert_eq!(created.summary.as_ref().unwrap().status, 1);
        assert!(
            reply.text().contains("2026-03-01T10:00:00.000123Z"),
            "{}",
            reply.text()
        );

        let record = json!({
            "name": "ci/results/r/records/a",
            "data": {"type": "tekton.notifications.v1.Notification", "value": "aHVudGVyMg=="},
        });
        let reply = http.put("POST", "ci/results/r/records", &record).await;
        let created: pb::Record = strictly(&reply, "Record");
        assert_eq!(
            created,
            server.get_record("ci/results/r/records/a").await.unwrap()
        );
        assert_eq!(created.data.unwrap().value.as_ref(), b"hunter2");

        some_runs(&server).await;
        let reply = http.get("ci/results", &[("page_size", "1")]).await;
        let page: pb::ListResultsResponse = strictly(&reply, "ListResultsResponse");
        let request = pb::ListResultsRequest {
            parent: "ci".into(),
            page_size: 1,
            ..Default::default()
        };
        let listed = server
            .rpc()
            .list_results(request)
            .await
            .unwrap()
            .into_inner();
        assert_eq!(page.results, listed.results);
        assert!(!page.next_page_token.is_empty());

        let reply = http.get("-/results/-/records", &[]).await;
        let page: pb::ListRecordsResponse = strictly(&reply, "ListRecordsResponse");
        let request = pb::ListRecordsRequest {
            parent: "-/results/-".into(),
            ..Default::default()
        };
        let listed = server
            .rpc()
            .list_records(request)
            .await
            .unwrap()
            .into_inner();
        assert_eq!(page, listed);
        assert_eq!(page.records.len(), 6);
    })
    .await;
}

#[tokio::test]
async fn a_summary_is_numbers_without_fractions_and_wins_over_a_record_of_its_name() {
    on_each(|server| async move {
        some_runs(&server).await;
        server
            .given_record("ci/results/r1/records/summary", "t", b"{}")
            .await;
        let mut http = http(&server).await;
        let query = [
            ("summary", "total,succeeded"),
            ("filter", "data_type == \"tekton.dev/v1.TaskRun\""),
        ];
        let reply = http.get("ci/results/r1/records/summary", &query).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(reply.text(), r#"{"summary":[{"succeeded":1,"total":2}]}"#);
        let masked = [query[0], query[1], ("fields", "summary.total")];
        let reply = http.get("ci/results/r1/records/summary", &masked).await;
        assert_eq!(reply.text(), r#"{"summary":[{"total":2}]}"#);
        let grouped = [
            ("summary", "total"),
            ("group_by", "namespace"),
            ("orderBy", "total desc"),
        ];
        let reply = http.get("-/results/-/records/summary", &grouped).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(reply.json()["summary"][0]["total"], 5, "{}", reply.text());
        let removed = http
            .send(
                "DELETE",
                &super::at("ci/results/r1/records/summary"),
                &[],
                "",
            )
            .await;
        assert_eq!(removed.text(), "{}");
    })
    .await;
}

#[tokio::test]
async fn a_result_is_patched_by_its_path() {
    on_each(|server| async move {
        let first = server.given_result("ci/results/a").await;
        server.given_result("ci/results/b").await;
        let mut http = http(&server).await;
        let body = json!({"annotations": {"k": "v"}});
        let reply = http.put("PATCH", "ci/results/a", &body).await;
        let patched: pb::Result = strictly(&reply, "Result");
        assert_eq!(patched.name, "ci/results/a");
        assert_eq!(patched.annotations["k"], "v");

        let stale = format!("ci/results/a?etag={}", first.etag);
        let reply = http.put("PATCH", &stale, &body).await;
        assert_eq!((reply.status, &reply.json()["code"]), (400, &json!(9)));
        let fresh = format!("ci/results/a?name=ci/results/a&etag={}", patched.etag);
        let reply = http.put("PATCH", &fresh, &json!({})).await;
        let patched: pb::Result = strictly(&reply, "Result");
        assert!(patched.annotations.is_empty(), "annotations are replaced");

        let other = http
            .put("PATCH", "ci/results/a?name=ci/results/b", &body)
            .await;
        assert_eq!(other.status, 400, "{}", other.text());
        let untouched = server.get_result("ci/results/b").await.unwrap();
        assert!(untouched.annotations.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_patch_of_a_record_changes_what_its_body_holds() {
    on_each(|server| async move {
        let name = "ci/results/r/records/a";
        let first = server.given_record(name, "t", br#"{"n":1}"#).await;
        let mut http = http(&server).await;
        let other = json!({"name": "no/results/x/records/y", "data": {"value": "eyJuIjoyfQ"}});
        let reply = http.put("PATCH", name, &other).await;
        assert_eq!(reply.status, 400, "{}", reply.text());
        let body = json!({"name": name, "data": {"value": "eyJuIjoyfQ"}});
        let reply = http.put("PATCH", name, &body).await;
        let patched: pb::Record = strictly(&reply, "Record");
        assert_eq!(patched.name, name);
        let data = patched.data.unwrap();
        assert_eq!(
            (data.r#type.as_str(), data.value.as_ref()),
            ("t", br#"{"n":2}"#.as_ref())
        );

        let stale = format!("{name}?etag={}", first.etag);
        let reply = http.put("PATCH", &stale, &body).await;
        assert_eq!((reply.status, &reply.json()["code"]), (400, &json!(9)));

        for nothing in [json!({}), json!({"data": {}}), json!({"data": null})] {
            let reply = http.put("PATCH", name, &nothing).await;
            let kept: pb::Record = strictly(&reply, "Record");
            assert_eq!(kept.data.unwrap().value.as_ref(), br#"{"n":2}"#);
        }

        let masked = format!("{name}?updateMask=data.type");
        let both = json!({"data": {"type": "u", "value": "e30="}});
        let reply = http.put("PATCH", &masked, &both).await;
        let patched: pb::Record = strictly(&reply, "Record");
        let data = patched.data.unwrap();
        assert_eq!(
            (data.r#type.as_str(), data.value.as_ref()),
            ("u", br#"{"n":2}"#.as_ref())
        );

        let reply = http.put("PATCH", name, &json!({"datum": 1})).await;
        assert_eq!(reply.status, 400);
        let message = "could not find field \"datum\" in \"tekton.results.v1alpha2.Record\"";
        assert_eq!(reply.json(), json!({"code": 3, "message": message}));
    })
    .await;
}

#[tokio::test]
async fn a_parent_may_have_several_segments_for_every_method() {
    on_each(|server| async move {
        let mut http = http(&server).await;
        let parent = "cluster/c-1/namespace/ci";
        let result = format!("{parent}/results/x");
        let record = format!("{result}/records/y");
        let path = format!("{parent}/results");
        http.put("POST", &path, &json!({"name": result})).await.ok();
        let path = format!("{result}/records");
        let body = json!({"name": record, "data": {"type": "t", "value": "e30="}});
        http.put("POST", &path, &body).await.ok();

        for (path, message) in [(&result, "Result"), (&record, "Record")] {
            let reply = http.get(path, &[]).await;
            assert_eq!(reply.ok()["name"], json!(path), "{message}");
            let reply = http.put("PATCH", path, &json!({})).await;
            assert_eq!(reply.ok()["name"], json!(path), "{message}");
        }
        let page = http.get(&format!("{parent}/results"), &[]).await.ok();
        assert_eq!(page["results"][0]["name"], json!(result));
        for of in ["x", "-"] {
            let path = format!("{parent}/results/{of}/records");
            let page = http.get(&path, &[]).await.ok();
            assert_eq!(page["records"][0]["name"], json!(record));
            let path = format!("{path}/summary");
            let summary = http.get(&path, &[("summary", "total")]).await;
            assert_eq!(summary.text(), r#"{"summary":[{"total":1}]}"#);
        }
        for path in [&record, &result] {
            let target = super::at(path);
            let gone = http.send("DELETE", &target, &[], "not json {").await;
            assert_eq!((gone.status, gone.text().as_str()), (200, "{}"));
            assert_eq!(http.get(path, &[]).await.status, 404);
        }
        refused(server.get_record(&record).await, Code::NotFound, "");
    })
    .await;
}
