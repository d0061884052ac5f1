//! A store of two tiers: results and what is hot in a database, and the records of old results in Parquet files of
//! an archive.
//!
//! Invariant: the records of a result are either in the store or in the one file that the row of the result names. Both
//! change in one transaction of the store; files never change. Rows of a file whose result names another file, or
//! none, are no rows of any list.

mod candidates;
mod compact;
mod files;
mod merge;
mod moves;
mod object;
mod search;
mod sums;

use std::{num::NonZeroU32, sync::Arc};

use async_trait::async_trait;
use hindsight_filter::{
    condition::{Ability, Column, Test},
    measure::Group,
    model::{ParentPattern, Record, RecordName, Resource, ResultName, RunResult},
};

pub use self::{
    files::Archive,
    moves::{Moving, Unmovable},
};
use crate::seam::{
    AggregateQuery, Batch, Change, EncodedRecord, Error, FeedPage, FeedPosition, Hold, ListQuery,
    Listed, Plan, Priority, RecordColumns, Store, StoreParts,
};

/// A store over another one, and over an archive of records that were moved from it.
#[derive(Debug)]
pub struct Tiers {
    store: Arc<dyn Store>,
    archive: Archive,
}

impl Tiers {
    /// `store`, with the records that are in files of `archive`.
    pub fn new(store: Arc<dyn Store>, archive: Archive) -> Self {
        Self { store, archive }
    }

    /// Puts the records of those results back that changes of records are about and that are in files. False if that
    /// cannot be why something is missing: there are no such results.
    async fn restore_of<'c>(
        &self,
        changes: impl IntoIterator<Item = &'c Change>,
    ) -> Result<bool, Error> {
        let mut may_help = false;
        for change in changes {
            let name = match change {
                Change::InsertRecord(value) | Change::ReplaceRecord { value, .. } => &value.name,
                Change::DeleteRecord { name, .. } => name,
                _ => continue,
            };
            // Another may have put them back since they were missing.
            may_help |= self.archive.restore(&*self.store, name.result()).await?
                || self.store.result(name.result()).await?.is_some();
        }
        Ok(may_help)
    }
}

#[async_trait]
impl Store for Tiers {
    async fn result(&self, name: &ResultName) -> Result<Option<RunResult>, Error> {
        self.store.result(name).await
    }

    async fn record(&self, name: &RecordName) -> Result<Option<Record>, Error> {
        if let Some(record) = self.store.record(name).await? {
            return Ok(Some(record));
        }
        let query = ListQuery::of_record(name, Priority::Normal);
        let found = self.list(&query).await?;
        Ok(found.into_iter().next().map(|listed| listed.item))
    }

    async fn list_results(&self, query: &ListQuery) -> Result<Vec<Listed<RunResult>>, Error> {
        self.store.list_results(query).await
    }

    async fn list_records(&self, query: &ListQuery) -> Result<Vec<Listed<Record>>, Error> {
        self.list(query).await
    }

    async fn list_encoded(&self, query: &ListQuery) -> Result<Vec<Listed<EncodedRecord>>, Error> {
        self.list(query).await
    }

    async fn list_columns(&self, query: &ListQuery) -> Result<Vec<Listed<RecordColumns>>, Error> {
        let query = ListQuery {
            bodies: false,
            ..query.clone()
        };
        self.list(&query).await
    }

    async fn aggregate(&self, query: &AggregateQuery) -> Result<Vec<Group>, Error> {
        self.sums(query).await
    }

    async fn commit(&self, batch: &Batch) -> Result<(), Error> {
        match self.store.commit(batch).await {
            Err(Error::Missing(_)) if self.restore_of(&batch.changes).await? => {
                self.store.commit(batch).await
            }
            outcome => outcome,
        }
    }

    async fn commit_each(&self, changes: &[Change]) -> Vec<Result<(), Error>> {
        let mut outcomes = self.store.commit_each(changes).await;
        for (outcome, change) in outcomes.iter_mut().zip(changes) {
            if !matches!(outcome, Err(Error::Missing(_))) {
                continue;
            }
            match self.restore_of([change]).await {
                Ok(false) => {}
                Ok(true) => *outcome = self.store.commit(&change.clone().into()).await,
                Err(error) => *outcome = Err(error),
            }
        }
        outcomes
    }

    async fn explain(
        &self,
        resource: Resource,
        query: &ListQuery,
        most: u64,
    ) -> Result<Plan, Error> {
        let mut plan = self.store.explain(resource, query, most).await?;
        if resource == Resource::Records {
            let state = self.archive.index.archive_state().await?;
            let all = self.archive.files(state).await?.len();
            let files = self.candidates(query, state).await?;
            let records: u64 = files.iter().map(|file| file.records).sum();
            let can = files.len();
            plan.steps.push(format!(
                "archive: {can} of {all} files can have such records, of {records} that they have"
            ));
        }
        Ok(plan)
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

    /// Files have no indexes of parts of payloads: every row of them passes such a test.
    fn ability(&self, test: &Test) -> Ability {
        match test.column {
            Column::Indexed(_) => self.store.ability(test).min(Ability::Superset),
            _ => self.store.ability(test),
        }
    }

    fn parts(&self) -> Option<StoreParts> {
        Some(StoreParts {
            database: Arc::clone(&self.store),
            index: Arc::clone(&self.archive.index),
        })
    }
}
