//! A run and everything below it.

use hindsight_proto::v1::{GetRunTreeRequest, RunTree, run_node::Outcome};
use serde_json::{Value, json};
use tonic::{Code, Status};

use super::objects::{given, given_task, record, release};
use crate::support::{
    Database,
    http::Http,
    objects::bytes,
    server::{TestServer, on_each, refused},
};

/// A record of the same result that holds no run.
const NO_RUN: &str = "shop/results/release-2/records/log";

async fn tree(server: &TestServer, name: String, steps: bool) -> Result<RunTree, Status> {
    let brief = false;
    let request = GetRunTreeRequest { name, steps, brief };
    let reply = server.client().runs().get_run_tree(request).await?;
    Ok(reply.into_inner())
}

async fn failed(server: &TestServer) {
    let run = release("release-2", 9, "b2", "Failed");
    given(server, &run).await;
    given_task(server, &run, "build", (0, 60), 0).await;
    given_task(server, &run, "test", (2, 120), 137).await;
    // Another run of the same result, which is not below this one.
    let other = bytes(&release("other", 9, "b2", "Failed"));
    let name = "shop/results/release-2/records/other";
    let kind = "tekton.dev/v1.PipelineRun";
    server.given_record(name, kind, &other).await;
    server.given_record(NO_RUN, "t", b"no JSON").await;
}

#[tokio::test]
async fn a_pipeline_run_is_told_with_its_tasks_and_their_records() {
    on_each(|server| async move {
        failed(&server).await;
        let found = tree(&server, record("release-2"), true).await.unwrap();
        let names: Vec<_> = found.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["release-2", "build", "test"]);
        let test = &found.nodes[2];
        assert_eq!(
            (test.outcome(), test.run_seconds),
            (Outcome::Failure, Some(120.0))
        );
        assert_eq!(test.parent, "release-2");
        assert_eq!(test.record, "shop/results/release-2/records/release-2-test");
        assert_eq!(test.message, "step run of test exited");
        let step = &test.steps[0];
        assert_eq!(
            (step.exit_code, step.reason.as_str()),
            (Some(137), "OOMKilled")
        );
        assert_eq!((found.critical_path.len(), found.gaps.len()), (1, 2));
        let no_run = tree(&server, NO_RUN.to_owned(), false).await;
        refused(
            no_run,
            Code::InvalidArgument,
            "holds no JSON object, so it is not a run",
        );
        let bare = tree(&server, test.record.clone(), false).await.unwrap();
        assert_eq!((bare.nodes.len(), bare.nodes[0].steps.len()), (1, 0));
    })
    .await;
}

/// A reference of the run to its task.
fn child(task: &str) -> Value {
    json!({"kind": "TaskRun", "name": format!("release-2-{task}"), "pipelineTaskName": task})
}

/// The nodes of a run with these references to its tasks, of which one succeeded: all of them and brief.
async fn both(server: &TestServer, children: Vec<Value>) -> (RunTree, RunTree) {
    let mut run = release("release-2", 9, "b2", "Failed");
    run["status"]["childReferences"] = children.into();
    given(server, &run).await;
    given_task(server, &run, "build", (0, 60), 0).await;
    given_task(server, &run, "test", (2, 120), 137).await;
    let whole = tree(server, record("release-2"), true).await.unwrap();
    let request = GetRunTreeRequest {
        name: record("release-2"),
        steps: true,
        brief: true,
    };
    let brief = server.client().runs().get_run_tree(request).await.unwrap();
    (whole, brief.into_inner())
}

#[tokio::test]
async fn a_brief_tree_lacks_what_no_column_keeps_of_tasks_that_succeeded() {
    on_each(|server| async move {
        let (mut whole, brief) = both(&server, vec![child("build"), child("test")]).await;
        let build = &mut whole.nodes[1];
        assert_eq!((build.name.as_str(), build.steps.len()), ("build", 1));
        build.steps.clear();
        build.message.clear();
        build.init_seconds = None;
        assert_eq!(brief, whole);
    })
    .await;
}

