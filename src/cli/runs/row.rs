//! One run as it is printed: its JSON, and what each column says of it.

use std::collections::BTreeMap;

use hindsight_proto::v1::RunRow;
use jiff::Timestamp;
use serde::Serialize;

use super::times::Times;
use crate::cli::{
    failure::Failure,
    output,
    terminal::{Cell, Cut, Screen},
};

/// Labels that one list may have as columns.
const MAX_LABELS: usize = 20;

/// A run as JSON and YAML show it. What a run does not have is null.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunView {
    status: &'static str,
    outcome: Option<String>,
    reason: Option<String>,
    message: Option<String>,
    signature: Option<String>,
    attempt: Option<i32>,
    namespace: Option<String>,
    name: Option<String>,
    kind: Option<String>,
    engine: Option<String>,
    pipeline: Option<String>,
    parent_run: Option<String>,
    cluster: Option<String>,
    cluster_name: Option<String>,
    created: Option<Timestamp>,
    start_time: Option<Timestamp>,
    end_time: Option<Timestamp>,
    queue_seconds: Option<f64>,
    duration_seconds: Option<f64>,
    labels: BTreeMap<String, String>,
    uid: Option<String>,
    pub(super) record: String,
    r#type: Option<String>,
    create_time: Option<Timestamp>,
    update_time: Option<Timestamp>,
}

impl From<RunRow> for RunView {
    fn from(run: RunRow) -> Self {
        let text = |text: String| Some(text).filter(|text| !text.is_empty());
        let start_time = run.start_time.and_then(output::time);
        let end_time = run.end_time.and_then(output::time);
        Self {
            status: status(&run.outcome, start_time, end_time),
            outcome: text(run.outcome),
            reason: text(run.reason),
            message: text(run.message),
            signature: text(run.signature),
            attempt: run.attempt,
            namespace: text(run.namespace),
            name: text(run.name),
            kind: text(run.kind),
            engine: text(run.engine),
            pipeline: text(run.pipeline),
            parent_run: text(run.parent_run),
            cluster: text(run.cluster),
            cluster_name: text(run.cluster_name),
            created: run.created.and_then(output::time),
            start_time,
            end_time,
            queue_seconds: run.queue_seconds,
            duration_seconds: run.duration_seconds,
            labels: run.labels.into_iter().collect(),
            uid: text(run.uid),
            record: run.record,
            r#type: text(run.r#type),
            create_time: run.create_time.and_then(output::time),
            update_time: run.update_time.and_then(output::time),
        }
    }
}

impl RunView {
    /// Whether the reason says no more than status and kind: `Failed` of what failed, `TaskRunTimeout` of a TaskRun
    /// that took too long.
    pub(super) fn repeats_status(&self) -> bool {
        let Some(reason) = self.reason.as_deref() else {
            return false;
        };
        let kind = self.kind.as_deref().unwrap_or_default();
        let reason = reason.strip_prefix(kind).unwrap_or(reason);
        let is_success = self.status == "succeeded";
        reason.eq_ignore_ascii_case(self.status) || (is_success && reason == "Completed")
    }
}

/// How a run stands, in the words that select runs.
fn status(outcome: &str, start: Option<Timestamp>, end: Option<Timestamp>) -> &'static str {
    match (outcome, start, end) {
        ("SUCCESS", ..) => "succeeded",
        ("FAILURE", ..) => "failed",
        ("TIMEOUT", ..) => "timeout",
        ("CANCELLED", ..) => "cancelled",
        ("UNKNOWN", Some(_), None) => "running",
        ("UNKNOWN", None, None) => "waiting",
        ("UNKNOWN", _, Some(_)) => "vanished",
        _ => "unknown",
    }
}

/// A column of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Column {
    Status,
    Run,
    Namespace,
    Name,
    Kind,
    Engine,
    Pipeline,
    Parent,
    Cluster,
    Reason,
    Outcome,
    Created,
    Started,
    Ended,
    Took,
    Queue,
    Stored,
    Updated,
    Uid,
    Record,
    Type,
    Message,
    Signature,
    Attempt,
    Label(String),
}

/// Every column but labels, by the name that asks for it.
const COLUMNS: [(&str, Column); 24] = [
    ("status", Column::Status),
    ("run", Column::Run),
    ("namespace", Column::Namespace),
    ("name", Column::Name),
    ("kind", Column::Kind),
    ("engine", Column::Engine),
    ("pipeline", Column::Pipeline),
    ("parent", Column::Parent),
    ("cluster", Column::Cluster),
    ("reason", Column::Reason),
    ("outcome", Column::Outcome),
    ("created", Column::Created),
    ("started", Column::Started),
    ("ended", Column::Ended),
    ("took", Column::Took),
    ("queue", Column::Queue),
    ("stored", Column::Stored),
    ("updated", Column::Updated),
    ("uid", Column::Uid),
    ("record", Column::Record),
    ("type", Column::Type),
    ("message", Column::Message),
    ("signature", Column::Signature),
    ("attempt", Column::Attempt),
];

