//! Runs of the corpus over many days. Bodies are taken from a pool, and what differs from run to run is put into
//! them: ids, names, digests, times, the namespace.
//!
//! Run `n` is the same whenever it is made.

use std::{collections::BTreeMap, ops::Range};

use hindsight_filter::{
    columns::{ObjectColumns, object_columns},
    model::{Etag, Payload, Record, ResultName, RunResult, Summary},
};
use jiff::Timestamp;
use serde_json::Value;

use crate::corpus::{Corpus, Dice, LARGE};

pub const NAMESPACES: usize = 20;
pub const PIPELINES: usize = 12;
/// Records of a run: its tasks and itself.
pub const RECORDS: usize = LARGE.tasks + 1;
/// Bodies of each pipeline in the pool.
const OF_PIPELINE: usize = 8;
/// When the first run of the corpus, and of this, begins.
const BEGAN: i64 = 1_767_225_600;
const DAY: usize = 86_400;

/// What differs from run to run.
#[derive(Debug, Clone, Copy)]
enum Gap {
    Uid,
    RunUid,
    /// What the API server put after the name of the pipeline.
    Suffix,
    Revision,
    Namespace,
    Version,
    Digest,
    /// Seconds after the run began.
    Time(i64),
}

#[derive(Debug)]
struct Body {
    text: Vec<u8>,
    gaps: Vec<(usize, Gap)>,
    data_type: String,
    object: ObjectColumns,
}

/// A run as it was stored.
#[derive(Debug)]
pub struct Run {
    pub result: RunResult,
    /// In the order of storing; the run itself is the last one.
    pub records: Vec<Record>,
    /// What columns keep of each.
    pub objects: Vec<ObjectColumns>,
}

/// All runs.
#[derive(Debug)]
pub struct Runs {
    pool: Vec<Vec<Body>>,
    pub count: usize,
    days: usize,
}

impl Runs {
    /// So many runs of so many days.
    pub fn new(count: usize, days: usize) -> Self {
        let mut shape = LARGE;
        (shape.pipelines, shape.namespaces) = (PIPELINES, NAMESPACES);
        let corpus = Corpus::new(shape, PIPELINES * OF_PIPELINE);
        let runs = corpus.records.chunks(RECORDS).enumerate();
        let pool = runs.map(|(number, records)| bodies(number, records));
        Self {
            pool: pool.collect(),
            count,
            days,
        }
    }

    /// How many days there are whose runs are in files; those of the others are in the database.
    pub fn cold_days(&self) -> usize {
        self.days * 95 / 100
    }

    /// The runs that began on a day.
    pub fn of_day(&self, day: usize) -> Range<usize> {
        (day * self.count).div_ceil(self.days)..((day + 1) * self.count).div_ceil(self.days)
    }

    /// Makes a run.
    pub fn run(&self, number: usize) -> Run {
        let mut dice = Dice::new(0x7165_7273_0000_0000 + number as u64);
        let began = BEGAN + i64::try_from(number * self.days * DAY / self.count).unwrap();
        let (namespace, pipeline) = (namespace_of(number), pipeline_of(number));
        let turn = number / NAMESPACES / PIPELINES % OF_PIPELINE;
        let bodies = &self.pool[pipeline + PIPELINES * turn];
        let (run_uid, suffix, revision) = (dice.uuid(), dice.suffix(), dice.hex(40));
        let name = format!("{}/results/{run_uid}", parent(namespace));
        let name: ResultName = name.parse().unwrap();
        let mut records = Vec::with_capacity(RECORDS);
        for (task, body) in bodies.iter().enumerate() {
            let id = if task + 1 == RECORDS {
                run_uid.clone()
            } else {
                dice.uuid()
            };
            let mut text = body.text.clone();
            for (at, gap) in &body.gaps {
                let value = match gap {
                    Gap::Uid => id.clone(),
                    Gap::RunUid => run_uid.clone(),
                    Gap::Suffix => suffix.clone(),
                    Gap::Revision => revision.clone(),
                    Gap::Namespace => format!("{namespace:02}"),
                    Gap::Version => (1_000_000 + dice.below(8_000_000)).to_string(),
                    Gap::Digest => dice.hex(64),
                    Gap::Time(seconds) => time(began + seconds).to_string(),
                };
                text[*at..at + value.len()].copy_from_slice(value.as_bytes());
            }
            let (uid, made) = (dice.uuid(), stored(began, task + 1));
            records.push(Record {
                name: name.record(&id).unwrap(),
                etag: Etag::new(&uid, made),
                uid,
                create_time: made,
                update_time: made,
                data: Some(Payload::new(body.data_type.clone(), text.into())),
            });
        }
        let (uid, made) = (dice.uuid(), stored(began, 0));
        let result = RunResult {
            etag: Etag::new(&uid, made),
            uid,
            create_time: made,
            update_time: made,
            annotations: BTreeMap::new(),
            summary: Some(Summary {
                record: name.record(&run_uid).unwrap(),
                data_type: bodies[RECORDS - 1].data_type.clone(),
                start_time: Some(time(began)),
                end_time: Some(time(began + 480)),
                status: 1,
                annotations: BTreeMap::new(),
            }),
            name,
        };
        Run {
            result,
            records,
            objects: bodies.iter().map(|body| body.object.clone()).collect(),
        }
    }