#[tokio::test]
async fn a_brief_tree_is_whole_where_only_owners_tell_the_place_of_a_task() {
    on_each(|server| async move {
        let (whole, brief) = both(&server, vec![child("test")]).await;
        assert_eq!(brief, whole);
        assert_eq!(brief.nodes[1].steps.len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_brief_tree_is_whole_where_only_labels_tell_the_task() {
    on_each(|server| async move {
        let mut unnamed = child("build");
        unnamed.as_object_mut().unwrap().remove("pipelineTaskName");
        let (whole, brief) = both(&server, vec![unnamed, child("test")]).await;
        assert_eq!(brief, whole);
        let build = &brief.nodes[1];
        assert_eq!((build.name.as_str(), build.steps.len()), ("build", 1));
    })
    .await;
}

#[tokio::test]
async fn a_browser_asks_for_a_workflow() {
    on_each(|server| async move {
        let workflow = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
            "metadata": {"name": "etl", "namespace": "ml", "uid": "etl"},
            "status": {"phase": "Failed", "nodes": {"etl-1": {"id": "etl-1", "name": "etl",
                "displayName": "etl", "type": "Pod", "phase": "Failed",
                "message": "Error (exit code 7)", "outputs": {"exitCode": "7"}}}},
        });
        let name = "ml/results/etl/records/etl";
        let kind = "argoproj.io/v1alpha1.Workflow";
        server.given_record(name, kind, &bytes(&workflow)).await;
        let mut http = Http::one(&server.url).await;
        let path = format!("/apis/hindsight.dev/v1/parents/{name}/tree?steps=true");
        let told = http.send("GET", &path, &[], "").await.ok();
        let node = &told["nodes"][1];
        assert_eq!(
            (&node["kind"], &node["outcome"]),
            (&json!("Pod"), &json!("FAILURE"))
        );
        assert_eq!(node["steps"][0]["exitCode"], 7);
    })
    .await;
}

#[tokio::test]
async fn a_tree_that_may_not_be_complete_says_so() {
    let database = Database::sqlite();
    let server = TestServer::start_with(&database, &[("scan_budget", "2")]).await;
    failed(&server).await;
    let found = tree(&server, record("release-2"), false).await.unwrap();
    let note = "the result has more records than are read; runs may be missing";
    assert_eq!(found.notes, [note]);
    server.stop().await;
}

#[tokio::test]
async fn a_ray_job_is_told_with_the_cluster_that_it_selected() {
    on_each(|server| async move {
        let object = |kind: &str, uid: &str, created: &str| {
            json!({"apiVersion": "ray.io/v1", "kind": kind, "spec": {}, "metadata": {
                "name": "shared", "namespace": "shop", "uid": uid, "creationTimestamp": created}})
        };
        for (uid, created) in [
            ("before", "2026-03-01T08:00:00Z"),
            ("used", "2026-03-01T09:00:00Z"),
            ("later", "2026-03-01T11:00:00Z"),
        ] {
            let name = format!("shop/results/{uid}/records/{uid}");
            let cluster = bytes(&object("RayCluster", uid, created));
            server
                .given_record(&name, "ray.io/v1.RayCluster", &cluster)
                .await;
        }
        let mut job = object("RayJob", "job", "2026-03-01T10:00:00Z");
        job["spec"] = json!({"clusterSelector": {"ray.io/cluster": "shared"}});
        job["status"] = json!({"jobStatus": "SUCCEEDED", "jobDeploymentStatus": "Complete",
            "startTime": "2026-03-01T10:00:01Z", "endTime": "2026-03-01T10:05:00Z"});
        let name = "shop/results/job/records/job";
        server
            .given_record(name, "ray.io/v1.RayJob", &bytes(&job))
            .await;
        let found = tree(&server, name.to_owned(), false).await.unwrap();
        let records: Vec<_> = found
            .nodes
            .iter()
            .map(|node| node.record.as_str())
            .collect();
        assert_eq!(records, [name, "shop/results/used/records/used"]);
        assert!(found.critical_path.is_empty() && found.gaps.is_empty());
    })
    .await;
}
