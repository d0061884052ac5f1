//! What a pass reads of a result.

use hindsight_filter::columns::ObjectColumns;
use hindsight_filter::condition::ObjectField;
use hindsight_filter::model::{Etag, RecordName, RunResult};
use hindsight_run::{Outcome, keys};
use hindsight_storage::{RecordColumns, WholeVersion};
use jiff::Timestamp;

/// A record, without its payload.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: RecordName,
    pub(super) etag: Etag,
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
        let run = Run::of(&row.object, row.record.create_time);
        Self {
            name: row.record.name,
            etag: row.record.etag,
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
        // One that does not say when it ended was over when it was stored.
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

    /// Divides its records: those that go before the result, which are none of the top runs, and those that go with it.
    pub(super) fn divided(&self) -> (Vec<&Part>, Vec<&Part>) {
        let tops = self.tops();
        let is_top = |part: &&Part| tops.iter().any(|(name, _)| **name == part.name);
        let (with, before) = self.parts.iter().partition(is_top);
        (before, with)
    }

    /// The version of the result with these records alone.
    pub(super) fn version<'p>(&self, parts: impl IntoIterator<Item = &'p Part>) -> WholeVersion {
        let times = parts.into_iter().map(|part| part.update_time);
        WholeVersion::of(&self.result, times)
    }
}
