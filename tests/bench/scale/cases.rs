//! The questions that are asked, and how fast the first page of an answer should come.

use crate::{
    corpus::{self, Run},
    data::Database,
};

#[derive(Debug)]
pub struct Case {
    pub name: String,
    /// Of records, or of results.
    pub records: bool,
    pub parent: String,
    pub filter: String,
    pub order: &'static str,
    /// How many rows the first page of fifty has, if that is known.
    pub rows: Option<usize>,
    /// So many of a thousand calls stay under so many milliseconds.
    pub target: (usize, f64),
}

pub(crate) const ALL: &str = "-/results/-";
/// "under 10 ms p99".
const PLAIN: (usize, f64) = (990, 10.0);
/// "p95 at most 6 ms".
pub(crate) const ASKED_MOST: (usize, f64) = (950, 6.0);
/// "under 15 ms p95".
const INDEXED: (usize, f64) = (950, 15.0);
/// "under 300 ms", held against the 95th percentile.
const SEARCHED: (usize, f64) = (950, 300.0);

/// Lists in the order of a time, of every scope.
pub fn plain(database: &Database) -> Vec<Case> {
    let run = Run::new(database.runs() / 2, database.runs());
    let mut cases = Vec::new();
    let scopes = [
        (true, "all", ALL.to_owned()),
        (true, "one parent", format!("{}/results/-", run.parent)),
        (
            true,
            "one result",
            format!("{}/results/{}", run.parent, run.uid),
        ),
        (false, "all", "-".to_owned()),
        (false, "one parent", run.parent.clone()),
    ];
    for (records, scope, parent) in scopes {
        let orders: &[&str] = match records {
            true => &[
                "create_time desc",
                "create_time",
                "update_time desc",
                "update_time",
            ],
            false => &[
                "create_time desc",
                "create_time",
                "update_time desc",
                "summary.start_time desc",
                "summary.end_time desc",
            ],
        };
        for order in orders {
            let what = if records { "records" } else { "results" };
            cases.push(Case {
                name: format!("{what}, {scope}, by {order}"),
                records,
                parent: parent.clone(),
                filter: String::new(),
                order,
                rows: (scope == "all").then_some(50),
                target: PLAIN,
            });
        }
    }
    for (scope, parent) in [
        ("all", ALL.to_owned()),
        ("one parent", format!("{}/results/-", run.parent)),
    ] {
        for (name, data_type) in [
            ("runs", "PIPELINE_RUN"),
            ("tasks", "TASK_RUN"),
            ("none", "CUSTOM_RUN"),
        ] {
            cases.push(Case {
                name: format!("records, {scope}, data_type of {name}"),
                records: true,
                parent: parent.clone(),
                filter: format!("data_type == {data_type}"),
                order: "",
                rows: (name == "none").then_some(0),
                target: PLAIN,
            });
        }
    }
    cases
}

/// A test, and whether nothing passes it.
struct Asked {
    name: &'static str,
    filter: String,
    none: bool,
    target: (usize, f64),
}

fn asked(name: &'static str, filter: impl Into<String>, target: (usize, f64)) -> Asked {
    Asked {
        name,
        filter: filter.into(),
        none: name.contains("none"),
        target,
    }
}

