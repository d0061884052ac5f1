//! `kubectl workflow` beside a server whose watcher has collected the workflows.

use std::time::Duration;

use hindsight_controller::cli::plugin::{command, run};
use kubesim::{Crd, Jobs, Sim};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{Database, TestServer, cluster::free_port, program::Program};

/// Everything has to be over by then; it takes a tenth of this on two busy cores.
const PATIENCE: Duration = Duration::from_secs(60);

fn step(dependencies: &[&str], outcome: &str) -> Value {
    json!({"dependencies": dependencies, "jobTemplate": {
        "metadata": {"annotations": {"kubesim.dev/outcome": outcome}},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}],
        }}},
    }})
}

/// What the plugin prints, or why it does not, with this server of the history.
async fn kubectl(sim: &Sim, server: &str, args: &[&str]) -> Result<String, String> {
    let mut words = vec!["kubectl-workflow"];
    words.extend(args);
    if args[0] != "cancel" {
        words.extend(["--hindsight-server", server]);
    }
    let matches = command().try_get_matches_from(words).unwrap();
    let mut out = Vec::new();
    let done = run(sim.client(), &matches, &mut out).await;
    done.map(|()| String::from_utf8(out).unwrap())
        .map_err(|error| format!("{error:#}"))
}

/// Waits until workflows and Jobs were collected, and were there before.
async fn collected(sim: &Sim, creates: usize) {
    let gone = sim.until(|sim| {
        let created = sim.calls().verb("create").resource("jobs").status(201);
        created.count() >= creates
            && sim.count("hindsight.dev", "workflows") == 0
            && sim.count("batch", "jobs") == 0
    });
    timeout(PATIENCE, gone).await.unwrap();
}

/// The workflow is shown from the history at `url`.
async fn is_shown(sim: &Sim, url: &str, uid: &str) {
    let ask = async |args: &[&str]| kubectl(sim, url, args).await;
    let from = format!(" at {url}\n");
    for name in ["build", uid] {
        let text = ask(&["describe", name, "-n", "ci"]).await.unwrap();
        let (first, rest) = text.split_once("Name:      build\n").unwrap();
        assert!(
            first.starts_with("History:   stored 2") && first.ends_with(&from),
            "{text}"
        );
        let rows: Vec<&str> = rest.lines().rev().take(3).collect();
        assert!(
            rows[2].starts_with("  good  Complete  Job ci/build-good-"),
            "{text}"
        );
        assert!(
            rows[1].starts_with("  bad   Failed    Job ci/build-bad-"),
            "{text}"
        );
        assert_eq!(rows[0], "  last  Waiting   after bad (waiting)");
    }
    let graph = ask(&["graph", "build", "-n", "ci"]).await.unwrap();
    assert!(graph.starts_with("// History: stored 2"), "{graph}");
    assert!(graph.contains("digraph \"build\" {\n") && graph.contains("\"good\" -> \"bad\""));
    let lists: [&[&str]; 3] = [
        &["get", "build", "-n", "ci"],
        &["get", "--history", "-n", "ci"],
        &["get", "--history", "-A"],
    ];
    for args in lists {
        let list = ask(args).await.unwrap();
        let rows: Vec<Vec<&str>> = list.lines().map(|row| row.split('\t').collect()).collect();
        assert_eq!(rows[1][..4], ["ci", "build", "Failed", "1/3"], "{list}");
        assert!(rows.len() == 2 && rows[1][5].starts_with('2'), "{list}");
    }
    assert_eq!(ask(&["get", "-A"]).await.unwrap().lines().count(), 1);
}

/// The workflow is done again from the history at `url`, but for its first step.
async fn is_retried(sim: &Sim, url: &str) {
    let ask = async |args: &[&str]| kubectl(sim, url, args).await;
    let from = format!(" at {url}\n");
    let made = ask(&["retry", "build", "-n", "ci"]).await.unwrap();
    let again = made.strip_prefix("workflow.hindsight.dev/").unwrap();
    let (again, of) = again
        .split_once(" created from the history, stored 2")
        .unwrap();
    assert!(of.ends_with(&from), "{made}");
    collected(sim, 3).await;
    let text = ask(&["describe", again, "-n", "ci"]).await.unwrap();
    assert!(
        text.contains("Failure:   StepFailed: step \"bad\"") && !text.contains("good"),
        "{text}"
    );
    let list = ask(&["get", "--history", "-n", "ci"]).await.unwrap();
    assert_eq!(list.lines().count(), 3, "{list}");
    assert!(
        list.lines().nth(1).unwrap().contains(again),
        "the newest is first: {list}"
    );
}

