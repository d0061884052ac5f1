//! The store in a SQL database, whichever: what is read becomes statements by `sql`, what is
//! written is packed by the codec, and a [`Database`] carries both out.

mod archive;
mod cursors;
mod dictionaries;
mod explain;
mod feed;
mod find;
pub(crate) mod indexed;
mod list;
pub(crate) mod logs;
mod objects;
mod pipelines;
mod planner;
mod purge;
pub mod resolve;
mod sign;
pub(crate) mod sum;
mod sweep;

use std::{num::NonZeroU32, time::Duration};

use self::{indexed::IndexCache, list::Wanted};
use crate::{
    codec::{
        dictionaries::DictionaryCache,
        objects::Objects,
        prepare::{self, REPACKS},
        row::PreparedChange,
    },
    driver::{Database, Work},
    seam::{
        AggregateQuery, Batch, Change, Connections, EncodedRecord, Error, FeedPage, FeedPosition,
        Filled, Hold, IndexedPath, ListQuery, Listed, Maintenance, Plan, Priority, Purge, Purged,
        RecordColumns, Store, StoreParts,
    },
    sql::{dialect::Dialect, holds, read, row::Row, statement::Statement},
};
use async_trait::async_trait;
use jiff::Timestamp;

use hindsight_filter::measure::Group;
use hindsight_filter::model::{ParentPattern, Record, RecordName, Resource, ResultName, RunResult};
use hindsight_filter::{
    condition::{Ability, Test},
    indexed::{Kind, Path},
};

/// A store over a database.
#[derive(Debug)]
pub(crate) struct SqlStore<D> {
    pub(crate) db: D,
    dictionaries: DictionaryCache,
    indexes: IndexCache,
    objects: Option<Objects>,
}

impl<D: Database> SqlStore<D> {
    /// Over an open database, whose big bodies are in `objects`.
    pub(crate) fn new(db: D, objects: Option<Objects>) -> Self {
        Self {
            db,
            dictionaries: DictionaryCache::default(),
            indexes: IndexCache::default(),
            objects,
        }
    }

    /// How statements are written.
    pub(crate) fn dialect(&self) -> Dialect {
        D::DIALECT
    }

    /// The dictionaries that are in memory.
    pub(crate) fn packed(&self) -> &DictionaryCache {
        &self.dictionaries
    }

    /// What is known of indexed paths.
    pub(crate) fn noticed(&self) -> &IndexCache {
        &self.indexes
    }

    /// Where big bodies lie, if an object store is configured.
    pub(crate) fn objects(&self) -> Option<&Objects> {
        self.objects.as_ref()
    }

    /// The rows of a statement that reads by keys.
    pub(crate) async fn ask(&self, statement: &Statement) -> Result<Vec<Row>, Error> {
        self.rows(statement, "reading").await
    }

    async fn rows(&self, statement: &Statement, what: &'static str) -> Result<Vec<Row>, Error> {
        self.rows_at(Priority::Normal, statement, what).await
    }

    async fn rows_at(
        &self,
        priority: Priority,
        statement: &Statement,
        what: &'static str,
    ) -> Result<Vec<Row>, Error> {
        let mut reader = self.db.reader(Work::Lookup, priority, what).await?;
        let rows = reader.rows(statement).await?;
        reader.release().await;
        Ok(rows)
    }

    /// Does all of the statements, or none, and says how many rows they changed.
    pub(crate) async fn tell(&self, statements: Vec<Statement>) -> Result<u64, Error> {
        self.db.execute(statements).await
    }

    /// Prepares changes and uploads their big bodies. Without `dictionaries` they refer to none.
    async fn ready(
        &self,
        batch: &Batch,
        dictionaries: Option<&DictionaryCache>,
    ) -> Result<Vec<PreparedChange>, Error> {
        let known = indexed::known(self).await?;
        let above = objects::above(self);
        let mut ready = prepare::ready(batch, dictionaries, self, &known, above).await?;
        objects::place(self, &mut ready).await?;
        Ok(ready)
    }
}

#[async_trait]
impl<D: Database> Store for SqlStore<D> {
    async fn result(&self, name: &ResultName) -> Result<Option<RunResult>, Error> {
        let statement = read::one_result(D::DIALECT, name);
        let rows = self.rows(&statement, "reading a result").await?;
        rows.first().map(read::result).transpose()
    }

    async fn record(&self, name: &RecordName) -> Result<Option<Record>, Error> {
        let statement = read::one_record(D::DIALECT, name);
        let found = list::records(self, Wanted::One(&statement)).await?;
        let found = list::open_all(found).await?;
        Ok(found.into_iter().next().map(|listed| listed.item))
    }

    async fn list_results(&self, query: &ListQuery) -> Result<Vec<Listed<RunResult>>, Error> {
        let read = |row: &Row| read::listed_result(row, &query.order);
        list::page(&self.db, Resource::Results, query, &read).await
    }

    async fn list_encoded(&self, query: &ListQuery) -> Result<Vec<Listed<EncodedRecord>>, Error> {
        list::records(self, Wanted::Page(query)).await
    }

    async fn list_records(&self, query: &ListQuery) -> Result<Vec<Listed<Record>>, Error> {
        list::open_all(self.list_encoded(query).await?).await
    }

    async fn list_columns(&self, query: &ListQuery) -> Result<Vec<Listed<RecordColumns>>, Error> {
        list::columns(&self.db, query).await
    }

    async fn aggregate(&self, query: &AggregateQuery) -> Result<Vec<Group>, Error> {
        let (groups, _) = sum::aggregate(&self.db, query, &[]).await?;
        Ok(groups)
    }

