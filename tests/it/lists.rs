//! Lists: filters, orders, pages and their tokens.

use hindsight_proto::v1alpha2 as pb;
use serde_json::json;
use tonic::{Code, Status};

use crate::support::{
    Database, TestServer,
    objects::{PIPELINE_RUN, TASK_RUN, bytes, task_run},
    server::{on_each, refused},
};

async fn page(
    server: &TestServer,
    filter: &str,
    order_by: &str,
    size: i32,
    token: &str,
) -> Result<(Vec<String>, String), Status> {
    let request = pb::ListRecordsRequest {
        parent: "-/results/-".to_owned(),
        filter: filter.to_owned(),
        order_by: order_by.to_owned(),
        page_size: size,
        page_token: token.to_owned(),
    };
    let reply = server.rpc().list_records(request).await?.into_inner();
    let ids = reply
        .records
        .iter()
        .map(|r| r.name.rsplit('/').next().unwrap().to_owned());
    Ok((ids.collect(), reply.next_page_token))
}

async fn walk(server: &TestServer, filter: &str, order_by: &str, size: i32) -> Vec<String> {
    let (mut all, mut token) = (Vec::new(), String::new());
    loop {
        let (ids, next) = page(server, filter, order_by, size, &token).await.unwrap();
        assert!(ids.len() <= usize::try_from(size).unwrap());
        all.extend(ids);
        token = next;
        if token.is_empty() {
            return all;
        }
    }
}

async fn twelve(server: &TestServer) -> Vec<String> {
    for n in 0..12 {
        let reason = if n % 3 == 0 { "Failed" } else { "Succeeded" };
        let mut run = task_run(&format!("build-{n:02}"), reason);
        run["spec"]["n"] = json!(n);
        let name = format!("ns-{}/results/r-{n:02}/records/{n:02}", n % 2);
        server.given_record(&name, TASK_RUN, &bytes(&run)).await;
    }
    (0..12).rev().map(|n| format!("{n:02}")).collect()
}

#[tokio::test]
async fn lists_are_newest_first_and_pages_of_any_size_give_each_row_once() {
    on_each(|server| async move {
        let newest_first = twelve(&server).await;
        for size in [1, 2, 5, 11, 12, 13, 10_000] {
            assert_eq!(
                walk(&server, "", "", size).await,
                newest_first,
                "pages of {size}"
            );
            let odd = walk(&server, "data.spec.n % 2 == 1", "", size).await;
            assert_eq!(odd, ["11", "09", "07", "05", "03", "01"], "pages of {size}");
        }
        let mut oldest_first = newest_first;
        oldest_first.reverse();
        assert_eq!(walk(&server, "", "create_time asc", 5).await, oldest_first);
        assert_eq!(walk(&server, "", "create_time", 5).await, oldest_first);
    })
    .await;
}

#[tokio::test]
async fn rows_that_come_in_between_pages_disturb_nothing() {
    on_each(|server| async move {
        let before = twelve(&server).await;
        let (mut all, mut token) = page(&server, "", "", 5, "").await.unwrap();
        while !token.is_empty() {
            let name = format!("ns-9/results/new-{}/records/new", all.len());
            server
                .given_record(&name, TASK_RUN, &bytes(&task_run("new", "Failed")))
                .await;
            let (ids, next) = page(&server, "", "", 5, &token).await.unwrap();
            all.extend(ids);
            token = next;
        }
        assert_eq!(all, before);
    })
    .await;
}

