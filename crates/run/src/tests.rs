//! Naming, grouping and judging of runs, by example.

use serde_json::{Value, json};

use super::{Kind, Outcome, SummaryPolicy, View, group, upload};

fn task_run(extra: Value) -> Value {
    let mut run = json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": "build-1", "namespace": "ci", "uid": "u-1"},
    });
    merge(&mut run, extra);
    run
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

#[track_caller]
fn stored_as(run: &Value, name: &str, notes: usize) {
    let grouping = group(&View::new(run), "ci".parse().unwrap()).unwrap();
    assert_eq!(
        (grouping.record.to_string().as_str(), grouping.notes.len()),
        (name, notes)
    );
}

#[test]
fn a_lone_run_is_its_own_result() {
    stored_as(&task_run(json!({})), "ci/results/u-1/records/u-1", 0);
}

#[test]
fn a_child_joins_the_result_of_its_pipeline_run() {
    let run = task_run(json!({"metadata": {"ownerReferences": [
        {"kind": "PipelineRun", "name": "p", "uid": "p-1"}]}}));
    stored_as(&run, "ci/results/p-1/records/u-1", 0);
}

#[test]
fn a_run_owned_by_anything_but_a_pipeline_run_sums_itself_up() {
    let run = task_run(json!({"metadata": {"ownerReferences": [
        {"kind": "CustomRun", "name": "loop", "uid": "c-1"}]}}));
    stored_as(&run, "ci/results/u-1/records/u-1", 0);
    let upload = upload(&View::new(&run), None, &SummaryPolicy::default()).unwrap();
    assert_eq!(upload.annotations["object.metadata.name"], "build-1");
    assert_eq!(upload.summary.unwrap().record, "ci/results/u-1/records/u-1");
}

#[test]
fn runs_of_one_event_share_a_result() {
    let run = task_run(json!({"metadata": {"labels":
        {"triggers.tekton.dev/triggers-eventid": "e-1"}}}));
    stored_as(&run, "ci/results/e-1/records/u-1", 0);
}

#[test]
fn a_result_may_be_asked_for() {
    let run = task_run(json!({"metadata": {"annotations":
        {"results.tekton.dev/result": "ci/results/mine"}}}));
    stored_as(&run, "ci/results/mine/records/u-1", 0);
}

#[test]
fn a_copied_annotation_does_not_write_into_another_run() {
    let run = task_run(json!({"metadata": {"annotations": {
        "results.tekton.dev/result": "ci/results/old",
        "results.tekton.dev/record": "ci/results/old/records/old"}}}));
    stored_as(&run, "ci/results/u-1/records/u-1", 1);
}

#[test]
fn an_inherited_annotation_keeps_a_child_in_the_group_of_its_owner() {
    let run = task_run(json!({"metadata": {
        "annotations": {
            "results.tekton.dev/result": "ci/results/group",
            "results.tekton.dev/record": "ci/results/group/records/p-1"},
        "ownerReferences": [{"kind": "PipelineRun", "name": "p", "uid": "p-1"}]}}));
    stored_as(&run, "ci/results/group/records/u-1", 0);
}

#[test]
fn a_wish_for_another_tenant_or_nonsense_is_noted_and_ignored() {
    for wish in ["other/results/x", "nonsense", "-/results/x"] {
        let run = task_run(json!({"metadata": {"annotations":
            {"results.tekton.dev/result": wish}}}));
        stored_as(&run, "ci/results/u-1/records/u-1", 1);
    }
}

#[test]
fn a_wish_may_name_the_namespace_where_the_cluster_has_a_tenant() {
    let run = task_run(json!({"metadata": {"annotations":
        {"results.tekton.dev/result": "ci/results/nightly"}}}));
    let parent = "cluster/prod/namespace/ci".parse().unwrap();
    let grouping = group(&View::new(&run), parent).unwrap();
    assert_eq!(
        grouping.record.to_string(),
        "cluster/prod/namespace/ci/results/nightly/records/u-1"
    );
    assert_eq!(grouping.notes, Vec::<String>::new());
}

#[test]
fn an_object_without_uid_is_refused() {
    let error = upload(
        &View::new(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "a"}})),
        None,
        &SummaryPolicy::default(),
    );
    assert!(error.unwrap_err().to_string().contains("metadata.uid"));
}