    async fn commit(&self, batch: &Batch) -> Result<(), Error> {
        let mut left = REPACKS;
        loop {
            // In the end without references, which nobody can delete.
            let dictionaries = (left > 0).then_some(&self.dictionaries);
            let changes = self.ready(batch, dictionaries).await?;
            match self.db.write(changes).await {
                Err(error) if prepare::is_outdated(&error) && left > 0 => {
                    left -= 1;
                    self.dictionaries.forget();
                    self.indexes.forget();
                }
                outcome => return outcome,
            }
        }
    }

    /// Changes are prepared together, which costs most of the time, on all cores; the few whose
    /// dictionary was deleted meanwhile are done again.
    async fn commit_each(&self, changes: &[Change]) -> Vec<Result<(), Error>> {
        let batch = Batch {
            changes: changes.to_vec(),
        };
        let ready = match self.ready(&batch, Some(&self.dictionaries)).await {
            Ok(ready) => ready,
            Err(error) => return changes.iter().map(|_| Err(error.repeated())).collect(),
        };
        let mut outcomes = self.db.write_each(ready).await;
        for (outcome, change) in outcomes.iter_mut().zip(batch.changes) {
            if outcome.as_ref().is_err_and(prepare::is_outdated) {
                self.dictionaries.forget();
                self.indexes.forget();
                *outcome = self.commit(&change.into()).await;
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
        explain::plan(&self.db, resource, query, most).await
    }

    async fn holds(
        &self,
        parent: &ParentPattern,
        after: i64,
        most: NonZeroU32,
    ) -> Result<Vec<(i64, Hold)>, Error> {
        let statement = holds::list(parent, after, i64::from(most.get()));
        let rows = self.rows(&statement, "listing holds").await?;
        rows.iter().map(holds::hold).collect()
    }

    async fn feed_end(&self) -> Result<FeedPosition, Error> {
        feed::end(self).await
    }

    async fn feed_begin(&self) -> Result<FeedPosition, Error> {
        feed::begin(self).await
    }

    async fn feed(&self, after: FeedPosition, most: NonZeroU32) -> Result<FeedPage, Error> {
        feed::page(self, after, most).await
    }

    async fn refresh_indexes(&self) -> Result<(), Error> {
        indexed::known(self).await.map(drop)
    }

    fn ability(&self, test: &Test) -> Ability {
        self.indexes.ability(test)
    }

    fn parts(&self) -> Option<StoreParts> {
        None
    }
}

#[async_trait]
impl<D: Database> Maintenance for SqlStore<D> {
    async fn migrate(&self) -> Result<Vec<i64>, Error> {
        self.db.migrate().await
    }

    async fn sweep(&self, most: NonZeroU32, rest: u32) -> Result<u64, Error> {
        sweep::sweep(self, most, rest).await
    }

    async fn sign(&self, most: NonZeroU32) -> Result<u64, Error> {
        sign::sign(self, most).await
    }

    async fn purgeable(&self, what: &Purge) -> Result<Purged, Error> {
        purge::count(self, what).await
    }

    async fn purge(&self, what: &Purge, now: Timestamp) -> Result<Purged, Error> {
        let mut purged = purge::purge(self, what, now).await?;
        purged.left.extend(self.db.vacuum().await?);
        Ok(purged)
    }

    async fn sweep_objects(&self, now: Timestamp, batch: NonZeroU32) -> Result<u64, Error> {
        objects::sweep(self, now, batch).await
    }

    async fn pack_logs(&self, now: Timestamp, most: NonZeroU32) -> Result<u64, Error> {
        logs::pack(self, now, most).await
    }

    async fn indexes(&self) -> Result<Vec<IndexedPath>, Error> {
        Ok(indexed::look(self).await?.all().to_vec())
    }

    async fn create_index(
        &self,
        path: &Path,
        kind: Kind,
        now: Timestamp,
    ) -> Result<IndexedPath, Error> {
        indexed::create_index(self, path, kind, now).await
    }

    async fn drop_index(&self, path: &Path) -> Result<(), Error> {
        indexed::drop_index(self, path).await
    }

    async fn build_index(&self, field: i64, most: NonZeroU32) -> Result<Filled, Error> {
        indexed::build_index(self, field, most).await
    }

    async fn sweep_indexes(&self, most: NonZeroU32) -> Result<u64, Error> {
        indexed::sweep(self, most).await
    }

    async fn prune_feed(&self, before: Timestamp, most: NonZeroU32) -> Result<u64, Error> {
        feed::prune(self, before, most).await
    }

    async fn hold_cursor(
        &self,
        name: &str,
        holder: &str,
        time: Duration,
    ) -> Result<Option<FeedPosition>, Error> {
        cursors::hold(self, name, holder, time).await
    }

    async fn advance_cursor(
        &self,
        name: &str,
        holder: &str,
        place: FeedPosition,
        time: Duration,
    ) -> Result<bool, Error> {
        cursors::advance(self, name, holder, place, time).await
    }

    async fn secret(&self, name: &str, candidate: &[u8]) -> Result<Vec<u8>, Error> {
        self.db.secret(name, candidate).await
    }

    async fn ping(&self) -> Result<(), Error> {
        let schema = Statement::new("SELECT count(*) FROM hindsight_schema");
        self.rows(&schema, "asking for the schema").await.map(drop)
    }

    fn connections(&self) -> Connections {
        self.db.connections()
    }

    async fn close(&self) {
        self.db.close().await;
    }
}
