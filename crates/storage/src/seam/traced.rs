//! A store whose calls are spans, for servers whose traces are sent somewhere.

use std::{num::NonZeroU32, sync::Arc};

use async_trait::async_trait;
use tracing::{Instrument as _, Span, info_span};

use super::{
    AggregateQuery, Batch, Change, EncodedRecord, Error, FeedPage, FeedPosition, Hold, ListQuery,
    Listed, Plan, RecordColumns, Store, StoreParts,
};
use hindsight_filter::condition::{Ability, Test};
use hindsight_filter::measure::Group;
use hindsight_filter::model::{ParentPattern, Record, RecordName, Resource, ResultName, RunResult};

/// Does what the store in it does, and says how long that took.
#[derive(Debug)]
pub struct Traced(Arc<dyn Store>);

impl Traced {
    /// A store that traces each call and passes it to `store`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(store)
    }
}

fn span(call: &'static str, rows: Option<usize>) -> Span {
    info_span!(
        "store",
        otel.kind = "client",
        store.call = call,
        store.changes = rows
    )
}

#[async_trait]
impl Store for Traced {
    async fn result(&self, name: &ResultName) -> Result<Option<RunResult>, Error> {
        self.0.result(name).instrument(span("result", None)).await
    }

    async fn record(&self, name: &RecordName) -> Result<Option<Record>, Error> {
        self.0.record(name).instrument(span("record", None)).await
    }

    async fn list_results(&self, query: &ListQuery) -> Result<Vec<Listed<RunResult>>, Error> {
        let span = span("list_results", None);
        self.0.list_results(query).instrument(span).await
    }

    async fn list_encoded(&self, query: &ListQuery) -> Result<Vec<Listed<EncodedRecord>>, Error> {
        let span = span("list_records", None);
        self.0.list_encoded(query).instrument(span).await
    }

    async fn list_records(&self, query: &ListQuery) -> Result<Vec<Listed<Record>>, Error> {
        let span = span("list_records", None);
        self.0.list_records(query).instrument(span).await
    }

    async fn list_columns(&self, query: &ListQuery) -> Result<Vec<Listed<RecordColumns>>, Error> {
        let span = span("list_columns", None);
        self.0.list_columns(query).instrument(span).await
    }

    async fn aggregate(&self, query: &AggregateQuery) -> Result<Vec<Group>, Error> {
        self.0
            .aggregate(query)
            .instrument(span("aggregate", None))
            .await
    }

    async fn commit(&self, batch: &Batch) -> Result<(), Error> {
        let span = span("commit", Some(batch.changes.len()));
        self.0.commit(batch).instrument(span).await
    }

    async fn commit_each(&self, changes: &[Change]) -> Vec<Result<(), Error>> {
        let span = span("commit_each", Some(changes.len()));
        self.0.commit_each(changes).instrument(span).await
    }

    async fn explain(
        &self,
        resource: Resource,
        query: &ListQuery,
        most: u64,
    ) -> Result<Plan, Error> {
        let span = span("explain", None);
        self.0.explain(resource, query, most).instrument(span).await
    }

    async fn holds(
        &self,
        parent: &ParentPattern,
        after: i64,
        most: NonZeroU32,
    ) -> Result<Vec<(i64, Hold)>, Error> {
        let span = span("holds", None);
        self.0.holds(parent, after, most).instrument(span).await
    }

    async fn feed_end(&self) -> Result<FeedPosition, Error> {
        self.0.feed_end().await
    }

    async fn feed_begin(&self) -> Result<FeedPosition, Error> {
        self.0.feed_begin().await
    }

    /// Without a span: one is read a few times in every second that anybody follows.
    async fn feed(&self, after: FeedPosition, most: NonZeroU32) -> Result<FeedPage, Error> {
        self.0.feed(after, most).await
    }

    async fn refresh_indexes(&self) -> Result<(), Error> {
        self.0.refresh_indexes().await
    }

    fn ability(&self, test: &Test) -> Ability {
        self.0.ability(test)
    }

    fn parts(&self) -> Option<StoreParts> {
        self.0.parts()
    }
}
