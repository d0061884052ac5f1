//! JSON that strangers send, through the whole server.

use hindsight_proto::{metadata::WARNING, v1alpha2 as pb};

use crate::support::{
    http::Http,
    objects::{TASK_RUN, bytes, task_run},
    process::run,
    server::{TestServer, on_each},
};

/// Texts of JSON inside each other, which a parser that reads them each anew follows until its stack
/// overflows.
fn nested_texts() -> String {
    let mut text = "0".to_owned();
    for _ in 0..300 {
        let quoted = text.replace('\\', "\\u005c").replace('"', "\\u0022");
        text = format!(
            r#"{}{{"$serde_json::private::RawValue":"{quoted}"}}{}"#,
            "[".repeat(120),
            "]".repeat(120)
        );
    }
    text
}

async fn list(server: &TestServer, filter: &str) -> tonic::Response<pb::ListRecordsResponse> {
    let request = pb::ListRecordsRequest {
        parent: "ci/results/-".to_owned(),
        filter: filter.to_owned(),
        ..Default::default()
    };
    server.rpc().list_records(request).await.unwrap()
}

#[tokio::test]
async fn texts_of_json_inside_each_other_are_stored_listed_and_shown() {
    on_each(|server| async move {
        let value = format!(r#"{{"a":{}}}"#, nested_texts());
        let name = "ci/results/r/records/x";
        server.given_record(name, "x/v1.Y", value.as_bytes()).await;
        let spec = nested_texts();
        let task = format!(r#"{{"kind":"TaskRun","spec":{{"params":{spec}}}}}"#);
        server
            .given_record("ci/results/r/records/t", TASK_RUN, task.as_bytes())
            .await;
        for (filter, rows) in [
            ("data.a == 1", 0),
            ("size(data.a) == 1", 1),
            ("has(data.spec.params)", 1),
        ] {
            let reply = list(&server, filter).await.into_inner();
            assert_eq!(reply.records.len(), rows, "{filter}");
        }
        for format in ["table", "json", "yaml"] {
            let arguments = ["get", "record", name, "-o", format, "--server", &server.url];
            let said = run(&arguments).await;
            assert_eq!(said.code, 0, "{format}: {}", said.err);
        }
        let stored = server.get_record(name).await.unwrap();
        assert_eq!(stored.data.unwrap().value, value.as_bytes());
    })
    .await;
}

#[tokio::test]
async fn columns_and_payloads_see_the_same_in_an_object_with_a_private_key() {
    on_each(|server| async move {
        let value = br#"{"kind":{"$serde_json::private::RawValue":"\"X\""}}"#;
        let name = "ci/results/r/records/x";
        server.given_record(name, "x/v1.Y", value).await;
        for filter in [
            "data.kind == 'X'",
            "data.kind.matches('^X$')",
            "string(data.kind) == 'X'",
        ] {
            let reply = list(&server, filter).await.into_inner();
            assert!(reply.records.is_empty(), "{filter}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_filter_that_names_what_no_run_has_is_told_from_one_that_matches_none() {
    on_each(|server| async move {
        let object = bytes(&task_run("build-1", "Failed"));
        let name = "ci/results/r/records/build-1";
        server.given_record(name, TASK_RUN, &object).await;
        let missing = "none of the records that were looked at has `data.statsu`; did you mean \
                       `data.status`?";
        let other = "`data.status` is an object in the records that were looked at";
        for (filter, expected) in [
            (r#"data.statsu.conditions[0].raeson == "Failed""#, missing),
            (r#"data.status == "Failed""#, other),
            (r#"data.status.conditions[0].type == "unheard of""#, ""),
        ] {
            let reply = list(&server, filter).await;
            let told = reply.metadata().get(WARNING);
            let told = told.map_or("", |told| told.to_str().unwrap());
            assert!(told.starts_with(expected), "{told}");
            assert_eq!(told.is_empty(), expected.is_empty(), "{told}");
            let mut http = Http::one(&server.url).await;
            let reply = http
                .get("ci/results/-/records", &[("filter", filter)])
                .await;
            assert_eq!(reply.header(WARNING).unwrap_or_default(), told, "{filter}");
            let said = run(&["list", "runs", "-A", "-f", filter, "--server", &server.url]).await;
            assert_eq!(said.code, 0, "{said:?}");
            let note = format!("warning: {told}\n");
            assert_eq!(said.err.contains(&note), !told.is_empty(), "{said:?}");
        }
    })
    .await;
}