#[test]
fn a_bad_json_annotation_costs_the_annotation_not_the_run() {
    let run = task_run(json!({"metadata": {
        "labels": {"tekton.dev/pipeline": "nightly"},
        "annotations": {
            "results.tekton.dev/resultAnnotations": "{not json",
            "results.tekton.dev/recordSummaryAnnotations": "{\"n\": 7, \"s\": \"x\"}"}},
        "status": {"startTime": "2026-01-01T00:00:00Z"}}));
    let upload = upload(&View::new(&run), None, &SummaryPolicy::default()).unwrap();
    assert_eq!(upload.grouping.notes.len(), 1);
    let annotations: Vec<_> = upload.annotations.into_iter().collect();
    assert_eq!(
        annotations,
        [
            ("object.metadata.name".to_owned(), "build-1".to_owned()),
            ("tekton.dev/pipeline".to_owned(), "nightly".to_owned())
        ]
    );
    let summary = upload.summary.unwrap();
    assert_eq!(summary.annotations.get("n").map(String::as_str), Some("7"));
    assert_eq!(summary.start_time.unwrap().seconds, 1_767_225_600);
    assert_eq!(summary.end_time, None);
}

#[track_caller]
fn ends(kind: (&str, &str), status: Value, done: bool, outcome: Outcome) {
    let object = json!({"apiVersion": kind.0, "kind": kind.1, "status": status});
    let finish = View::new(&object).finish();
    assert_eq!((finish.done, finish.outcome), (done, outcome), "{object}");
}

fn succeeded(status: &str, reason: &str) -> Value {
    json!({"conditions": [
        {"type": "Ready", "status": "True"},
        {"type": "Succeeded", "status": status, "reason": reason}]})
}

#[test]
fn a_tekton_run_is_judged_by_reason_then_by_status() {
    let run = ("tekton.dev/v1", "PipelineRun");
    ends(run, json!({}), false, Outcome::Unknown);
    ends(
        run,
        succeeded("Unknown", "Running"),
        false,
        Outcome::Unknown,
    );
    ends(run, succeeded("Unknown", "Failed"), false, Outcome::Unknown);
    ends(run, succeeded("True", "Completed"), true, Outcome::Success);
    ends(
        run,
        succeeded("True", "FailureIgnored"),
        true,
        Outcome::Success,
    );
    ends(
        run,
        succeeded("False", "CouldntGetTask"),
        true,
        Outcome::Failure,
    );
    ends(
        run,
        succeeded("False", "PipelineRunTimeout"),
        true,
        Outcome::Timeout,
    );
    ends(
        run,
        succeeded("False", "Cancelled"),
        true,
        Outcome::Cancelled,
    );
    let custom = ("tekton.dev/v1beta1", "CustomRun");
    ends(
        custom,
        succeeded("False", "CustomRunCancelled"),
        true,
        Outcome::Cancelled,
    );
    ends(
        custom,
        succeeded("False", "CustomRunTimedOut"),
        true,
        Outcome::Timeout,
    );
    let run = ("tekton.dev/v1alpha1", "Run");
    ends(
        run,
        succeeded("False", "RunTimedOut"),
        true,
        Outcome::Timeout,
    );
}

#[test]
fn an_argo_workflow_is_judged_by_phase() {
    let argo = ("argoproj.io/v1alpha1", "Workflow");
    ends(argo, json!({"phase": ""}), false, Outcome::Unknown);
    ends(argo, json!({"phase": "Running"}), false, Outcome::Unknown);
    ends(argo, json!({"phase": "Succeeded"}), true, Outcome::Success);
    ends(argo, json!({"phase": "Error"}), true, Outcome::Failure);
    let stopped = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "spec": {"shutdown": "Stop"}, "status": {"phase": "Failed"}});
    assert_eq!(View::new(&stopped).finish().outcome, Outcome::Cancelled);
}

#[test]
fn our_workflow_and_a_job_are_judged_by_conditions() {
    for kind in [("hindsight.dev/v1alpha1", "Workflow"), ("batch/v1", "Job")] {
        let with = |of_type: &str, reason: &str| json!({"conditions": [{"type": of_type, "status": "True", "reason": reason}]});
        ends(kind, json!({}), false, Outcome::Unknown);
        ends(kind, with("Suspended", ""), false, Outcome::Unknown);
        ends(kind, with("Complete", ""), true, Outcome::Success);
        ends(
            kind,
            with("Failed", "BackoffLimitExceeded"),
            true,
            Outcome::Failure,
        );
        ends(
            kind,
            with("Failed", "DeadlineExceeded"),
            true,
            Outcome::Timeout,
        );
    }
}

#[test]
fn a_kind_is_found_by_type_text_old_and_new() {
    for text in [
        "tekton.dev/v1.TaskRun",
        "tekton.dev/v1beta1.TaskRun",
        "pipeline.tekton.dev/TaskRun",
    ] {
        assert_eq!(
            Kind::of_type(text).map(|k| k.kind),
            Some("TaskRun"),
            "{text}"
        );
    }
    assert_eq!(Kind::of_type("tekton.dev/v1.TaskRunner"), None);
    assert_eq!(Kind::of_type("results.tekton.dev/v1.EventList"), None);
}
