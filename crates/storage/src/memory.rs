//! A store of maps in memory, in plain Rust: the model that others are compared with in tests, and
//! proof that the seam asks for no SQL.

mod feed;
mod holds;
mod list;

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use jiff::Timestamp;

use crate::seam::{
    AggregateQuery, Batch, Change, Connections, EncodedRecord, Error, Estimate, FeedPage,
    FeedPosition, Filled, Hold, IndexedPath, ListQuery, Listed, Maintenance, Plan, Purge, Purged,
    RecordColumns, Store, StoreParts,
};
use hindsight_filter::columns::{ObjectColumns, object_columns, of_record};
use hindsight_filter::condition::{Ability, Column, Test, Value};
use hindsight_filter::indexed::{Kind, Path};
use hindsight_filter::measure::{Group, Tally};
use hindsight_filter::model::{
    Etag, ParentPattern, Record, RecordName, Resource, ResultName, RunResult, Tier,
};

/// A row and the number that no other row has.
#[derive(Debug, Clone, PartialEq)]
struct Numbered<T> {
    id: i64,
    row: T,
}

/// A record and its columns, which are read of its payload once.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    record: Record,
    object: ObjectColumns,
}

impl Row {
    fn of(record: Record) -> Self {
        let object = record.data.as_ref().map(object_columns);
        Self {
            object: object.unwrap_or_default(),
            record,
        }
    }

    fn column(&self, column: &Column) -> Option<Value> {
        of_record(&self.record, Tier::Hot, &self.object, column)
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Rows {
    results: BTreeMap<ResultName, Numbered<RunResult>>,
    records: BTreeMap<RecordName, Numbered<Row>>,
    last: i64,
    /// The last change of each record, and of how many changes before it nothing is told any more.
    changes: BTreeMap<RecordName, i64>,
    changed: i64,
    floor: i64,
    /// Holds by the numbers of their results.
    holds: BTreeMap<i64, Hold>,
    secrets: BTreeMap<String, Vec<u8>>,
    cursors: BTreeMap<String, feed::Cursor>,
}

/// A store of maps.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    rows: Arc<Mutex<Rows>>,
    closed: AtomicBool,
}

impl Memory {
    /// Another store over the same maps.
    pub(crate) fn opened(&self) -> Self {
        Self {
            rows: Arc::clone(&self.rows),
            closed: AtomicBool::new(false),
        }
    }