/// What the issue lists, with matches that are rare, common and missing.
pub fn filtered(database: &Database) -> Vec<Case> {
    let run = Run::new(database.runs() / 3, database.runs());
    let mut cases = Vec::new();
    let scopes = [
        ("all", ALL.to_owned()),
        ("large parent", format!("{}/results/-", corpus::parent(0))),
        (
            "small parent",
            format!("{}/results/-", corpus::small_parent()),
        ),
        ("own parent", format!("{}/results/-", run.parent)),
    ];
    for (scope, parent) in scopes {
        let questions = [
            named(&run),
            labelled(&run),
            timed(),
            combined(),
            searched(&run),
        ];
        for asked in questions.into_iter().flatten() {
            cases.push(Case {
                name: format!("{}, {scope}", asked.name),
                records: true,
                parent: parent.clone(),
                rows: asked.none.then_some(0),
                filter: asked.filter,
                order: "",
                target: asked.target,
            });
        }
    }
    for (name, filter) in [
        ("results: failed", "summary.status == FAILURE"),
        ("results: cancelled", "summary.status == CANCELLED"),
        ("results: status none", "summary.status == 17"),
    ] {
        for (scope, parent) in [("all", "-".to_owned()), ("large parent", corpus::parent(0))] {
            cases.push(Case {
                name: format!("{name}, {scope}"),
                records: false,
                parent,
                filter: filter.to_owned(),
                order: "",
                rows: name.contains("none").then_some(0),
                target: INDEXED,
            });
        }
    }
    cases
}

fn label(key: &str, value: &str) -> String {
    format!("data.metadata.labels[\"{key}\"] == \"{value}\"")
}

const REASON: &str = "data.status.conditions[0].reason == ";
const TOOK: &str = "data.status.completionTime - data.status.startTime";

fn named(run: &Run) -> Vec<Asked> {
    vec![
        asked(
            "name",
            format!("data.metadata.name == \"{}\"", run.name),
            INDEXED,
        ),
        asked("name: none", "data.metadata.name == \"nobody\"", INDEXED),
        asked(
            "uid",
            format!("data.metadata.uid == \"{}\"", run.uid),
            INDEXED,
        ),
        asked("uid: none", "data.metadata.uid == \"nobody\"", INDEXED),
        asked(
            "pipeline, busiest",
            format!("data.spec.pipelineRef.name == \"{}\"", corpus::pipeline(0)),
            INDEXED,
        ),
        asked(
            "pipeline, rare",
            format!(
                "data.spec.pipelineRef.name == \"{}\"",
                corpus::pipeline(190)
            ),
            INDEXED,
        ),
        asked(
            "pipeline: none",
            "data.spec.pipelineRef.name == \"nobody\"",
            INDEXED,
        ),
        asked(
            "outcome: succeeded",
            format!("{REASON}\"Succeeded\""),
            INDEXED,
        ),
        asked("outcome: failed", format!("{REASON}\"Failed\""), INDEXED),
        asked(
            "outcome: rare",
            format!("{REASON}\"CouldntGetTask\""),
            INDEXED,
        ),
        asked(
            "outcome: old rows only",
            format!("{REASON}\"PodCreationFailed\""),
            INDEXED,
        ),
        asked("outcome: none", format!("{REASON}\"Nothing\""), INDEXED),
        asked(
            "outcome: not true",
            "data.status.conditions[0].status == \"False\"",
            INDEXED,
        ),
    ]
}

fn labelled(run: &Run) -> Vec<Asked> {
    vec![
        asked(
            "label of every row",
            label("app.kubernetes.io/managed-by", "tekton-pipelines"),
            INDEXED,
        ),
        asked("label, 1 in 5", label("tier", "silver"), INDEXED),
        asked("label, 1 in 100", label("tier", "gold"), INDEXED),
        asked("label, 1 in 500", label("app", "app-123"), INDEXED),
        asked(
            "label of a run",
            label("tekton.dev/pipelineRun", &run.name),
            INDEXED,
        ),
        asked("label, old rows only", label("era", "old"), INDEXED),
        asked("label: none", label("tier", "iron"), INDEXED),
        asked(
            "label of the busiest pipeline",
            label("tekton.dev/pipeline", &corpus::pipeline(0)),
            INDEXED,
        ),
        asked(
            "label of a rare pipeline",
            label("tekton.dev/pipeline", &corpus::pipeline(190)),
            INDEXED,
        ),
    ]
}

