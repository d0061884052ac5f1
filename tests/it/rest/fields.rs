//! Partial answers, asked for in every way there is.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hindsight_proto::v1alpha2 as pb;
use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _};
use tonic::Request;

use super::{http, some_runs};
use crate::support::{
    database::{Database, each_database},
    http::target,
    server::{TestServer, on_each},
};

#[tokio::test]
async fn an_answer_has_the_fields_that_were_asked_for() {
    on_each(|server| async move {
        some_runs(&server).await;
        let mut http = http(&server).await;
        let path = "ci/results/r1/records";
        let value = |value: Value| STANDARD.encode(value.to_string());
        let all = [("name", "p1"), ("name", "t1"), ("name", "t2")];
        assert_eq!(
            http.get(path, &[]).await.ok()["records"]
                .as_array()
                .unwrap()
                .len(),
            all.len()
        );
        let cases = [
            ("next_page_token", json!({})),
            ("nothing", json!({})),
            ("records.nothing", json!({"records": [{}]})),
            (
                "records.name",
                json!({"records": [{"name": "ci/results/r1/records/t1"}]}),
            ),
            (
                " records.name , unknown",
                json!({"records": [{"name": "ci/results/r1/records/t1"}]}),
            ),
            (
                "records.name.deeper",
                json!({"records": [{"name": "ci/results/r1/records/t1"}]}),
            ),
            (
                "records.data.type",
                json!({"records": [{"data": {"type": "tekton.dev/v1.TaskRun"}}]}),
            ),
            (
                "records.data.value.metadata.name,records.data.value.nope.x",
                json!({"records": [{"data": {"value":
                    value(json!({"metadata": {"name": "build-t1"}, "nope": {"x": null}}))}}]}),
            ),
            (
                "records.data.value.status.conditions.0.reason",
                json!({"records": [{"data": {"value":
                    value(json!({"status": {"conditions": {"0": {"reason": "Succeeded"}}}}))}}]}),
            ),
        ];
        for (fields, expected) in cases {
            let query = [("fields", fields), ("filter", "name == \"t1\"")];
            assert_eq!(http.get(path, &query).await.ok(), expected, "{fields}");
            let header = [("Grpc-Metadata-Fields", fields)];
            let target = target(path, &query[1..]);
            let reply = http.send("GET", &target, &header, "").await;
            assert_eq!(reply.ok(), expected, "{fields} in a header");
        }
        let whole = http.get(path, &[]).await.text();
        for nothing in ["", " , "] {
            let reply = http.get(path, &[("fields", nothing)]).await;
            assert_eq!(reply.text(), whole, "an empty list asks for everything");
        }
        let too_deep = "a.".repeat(100);
        assert_eq!(http.get(path, &[("fields", &too_deep)]).await.status, 400);
    })
    .await;
}

#[tokio::test]
async fn a_write_may_answer_in_part_too() {
    on_each(|server| async move {
        let mut http = http(&server).await;
        let body = json!({"name": "ci/results/r", "annotations": {"a": "1", "b": "2"}});
        let reply = http
            .put("POST", "ci/results?fields=name,annotations.b", &body)
            .await;
        assert_eq!(
            reply.text(),
            r#"{"name":"ci/results/r","annotations":{"b":"2"}}"#
        );
        let reply = http.get("ci/results/none", &[("fields", "name")]).await;
        assert_eq!((reply.status, &reply.json()["code"]), (404, &json!(5)));
    })
    .await;
}

#[tokio::test]
async fn grpc_takes_the_same_list_as_metadata() {
    on_each(|server| async move {
        some_runs(&server).await;
        let ask = |fields: &[&str]| {
            let mut request = Request::new(pb::ListRecordsRequest {
                parent: "ci/results/r1".into(),
                filter: "name == \"t1\"".into(),
                ..Default::default()
            });
            for fields in fields {
                request
                    .metadata_mut()
                    .append("fields", fields.parse().unwrap());
            }
            request
        };
        let mut rpc = server.rpc();
        let mut list = async |fields: &[&str]| {
            let reply = rpc.list_records(ask(fields)).await.unwrap();
            reply.into_inner().records.remove(0)
        };
        let whole = list(&[]).await;
        assert_eq!(list(&[""]).await, whole);
        let part = list(&["records.name, records.data.value.kind", "records.uid"]).await;
        let expected = pb::Record {
            name: whole.name,
            uid: whole.uid,
            data: Some(pb::Any {
                r#type: String::new(),
                value: br#"{"kind":"TaskRun"}"#.as_slice().into(),
            }),
            ..Default::default()
        };
        assert_eq!(part, expected);
    })
    .await;
}

/// Takes every payload away below the server.
async fn lose_payloads(database: &Database) {
    let url = database.url();
    let lose = "DELETE FROM bodies";
    let done = match database {
        Database::Sqlite { .. } => {
            let mut file = sqlx::SqliteConnection::connect(&url).await.unwrap();
            file.execute(lose).await.unwrap().rows_affected()
        }
        Database::Postgres { .. } => {
            let mut server = sqlx::PgConnection::connect(&url).await.unwrap();
            server.execute(lose).await.unwrap().rows_affected()
        }
    };
    assert!(done > 0, "there were payloads");
}

#[tokio::test]
async fn payloads_of_which_nothing_is_wanted_are_not_read() {
    for database in each_database().await {
        let server = TestServer::start(&database).await;
        some_runs(&server).await;
        lose_payloads(&database).await;
        let mut http = http(&server).await;
        let path = "ci/results/r1/records";
        let by_name = ("filter", "name == \"t1\"");
        for (fields, expected) in [
            ("records.name", json!({"name": "ci/results/r1/records/t1"})),
            (
                "records.data.type",
                json!({"data": {"type": "tekton.dev/v1.TaskRun"}}),
            ),
        ] {
            let reply = http.get(path, &[("fields", fields), by_name]).await.ok();
            assert_eq!(reply, json!({"records": [expected]}), "{fields}");
        }
        for fields in [
            "",
            "records",
            "records.data",
            "records.data.value.kind",
            "records.name,records.data.value",
        ] {
            let reply = http.get(path, &[("fields", fields), by_name]).await;
            assert_eq!(reply.status, 500, "{fields}: {}", reply.text());
        }
        // What a filter needs is read, whatever is wanted of it.
        let by_step = ("filter", "data.spec.steps.exists(s, s.name == \"x\")");
        let reply = http.get(path, &[("fields", "records.name"), by_step]).await;
        assert_eq!(reply.status, 500, "{}", reply.text());
        drop(http);
        server.stop().await;
        database.remove().await;
    }
}
