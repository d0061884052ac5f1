//! Filters that clients of Tekton Results send, and those it documents or tests, by what they say
//! of the [run and the result](super::known) that are known.

/// A filter of the command line: TaskRuns, and more.
macro_rules! task_runs {
    ($($more:literal)?) => {
        concat!(
            r#"(data_type=="tekton.dev/v1.TaskRun" || data_type=="tekton.dev/v1beta1.TaskRun")"#,
            $($more)?
        )
    };
}

/// What lists and descriptions of the command line ask; true of the run.
pub const COMMAND_LINE: &[&str] = &[
    task_runs!(),
    task_runs!(r#" && data.metadata.labels["app"]=="shop" && data.metadata.labels["tier"]=="5""#),
    task_runs!(r#" && data.metadata.name.contains("build")"#),
    task_runs!(r#" && data.metadata.labels['tekton.dev/pipelineRun'] == 'nightly'"#),
    task_runs!(r#" && data.metadata.name=="nightly-build""#),
    task_runs!(r#" && data.metadata.name=="nightly-build" && data.metadata.uid=="u-1""#),
    r#"name=="u-1""#,
    r#"name.endsWith("records/u-1")"#,
];

/// What dashboards ask; true of the run.
pub const DASHBOARDS: &[&str] = &[
    r#"data_type in ["tekton.dev/v1.TaskRun","tekton.dev/v1beta1.TaskRun"] && data.metadata.labels["app"] == "shop""#,
    r#"data_type == "tekton.dev/v1.TaskRun" && data.metadata.labels["app"] != "other""#,
    r#"data.metadata.labels["app"] in ["shop","b"] && data.metadata.labels.contains("app")"#,
    r#"!data.metadata.labels.contains("absent") && data.metadata.name.startsWith("night")"#,
    r#"data.metadata.creationTimestamp > "2026-02-01T00:00:00Z""#,
    r#"(data.metadata.labels.contains("x1") || data.metadata.annotations.contains("note") || data.metadata.labels["a"].contains("x"))"#,
    r#"data.metadata.labels["c/sha"].contains("it") || data.metadata.labels["c/title"].contains("it") || data.metadata.labels["c/url"].contains("it") || data.metadata.annotations["c/sha"].contains("it") || data.metadata.annotations["c/title"].contains("it") || data.metadata.annotations["build.note"].contains("it")"#,
    "data.status.startTime > timestamp('2026-02-01T00:00:00Z') && data.metadata.labels['app']=='shop'",
    "data_type == 'tekton.dev/v1.TaskRun'",
];

/// What Tekton Results tests on records; true of the run.
pub const TESTED: &[&str] = &[
    r#"data.metadata.namespace == "ci""#,
    r#"data.status.completionTime > timestamp("2022/10/30T21:45:00.000Z")"#,
    r#"timestamp("2022/10/30T21:45:00.000Z") < data.status.completionTime"#,
    r#"data.metadata.namespace in ["foo","ci"]"#,
    r#"data.metadata.labels["app"] == "shop""#,
    r#"data.kind + "bar" == "TaskRunbar" && data.kind + "a" + "b" == "TaskRunab""#,
    r#"!(data.metadata.annotations.contains("foo")) && data.metadata.name.endsWith("build")"#,
    r#"data.metadata.name.matches("^night.*$")"#,
    "data.status.completionTime.getDate() == 1 && data.status.completionTime.getDayOfMonth() == 0",
    "data.status.completionTime.getDayOfWeek() >= 0 && data.status.completionTime.getDayOfYear() > 15",
    "data.status.completionTime.getFullYear() >= 2022 && data_type == TASK_RUN",
    r#"data.status.conditions[0].status == "False""#,
    r#"data["status"].conditions[0].status == "False" && data.status["conditions"][0].reason == "Failed""#,
    r#"parent == "ci" && (!(data.kind == "x") && (data.kind == "y" || data.kind == "TaskRun"))"#,
];

/// What Tekton Results only documents; true of the run.
pub const DOCUMENTED: &[&str] = &[
    "data.status.completionTime - data.status.startTime > duration('5m')",
    "data.status.startTime.getHours() == 9 && data.status.startTime.getMinutes() == 0",
    "string(data.spec.retries) == '3' && size(data.spec.params) >= 3",
];

/// False of the run.
pub const NOT_OF_THE_RUN: &[&str] = &[
    r#"(name == "u-1") && (data_type == "results.tekton.dev/v1alpha3.Log" || data_type == "results.tekton.dev/v1alpha2.Log")"#,
    "data_type == PIPELINE_RUN",
    r#"name == "foo""#,
    r#"name + "bar" == "foobar""#,
];

/// Neither true nor false of the run: a number was never equal to a label.
pub const UNKNOWN_OF_THE_RUN: &[&str] = &[r#"data.metadata.labels["tier"] == 5"#];

/// True of the result.
pub const OF_THE_RESULT: &[&str] = &[
    r#"uid=="result-uid""#,
    r#"annotations["repo"] == "tektoncd/results" && "tektoncd/results" == annotations["repo"]"#,
    r#"annotations["repo"].startsWith("tektoncd")"#,
    r#"create_time > timestamp("2022/10/30T21:45:00.000Z") && update_time > timestamp("2022/10/30T21:45:00.000Z")"#,
    r#"summary.start_time > timestamp("2022/10/30T21:45:00.000Z")"#,
    "summary.status == CANCELLED || summary.status == TIMEOUT",
    r#"summary.annotations["branch"] == "main" && "main" == summary.annotations["branch"]"#,
    r#"!(summary.annotations["branch"] == "other")"#,
    r#"summary.annotations["branch"] == "main" && annotations["repo"] == "tektoncd/results" && summary.status == TIMEOUT"#,
    "summary.annotations.contains('branch')",
    "summary.status == 'TIMEOUT'",
];

/// Not true of the result.
pub const NOT_OF_THE_RESULT: &[&str] = &[
    r#"parent.endsWith("bar")"#,
    r#"uid == "foo""#,
    r#"summary.record == "foo/results/bar/records/baz""#,
    "summary.type == PIPELINE_RUN",
];
