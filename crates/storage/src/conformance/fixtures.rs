//! Small resources to put into stores.

use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc};

use jiff::Timestamp;
use serde_json::Value;

use super::World;
use crate::seam::{
    AggregateQuery, Batch, Change, Error, Hold, ListQuery, PipelineRow, Priority, Projection,
    VersionRow,
};
use hindsight_filter::condition::{Column, Is, Test};
use hindsight_filter::measure::{Group, Samples};
use hindsight_filter::model::{
    Etag, Payload, Record, RecordName, Resource, ResultName, RunResult, Summary, following_uid,
};
use hindsight_filter::{Order, condition::Condition};

/// Lists that are asked for at the same time, of thousands.
pub(super) const AT_ONCE: usize = 4;

/// Text that somebody's statement, pattern, path or shell would take for something else.
pub(crate) const ODD_TEXTS: [&str; 24] = [
    "",
    "a",
    "A",
    "ab",
    "a_b",
    "axb",
    "%",
    "a%",
    "_",
    "'",
    "''; DROP TABLE records; --",
    "\"",
    "\\",
    "\\%",
    "$1",
    "?",
    ":a @b #c",
    "é",
    "e\u{301}",
    "日本語",
    "\u{10ffff}",
    "a\0b",
    "\u{1}\u{2}",
    "line\nbreak\ttab\r",
];

/// `us` microseconds after the beginning of 2026.
pub(crate) fn time(us: i64) -> Timestamp {
    Timestamp::from_microsecond(1_767_225_600_000_000 + us).expect("the time is in range")
}

/// The name of a result.
pub(crate) fn result_name(text: &str) -> ResultName {
    text.parse().expect("the name is legal")
}

/// The name of a record.
pub(crate) fn record_name(text: &str) -> RecordName {
    text.parse().expect("the name is legal")
}

/// A map of texts.
pub(crate) fn map<const N: usize>(
    pairs: [(impl Into<String>, impl Into<String>); N],
) -> BTreeMap<String, String> {
    pairs
        .into_iter()
        .map(|(k, v)| (k.into(), v.into()))
        .collect()
}

/// A plain result that was made at `us`. Its uid follows where its id is a UUID.
pub(crate) fn result(name: &str, us: i64) -> RunResult {
    let of = result_name(name);
    let uid = following_uid(Resource::Results, of.id(), time(us));
    let uid = uid.unwrap_or_else(|| format!("uid of {name}"));
    RunResult {
        name: of,
        etag: Etag::new(&uid, time(us)),
        uid,
        create_time: time(us),
        update_time: time(us),
        annotations: BTreeMap::new(),
        summary: None,
    }
}

/// A summary that says when the run began and ended.
pub(crate) fn summary(of: &ResultName, began: Option<i64>, ended: Option<i64>) -> Summary {
    Summary {
        record: of.record("run").expect("the id is legal"),
        data_type: "tekton.dev/v1.PipelineRun".to_owned(),
        start_time: began.map(time),
        end_time: ended.map(time),
        status: 1,
        annotations: BTreeMap::new(),
    }
}

/// A plain record that was made at `us`, with this JSON. Its uid follows where its id is a UUID.
pub(crate) fn record(name: &str, us: i64, object: &Value) -> Record {
    let of = record_name(name);
    let uid = following_uid(Resource::Records, of.id(), time(us));
    let uid = uid.unwrap_or_else(|| format!("uid of {name}"));
    Record {
        name: of,
        etag: Etag::new(&uid, time(us)),
        uid,
        create_time: time(us),
        update_time: time(us),
        data: Some(Payload::new(
            "tekton.dev/v1.TaskRun".to_owned(),
            serde_json::to_vec(object).expect("it is JSON").into(),
        )),
    }
}

/// A hold of a result, made at `us`.
pub(crate) fn hold(result: &str, us: i64, expires: Option<i64>) -> Hold {
    Hold {
        result: result_name(result),
        reason: format!("asked for at {us}"),
        caller: "ann".to_owned(),
        create_time: time(us),
        expire_time: expires.map(time),
    }
}

/// The next version of a result, made at `us`.
pub(crate) fn later_result(value: &RunResult, us: i64) -> RunResult {
    let etag = Etag::new(&value.uid, time(us));
    RunResult {
        update_time: time(us),
        etag,
        ..value.clone()
    }
}

/// The next version of a record, made at `us`.
pub(crate) fn later_record(value: &Record, us: i64) -> Record {
    let etag = Etag::new(&value.uid, time(us));
    Record {
        update_time: time(us),
        etag,
        ..value.clone()
    }
}

/// That a column is so.
pub(crate) fn test(column: Column, is: Is) -> Condition {
    Condition::Test(Test {
        column,
        is,
        negated: false,
    })
}

/// A list of everything, bodies included.
pub(crate) fn everything() -> ListQuery {
    ListQuery {
        scope: "-/results/-".parse().expect("the pattern is legal"),
        condition: Condition::All,
        order: Order::newest_first(),
        after: None,
        limit: NonZeroU32::new(10_000).expect("10,000 is not 0"),
        bodies: true,
        max_bytes: None,
        projection: Projection::ALL,
        priority: Priority::Normal,
    }
}

