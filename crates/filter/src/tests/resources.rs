//! What results and records show to filters.

use super::rows::{
    Truth::{No, Unknown, Yes},
    is, record, result_is, task_record, truth_on,
};

#[test]
fn a_record_is_named_in_full_or_by_its_last_part() {
    is(
        Yes,
        &[
            "name == 'u-1'",
            "name == 'ci/results/r-1/records/u-1' && 'u-1' == name",
            "name != 'u-2' && name in ['x', 'u-1']",
            "name.endsWith('records/u-1') && name.startsWith('u-') && name.startsWith('ci/results/')",
            "name.contains('results/r-1') && result_name == 'r-1' && result_name == 'ci/results/r-1'",
            "parent == 'ci' && uid == 'record-uid' && data_type == TASK_RUN",
            "data_type == 'tekton.dev/v1.TaskRun'",
        ],
    );
    is(
        No,
        &[
            "name == 'ci'",
            "name == 'ci/results/r-1'",
            "name.startsWith('ci')",
            "result_name == 'xx/results/r-1'",
            "data_type == 'PIPELINE_RUN'",
        ],
    );
}

#[test]
fn an_alias_matches_only_its_own_kind() {
    is(
        Yes,
        &[
            "taskrun.metadata.name == 'nightly-build'",
            "taskrun.metadata.creation_timestamp < timestamp('2026-03-02T00:00:00Z')",
            "taskrun.spec.task_ref.name == 'build' && taskrun.spec.taskRef.name == 'build'",
            "taskrun.status.steps.exists(s, s.terminated.exit_code == 1)",
        ],
    );
    let old = record(
        "ci/results/r/records/x",
        "pipeline.tekton.dev/PipelineRun",
        b"{\"kind\":\"p\"}",
    );
    assert_eq!(truth_on("pipelinerun.kind == 'p'", &old), Yes);
    assert_eq!(
        truth_on("taskrun.kind == 'p' || customrun.kind == 'p'", &old),
        Unknown
    );
    let snake = record(
        "ci/results/r/records/x",
        "argoproj.io/v1alpha1.Workflow",
        br#"{"metadata":{"labels":{"my_key":"1","myKey":"2"}},"my_key":"raw"}"#,
    );
    assert_eq!(
        truth_on("workflow.metadata.labels.my_key == '1'", &snake),
        Yes
    );
    assert_eq!(
        truth_on(
            "workflow['my_key'] == 'raw' && data.my_key == 'raw'",
            &snake
        ),
        Yes
    );
}

#[test]
fn results_have_their_fields() {
    result_is(
        true,
        &[
            "parent.endsWith('i') && uid == 'result-uid'",
            "annotations['repo'] == 'tektoncd/results' && annotations.repo.startsWith('tektoncd')",
            "'tektoncd/results' == annotations[\"repo\"] && 'repo' in annotations",
            "summary.status == TIMEOUT && summary.status == 'TIMEOUT' && summary.status == 3",
            "summary.status in ['FAILURE', 'TIMEOUT'] && summary.status != \"SUCCESS\"",
            "summary.status == tekton.results.v1alpha2.RecordSummary.Status.TIMEOUT",
            "summary.type == TASK_RUN && summary.record == 'ci/results/r-1/records/u-1'",
            "summary.start_time > timestamp('2026-03-01T09:00:00Z')",
            "summary.startTime < timestamp('2026-03-01T09:00:02Z') && !has(summary.end_time)",
            "summary.annotations['branch'] == 'main' && summary.annotations.contains('bran')",
            "has(summary.annotations.branch) && !has(summary.annotations.other) && summary != null",
            "create_time < update_time && has(summary.start_time) && annotations.size() == 2",
            "annotations.exists(key, value, value == 'x')",
        ],
    );
    result_is(
        false,
        &[
            "annotations['nope'] != 'x'",
            "!(annotations['nope'] == 'x')",
            "summary.end_time > timestamp('2020-01-01T00:00:00Z')",
            "summary.end_time == null",
            "!(summary.annotations['branch'] == 'main')",
            "summary == null",
        ],
    );
}

#[test]
fn rows_without_data_or_json_are_only_themselves() {
    let mut bare = task_record();
    bare.data = None;
    assert_eq!(truth_on("name == 'u-1'", &bare), Yes);
    assert_eq!(truth_on("data_type == 'x'", &bare), Unknown);
    assert_eq!(truth_on("data.kind == 'x'", &bare), Unknown);
    let log = record(
        "ci/results/r/records/x",
        "results.tekton.dev/v1alpha3.Log",
        b"\xff\x00",
    );
    assert_eq!(truth_on("data.kind == 'x' || data != null", &log), Unknown);
    assert_eq!(
        truth_on("data_type == 'results.tekton.dev/v1alpha3.Log'", &log),
        Yes
    );
}

#[test]
fn a_null_that_is_not_written_as_one_is_of_another_type() {
    is(
        Unknown,
        &[
            "parent != dyn(null)",
            "parent == dyn(null)",
            "data.kind != dyn(null)",
            "taskrun.status.completionTime - pipelinerun.status.startTime > duration('1s')",
        ],
    );
    is(Yes, &["data.spec.none == dyn(null)", "parent != null"]);
}

#[test]
fn keys_that_libraries_give_a_meaning_are_keys() {
    let payload = r#"{"kind":{"$serde_json::private::RawValue":"\"X\""}}"#;
    let row = record("p/results/a/records/b", "x", payload.as_bytes());
    for filter in ["data.kind == 'X'", "data.kind.matches('^X$')"] {
        assert_eq!(truth_on(filter, &row), Unknown, "{filter}");
    }
    let filter = r#"data.kind["$serde_json::private::RawValue"] == '"X"'"#;
    assert_eq!(truth_on(filter, &row), Yes);
}