    /// The maps, after others had their turn, as they have while a database is asked.
    async fn rows(&self) -> Result<MutexGuard<'_, Rows>, Error> {
        tokio::task::yield_now().await;
        match self.closed.load(Ordering::Relaxed) {
            true => Err(Error::Unavailable {
                what: "reading or writing",
                source: "the store is closed".into(),
            }),
            false => Ok(self.rows.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

impl Rows {
    fn next(&mut self) -> i64 {
        self.last += 1;
        self.last
    }

    fn note(&mut self, name: &RecordName) {
        self.changed += 1;
        self.changes.insert(name.clone(), self.changed);
    }

    /// Removes a result with all that depends on it.
    fn remove(&mut self, name: &ResultName) {
        if let Some(was) = self.results.remove(name) {
            self.holds.remove(&was.id);
        }
        self.records.retain(|record, _| record.result() != name);
    }

    fn change(&mut self, change: &Change) -> Result<(), Error> {
        match change.clone() {
            Change::InsertResult(row) => {
                if self.results.contains_key(&row.name) {
                    return Err(Error::Exists(row.name.to_string()));
                }
                let id = self.next();
                self.results.insert(row.name.clone(), Numbered { id, row });
            }
            Change::ReplaceResult { expect, value } => {
                let name = value.name.to_string();
                let was = self.results.get_mut(&value.name).map(|was| &mut was.row);
                let was = was.ok_or_else(|| Error::Missing(name.clone()))?;
                expected(&name, &was.etag, Some(&expect))?;
                *was = RunResult {
                    uid: was.uid.clone(),
                    create_time: was.create_time,
                    ..value
                };
            }
            Change::DeleteResult { name, expect } => {
                let was = self.results.get(&name);
                let was = was.ok_or_else(|| Error::Missing(name.to_string()))?;
                expected(&name.to_string(), &was.row.etag, expect.as_ref())?;
                self.remove(&name);
            }
            Change::ExpireResult { name, version, now } => {
                holds::expire(self, &name, version, now)?;
            }
            Change::ArchiveResult { .. }
            | Change::ReturnResult { .. }
            | Change::ReturnRecord { .. } => {
                return Err(Error::Incompatible("maps have no archive".to_owned()));
            }
            Change::InsertHold(hold) => holds::insert(self, hold)?,
            Change::DeleteHold { name } => holds::delete(self, &name)?,
            Change::InsertRecord(row) => {
                if !self.results.contains_key(row.name.result()) {
                    return Err(Error::Missing(row.name.result().to_string()));
                }
                if self.records.contains_key(&row.name) {
                    return Err(Error::Exists(row.name.to_string()));
                }
                let (id, name) = (self.next(), row.name.clone());
                let row = Row::of(row);
                self.note(&name);
                self.records.insert(name, Numbered { id, row });
            }
            Change::ReplaceRecord { expect, value } => {
                let name = value.name.to_string();
                let row = self.records.get_mut(&value.name).map(|was| &mut was.row);
                let row = row.ok_or_else(|| Error::Missing(name.clone()))?;
                let was = &row.record;
                expected(&name, &was.etag, Some(&expect))?;
                let of = value.name.clone();
                *row = Row::of(Record {
                    uid: was.uid.clone(),
                    create_time: was.create_time,
                    ..value
                });
                self.note(&of);
            }
            Change::DeleteRecord { name, expect } => {
                let was = self.records.get(&name);
                let was = was.ok_or_else(|| Error::Missing(name.to_string()))?;
                let etag = &was.row.record.etag;
                expected(&name.to_string(), etag, expect.as_ref())?;
                self.records.remove(&name);
            }
        }
        Ok(())
    }
}

fn expected(name: &str, found: &Etag, expect: Option<&Etag>) -> Result<(), Error> {
    match expect.filter(|expect| *expect != found) {
        None => Ok(()),
        Some(expected) => Err(Error::Stale {
            name: name.to_owned(),
            expected: expected.clone(),
        }),
    }
}

#[async_trait]
impl Store for Memory {
    async fn result(&self, name: &ResultName) -> Result<Option<RunResult>, Error> {
        Ok(self
            .rows()
            .await?
            .results
            .get(name)
            .map(|found| found.row.clone()))
    }

    async fn record(&self, name: &RecordName) -> Result<Option<Record>, Error> {
        Ok(self
            .rows()
            .await?
            .records
            .get(name)
            .map(|found| found.row.record.clone()))
    }

    async fn list_results(&self, query: &ListQuery) -> Result<Vec<Listed<RunResult>>, Error> {
        Ok(list::results(&*self.rows().await?, query))
    }

    async fn list_records(&self, query: &ListQuery) -> Result<Vec<Listed<Record>>, Error> {
        Ok(list::records(&*self.rows().await?, query))
    }

    async fn list_columns(&self, query: &ListQuery) -> Result<Vec<Listed<RecordColumns>>, Error> {
        Ok(list::columns(&*self.rows().await?, query))
    }

    async fn list_encoded(&self, query: &ListQuery) -> Result<Vec<Listed<EncodedRecord>>, Error> {
        let listed = self.list_records(query).await?.into_iter();
        Ok(listed
            .map(|row| Listed {
                item: EncodedRecord::plain(row.item),
                position: row.position,
                tier: row.tier,
            })
            .collect())
    }

    async fn aggregate(&self, query: &AggregateQuery) -> Result<Vec<Group>, Error> {
        let mut tally = Tally::new(query.shape());
        for found in self.rows().await?.records.values() {
            let column = |column: &Column| found.row.column(column);
            if list::in_scope(&query.scope, found.row.record.name.result())
                && query.condition.passes(&column)
            {
                let keys = query.keys.iter().map(|key| key.of(&column)).collect();
                query.add(&mut tally, keys, &column)?;
            }
        }
        Ok(tally.finish())
    }

    async fn commit(&self, batch: &Batch) -> Result<(), Error> {
        let mut rows = self.rows().await?;
        if let [change] = &batch.changes[..] {
            return rows.change(change);
        }
        let mut changed = rows.clone();
        for change in &batch.changes {
            changed.change(change)?;
        }
        *rows = changed;
        Ok(())
    }

    async fn commit_each(&self, changes: &[Change]) -> Vec<Result<(), Error>> {
        match self.rows().await {
            Ok(mut rows) => changes.iter().map(|change| rows.change(change)).collect(),
            Err(error) => changes.iter().map(|_| Err(error.repeated())).collect(),
        }
    }

    async fn explain(
        &self,
        resource: Resource,
        query: &ListQuery,
        _most: u64,
    ) -> Result<Plan, Error> {
        let query = ListQuery {
            after: None,
            limit: NonZeroU32::MAX,
            max_bytes: None,
            ..query.clone()
        };
        let rows = match resource {
            Resource::Results => self.list_results(&query).await?.len(),
            Resource::Records => self.list_records(&query).await?.len(),
        };
        Ok(Plan {
            steps: vec!["every row is looked at".to_owned()],
            indexes: Vec::new(),
            rows: Estimate::Exactly(rows as u64),
            cost: None,
        })
    }

    async fn holds(
        &self,
        parent: &ParentPattern,
        after: i64,
        most: NonZeroU32,
    ) -> Result<Vec<(i64, Hold)>, Error> {
        Ok(holds::list(&*self.rows().await?, parent, after, most))
    }

    async fn feed_end(&self) -> Result<FeedPosition, Error> {
        Ok(FeedPosition::after(self.rows().await?.changed))
    }

    async fn feed_begin(&self) -> Result<FeedPosition, Error> {
        Ok(FeedPosition::after(self.rows().await?.floor))
    }

    async fn feed(&self, after: FeedPosition, most: NonZeroU32) -> Result<FeedPage, Error> {
        feed::page(&*self.rows().await?, after, most)
    }

    async fn refresh_indexes(&self) -> Result<(), Error> {
        Ok(())
    }

    fn ability(&self, test: &Test) -> Ability {
        match test.column {
            Column::Indexed(_) => Ability::None,
            _ => Ability::Exact,
        }
    }

    fn parts(&self) -> Option<StoreParts> {
        None
    }
}

#[async_trait]
impl Maintenance for Memory {
    async fn migrate(&self) -> Result<Vec<i64>, Error> {
        Ok(Vec::new())
    }

    async fn sweep(&self, _most: NonZeroU32, _rest: u32) -> Result<u64, Error> {
        Ok(0)
    }

    async fn sign(&self, _most: NonZeroU32) -> Result<u64, Error> {
        Ok(0)
    }

    async fn purgeable(&self, what: &Purge) -> Result<Purged, Error> {
        let rows = self.rows().await?;
        let of = |result: &ResultName| match what {
            Purge::Parent(parent) => result.parent() == parent,
            Purge::Result(name) => result == name,
            Purge::Record(_) => false,
        };
        let is_record = |name: &&RecordName| match what {
            Purge::Record(record) => *name == record,
            _ => of(name.result()),
        };
        Ok(Purged {
            results: rows.results.keys().filter(|name| of(name)).count() as u64,
            records: rows.records.keys().filter(is_record).count() as u64,
            ..Purged::default()
        })
    }

    async fn purge(&self, what: &Purge, _now: Timestamp) -> Result<Purged, Error> {
        let purged = self.purgeable(what).await?;
        let mut rows = self.rows().await?;
        match what {
            Purge::Parent(parent) => {
                rows.results.retain(|name, _| name.parent() != parent);
                let keeps = |name: &RecordName| name.result().parent() != parent;
                rows.records.retain(|name, _| keeps(name));
            }
            Purge::Result(result) => {
                rows.results.remove(result);
                rows.records.retain(|name, _| name.result() != result);
            }
            Purge::Record(record) => drop(rows.records.remove(record)),
        }
        Ok(purged)
    }

    async fn sweep_objects(&self, _now: Timestamp, _batch: NonZeroU32) -> Result<u64, Error> {
        Ok(0)
    }

    async fn pack_logs(&self, _now: Timestamp, _most: NonZeroU32) -> Result<u64, Error> {
        Ok(0)
    }

    async fn indexes(&self) -> Result<Vec<IndexedPath>, Error> {
        Ok(Vec::new())
    }

    async fn create_index(&self, path: &Path, _: Kind, _: Timestamp) -> Result<IndexedPath, Error> {
        Err(Error::Incompatible(format!(
            "`{path}`: memory has no indexes, every row is looked at"
        )))
    }

    async fn drop_index(&self, path: &Path) -> Result<(), Error> {
        Err(Error::Missing(path.to_string()))
    }

    async fn build_index(&self, field: i64, _most: NonZeroU32) -> Result<Filled, Error> {
        Err(Error::Missing(format!("indexed path {field}")))
    }

    async fn sweep_indexes(&self, _most: NonZeroU32) -> Result<u64, Error> {
        Ok(0)
    }

    /// Maps keep no times: everything is too old.
    async fn prune_feed(&self, _before: Timestamp, _most: NonZeroU32) -> Result<u64, Error> {
        Ok(feed::prune(&mut *self.rows().await?))
    }

    async fn hold_cursor(
        &self,
        name: &str,
        holder: &str,
        time: Duration,
    ) -> Result<Option<FeedPosition>, Error> {
        Ok(feed::hold(&mut *self.rows().await?, name, holder, time))
    }

    async fn advance_cursor(
        &self,
        name: &str,
        holder: &str,
        place: FeedPosition,
        time: Duration,
    ) -> Result<bool, Error> {
        let mut rows = self.rows().await?;
        Ok(feed::advance(&mut rows, (name, holder), place, time))
    }

    async fn secret(&self, name: &str, candidate: &[u8]) -> Result<Vec<u8>, Error> {
        let mut rows = self.rows().await?;
        let secret = rows.secrets.entry(name.to_owned());
        Ok(secret.or_insert_with(|| candidate.to_vec()).clone())
    }

    async fn ping(&self) -> Result<(), Error> {
        self.rows().await.map(drop)
    }

    fn connections(&self) -> Connections {
        Connections {
            busy: 0,
            idle: 0,
            most: 0,
        }
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}