/// What neither has is refused, as is what no server can be asked for.
async fn is_refused(sim: &Sim, url: &str) {
    let ask = async |args: &[&str]| kubectl(sim, url, args).await;
    let gone = ask(&["cancel", "build", "-n", "ci"]).await.unwrap_err();
    assert!(
        gone.starts_with("workflow `build` cannot be deleted"),
        "{gone}"
    );
    let missing = ask(&["describe", "build", "-n", "default"])
        .await
        .unwrap_err();
    assert_eq!(
        missing,
        format!(
            "workflow `build` cannot be read: it is neither in the cluster nor in the history at {url}; \
             --hindsight-server or HINDSIGHT_SERVER names another server"
        )
    );
    let nowhere = format!("http://127.0.0.1:{}", free_port());
    let silent = kubectl(sim, &nowhere, &["get", "build", "-n", "ci"])
        .await
        .unwrap_err();
    let said = format!(
        "workflow `build` cannot be read: it is not in the cluster, and the history cannot be read: the \
         server at {nowhere} does not answer: "
    );
    assert!(silent.starts_with(&said), "{silent}");
    assert!(silent.contains("or name another with --hindsight-server or `hindsight context set "));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wf_60_a_workflow_that_was_collected_is_shown_and_retried_from_the_history() {
    let sim = Sim::new();
    sim.install(Crd::hindsight_workflow());
    sim.namespace("ci");
    let listening = sim.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let _jobs = sim.run_jobs(Jobs::default());
    let database = Database::sqlite();
    let (db, kubeconfig) = (database.url(), listening.kubeconfig().display().to_string());
    let mut arguments = vec!["--db", &db, "--metrics-listen=off"];
    arguments.extend(["--watcher-kubeconfig", &kubeconfig, "--watcher-collect"]);
    arguments.extend(["--watcher-grace=0s", "--watcher-recheck=200ms"]);
    arguments.extend(["--watcher-job-selector", "hindsight.dev/workflow-uid"]);
    arguments.extend(["--workflows", "--workflow-kubeconfig", &kubeconfig]);
    let program = Program::start("all-in-one", &arguments).await;
    let steps = json!({
        "good": step(&[], "succeed"), "bad": step(&["good"], "fail"), "last": step(&["bad"], "succeed"),
    });
    let workflow = json!({
        "apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow",
        "metadata": {"name": "build", "namespace": "ci"}, "spec": {"steps": steps},
    });
    let uid = sim.create(workflow).unwrap()["metadata"]["uid"].clone();
    collected(&sim, 2).await;
    is_shown(&sim, &program.url, uid.as_str().unwrap()).await;
    is_retried(&sim, &program.url).await;
    is_refused(&sim, &program.url).await;
    let (code, said) = program.terminate().await;
    assert_eq!(code, Some(0), "{said:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workflow_of_a_cluster_with_an_id_is_found_below_it_with_why_its_end_is_not_known() {
    let database = Database::sqlite();
    let server = TestServer::start(&database).await;
    let sim = Sim::new();
    sim.install(Crd::hindsight_workflow());
    let workflow = json!({
        "apiVersion": "hindsight.dev/v1alpha1", "kind": "Workflow",
        "metadata": {"name": "build", "namespace": "ci", "uid": "u", "annotations": {
            "hindsight.dev/closed": "deleted before it finished", "hindsight.dev/closed-uid": "u",
            "hindsight.dev/closed-at": "2026-03-02T10:00:00Z",
        }},
        "spec": {"steps": {"one": step(&[], "run")}},
        "status": {"phase": "Running", "progress": "0/1"},
    });
    let data = workflow.to_string();
    let name = "cluster/east/namespace/ci/results/r/records/a";
    server
        .given_record(name, "hindsight.dev/v1alpha1.Workflow", data.as_bytes())
        .await;
    let get: [&[&str]; 2] = [&["get", "build", "-n", "ci"], &["get", "--history", "-A"]];
    for args in get {
        let of = |id| [args, &["--hindsight-cluster-id", id]].concat();
        let list = kubectl(&sim, &server.url, &of("east")).await.unwrap();
        assert!(list.contains("ci\tbuild\tRunning\t0/1\t\t2"), "{list}");
        let list = kubectl(&sim, &server.url, &of("west")).await;
        assert!(!list.is_ok_and(|list| list.contains("build")), "{args:?}");
    }
    let describe = [
        "describe",
        "build",
        "-n",
        "ci",
        "--hindsight-cluster-id=east",
    ];
    let text = kubectl(&sim, &server.url, &describe).await.unwrap();
    let said = format!(" at {}; deleted before it finished\nName: ", server.url);
    assert!(text.contains(&said), "{text}");
    server.stop().await;
}
