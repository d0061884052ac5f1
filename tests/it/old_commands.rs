//! The older commands of the Tekton Results command line, which speak gRPC.

use hindsight_proto::v1alpha2 as pb;

use crate::support::{
    objects::{PIPELINE_RUN, TASK_RUN, bytes, task_run},
    server::{TestServer, on_each},
};

const LOGS: &str = "(data_type == \"results.tekton.dev/v1alpha3.Log\" || data_type == \
                    \"results.tekton.dev/v1alpha2.Log\")";

async fn given(server: &TestServer) {
    for (id, data_type) in [
        ("p", PIPELINE_RUN),
        ("t", TASK_RUN),
        ("l", "results.tekton.dev/v1alpha3.Log"),
    ] {
        let run = task_run(&format!("build-{id}"), "Succeeded");
        let name = format!("ci/results/r/records/{id}");
        server.given_record(&name, data_type, &bytes(&run)).await;
    }
    server.given_result("ci/results/other").await;
}

async fn results(server: &TestServer, parent: &str, filter: &str) -> Vec<String> {
    let request = pb::ListResultsRequest {
        parent: parent.to_owned(),
        filter: filter.to_owned(),
        page_size: 50,
        ..Default::default()
    };
    let page = server.rpc().list_results(request).await.unwrap();
    let mut names: Vec<_> = page
        .into_inner()
        .results
        .into_iter()
        .map(|r| r.name)
        .collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn results_are_listed_and_described() {
    on_each(|server| async move {
        given(&server).await;
        let all = results(&server, "ci", "").await;
        assert_eq!(all, ["ci/results/other", "ci/results/r"]);
        let result = server.get_result("ci/results/r").await.unwrap();
        let by_uid = format!("uid==\"{}\"", result.uid);
        for parent in ["ci", "-"] {
            assert_eq!(results(&server, parent, &by_uid).await, ["ci/results/r"]);
        }
    })
    .await;
}

#[tokio::test]
async fn records_and_the_records_of_logs_are_listed_and_read() {
    on_each(|server| async move {
        given(&server).await;
        let ids = async |filter: &str| {
            let mut ids = server.ids("ci/results/r", filter).await.unwrap();
            ids.sort_unstable();
            ids
        };
        assert_eq!(ids("").await, ["l", "p", "t"]);
        assert_eq!(ids(&format!("(name == \"l\") && {LOGS}")).await, ["l"]);
        assert_eq!(ids(LOGS).await, ["l"]);
        let record = server.get_record("ci/results/r/records/t").await.unwrap();
        assert_eq!(record.data.unwrap().r#type, TASK_RUN);
    })
    .await;
}
