//! Records.

use std::sync::Arc;

use bytes::Bytes;

use super::{Error, ListRequest, Service, commit::AuditPolicy, limits, write};
use crate::query::Page;
use hindsight_access::RequestContext;
use hindsight_access::auth::{Grant, Verb};
use hindsight_filter::model::{Etag, Payload, Record, RecordName, Resource, ResultPattern};
use hindsight_storage as storage;
use hindsight_storage::Change;

const RECORDS: Resource = Resource::Records;

/// What an update does to the payload of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordChange {
    /// What is given replaces what is stored; `None` keeps it. Without an update mask.
    Merge {
        /// Type that replaces the stored one; `None` keeps it.
        data_type: Option<String>,
        /// Payload bytes that replace the stored ones; `None` keeps them.
        value: Option<Bytes>,
    },
    /// The payload becomes exactly this. By an update mask that names it.
    Replace(Option<Payload>),
}

impl RecordChange {
    fn apply(&self, current: Option<&Payload>) -> Option<Payload> {
        match self {
            Self::Replace(payload) => payload.clone(),
            Self::Merge {
                data_type: None,
                value: None,
            } => current.cloned(),
            Self::Merge { data_type, value } => {
                let kept = current.cloned();
                let (old_type, old_value) =
                    kept.map_or_else(Default::default, |kept| (kept.data_type, kept.value));
                Some(Payload::new(
                    data_type.clone().unwrap_or(old_type),
                    value.clone().unwrap_or(old_value),
                ))
            }
        }
    }
}

impl Service {
    /// Stores a new record.
    ///
    /// # Errors
    /// If its result is not there, its name is taken, or its payload is not what its type says.
    pub async fn create_record(
        &self,
        by: &RequestContext,
        grant: &Grant,
        name: RecordName,
        data: Option<Payload>,
    ) -> Result<Record, Error> {
        grant.check(Verb::Create, RECORDS, name.result().parent())?;
        let checked = data.as_ref().map_or(Ok(()), limits::payload);
        self.audited(by, Verb::Create, &name, checked).await?;
        let record = self.new_record(name, data);
        let change = Change::InsertRecord(record.clone());
        self.commit(by, change.into(), AuditPolicy::All).await?;
        Ok(record)
    }

    /// A record as it is stored first.
    pub(super) fn new_record(&self, name: RecordName, data: Option<Payload>) -> Record {
        let now = self.clock.now();
        let uid = write::new_uid(Resource::Records, name.id(), now);
        Record {
            name,
            etag: Etag::new(&uid, now),
            uid,
            create_time: now,
            update_time: now,
            data,
        }
    }

    /// `current` with another payload.
    pub(super) fn changed_record(&self, current: &Record, data: Option<Payload>) -> Record {
        let now = write::after(self.clock.now(), current.update_time);
        Record {
            name: current.name.clone(),
            uid: current.uid.clone(),
            etag: Etag::new(&current.uid, now),
            create_time: current.create_time,
            update_time: now,
            data,
        }
    }

    /// Reads a record.
    ///
    /// # Errors
    /// If it is not there.
    pub async fn get_record(
        &self,
        by: &RequestContext,
        grant: &Grant,
        name: &RecordName,
    ) -> Result<Record, Error> {
        grant.check(Verb::Get, RECORDS, name.result().parent())?;
        let record = self.read_record(by, name).await?;
        self.engine.fits(&record)?;
        Ok(record)
    }

    pub(super) async fn read_record(
        &self,
        by: &RequestContext,
        name: &RecordName,
    ) -> Result<Record, Error> {
        let quota = &by.quota;
        let mut held = quota.expect(usize::MAX).await?;
        let found = self.store.record(name).await?;
        let record = found.ok_or_else(|| storage::Error::Missing(name.to_string()))?;
        quota.was_read(&mut held, record.weight())?;
        quota.keep(held);
        Ok(record)
    }

    /// Changes the payload of a record. Even a change that changes nothing gives a new etag,
    /// because clients chain them.
    ///
    /// # Errors
    /// If it is not there, has another etag, or its payload would not be what its type says.
    pub async fn update_record(
        &self,
        by: &RequestContext,
        grant: &Grant,
        name: &RecordName,
        change: &RecordChange,
        etags: [&str; 2],
    ) -> Result<Record, Error> {
        grant.check(Verb::Update, RECORDS, name.result().parent())?;
        let full = name.to_string();
        let full = full.as_str();
        let step = move || async move {
            let current = self.read_record(by, name).await?;
            write::expect(full, &current.etag, etags)?;
            let data = change.apply(current.data.as_ref());
            data.as_ref().map_or(Ok(()), limits::payload)?;
            let value = self.changed_record(&current, data);
            let change = Change::ReplaceRecord {
                expect: current.etag,
                value: value.clone(),
            };
            Ok((change, value))
        };
        self.update(by, full, etags, step).await
    }

    /// Removes a record.
    ///
    /// # Errors
    /// If it is not there.
    pub async fn delete_record(
        &self,
        by: &RequestContext,
        grant: &Grant,
        name: &RecordName,
    ) -> Result<(), Error> {
        grant.check(Verb::Delete, RECORDS, name.result().parent())?;
        let find = || async { Ok(self.store.record(name).await?.map(|found| found.etag)) };
        let change = |expect| Change::DeleteRecord {
            name: name.clone(),
            expect,
        };
        self.delete(by, name, find, change).await
    }

    /// One page of the records of the results called `result` (`None`: of every result) under
    /// the parent that `grant` is for.
    ///
    /// # Errors
    /// If filter, order or token are wrong.
    pub async fn list_records(
        &self,
        by: &RequestContext,
        grant: &Grant,
        result: Option<String>,
        request: ListRequest,
    ) -> Result<Page<Record>, Error> {
        let parent = grant.scope(Verb::List, RECORDS)?.clone();
        let scope = ResultPattern { parent, id: result };
        let list = self.list(&by.quota, request, RECORDS, scope, "ListRecords");
        let list = list.await?;
        let engine = self.engine.with_quota(&by.quota);
        let (scope, filter) = (list.scope.clone(), Arc::clone(&list.filter));
        let is_first = list.token.is_empty();
        let mut page = engine.records(list).await?;
        if page.items.is_empty() && page.next.is_empty() && is_first {
            page.advice = engine.advice(scope, filter).await?;
        }
        Ok(page)
    }
}