fn timed() -> Vec<Asked> {
    let day = corpus::day;
    vec![
        asked(
            "time: last day",
            format!("data.status.startTime >= {}", day(89)),
            INDEXED,
        ),
        asked(
            "time: a day long ago",
            format!(
                "data.status.startTime >= {} && data.status.startTime < {}",
                day(20),
                day(21)
            ),
            INDEXED,
        ),
        asked(
            "time: all but the first days",
            format!("data.status.completionTime >= {}", day(3)),
            INDEXED,
        ),
        asked(
            "time: the first thirty days",
            format!("data.status.completionTime < {}", day(30)),
            INDEXED,
        ),
        asked(
            "time: none",
            format!("data.status.startTime >= {}", day(400)),
            INDEXED,
        ),
        asked(
            "create_time: a day long ago",
            format!("create_time >= {} && create_time < {}", day(20), day(21)),
            INDEXED,
        ),
        asked(
            "duration, 1 in 1000",
            format!("{TOOK} > duration(\"5h\")"),
            INDEXED,
        ),
        asked(
            "duration, 1 in 50",
            format!("{TOOK} > duration(\"20m\")"),
            INDEXED,
        ),
        asked(
            "duration, most",
            format!("{TOOK} > duration(\"30s\")"),
            INDEXED,
        ),
        asked(
            "duration: none",
            format!("{TOOK} > duration(\"50h\")"),
            INDEXED,
        ),
    ]
}

fn combined() -> Vec<Asked> {
    let pipeline = |rank: usize| {
        format!(
            "data.spec.pipelineRef.name == \"{}\"",
            corpus::pipeline(rank)
        )
    };
    let labelled = |rank: usize| label("tekton.dev/pipeline", &corpus::pipeline(rank));
    vec![
        asked(
            "pipeline and failed",
            format!("{} && {REASON}\"Failed\"", pipeline(0)),
            INDEXED,
        ),
        asked(
            "pipeline and outcome: none",
            format!("{} && {REASON}\"Nothing\"", pipeline(0)),
            INDEXED,
        ),
        asked(
            "label and failed",
            format!("{} && {REASON}\"Failed\"", labelled(0)),
            INDEXED,
        ),
        asked(
            "label and outcome: rare",
            format!("{} && {REASON}\"CouldntGetTask\"", labelled(0)),
            INDEXED,
        ),
        asked(
            "two labels",
            format!("{} && {}", labelled(3), label("tier", "gold")),
            INDEXED,
        ),
        asked(
            "two common labels: none",
            format!("{} && {}", labelled(0), label("tier", "iron")),
            INDEXED,
        ),
        asked(
            "type and failed",
            format!("data_type == PIPELINE_RUN && {REASON}\"Failed\""),
            INDEXED,
        ),
        asked(
            "label, failed, a week long ago",
            format!(
                "{} && {REASON}\"Failed\" && data.status.startTime >= {} && data.status.startTime < {}",
                labelled(1),
                corpus::day(20),
                corpus::day(27)
            ),
            INDEXED,
        ),
        asked(
            "pipeline and long",
            format!("{} && {TOOK} > duration(\"5h\")", pipeline(2)),
            INDEXED,
        ),
        asked(
            "failed and long",
            format!("{REASON}\"Failed\" && {TOOK} > duration(\"5h\")"),
            INDEXED,
        ),
    ]
}

fn searched(run: &Run) -> Vec<Asked> {
    let part = &run.name[run.name.len() - 5..];
    vec![
        asked(
            "name contains, few",
            format!("data.metadata.name.contains(\"{part}\")"),
            SEARCHED,
        ),
        asked(
            "name contains, many",
            "data.metadata.name.contains(\"task-3\")",
            SEARCHED,
        ),
        asked(
            "name contains: none",
            "data.metadata.name.contains(\"nobody\")",
            SEARCHED,
        ),
        asked(
            "label and name contains",
            format!(
                "{} && data.metadata.name.contains(\"{}\")",
                label("tier", "gold"),
                &part[..2]
            ),
            SEARCHED,
        ),
        asked(
            "label and name contains: none",
            format!(
                "{} && data.metadata.name.contains(\"nobody\")",
                label("tier", "silver")
            ),
            SEARCHED,
        ),
    ]
}
