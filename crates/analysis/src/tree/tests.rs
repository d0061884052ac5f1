//! Trees of runs as controllers write them, and of what no controller writes.

mod hostile;
mod objects;
mod workflows;

use serde_json::{Value, json};

use self::objects::{pipeline_run, task_run};
use super::*;

pub(super) fn tree(root: &Value, others: &[Value]) -> Tree {
    Tree::of(part(root), others.iter().map(part).collect(), Vec::new())
}

fn part(object: &Value) -> Part {
    let uid = object["metadata"]["uid"].as_str().unwrap();
    Part::of(&format!("shop/results/r/records/{uid}"), object)
}

/// A line for each node: its depth as spaces, its name and state, and what it waits for.
pub(super) fn drawn(tree: &Tree) -> Vec<String> {
    let line = |node: &Node| {
        let indent = "  ".repeat(node.depth as usize);
        let waits: Vec<_> = node
            .depends_on
            .iter()
            .map(|at| tree.nodes[*at].name.as_str())
            .collect();
        let waits = if waits.is_empty() {
            String::new()
        } else {
            format!(" < {}", waits.join(" "))
        };
        format!("{indent}{} {:?}{waits}", node.name, node.state)
    };
    tree.nodes.iter().map(line).collect()
}

pub(super) fn critical(tree: &Tree) -> Vec<&str> {
    let name = |at: &usize| tree.nodes[*at].name.as_str();
    tree.critical_path.iter().map(name).collect()
}

/// The run of the first page of the documentation: a build, a test that fails at its second attempt,
/// a deployment that does not happen, and a report in the end.
fn release() -> (Value, Vec<Value>) {
    let run = pipeline_run();
    let mut test = task_run("test", (200, 361), Some(137));
    test["spec"]["retries"] = json!(1);
    test["status"]["retriesStatus"] = json!([{"conditions": []}]);
    let others = [
        task_run("report", (370, 380), None),
        test,
        task_run("build", (2, 192), None),
        task_run("lint", (2, 60), None),
    ];
    (run, others.to_vec())
}

#[test]
fn a_pipeline_run_is_drawn_with_what_its_tasks_wait_for() {
    let (run, others) = release();
    let tree = tree(&run, &others);
    assert_eq!(
        drawn(&tree),
        [
            "release-42 Failure",
            "  build Success",
            "  lint Success",
            "  test Failure < build",
            "  report Success",
            "  approve Unknown < test",
            "  deploy Skipped < test approve",
        ]
        .map(str::to_owned)
    );
    let missing = &tree.nodes[5];
    assert_eq!(
        (missing.kind.as_str(), missing.reason.as_str()),
        ("CustomRun", "NotStored")
    );
    assert_eq!(missing.record, None);
    assert_eq!(tree.nodes[6].reason, "Parent Tasks were skipped");
    assert!(tree.cycles.is_empty() && tree.notes.is_empty() && tree.left_out == 0);
}

#[test]
fn a_failure_is_found_without_what_is_not_stored() {
    let (run, others) = release();
    let whole = tree(&run, &others);
    let mut root = part(&run);
    let mut failed = vec![part(&others[1])];
    Part::retain_stored(&mut root, &mut failed);
    let few = Tree::of(root, failed, Vec::new());
    let stored: Vec<_> = few.nodes.iter().map(|node| &node.name).collect();
    assert_eq!(stored, ["release-42", "test", "deploy"]);
    let found = |tree: &Tree| tree.failed_leaf().map(|at| tree.path(at));
    assert_eq!(found(&few).as_deref(), Some("test"));
    assert_eq!(found(&few), found(&whole));
}

#[test]
fn a_node_tells_times_attempts_and_the_step_that_failed() {
    let (run, others) = release();
    let tree = tree(&run, &others);
    let test = &tree.nodes[3];
    assert_eq!(
        (test.wait(), test.init(), test.run()),
        (Some(2.0), Some(12.0), Some(149.0))
    );
    assert_eq!(
        (test.attempt, test.retries, test.took()),
        (2, 1, Some(161.0))
    );
    let step = test.failed_step().unwrap();
    let end = (
        step.name.as_str(),
        step.exit_code,
        step.reason.as_str(),
        step.message.as_str(),
    );
    assert_eq!(end, ("run", Some(137), "OOMKilled", ""));
    assert_eq!(tree.nodes[1].failed_step(), None);
}

#[test]
fn the_critical_path_is_what_the_end_waited_for() {
    let (run, others) = release();
    let tree = tree(&run, &others);
    assert_eq!(critical(&tree), ["build", "test", "report"]);
    assert!((tree.critical_seconds - (190.0 + 161.0 + 10.0)).abs() < 1e-9);
}

#[test]
fn gaps_are_when_nothing_ran() {
    let (run, others) = release();
    let tree = tree(&run, &others);
    let gaps: Vec<_> = tree.gaps.iter().map(|gap| gap.seconds).collect();
    assert_eq!(gaps, [40.0, 9.0, 8.0, 2.0]);
    assert!((tree.idle_seconds - 59.0).abs() < 1e-9);
}

