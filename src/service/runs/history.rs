//! Runs by the pipelines that they are of, read from columns for what compares many.

use std::collections::HashMap;

use hindsight_analysis::series::Run;
use hindsight_filter::condition::ObjectField;
use hindsight_filter::model::{RecordName, Resource};
use hindsight_filter::words::{self, Now};
use hindsight_filter::{model::ResultPattern, run_filter};
use hindsight_run::Outcome;
use hindsight_storage::{Projection, RecordColumns};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use super::{RunPoint, selected::Selected, series};
use crate::query::Fold;
use crate::service::{Error, Selector, Service};
use hindsight_access::RequestContext;
use hindsight_access::auth::{Grant, Verb};

/// Most runs that one call compares.
const MOST_RUNS: usize = 50_000;
/// Days that are looked back when none are asked for.
const USUAL_DAYS: i32 = 30;
/// Most days that are looked back.
const MOST_DAYS: i32 = 90;
/// What the detectors need for a run, in bytes.
const PER_RUN: usize = 256;

/// Which runs are compared.
#[derive(Debug, Clone)]
pub struct HistoryAsk {
    /// What selects records, as texts that are not parsed yet.
    pub selector: Selector,
    /// Words or CEL that runs must match, too.
    pub query: String,
    /// Zone of the dates in `query`; empty is UTC.
    pub time_zone: String,
    /// How many days back runs began; 0 is the usual number.
    pub days: i32,
    /// Whether runs that are part of another one are compared too.
    pub parts: bool,
}

/// Runs of one kind of one pipeline. Texts that they do not have are empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunSeries {
    /// The parent of their results.
    pub parent: String,
    /// The namespace of the objects.
    pub namespace: String,
    /// Kind of the objects.
    pub kind: String,
    /// What they are made from.
    pub pipeline: String,
    /// Their place in a pipeline.
    pub task: String,
}

/// What is compared of a run.
#[derive(Debug)]
struct Entry {
    record: RecordName,
    name: String,
    /// Microseconds since 1970.
    began: i64,
    /// How long, in milliseconds.
    duration: u64,
    outcome: Outcome,
    /// What the code was; empty if that is not known.
    version: String,
    series: usize,
}

/// Runs that ended, with their series.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Labels that name the version of a run; the first that it has counts.
    versions: Vec<String>,
    entries: Vec<Entry>,
    series: Vec<RunSeries>,
    /// Names of series for detectors.
    keys: Vec<String>,
    by_series: HashMap<RunSeries, usize>,
    bytes: usize,
    read: usize,
}

/// Runs that were read.
pub(super) struct Looked {
    pub(super) history: History,
    /// From when on they began.
    pub(super) since: Timestamp,
    /// Whether these are all that match.
    pub(super) is_whole: bool,
    /// The query in CEL.
    pub(super) query_filter: String,
}

impl Fold for History {
    type Row = RecordColumns;

    fn add(&mut self, rows: Vec<RecordColumns>) -> bool {
        for row in rows {
            if self.read == MOST_RUNS {
                return false;
            }
            self.read += 1;
            self.add_row(row);
        }
        true
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn projection(&self) -> Projection {
        const FIELDS: [ObjectField; 5] = [
            ObjectField::Kind,
            ObjectField::Name,
            ObjectField::Namespace,
            ObjectField::PipelineRef,
            ObjectField::TaskRef,
        ];
        Projection::of(&FIELDS).with_labels()
    }
}

impl History {
    /// No runs yet; versions of runs are in these labels.
    pub(super) fn with_versions(versions: Vec<String>) -> Self {
        Self {
            versions,
            ..Self::default()
        }
    }

    /// Adds a run, if it says what it is made from and when it ran.
    fn add_row(&mut self, row: RecordColumns) -> Option<()> {
        let object = &row.object;
        let (began, ended) = (object.run.began?, object.run.ended?);
        let duration = u64::try_from(ended.checked_sub(began)?).ok()? / 1_000;
        let outcome = outcome(object.run.outcome?)?;
        let (pipeline, task) = series::made_from(object)?;
        let text = |field| object.text(field).unwrap_or_default().to_owned();
        let name = text(ObjectField::Name);
        let series = RunSeries {
            parent: row.record.name.result().parent().to_string(),
            namespace: text(ObjectField::Namespace),
            kind: text(ObjectField::Kind),
            pipeline: pipeline.to_owned(),
            task: task.unwrap_or_default().to_owned(),
        };
        let mut versions = self.versions.iter();
        let version = versions.find_map(|key| object.labels.get(key));
        let version = version.cloned().unwrap_or_default();
        self.bytes += PER_RUN + name.len() + version.len() + row.record.weight();
        let series = self.number(series);
        self.entries.push(Entry {
            record: row.record.name,
            name,
            began,
            duration,
            outcome,
            version,
            series,
        });
        Some(())
    }

