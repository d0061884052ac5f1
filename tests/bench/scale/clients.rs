//! What clients of Tekton Results send: dashboards, `tkn-results`, the console's plugin.

use crate::{
    cases::{ALL, ASKED_MOST, Case},
    corpus::{self, Run},
    data::Database,
};

/// Questions by name. In their filters `RUNS`, `LISTED` and `TASKS` are types as clients ask for
/// them, `LABEL(key)` is a label, and `NAME`, `UID` and `BUSY` are of a run and its pipeline.
const QUESTIONS: [(&str, &str); 19] = [
    ("runs", "RUNS"),
    ("runs, as a list", "LISTED"),
    ("tasks", "TASKS"),
    (
        "runs of a pipeline",
        "LISTED && LABEL(tekton.dev/pipeline) == \"BUSY\"",
    ),
    (
        "runs of a rare pipeline",
        "LISTED && LABEL(tekton.dev/pipeline) == \"RARE\"",
    ),
    (
        "runs by two labels",
        "RUNS && LABEL(tekton.dev/pipeline) == \"BUSY\" && LABEL(tier) == \"gold\"",
    ),
    (
        "tasks of a run",
        "TASKS && LABEL(tekton.dev/pipelineRun) == \"NAME\"",
    ),
    ("a run by name", "RUNS && data.metadata.name == \"NAME\""),
    (
        "a run by name and uid",
        "RUNS && data.metadata.name == \"NAME\" && data.metadata.uid == \"UID\"",
    ),
    (
        "a record by the end of its name",
        "name.endsWith(\"records/UID\")",
    ),
    (
        "runs by a part of names",
        "RUNS && data.metadata.name.contains(\"BUSY\")",
    ),
    (
        "runs by the start of names",
        "LISTED && data.metadata.name.startsWith(\"BUSY\")",
    ),
    (
        "runs with a label",
        "LISTED && data.metadata.labels.contains(\"era\")",
    ),
    (
        "runs without a label",
        "LISTED && !data.metadata.labels.contains(\"era\")",
    ),
    (
        "runs of other pipelines",
        "LISTED && LABEL(tekton.dev/pipeline) != \"nightly\"",
    ),
    (
        "runs of some pipelines",
        "LISTED && LABEL(tekton.dev/pipeline) in [\"build-005\", \"build-006\"]",
    ),
    (
        "runs by the start of a label",
        "LISTED && LABEL(tekton.dev/pipeline).startsWith(\"build-00\")",
    ),
    (
        "runs created since, as text",
        "LISTED && data.metadata.creationTimestamp > \"2026-03-20T00:00:00Z\"",
    ),
    (
        "runs that failed",
        "RUNS && data.status.conditions[0].reason == \"Failed\"",
    ),
];

fn filter(text: &str, run: &Run) -> String {
    let mut filter = text.to_owned();
    for (types, kind) in [("RUNS", "PipelineRun"), ("TASKS", "TaskRun")] {
        let any = format!(
            "(data_type == \"tekton.dev/v1.{kind}\" || data_type == \"tekton.dev/v1beta1.{kind}\")"
        );
        filter = filter.replace(types, &any);
    }
    let listed = "data_type in [\"tekton.dev/v1.PipelineRun\", \"tekton.dev/v1beta1.PipelineRun\"]";
    for key in ["tekton.dev/pipelineRun", "tekton.dev/pipeline", "tier"] {
        let label = format!("data.metadata.labels[\"{key}\"]");
        filter = filter.replace(&format!("LABEL({key})"), &label);
    }
    filter
        .replace("LISTED", listed)
        .replace("BUSY", &corpus::pipeline(0))
        .replace("RARE", &corpus::pipeline(190))
        .replace("NAME", &run.name)
        .replace("UID", &run.uid)
}

pub fn cases(database: &Database) -> Vec<Case> {
    let run = Run::new(database.runs() / 3, database.runs());
    let scopes = [
        ("all", ALL.to_owned()),
        ("large parent", format!("{}/results/-", corpus::parent(0))),
        ("own parent", format!("{}/results/-", run.parent)),
    ];
    let of_result = format!("{}/results/{}", run.parent, run.uid);
    let asked = scopes.iter().flat_map(|(scope, parent)| {
        let each = QUESTIONS.iter();
        each.map(move |(name, text)| (format!("{name}, {scope}"), parent, *text))
    });
    let tasks = ("tasks of a result".to_owned(), &of_result, "TASKS");
    let cases = asked.chain([tasks]).map(|(name, parent, text)| Case {
        name: format!("client: {name}"),
        records: true,
        parent: parent.clone(),
        filter: filter(text, &run),
        order: "create_time desc",
        rows: name.contains("none").then_some(0),
        target: ASKED_MOST,
    });
    cases.collect()
}