#[test]
fn what_is_not_below_the_run_is_not_in_its_tree() {
    let (run, mut others) = release();
    others.push(
        json!({"kind": "TaskRun", "metadata": {"name": "other", "uid": "other",
        "ownerReferences": [{"kind": "PipelineRun", "name": "x", "uid": "another"}]}}),
    );
    assert_eq!(tree(&run, &others).nodes.len(), 7);
    let only = tree(&others[1], &[run, others[0].clone()]);
    assert_eq!(drawn(&only), ["test Failure".to_owned()]);
    assert!(only.gaps.is_empty() && only.critical_path.is_empty());
}

#[test]
fn results_that_a_task_takes_are_what_it_waits_for() {
    let run = json!({"status": {"pipelineSpec": {"tasks": [
        {"name": "a", "params": [{"name": "x", "value": ["$(tasks.b.results.r)-$(tasks.c.results.r)"]}],
         "when": [{"input": "$(tasks.d.status)"}], "runAfter": ["e", 1]},
        {"name": "b", "params": [{"name": "x", "value": "$(params.b) $(tasks.broken"}]}]}}});
    let waits = pipeline::of(&run);
    assert_eq!(waits["a"].for_tasks, ["b", "c", "d", "e"]);
    assert!(waits["b"].for_tasks.is_empty());
}

#[test]
fn a_failure_began_where_nothing_below_failed() {
    let (run, mut others) = release();
    others.push(task_run("lint", (2, 400), Some(1)));
    others.remove(3);
    let found = tree(&run, &others);
    let leaf = found.failed_leaf().unwrap();
    assert_eq!(
        (found.path(leaf).as_str(), found.path(0).as_str()),
        ("test", "")
    );
    let mut alone = run.clone();
    assert_eq!(tree(&alone, &[]).failed_leaf(), Some(0));
    alone["status"]["conditions"][0]["status"] = json!("True");
    assert_eq!(tree(&alone, &others).failed_leaf(), None);
}

#[test]
fn a_run_that_ran_out_of_time_was_in_the_task_that_was_stopped() {
    let (mut run, mut others) = release();
    run["status"]["conditions"][0]["reason"] = json!("PipelineRunTimeout");
    others[1]["status"]["conditions"][0]["reason"] = json!("TaskRunCancelled");
    let found = tree(&run, &others);
    assert_eq!(found.path(found.failed_leaf().unwrap()), "test");
}

#[test]
fn a_ray_job_is_above_its_cluster_for_which_nothing_waits() {
    let object = |kind: &str, name: &str, spec: Value, status: Value| {
        json!({"apiVersion": "ray.io/v1", "kind": kind, "spec": spec, "status": status,
            "metadata": {"name": name, "namespace": "shop", "uid": name,
                "creationTimestamp": "2026-03-01T10:00:00Z"}})
    };
    let own = json!({"rayClusterName": "a", "startTime": "2026-03-01T10:01:00Z",
        "endTime": "2026-03-01T10:09:00Z", "jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"});
    let selects = json!({"clusterSelector": {"ray.io/cluster": "a"}});
    let none = || Value::Null;
    let cluster = object("RayCluster", "a", none(), none());
    for (spec, status) in [(none(), own), (selects, none())] {
        let job = object("RayJob", "train", spec, status);
        let tree = tree(&job, std::slice::from_ref(&cluster));
        assert_eq!(tree.nodes.len(), 2);
        assert_eq!(
            tree.nodes[1].record.as_deref(),
            Some("shop/results/r/records/a")
        );
        assert!(critical(&tree).is_empty() && tree.gaps.is_empty());
        // What is not stored is told by its name.
        let alone = self::tree(&job, &[]);
        assert_eq!(
            (alone.nodes[1].name.as_str(), &alone.nodes[1].record),
            ("a", &None)
        );
    }
    let other = object(
        "RayService",
        "serve",
        none(),
        json!({"rayClusterName": "a"}),
    );
    assert_eq!(tree(&other, &[cluster]).nodes.len(), 1);
}

#[test]
fn what_was_there_before_the_run_has_no_times_in_its_tree() {
    let object = |kind: &str, created: &str| {
        json!({"apiVersion": "x/v1", "kind": kind, "metadata": {"name": kind, "uid": kind, "creationTimestamp": created},
            "status": {"startTime": created, "completionTime": "2026-03-01T10:09:00Z"}})
    };
    let mut run = Part::of(
        "shop/results/r/records/run",
        &object("Job", "2026-03-01T10:00:00Z"),
    );
    let record = "kubeflow/results/p/records/v";
    let mut version = Part::of(record, &object("PipelineVersion", "2025-03-01T10:00:00Z"));
    for _ in 0..2 {
        run.refer(&mut version);
    }
    assert_eq!(run.nodes(), 2);
    let tree = Tree::of(run, vec![version], Vec::new());
    assert_eq!(tree.nodes.len(), 2);
    let version = &tree.nodes[1];
    assert_eq!(
        (version.record.as_deref(), version.reference),
        (Some(record), true)
    );
    assert_eq!(
        (version.created, version.wait(), version.took()),
        (None, None, None)
    );
    assert!(critical(&tree).is_empty() && tree.gaps.is_empty());
}
