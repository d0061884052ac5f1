//! A store that has the records of one run which is about to be moved: what is read of a store to move them.

use std::num::NonZeroU32;

use async_trait::async_trait;
use hindsight_filter::{
    condition::{Ability, Test, Value},
    measure::Group,
    model::{ParentPattern, Record, RecordName, Resource, ResultName, RunResult, Tier},
};
use hindsight_storage::{
    AggregateQuery, Batch, Change, EncodedRecord, Error, FeedPage, FeedPosition, Hold, ListQuery,
    Listed, Plan, RecordColumns, Store, StoreParts,
};

use crate::bodies::Run;

/// A run whose records have the numbers from `first` on.
#[derive(Debug)]
pub struct Unmoved {
    pub run: Run,
    pub first: usize,
}

fn never<T>() -> Result<T, Error> {
    Err(Error::Unavailable {
        what: "anything but reading the records of a run",
        source: "it is not asked for when records are moved".into(),
    })
}

impl Unmoved {
    /// All records, newest first; none after them.
    fn rows<T>(&self, query: &ListQuery, item: impl Fn(usize) -> T) -> Vec<Listed<T>> {
        if query.after.is_some() {
            return Vec::new();
        }
        let row = |at: usize| {
            let time = Value::Time(self.run.records[at].create_time);
            let number = i64::try_from(self.first + at).unwrap();
            Listed {
                item: item(at),
                position: query.order.position(number, &|_| Some(time.clone())),
                tier: Tier::Hot,
            }
        };
        (0..self.run.records.len()).rev().map(row).collect()
    }
}

#[async_trait]
impl Store for Unmoved {
    async fn list_records(&self, query: &ListQuery) -> Result<Vec<Listed<Record>>, Error> {
        Ok(self.rows(query, |at| self.run.records[at].clone()))
    }

    async fn list_columns(&self, query: &ListQuery) -> Result<Vec<Listed<RecordColumns>>, Error> {
        Ok(self.rows(query, |at| RecordColumns {
            record: self.run.records[at].clone(),
            object: self.run.objects[at].clone(),
        }))
    }

    async fn result(&self, _: &ResultName) -> Result<Option<RunResult>, Error> {
        never()
    }

    async fn record(&self, _: &RecordName) -> Result<Option<Record>, Error> {
        never()
    }

    async fn list_results(&self, _: &ListQuery) -> Result<Vec<Listed<RunResult>>, Error> {
        never()
    }

    async fn list_encoded(&self, _: &ListQuery) -> Result<Vec<Listed<EncodedRecord>>, Error> {
        never()
    }

    async fn aggregate(&self, _: &AggregateQuery) -> Result<Vec<Group>, Error> {
        never()
    }

    async fn commit(&self, _: &Batch) -> Result<(), Error> {
        never()
    }

    async fn commit_each(&self, _: &[Change]) -> Vec<Result<(), Error>> {
        Vec::new()
    }

    async fn explain(&self, _: Resource, _: &ListQuery, _: u64) -> Result<Plan, Error> {
        never()
    }

    async fn holds(
        &self,
        _: &ParentPattern,
        _: i64,
        _: NonZeroU32,
    ) -> Result<Vec<(i64, Hold)>, Error> {
        never()
    }

    async fn feed_end(&self) -> Result<FeedPosition, Error> {
        never()
    }

    async fn feed_begin(&self) -> Result<FeedPosition, Error> {
        never()
    }

    async fn feed(&self, _: FeedPosition, _: NonZeroU32) -> Result<FeedPage, Error> {
        never()
    }

    async fn refresh_indexes(&self) -> Result<(), Error> {
        never()
    }

    fn ability(&self, _: &Test) -> Ability {
        Ability::Exact
    }

    fn parts(&self) -> Option<StoreParts> {
        None
    }
}