#[tokio::test]
async fn filters_find_what_they_ask_for() {
    on_each(|server| async move {
        twelve(&server).await;
        let pipeline = json!({"apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
            "metadata": {"name": "foo", "namespace": "ci", "uid": "p",
                "creationTimestamp": "2026-03-01T10:00:00Z"}});
        server.given_record("ci/results/p/records/p", PIPELINE_RUN, &bytes(&pipeline)).await;
        let count = async |filter: &str| server.ids("-/results/-", filter).await.unwrap().len();
        for (filter, wanted) in [
            (r#"data.status.conditions[0].reason == "Failed""#, 4),
            (r#"!(data.status.conditions[0].reason == "Failed")"#, 8),
            (r#"taskrun.metadata.name.startsWith("build-0")"#, 10),
            (r#"pipelinerun.metadata.name.startsWith("build-0")"#, 0),
            (
                r#"(taskrun.metadata.name == "build-01" || taskrun.metadata.name == "foo") && taskrun.metadata.creation_timestamp >= timestamp("2026-03-01T05:00:00-05:00")"#,
                1,
            ),
            (r#"(pipelinerun.metadata.name == "foo" || taskrun.metadata.name == "build-01")"#, 2),
            (r#"data_type == TASK_RUN && data.spec.n >= 10"#, 2),
            (r#"data.metadata.labels["team"] == "blue""#, 12),
            (r#"data.metadata.labels.contains("team")"#, 12),
            (r#"data.spec.params.exists(p, p.name == "revision" && p.value == "abc")"#, 12),
            (
                r#"timestamp(data.status.completionTime) - timestamp(data.status.startTime) > duration("2m")"#,
                12,
            ),
            (r#"parent == "ns-1" && name == "03""#, 1),
            (r#"name == "ns-1/results/r-03/records/03""#, 1),
            (r#"name.endsWith("records/03")"#, 1),
            (r#"result_name in ["r-01", "r-02", "no"]"#, 2),
            (r#"data.metadata.name == "'; DROP TABLE records; --""#, 0),
            ("", 13),
        ] {
            assert_eq!(count(filter).await, wanted, "{filter}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_token_is_good_for_its_own_list_only() {
    on_each(|server| async move {
        twelve(&server).await;
        let (_, token) = page(&server, "", "", 5, "").await.unwrap();
        let foreign = "belongs to another list";
        let other = page(&server, "data.spec.n > 0", "", 5, &token).await;
        refused(other, Code::InvalidArgument, foreign);
        let other = page(&server, "", "update_time asc", 5, &token).await;
        refused(other, Code::InvalidArgument, foreign);
        let garbage = page(&server, "", "", 5, "Zm9v").await;
        refused(garbage, Code::InvalidArgument, "malformed");
        let (ids, _) = page(&server, "", "", 3, &token).await.unwrap();
        assert_eq!(ids, ["06", "05", "04"], "another page size is fine");
    })
    .await;
}

#[tokio::test]
async fn results_without_a_sort_key_come_last_and_are_never_lost() {
    on_each(|server| async move {
        for n in 0..9_i64 {
            let summary = (n % 3 != 0).then(|| pb::RecordSummary {
                record: format!("ci/results/r{n}/records/a"),
                r#type: TASK_RUN.to_owned(),
                start_time: (n % 2 == 0)
                    .then_some(prost_types::Timestamp { seconds: 100 - n, nanos: 0 }),
                status: i32::try_from(n % 5).unwrap(),
                ..pb::RecordSummary::default()
            });
            let result =
                pb::Result { name: format!("ci/results/r{n}"), summary, ..Default::default() };
            server.create_result(result).await.unwrap();
        }
        for (order_by, first) in [
            ("summary.start_time asc", ["r8", "r4", "r2"]),
            ("summary.start_time desc", ["r2", "r4", "r8"]),
        ] {
            for size in [1, 2, 4, 50] {
                let (mut all, mut token) = (Vec::new(), String::new());
                loop {
                    let request = pb::ListResultsRequest {
                        parent: "ci".to_owned(),
                        order_by: order_by.to_owned(),
                        page_size: size,
                        page_token: token,
                        ..pb::ListResultsRequest::default()
                    };
                    let reply = server.rpc().list_results(request).await.unwrap().into_inner();
                    all.extend(
                        reply.results.iter().map(|r| r.name.rsplit('/').next().unwrap().to_owned()),
                    );
                    token = reply.next_page_token;
                    if token.is_empty() {
                        break;
                    }
                }
                assert_eq!(all[..3], first, "{order_by}");
                all.sort();
                assert_eq!(all, ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8"]);
            }
        }
        let request = pb::ListResultsRequest {
            parent: "-".to_owned(),
            filter: "summary.status == FAILURE && summary.start_time > timestamp('1970-01-01T00:00:00Z')"
                .to_owned(),
            ..pb::ListResultsRequest::default()
        };
        let found = server.rpc().list_results(request).await.unwrap().into_inner().results;
        assert_eq!(found.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), ["ci/results/r2"]);
    })
    .await;
}

#[tokio::test]
async fn a_page_ends_early_rather_than_outgrow_a_message() {
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &[("max_message_bytes", "1MiB")]).await;
    for n in 0..9 {
        let name = format!("ci/results/r/records/{n}");
        server
            .given_record(&name, "blob", &vec![b'x'; 300 << 10])
            .await;
    }
    let all = walk(&server, "", "create_time asc", 9).await;
    assert_eq!(all, ["0", "1", "2", "3", "4", "5", "6", "7", "8"]);
    server.stop().await;
}

#[tokio::test]
async fn a_filter_that_reads_more_than_the_budget_says_so() {
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &[("scan_budget", "10")]).await;
    twelve(&server).await;
    let answer = page(&server, "data.spec.n == 99", "", 5, "").await;
    refused(answer, Code::ResourceExhausted, "budget");
    server.stop().await;
}

#[tokio::test]
async fn a_page_that_the_budget_ends_early_is_continued_where_it_ended() {
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &[("scan_budget", "100")]).await;
    for n in 0..250 {
        let name = format!("ci/results/r/records/{n}");
        let value = format!("{{\"n\":{n}}}");
        server.given_record(&name, "t", value.as_bytes()).await;
    }
    // Newest first: each match lies beyond what a call that found the one before may read.
    let filter = "data.n + 1 in [250, 101]";
    let (found, token) = page(&server, filter, "", 5, "").await.unwrap();
    assert_eq!(found, ["249"]);
    let (found, token) = page(&server, filter, "", 5, &token).await.unwrap();
    assert_eq!(found, ["100"]);
    let (found, token) = page(&server, filter, "", 5, &token).await.unwrap();
    assert_eq!((found.len(), token.as_str()), (0, ""));
    server.stop().await;
}

#[tokio::test]
async fn a_filter_without_end_is_refused_and_nobody_waits_for_it() {
    on_each(|server| async move {
        let list: Vec<_> = (0..1_000).collect();
        let value = format!("{{\"l\":{list:?},\"s\":\"{}\"}}", "a".repeat(10_000));
        for n in 0..4 {
            let name = format!("ci/results/r/records/{n}");
            server.given_record(&name, "t", value.as_bytes()).await;
        }
        for filter in [
            "data.l.all(a, data.l.all(b, data.l.all(c, true)))",
            "data.l.exists(a, data.s.matches('(a|b)*c') || data.s.matches(data.s + 'b'))",
            "data.l.map(a, data.s + data.s).join('').size() == 0",
        ] {
            let (slow, quick) = tokio::join!(
                page(&server, filter, "", 5, ""),
                page(&server, "name == '1'", "", 5, "")
            );
            refused(slow, Code::ResourceExhausted, "steps");
            assert_eq!(quick.unwrap().0, ["1"]);
        }
    })
    .await;
}
