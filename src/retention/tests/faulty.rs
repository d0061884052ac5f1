//! A store of which a commit fails.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use hindsight_filter::condition::{Ability, Test};
use hindsight_filter::measure::Group;
use hindsight_filter::model::{ParentPattern, Record, RecordName, Resource, ResultName, RunResult};
use hindsight_storage::{
    AggregateQuery, Batch, Change, EncodedRecord, Error, FeedPage, FeedPosition, Hold, ListQuery,
    Listed, Plan, RecordColumns, Store, StoreParts,
};

#[derive(Debug)]
pub(super) struct Faulty {
    pub(super) store: Arc<dyn Store>,
    pub(super) commits: Arc<AtomicUsize>,
    pub(super) fails_at: usize,
    pub(super) is_slow: bool,
}

#[async_trait]
impl Store for Faulty {
    async fn result(&self, name: &ResultName) -> Result<Option<RunResult>, Error> {
        self.store.result(name).await
    }

    async fn record(&self, name: &RecordName) -> Result<Option<Record>, Error> {
        self.store.record(name).await
    }

    async fn list_results(&self, query: &ListQuery) -> Result<Vec<Listed<RunResult>>, Error> {
        self.store.list_results(query).await
    }

    async fn list_records(&self, query: &ListQuery) -> Result<Vec<Listed<Record>>, Error> {
        self.store.list_records(query).await
    }

    async fn list_encoded(&self, query: &ListQuery) -> Result<Vec<Listed<EncodedRecord>>, Error> {
        self.store.list_encoded(query).await
    }

    async fn list_columns(&self, query: &ListQuery) -> Result<Vec<Listed<RecordColumns>>, Error> {
        self.store.list_columns(query).await
    }

    async fn aggregate(&self, query: &AggregateQuery) -> Result<Vec<Group>, Error> {
        self.store.aggregate(query).await
    }

    async fn commit(&self, batch: &Batch) -> Result<(), Error> {
        assert_eq!(batch.changes.len(), 1, "a transaction has one result");
        if self.commits.fetch_add(1, Ordering::SeqCst) == self.fails_at {
            let (what, source) = ("writing", "the test says so".into());
            return Err(match self.is_slow {
                true => Error::TooSlow { what, source },
                false => Error::Unavailable { what, source },
            });
        }
        self.store.commit(batch).await
    }

    async fn commit_each(&self, changes: &[Change]) -> Vec<Result<(), Error>> {
        self.store.commit_each(changes).await
    }

    async fn explain(
        &self,
        resource: Resource,
        query: &ListQuery,
        most: u64,
    ) -> Result<Plan, Error> {
        self.store.explain(resource, query, most).await
    }

    async fn holds(
        &self,
        parent: &ParentPattern,
        after: i64,
        most: NonZeroU32,
    ) -> Result<Vec<(i64, Hold)>, Error> {
        self.store.holds(parent, after, most).await
    }

    async fn feed_end(&self) -> Result<FeedPosition, Error> {
        self.store.feed_end().await
    }

    async fn feed_begin(&self) -> Result<FeedPosition, Error> {
        self.store.feed_begin().await
    }

    async fn feed(&self, after: FeedPosition, most: NonZeroU32) -> Result<FeedPage, Error> {
        self.store.feed(after, most).await
    }

    async fn refresh_indexes(&self) -> Result<(), Error> {
        self.store.refresh_indexes().await
    }

    fn ability(&self, test: &Test) -> Ability {
        self.store.ability(test)
    }

    fn parts(&self) -> Option<StoreParts> {
        self.store.parts()
    }
}