    /// The names of the newest records of the runs among these that `has` lets through, at most `most`; of each
    /// run all records, or the run alone.
    pub fn newest(
        &self,
        numbers: Range<usize>,
        most: usize,
        has: impl Fn(usize) -> bool,
        runs_alone: bool,
    ) -> Vec<String> {
        let runs = numbers.rev().filter(|number| has(*number));
        let names = runs.flat_map(|number| {
            let passed_over = if runs_alone { RECORDS - 1 } else { 0 };
            let names = self.run(number).records.into_iter().skip(passed_over);
            names.rev().map(|record| record.name.to_string())
        });
        names.take(most).collect()
    }
}

impl Run {
    /// The name of the object.
    pub fn name(&self) -> String {
        let whole = self.records[RECORDS - 1].data.as_ref().unwrap();
        let whole: Value = serde_json::from_slice(&whole.value).unwrap();
        whole["metadata"]["name"].as_str().unwrap().to_owned()
    }
}

pub fn namespace_of(number: usize) -> usize {
    number % NAMESPACES
}

pub fn pipeline_of(number: usize) -> usize {
    number / NAMESPACES % PIPELINES
}

/// The parent of a namespace.
pub fn parent(namespace: usize) -> String {
    format!("team-{namespace:02}")
}

/// The beginning of a day, as filters write it.
pub fn day(day: usize) -> String {
    let began = time(BEGAN + i64::try_from(day * DAY).unwrap());
    format!("timestamp(\"{began}\")")
}

/// The day of a time.
pub fn day_of(time: Timestamp) -> usize {
    usize::try_from(time.as_second() - BEGAN).unwrap() / DAY
}

fn time(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// When the record at a place in its run was stored: microseconds keep them apart.
fn stored(began: i64, place: usize) -> Timestamp {
    let us = began * 1_000_000 + i64::try_from(place).unwrap();
    Timestamp::from_microsecond(us).unwrap()
}

/// The bodies of a run of the corpus, with the places of what differs.
fn bodies(number: usize, records: &[Record]) -> Vec<Body> {
    let whole = &records[RECORDS - 1];
    let run_uid = whole.name.id();
    let object: Value = serde_json::from_slice(&whole.data.as_ref().unwrap().value).unwrap();
    let run = object["metadata"]["name"].as_str().unwrap();
    let revision = object["spec"]["params"][0]["value"].as_str().unwrap();
    let began = BEGAN + i64::try_from(number * 420).unwrap();
    let body = |record: &Record| {
        let data = record.data.as_ref().unwrap();
        let text = std::str::from_utf8(&data.value).unwrap();
        let id = record.name.id();
        let own = if id == run_uid { Gap::RunUid } else { Gap::Uid };
        let mut gaps = Vec::new();
        for (sought, from, gap) in [
            ("containerd://", 13, Gap::Digest),
            ("\"value\":\"sha256:", 16, Gap::Digest),
            ("\"resourceVersion\":\"", 19, Gap::Version),
            ("\"team-", 6, Gap::Namespace),
            (run_uid, 0, Gap::RunUid),
            (id, 0, own),
            (run, run.len() - 5, Gap::Suffix),
            (revision, 0, Gap::Revision),
        ] {
            let found = text.match_indices(sought);
            gaps.extend(found.map(|(at, _)| (at + from, gap)));
        }
        for (at, _) in text.match_indices("\"20") {
            let found = text.get(at + 1..at + 21);
            if let Some(time) = found.and_then(|time| time.parse::<Timestamp>().ok()) {
                gaps.push((at + 1, Gap::Time(time.as_second() - began)));
            }
        }
        Body {
            text: text.into(),
            gaps,
            data_type: data.data_type.clone(),
            object: object_columns(data),
        }
    };
    records.iter().map(body).collect()
}
