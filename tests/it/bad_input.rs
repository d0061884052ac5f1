//! Wrong requests, files and databases: each a specific refusal that names the value and what is
//! wanted; nothing is lost, nothing panics, nothing pretends to be empty.

mod starts;

use hindsight_proto::v1alpha2 as pb;
use tonic::Code;

use crate::support::{
    Database,
    http::Http,
    objects::TASK_RUN,
    server::{TestServer, on_each, refused},
};

async fn list(
    server: &TestServer,
    parent: &str,
    filter: &str,
    order_by: &str,
    size: i32,
) -> Result<tonic::Response<pb::ListRecordsResponse>, tonic::Status> {
    let request = pb::ListRecordsRequest {
        parent: parent.to_owned(),
        filter: filter.to_owned(),
        order_by: order_by.to_owned(),
        page_size: size,
        page_token: String::new(),
    };
    server.rpc().list_records(request).await
}

#[tokio::test]
async fn malformed_names_and_parents_are_named() {
    on_each(|server| async move {
        for name in [
            "",
            "x",
            "a/results/b",
            "a/results/b/records/",
            "a/results/-/records/c",
        ] {
            refused(
                server.get_record(name).await,
                Code::InvalidArgument,
                &format!("`{name}`"),
            );
        }
        refused(
            list(&server, "ci", "", "", 0).await,
            Code::InvalidArgument,
            "`ci`",
        );
        refused(
            list(&server, "", "", "", 0).await,
            Code::InvalidArgument,
            "parent",
        );
        let record = pb::Record {
            name: "a/results/b/records/c".to_owned(),
            ..Default::default()
        };
        let request = pb::CreateRecordRequest {
            parent: "a/results/other".to_owned(),
            record: Some(record),
        };
        let answer = server.rpc().create_record(request).await;
        refused(
            answer,
            Code::InvalidArgument,
            "requested parent does not match resource name",
        );
        let answer = server
            .rpc()
            .create_record(pb::CreateRecordRequest::default())
            .await;
        refused(answer, Code::InvalidArgument, "record is missing");
    })
    .await;
}

#[tokio::test]
async fn bytes_that_are_no_message_are_the_callers_mistake() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let mut http = Http::two(&server.url).await;
    let whole: &[u8] = &[0, 0, 0, 0, 2, 0x0a, 0];
    let cases: [(&[u8], &str); 6] = [
        (&[0, 0, 0, 0, 2, 0x0a, 5], "failed%20to%20decode"),
        (&[9, 0, 0, 0, 0], "protocol%20error"),
        (&[1, 0, 0, 0, 1, 0], "protocol%20error"),
        (&whole[..6], "Unexpected%20EOF"),
        (&[], "Missing%20request%20message"),
        (whole, "parent"),
    ];
    let headers = [("content-type", "application/grpc"), ("te", "trailers")];
    for (body, says) in cases {
        let path = "/tekton.results.v1alpha2.Results/ListRecords";
        let reply = http.send("POST", path, &headers, body.to_vec()).await;
        let said = reply.header("grpc-message").unwrap_or_default();
        assert_eq!(reply.header("grpc-status"), Some("3"), "{body:?}: {said}");
        assert!(said.contains(says), "{body:?}: {said}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_refusal_of_something_long_reaches_the_client() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let result = pb::Result {
        name: "ci/results/r".to_owned(),
        ..pb::Result::default()
    };
    let request = pb::CreateResultRequest {
        parent: "é".repeat(10_000),
        result: Some(result),
    };
    let answer = server.rpc().create_result(request).await;
    refused(answer, Code::InvalidArgument, "does not match");
    server.stop().await;
}