/// The columns that are asked for, or the usual ones. It fails if there is no such column.
pub(super) fn columns(asked: Option<&str>, wide: bool) -> Result<Vec<Column>, Failure> {
    use Column::{
        Kind, Message, Parent, Pipeline, Queue, Reason, Record, Run, Started, Status, Took, Uid,
    };
    let Some(asked) = asked else {
        let usual = [Status, Run, Kind, Pipeline, Reason, Started, Took];
        let more = [Queue, Parent, Uid, Record, Message];
        let more = more.into_iter().filter(|_| wide);
        return Ok(usual.into_iter().chain(more).collect());
    };
    let named = asked.split(',').map(str::trim).map(|name| {
        let known = COLUMNS.iter().find(|(known, _)| *known == name);
        match (known, name.strip_prefix("label:")) {
            (Some((_, column)), _) => Ok(column.clone()),
            (None, Some(key)) if !key.is_empty() => Ok(Column::Label(key.to_owned())),
            (None, _) => {
                let known = COLUMNS.map(|(name, _)| name).join(", ");
                Err(Failure::usage(format!(
                    "unknown column `{name}`; want {known} or label:KEY"
                )))
            }
        }
    });
    let named = named.collect::<Result<Vec<_>, _>>()?;
    if named.iter().filter_map(Column::label).count() > MAX_LABELS {
        return Err(Failure::usage(format!(
            "at most {MAX_LABELS} columns of labels are possible"
        )));
    }
    Ok(named)
}

/// Leaves out the namespace, which is the same in all rows.
pub(super) fn within_one_namespace(columns: &mut [Column]) {
    for column in columns {
        if *column == Column::Run {
            *column = Column::Name;
        }
    }
}

impl Column {
    /// The key of its label, if it is of one.
    pub(super) fn label(&self) -> Option<&str> {
        match self {
            Self::Label(key) => Some(key),
            _ => None,
        }
    }

    /// The name that asks for it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Label(key) => output::plain(&format!("label:{key}"), false).into_owned(),
            column => {
                let known = COLUMNS.iter().find(|(_, known)| known == column);
                known.map_or_else(String::new, |(name, _)| (*name).to_owned())
            }
        }
    }

    /// What stands above it in a table.
    pub(super) fn title(&self) -> String {
        match self {
            Self::Label(key) => output::plain(key, false).into_owned(),
            column => column.name().to_uppercase(),
        }
    }

    /// How it is cut where it is too wide.
    pub(super) fn cut(&self) -> Cut {
        match self {
            Self::Run
            | Self::Namespace
            | Self::Name
            | Self::Pipeline
            | Self::Parent
            | Self::Cluster
            | Self::Uid
            | Self::Record
            | Self::Type
            | Self::Label(_) => Cut::Middle,
            Self::Reason | Self::Message => Cut::End,
            _ => Cut::Never,
        }
    }

    /// What it says of a run.
    pub(super) fn value(&self, run: &RunView, times: &Times) -> String {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        match self {
            Self::Status => run.status.to_owned(),
            Self::Run => match &run.namespace {
                Some(namespace) => format!("{namespace}/{}", text(&run.name)),
                None => text(&run.name),
            },
            Self::Namespace => text(&run.namespace),
            Self::Name => text(&run.name),
            Self::Kind => text(&run.kind),
            Self::Engine => text(&run.engine),
            Self::Pipeline => text(&run.pipeline),
            Self::Parent => text(&run.parent_run),
            Self::Cluster => text(
                run.cluster_name
                    .as_ref()
                    .map_or(&run.cluster, |_| &run.cluster_name),
            ),
            Self::Reason => text(&run.reason),
            Self::Outcome => text(&run.outcome),
            Self::Created => times.time(run.created),
            Self::Started => times.time(run.start_time),
            Self::Ended => times.time(run.end_time),
            Self::Took => times.length(run.duration_seconds),
            Self::Queue => times.length(run.queue_seconds),
            Self::Stored => times.time(run.create_time),
            Self::Updated => times.time(run.update_time),
            Self::Uid => text(&run.uid),
            Self::Record => run.record.clone(),
            Self::Type => text(&run.r#type),
            Self::Message => text(&run.message),
            Self::Signature => text(&run.signature),
            Self::Attempt => run
                .attempt
                .map_or_else(String::new, |number| number.to_string()),
            Self::Label(key) => run.labels.get(key).cloned().unwrap_or_default(),
        }
    }

    /// The same as a cell of a table on a terminal.
    pub(super) fn cell(&self, run: &RunView, times: &Times, screen: &Screen) -> Cell {
        let value = self.value(run, times);
        if *self == Self::Status {
            return screen.status(&value);
        }
        match value.is_empty() {
            true => Cell::none(),
            false => Cell {
                text: output::plain(&value, false).into_owned(),
                colour: None,
            },
        }
    }
}