    fn number(&mut self, series: RunSeries) -> usize {
        if let Some(number) = self.by_series.get(&series) {
            return *number;
        }
        let number = self.series.len();
        let texts = [
            &series.parent,
            &series.namespace,
            &series.kind,
            &series.pipeline,
            &series.task,
        ];
        // A series is kept twice.
        self.bytes += PER_RUN + 2 * texts.map(String::len).iter().sum::<usize>();
        self.keys.push(number.to_string());
        self.by_series.insert(series.clone(), number);
        self.series.push(series);
        number
    }

    /// How many runs were read.
    pub(super) fn read(&self) -> usize {
        self.read
    }

    /// The runs as detectors take them, in the order of storing.
    pub(super) fn runs(&self) -> Vec<Run<'_>> {
        let entries = self.entries.iter();
        let runs = entries.map(|entry| Run {
            began: entry.began.div_euclid(1_000_000),
            pipeline: self.keys.get(entry.series).map_or("", String::as_str),
            version: &entry.version,
            outcome: entry.outcome,
            duration: entry.duration,
            attempt: 0,
        });
        runs.collect()
    }

    /// The run at a position of [`Self::runs`].
    pub(super) fn point(&self, at: usize) -> Option<RunPoint> {
        let entry = self.entries.get(at)?;
        Some(RunPoint {
            record: entry.record.clone(),
            name: entry.name.clone(),
            started: Timestamp::from_microsecond(entry.began).ok(),
        })
    }

    /// The version of the run at a position.
    pub(super) fn version(&self, at: usize) -> Option<&str> {
        Some(&self.entries.get(at)?.version)
    }

    /// The series of the run at a position.
    pub(super) fn series(&self, at: usize) -> Option<&RunSeries> {
        self.series.get(self.entries.get(at)?.series)
    }
}

impl Service {
    /// Adds the runs that `ask` means and that also match `words` to `history`, under the parent that `grant` is
    /// for. It fails if a text of the request is wrong.
    pub(super) async fn history(
        &self,
        by: &RequestContext,
        grant: &Grant,
        result: Option<String>,
        ask: HistoryAsk,
        words: &str,
        history: History,
    ) -> Result<Looked, Error> {
        let parent = grant.scope(Verb::List, Resource::Records)?.clone();
        let since = self.since_days(ask.days)?;
        let now = Now {
            time: self.clock.now(),
            zone: TimeZone::UTC,
        };
        let top = if ask.parts { "" } else { "is:top" };
        let own = words::read(&format!("{words} {top} since:{since}"), &now)?;
        let selected = Selected {
            selector: ask.selector,
            query: ask.query,
            time_zone: ask.time_zone,
            runs: format!("{} && {}", run_filter(), own.cel),
        };
        let (filter, query_filter) = self.selected(&by.quota, selected).await?;
        let scope = ResultPattern { parent, id: result };
        let engine = self.engine.with_quota(&by.quota);
        let reading = engine.fold_columns(scope, filter, history);
        let (mut history, is_whole) = reading.await?;
        history.entries.reverse();
        Ok(Looked {
            history,
            since,
            is_whole,
            query_filter,
        })
    }

    /// When the time that is looked at begins.
    fn since_days(&self, days: i32) -> Result<Timestamp, Error> {
        let days = match days {
            0 => USUAL_DAYS,
            1..=MOST_DAYS => days,
            _ => {
                return Err(Error::Invalid(format!(
                    "days {days} is out of range: want 1 to {MOST_DAYS}, or 0 for {USUAL_DAYS}"
                )));
            }
        };
        let back = SignedDuration::from_hours(i64::from(days) * 24);
        let since = self.clock.now().checked_sub(back);
        Ok(since.unwrap_or(Timestamp::MIN))
    }
}

/// The outcome of a run that is over.
fn outcome(number: i64) -> Option<Outcome> {
    let ended = [
        Outcome::Success,
        Outcome::Failure,
        Outcome::Timeout,
        Outcome::Cancelled,
    ];
    ended.into_iter().find(|outcome| *outcome as i64 == number)
}