/// The names in the order of a list of all pages of `query`.
pub(crate) async fn names(world: &World, resource: Resource, query: &ListQuery) -> Vec<String> {
    let mut query = query.clone();
    let mut names = Vec::new();
    loop {
        let page: Vec<(String, usize, _)> = match resource {
            Resource::Results => {
                let page = world
                    .store
                    .list_results(&query)
                    .await
                    .expect("results are listed");
                page.into_iter()
                    .map(|row| (row.item.name.to_string(), row.item.weight(), row.position))
                    .collect()
            }
            Resource::Records => {
                let page = world
                    .store
                    .list_records(&query)
                    .await
                    .expect("records are listed");
                page.into_iter()
                    .map(|row| {
                        let data = row.item.data.as_ref();
                        let bytes = data.map_or(0, |data| data.value.len());
                        (row.item.name.to_string(), bytes, row.position)
                    })
                    .collect()
            }
        };
        assert!(
            page.len() <= query.limit.get() as usize,
            "a page has more rows than asked"
        );
        let bytes: usize = page.iter().map(|(_, bytes, _)| bytes).sum();
        let full = page.len() == query.limit.get() as usize
            || query.max_bytes.is_some_and(|most| bytes >= most);
        if let Some((_, _, last)) = page.last() {
            query.after = Some(last.clone());
        }
        names.extend(page.into_iter().map(|(name, _, _)| name));
        if !full {
            return names;
        }
    }
}

impl World {
    /// Commits changes that must succeed.
    pub(crate) async fn given(&self, changes: impl IntoIterator<Item = Change>) {
        let changes = changes.into_iter().collect();
        self.store
            .commit(&Batch { changes })
            .await
            .expect("the changes are committed");
    }

    pub(crate) async fn try_to(&self, change: Change) -> Result<(), Error> {
        self.store.commit(&change.into()).await
    }

    /// Commits one change on a task of its own.
    pub(crate) fn start(&self, change: Change) -> tokio::task::JoinHandle<Result<(), Error>> {
        let store = Arc::clone(&self.store);
        tokio::spawn(async move { store.commit(&change.into()).await })
    }

    /// The record of this name.
    pub(crate) async fn record(&self, name: &RecordName) -> Option<Record> {
        self.store.record(name).await.expect("the record is read")
    }

    /// The result of this name.
    pub(crate) async fn result(&self, name: &ResultName) -> Option<RunResult> {
        self.store.result(name).await.expect("the result is read")
    }
}

/// Numbers that look random and are the same in every run.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % end as u64).expect("it is below a usize")
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Bytes that do not compress.
    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count)
            .map(|_| u8::try_from(self.below(256)).expect("it is below 256"))
            .collect()
    }
}

/// Whether the store refused because the row is not there, or the name is taken, or changed.
pub(crate) fn kind(outcome: &Result<(), Error>) -> &'static str {
    match outcome {
        Ok(()) => "done",
        Err(Error::Missing(_)) => "missing",
        Err(Error::Exists(_)) => "exists",
        Err(Error::Stale { .. }) => "stale",
        Err(Error::Unavailable { .. }) => "unavailable",
        Err(Error::TooSlow { .. }) => "too slow",
        Err(Error::Corrupt(_)) => "corrupt",
        Err(Error::ObjectStoreUnavailable { .. }) => "away",
        Err(Error::MissingObject(_)) => "lost",
        Err(Error::Incompatible(_)) => "unfit",
        Err(Error::Groups(_)) => "groups",
        Err(Error::Expired) => "expired",
        Err(Error::Database { .. }) => "database",
        Err(Error::OutOfSequence { .. }) => "out of sequence",
        Err(Error::OtherLine(_)) => "other line",
        Err(Error::Sealed(_)) => "sealed",
    }
}

/// A pipeline with a tag.
pub(crate) fn pipeline(id: &str, name: &str) -> PipelineRow {
    PipelineRow {
        id: id.to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
        display_name: format!("The {name}"),
        description: "d".to_owned(),
        tags: map([("team", "a")]),
        created_at: 1_000,
        original_id: Some("old".to_owned()),
    }
}

/// A version of a pipeline.
pub(crate) fn version(pipeline_id: &str, name: &str) -> VersionRow {
    VersionRow {
        id: format!("{pipeline_id}-{name}"),
        pipeline_id: pipeline_id.to_owned(),
        name: name.to_owned(),
        display_name: name.to_owned(),
        description: String::new(),
        tags: map([("k", "ü")]),
        created_at: 1_001,
        package_url: "https://a.example/p.yaml".to_owned(),
        code_source_url: String::new(),
        original_id: None,
        spec: r#"{"pipelineInfo": {"name": "hello"}}"#.to_owned(),
    }
}

/// Whether two answers are the same, in whichever order values were gathered.
pub(crate) fn assert_same_groups(got: &[Group], wanted: &[Group], of: &AggregateQuery) {
    let keys = |groups: &[Group]| {
        groups
            .iter()
            .map(|one| one.keys.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(got), keys(wanted), "{of:?}");
    assert!(keys(got).is_sorted(), "the order of keys");
    let values = |samples: &Samples| {
        let mut samples = samples.clone();
        if let Samples::All(values) = &mut samples {
            values.sort_unstable();
        }
        samples
    };
    for (got, wanted) in got.iter().zip(wanted) {
        assert_eq!(got.sums.rows, wanted.sums.rows, "{of:?}");
        assert_eq!(got.sums.counts, wanted.sums.counts, "{of:?}");
        for (got, wanted) in got.sums.amounts.iter().zip(&wanted.sums.amounts) {
            assert_eq!(
                (got.count, got.sum()),
                (wanted.count, wanted.sum()),
                "{of:?}"
            );
            assert_eq!((got.least, got.most), (wanted.least, wanted.most), "{of:?}");
            assert_eq!(values(&got.samples), values(&wanted.samples), "{of:?}");
        }
    }
}
