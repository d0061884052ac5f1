//! What a pass reads of a result.

use std::collections::HashSet;

use hindsight_filter::columns::ObjectColumns;
use hindsight_filter::condition::ObjectField;
use hindsight_filter::model::{RecordName, RunResult};
use hindsight_run::{Outcome, keys};
use hindsight_storage::{RecordColumns, WholeVersion};
use jiff::Timestamp;

/// A record, without its payload.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: RecordName,
    pub(super) run: Option<Run>,
    update_time: Timestamp,
}

/// What a record says of a run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) outcome: Outcome,
    /// When it ended; none while it goes on.
    ended: Option<Timestamp>,
    is_top: bool,
    pub(super) pipeline: Option<String>,
}

/// The numbers of outcomes, as columns have them.
const OUTCOMES: [Outcome; 5] = [
    Outcome::Unknown,
    Outcome::Success,
    Outcome::Failure,
    Outcome::Timeout,
    Outcome::Cancelled,
];

impl Part {
    pub(super) fn of(row: RecordColumns) -> Self {
        let run = Run::of(&row.object, row.record.update_time);
        Self {
            name: row.record.name,
            update_time: row.record.update_time,
            run,
        }
    }

    fn top(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.is_top)
    }
}

impl Run {
    fn of(object: &ObjectColumns, stored: Timestamp) -> Option<Self> {
        let number = object.run.outcome?;
        let outcome = OUTCOMES.into_iter().find(|known| *known as i64 == number);
        let outcome = outcome.unwrap_or(Outcome::Unknown);
        let ended = object.run.ended;
        let ended = ended.and_then(|us| Timestamp::from_microsecond(us).ok());
        // One that does not say when it ended was over when it was stored last.
        let ended = ended.or_else(|| (outcome != Outcome::Unknown).then_some(stored));
        let task = || Some(format!("task {}", object.text(ObjectField::TaskRef)?));
        let pipeline = object.pipeline().map(|name| format!("pipeline {name}"));
        Some(Self {
            outcome,
            ended,
            is_top: !object.labels.contains_key(keys::PIPELINE_RUN),
            pipeline: pipeline.or_else(task),
        })
    }
}

/// A result with its records.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) result: RunResult,
    pub(super) parts: Vec<Part>,
}

impl Whole {
    /// When the last of its runs ended; none if one goes on, or there is none.
    pub(super) fn ended(&self) -> Option<Timestamp> {
        let runs = self.parts.iter().filter_map(|part| part.run.as_ref());
        let mut last = None;
        for run in runs {
            last = last.max(Some(run.ended?));
        }
        last
    }

    /// Its top runs, in the order of their names: those of no other run, or all if there are none.
    pub(super) fn tops(&self) -> Vec<(&RecordName, &Run)> {
        let some = self.parts.iter().any(Part::top);
        let tops = self.parts.iter().filter(|part| part.top() || !some);
        let runs = tops.filter_map(|part| Some((&part.name, part.run.as_ref()?)));
        let mut runs: Vec<_> = runs.collect();
        runs.sort_by_key(|(name, _)| *name);
        runs
    }

    /// The names of its runs that do not say how they ended.
    pub(super) fn of_unknown_outcome(&self) -> HashSet<&RecordName> {
        let is_unknown =
            |part: &&Part| matches!(&part.run, Some(run) if run.outcome == Outcome::Unknown);
        let parts = self.parts.iter().filter(is_unknown);
        parts.map(|part| &part.name).collect()
    }

    /// The version of the result with its records.
    pub(super) fn version(&self) -> WholeVersion {
        let times = self.parts.iter().map(|part| part.update_time);
        WholeVersion::of(&self.result, times)
    }
}