#[tokio::test]
async fn payloads_of_runs_must_be_json_objects_and_others_may_be_anything() {
    on_each(|server| async move {
        server.given_result("ci/results/r").await;
        let name = "ci/results/r/records/a";
        for (value, says) in [
            ("{\"a\": ", "is not JSON"),
            ("[1]", "is not a JSON object"),
            ("", "is empty"),
        ] {
            let answer = server.create_record(name, TASK_RUN, value.as_bytes()).await;
            refused(answer, Code::InvalidArgument, says);
        }
        let answer = server.create_record(name, &"x".repeat(769), b"1").await;
        refused(answer, Code::InvalidArgument, "769 bytes, at most 768");
        server
            .create_record(name, "tekton.chains.v1.SHA", b"hunter2\xff\x00")
            .await
            .unwrap();
    })
    .await;
}

#[tokio::test]
async fn wrong_filters_orders_and_sizes_are_refused_and_never_an_empty_list() {
    on_each(|server| async move {
        for filter in [
            "data.metadata.name = 'x'",
            "nme == 'x'",
            "parent",
            "parent == 5",
            "name.matches('(')",
            "((((",
            "name == 'x' &&",
            "frobnicate(name)",
            "'text'",
        ] {
            refused(
                list(&server, "a/results/-", filter, "", 0).await,
                Code::InvalidArgument,
                "column",
            );
        }
        let deep = format!("{}true{}", "(".repeat(5000), ")".repeat(5000));
        let answer = list(&server, "a/results/-", &deep, "", 0).await;
        refused(answer, Code::InvalidArgument, "");
        for order in [
            "nme",
            "create_time sideways",
            "create_time, update_tme",
            "data.spec.retries",
            "create_time,",
            "summary.start_time",
        ] {
            refused(
                list(&server, "a/results/-", "", order, 0).await,
                Code::InvalidArgument,
                "order_by",
            );
        }
        for size in [-1, 10_001, i32::MIN] {
            let says = format!("page_size {size} is out of range");
            refused(
                list(&server, "a/results/-", "", "", size).await,
                Code::InvalidArgument,
                &says,
            );
        }
    })
    .await;
}

#[tokio::test]
async fn summaries_of_results_must_be_whole() {
    on_each(|server| async move {
        for (record, r#type, says) in [
            ("", TASK_RUN, "summary.record is empty"),
            ("nonsense", TASK_RUN, "summary.record: `nonsense`"),
            ("a/results/b/records/c", "", "summary.type is empty"),
        ] {
            let summary = pb::RecordSummary {
                record: record.to_owned(),
                r#type: r#type.to_owned(),
                ..pb::RecordSummary::default()
            };
            let result = pb::Result {
                name: "a/results/b".to_owned(),
                summary: Some(summary),
                ..pb::Result::default()
            };
            let answer = server.create_result(result).await;
            refused(answer, Code::InvalidArgument, says);
        }
    })
    .await;
}

#[tokio::test]
async fn times_that_have_no_json_are_refused() {
    on_each(|server| async move {
        let create = |n: usize, seconds: i64| {
            let time = prost_types::Timestamp { seconds, nanos: 0 };
            let summary = pb::RecordSummary {
                record: "ci/results/b/records/c".to_owned(),
                r#type: TASK_RUN.to_owned(),
                start_time: Some(time),
                ..pb::RecordSummary::default()
            };
            let result = pb::Result {
                name: format!("ci/results/b{n}"),
                summary: Some(summary),
                ..pb::Result::default()
            };
            let request = pb::CreateResultRequest {
                result: Some(result),
                ..Default::default()
            };
            let mut rpc = server.rpc();
            async move { rpc.create_result(request).await }
        };
        let (first, last) = (-62_135_596_800, 253_402_300_799);
        for (n, seconds) in [first, last].into_iter().enumerate() {
            create(n, seconds).await.unwrap();
        }
        for seconds in [first - 1, last + 1, i64::MIN] {
            let says = "is not a time";
            refused(create(9, seconds).await, Code::InvalidArgument, says);
        }
        let mut http = Http::one(&server.url).await;
        let all = http.get("ci/results", &[]).await.ok();
        let times: Vec<_> = (0..2)
            .map(|n| &all["results"][n]["summary"]["start_time"])
            .collect();
        assert_eq!(times, ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"]);
    })
    .await;
}
