//! How lists would be answered, by REST, gRPC and the command line.

use hindsight_proto::v1::{Certainty, ExplainRequest, ExplainResponse, LeftOver, Listed};
use tonic::{Code, Request, Status};

use crate::support::{
    Database, TestServer,
    http::Http,
    objects::{TASK_RUN, bytes, task_run},
    process::run,
    server::{on_each, refused},
};

async fn given(server: &TestServer) {
    for n in 0..6 {
        let name = format!("ci/results/r/records/{n}");
        let run = bytes(&task_run(&format!("build-{n}"), "Succeeded"));
        server.given_record(&name, TASK_RUN, &run).await;
    }
}

async fn explained(
    server: &TestServer,
    listed: Listed,
    filter: &str,
    order_by: &str,
) -> Result<ExplainResponse, Status> {
    let request = ExplainRequest {
        parent: "ci/results/-".to_owned(),
        listed: listed.into(),
        filter: filter.to_owned(),
        order_by: order_by.to_owned(),
        page_size: 0,
    };
    let mut request = Request::new(request);
    let labels = "app!=cart".parse().unwrap();
    if filter == "parent == 'ci'" {
        request
            .metadata_mut()
            .insert("hindsight-label-selector", labels);
    }
    Ok(server
        .client()
        .queries()
        .explain(request)
        .await?
        .into_inner())
}

#[tokio::test]
async fn what_the_database_is_asked_and_what_is_left_is_told() {
    on_each(|server| async move {
        given(&server).await;
        let of = async |filter: &str| explained(&server, Listed::Records, filter, "").await;
        let whole = of("data.metadata.name == 'build-1'").await.unwrap();
        assert_eq!(whole.asked, "data.metadata.name = \"build-1\"");
        assert_eq!(whole.left_over(), LeftOver::Nothing);
        assert!(
            !whole.plan.is_empty() && !whole.may_exceed_budget,
            "{whole:?}"
        );
        if whole.certainty() == Certainty::Counted {
            assert_eq!((whole.rows, whole.cost), (1, 0.0));
            assert_eq!(whole.indexes, ["records_by_object_name"]);
        } else {
            assert!(whole.cost > 0.0, "{whole:?}");
        }
        let two = of("data.metadata.labels['app'] == 'shop' && data.spec.pipelineRef.name == 'p'");
        let two = two.await.unwrap();
        assert!(two.plan[0].starts_with("access path: "), "{two:?}");
        if two.certainty() == Certainty::Counted {
            assert_eq!(
                two.plan[0],
                "access path: index of the label app=shop (0 rows)"
            );
            let rejected =
                "rejected: index records_by_pipeline (0 rows), rows of the parent ci (6 rows)";
            assert_eq!(two.plan[1], rejected);
        }
        let part = of("data_type == TASK_RUN && data.spec.retries > 0")
            .await
            .unwrap();
        assert_eq!(part.asked, format!("data_type = {TASK_RUN:?}"));
        assert_eq!(part.left_over(), LeftOver::EachPayload);
        assert_eq!(part.scan_budget, 1_000_000);
        let rows = of("parent.matches('^c')").await.unwrap();
        assert_eq!(
            (rows.asked.as_str(), rows.left_over()),
            ("every row", LeftOver::EachRow)
        );
        let selected = of("parent == 'ci'").await.unwrap();
        assert!(selected.asked.contains("labels[\"app\"]"), "{selected:?}");
        let results = explained(
            &server,
            Listed::Results,
            "summary.status == FAILURE",
            "uid desc",
        );
        assert_eq!(results.await.unwrap().asked, "summary.status = 2");
        refused(
            of("data.kind = 'x'").await,
            Code::InvalidArgument,
            "filter column 11",
        );
        let order = explained(&server, Listed::Records, "", "nothing").await;
        refused(order, Code::InvalidArgument, "order_by column 1");
    })
    .await;
}

#[tokio::test]
async fn a_list_that_may_be_refused_is_told_by_rest_and_the_command_line() {
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &[("scan_budget", "3")]).await;
    given(&server).await;
    let mut http = Http::one(&server.url).await;
    let path =
        "/apis/hindsight.dev/v1/parents/ci/results/-/explain?filter=data.spec.n%20%3D%3D%201";
    let reply = http.send("GET", path, &[], "").await.ok();
    assert_eq!(reply["asked"], "every row");
    assert_eq!(reply["leftOver"], "EACH_PAYLOAD");
    assert_eq!(reply["mayExceedBudget"], true);
    assert_eq!(
        (&reply["rows"], &reply["certainty"]),
        (&"4".into(), &"AT_LEAST".into())
    );
    let explain = ["explain", "runs", "-n", "ci", "--server", &server.url];
    let said = run(&[&explain[..], &["-f", "data.spec.n == 1"]].concat()).await;
    for part in [
        "data_type contains",
        "the filter, on the payload of each row",
        "4 or more",
        "more than the 3 of one call",
        "records_by_",
    ] {
        assert!(said.out.contains(part), "{part} in {said:?}");
    }
    assert_eq!(said.code, 0);
    server.stop().await;
}
