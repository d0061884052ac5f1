//! Rows of lists of runs.

use hindsight_proto::v1::RunRow;

use super::series::Series;
use crate::ask::Ask;
use crate::html::Name;
use crate::status::{Badge, Status, telling};
use crate::time::{When, between, length, timestamp};

/// Longest names in a cell, in characters.
const NAME: usize = 44;
const PIPELINE: usize = 28;
const REASON: usize = 40;

/// A run as a list shows it.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) status: Status,
    pub(super) badge: Badge,
    pub(super) namespace: String,
    pub(super) name: Name,
    pub(super) link: String,
    pub(super) kind: String,
    pub(super) pipeline: Option<Pipeline>,
    pub(super) reason: Name,
    pub(super) started: Option<When>,
    pub(super) took: String,
    /// Share of the longest duration of the list, in percent.
    pub(super) share: f64,
    pub(super) seconds: f64,
}

/// A pipeline and its page.
#[derive(Debug, Clone)]
pub(super) struct Pipeline {
    pub(super) name: Name,
    pub(super) link: String,
}

/// How a row stands.
pub(super) fn status_of(run: &RunRow) -> Status {
    let (started, ended) = (run.start_time.is_some(), run.end_time.is_some());
    Status::of_row(&run.outcome, started, ended)
}

/// Runs by their start, the newest first; lists come in the order of storing.
pub(super) fn newest_first(runs: &mut [impl std::borrow::Borrow<RunRow>]) {
    runs.sort_by_key(|run| {
        let run = run.borrow();
        std::cmp::Reverse(timestamp(run.start_time.or(run.created)))
    });
}

/// How long a run took, or has been running.
pub(super) fn seconds_of(ask: &Ask, run: &RunRow) -> Option<f64> {
    let start = timestamp(run.start_time)?;
    match run.duration_seconds {
        Some(seconds) => Some(seconds),
        None if status_of(run) == Status::Running => Some(between(start, ask.clock.now)),
        None => None,
    }
}

/// Runs as a list shows them.
pub(super) fn rows(ask: &Ask, runs: &[RunRow]) -> Vec<Row> {
    let mut rows: Vec<_> = runs.iter().map(|run| row(ask, run)).collect();
    let longest = rows.iter().map(|row| row.seconds).fold(0.0, f64::max);
    if longest > 0.0 {
        for row in &mut rows {
            row.share = (row.seconds / longest * 100.0).clamp(0.0, 100.0);
        }
    }
    rows
}

fn row(ask: &Ask, run: &RunRow) -> Row {
    let status = status_of(run);
    let seconds = seconds_of(ask, run);
    let name = if run.name.is_empty() {
        &run.record
    } else {
        &run.name
    };
    let pipeline = Series::of(run).and_then(|series| {
        Some(Pipeline {
            name: Name::new(series.name, PIPELINE),
            link: series.link(ask, run)?,
        })
    });
    Row {
        status,
        badge: status.badge(),
        namespace: run.namespace.clone(),
        name: Name::new(name, NAME),
        link: ask.links.run(&run.record),
        kind: run.kind.clone(),
        pipeline,
        reason: Name::new(telling(&run.reason), REASON),
        started: ask.clock.when_of(run.start_time.or(run.created)),
        took: seconds.map(length).unwrap_or_default(),
        share: 0.0,
        seconds: seconds.unwrap_or_default(),
    }
}
