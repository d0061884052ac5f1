//! Selectors of Kubernetes, by REST, gRPC and the command line.

use hindsight_proto::{v1::AggregateRequest, v1alpha2 as pb};
use serde_json::json;
use tonic::{Code, Request, Status};

use crate::support::{
    Database, TestServer,
    http::Http,
    objects::{TASK_RUN, bytes, task_run},
    process::run,
    server::{on_each, refused},
};

async fn given(server: &TestServer) {
    for (name, app, env) in [
        ("a", "shop", "prod"),
        ("b", "shop", "test"),
        ("c", "cart", "prod"),
        ("d", "", ""),
    ] {
        let mut run = task_run(name, if name == "b" { "Failed" } else { "Succeeded" });
        run["metadata"]["labels"] = match app {
            "" => json!({}),
            _ => json!({"app": app, "env": env}),
        };
        let name = format!("ci/results/r/records/{name}");
        server.given_record(&name, TASK_RUN, &bytes(&run)).await;
    }
}

/// What a list gives that says these things beside its message.
async fn listed(
    server: &TestServer,
    filter: &str,
    beside: &[(&'static str, &str)],
) -> Result<Vec<String>, Status> {
    let mut ids = Vec::new();
    let mut token = String::new();
    loop {
        let mut request = Request::new(pb::ListRecordsRequest {
            parent: "ci/results/-".to_owned(),
            filter: filter.to_owned(),
            order_by: "data.metadata.name".to_owned(),
            page_size: 1,
            page_token: token,
        });
        for (key, text) in beside {
            let text = text.parse().unwrap();
            request.metadata_mut().append(*key, text);
        }
        let page = server.rpc().list_records(request).await?.into_inner();
        let last = |record: &pb::Record| record.name.rsplit('/').next().unwrap().to_owned();
        ids.extend(page.records.iter().map(last));
        token = page.next_page_token;
        if token.is_empty() {
            return Ok(ids);
        }
    }
}

const LANGUAGE: &str = "hindsight-filter-language";
const LABELS: &str = "hindsight-label-selector";
const FIELDS: &str = "hindsight-field-selector";

#[tokio::test]
async fn selectors_beside_a_filter_narrow_it() {
    on_each(|server| async move {
        given(&server).await;
        for (filter, beside, wanted) in [
            ("", &[(LABELS, "app=shop")][..], &["a", "b"][..]),
            ("", &[(LABELS, "app!=shop")], &["c", "d"]),
            ("", &[(LABELS, "env in (prod, stage),app")], &["a", "c"]),
            ("", &[(LABELS, "!app")], &["d"]),
            ("", &[(FIELDS, "metadata.name=c")], &["c"]),
            (
                "",
                &[(FIELDS, "status.conditions[0].reason!=Failed")],
                &["a", "c", "d"],
            ),
            (
                "",
                &[(LABELS, "app=shop"), (FIELDS, "metadata.name!=a")],
                &["b"],
            ),
            ("data.metadata.name != 'a'", &[(LABELS, "env=prod")], &["c"]),
            ("app=shop", &[(LANGUAGE, "labels")], &["a", "b"]),
            ("metadata.name=d", &[(LANGUAGE, "fields")], &["d"]),
            ("data.metadata.name == 'd'", &[(LANGUAGE, "cel")], &["d"]),
        ] {
            let ids = listed(&server, filter, beside).await.unwrap();
            assert_eq!(ids, wanted, "{filter} {beside:?}");
        }
        for (filter, beside, says) in [
            ("", &[(LABELS, "app in (a")][..], "label selector column 10"),
            ("", &[(FIELDS, "metadata.name")], "field selector column 1"),
            ("app=shop", &[], "filter column 4"),
            ("", &[(LANGUAGE, "sql")], "`sql` is no language of filters"),
            ("", &[(LABELS, "a"), (LABELS, "b")], "given twice"),
        ] {
            let answer = listed(&server, filter, beside).await;
            refused(answer, Code::InvalidArgument, says);
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_added_up_is_what_selectors_choose() {
    on_each(|server| async move {
        given(&server).await;
        for (filter, beside, wanted) in [
            ("", &[(LABELS, "app=shop")][..], 2),
            ("", &[(LABELS, "app"), (FIELDS, "metadata.name!=a")], 2),
            ("data.metadata.name != 'a'", &[(LABELS, "env=prod")], 1),
            ("!app", &[(LANGUAGE, "labels")], 1),
        ] {
            let mut request = Request::new(AggregateRequest {
                parent: "ci/results/-".to_owned(),
                filter: filter.to_owned(),
                ..AggregateRequest::default()
            });
            for (key, text) in beside {
                request.metadata_mut().append(*key, text.parse().unwrap());
            }
            let reply = server.client().queries().aggregate(request).await.unwrap();
            let reply = reply.into_inner();
            assert_eq!(reply.records, wanted, "{filter} {beside:?}");
        }
        let mut request = Request::new(AggregateRequest {
            parent: "ci/results/-".to_owned(),
            ..AggregateRequest::default()
        });
        let wrong = "app in (a".parse().unwrap();
        request.metadata_mut().append(LABELS, wrong);
        let answer = server.client().queries().aggregate(request).await;
        refused(answer, Code::InvalidArgument, "label selector column 10");
    })
    .await;
}

#[tokio::test]
async fn rest_and_the_command_line_take_selectors() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    given(&server).await;
    let mut http = Http::one(&server.url).await;
    let records = "/apis/results.tekton.dev/v1alpha2/parents/ci/results/-/records";
    for (query, wanted) in [
        ("labelSelector=app%3Dshop%2Cenv%3Dprod", "a"),
        ("fieldSelector=metadata.name%3Db", "b"),
        (
            "label_selector=app&filter=data.metadata.name+%3D%3D+%22c%22",
            "c",
        ),
        ("filterLanguage=labels&filter=!app", "d"),
    ] {
        let reply = http
            .send("GET", &format!("{records}?{query}"), &[], "")
            .await;
        let names: Vec<_> = reply.json()["records"]
            .as_array()
            .unwrap_or_else(|| panic!("{query}: {}", reply.text()))
            .iter()
            .map(|record| record["name"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(names, [format!("ci/results/r/records/{wanted}")], "{query}");
    }
    let reply = http
        .send("GET", &format!("{records}?labelSelector=a%20b"), &[], "")
        .await;
    assert_eq!(reply.status, 400, "{}", reply.text());
    assert!(
        reply.text().contains("label selector column 3"),
        "{}",
        reply.text()
    );

    let list = ["list", "runs", "-n", "ci", "--server", &server.url];
    for (flags, wanted) in [
        (
            &["-l", "app=shop", "--field-selector", "metadata.name!=a"][..],
            "b",
        ),
        (&["--selector", "!app"], "d"),
    ] {
        let said = run(&[&list[..], flags].concat()).await;
        let rows: Vec<_> = said.out.lines().skip(1).collect();
        assert_eq!(rows.len(), 1, "{said:?}");
        assert_eq!(rows[0].split_whitespace().nth(1), Some(wanted));
    }
    let said = run(&[&list[..], &["-l", "a b"]].concat()).await;
    assert!(
        said.err.contains("label selector column 3") && said.code != 0,
        "{said:?}"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_server_may_speak_selectors_by_default() {
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &[("filter_language", "labels")]).await;
    given(&server).await;
    assert_eq!(listed(&server, "app=cart", &[]).await.unwrap(), ["c"]);
    let ids = listed(&server, "parent == 'ci'", &[(LANGUAGE, "cel")]).await;
    assert_eq!(ids.unwrap().len(), 4);
    let list = ["list", "runs", "-n", "ci", "--server", &server.url];
    let said = run(&[&list[..], &["-f", "data.metadata.name == 'a'"]].concat()).await;
    assert_eq!(said.out.lines().count(), 2, "{said:?}");
    server.stop().await;
}
