//! Results.

use std::collections::BTreeMap;

use super::{Error, ListRequest, Service, commit::AuditPolicy, limits, write};
use crate::query::Page;
use hindsight_access::RequestContext;
use hindsight_access::auth::{Grant, Verb};
use hindsight_filter::model::{Etag, Resource, ResultName, ResultPattern, RunResult, Summary};
use hindsight_storage as storage;
use hindsight_storage::Change;

const RESULTS: Resource = Resource::Results;

fn check(
    name: &ResultName,
    annotations: &BTreeMap<String, String>,
    summary: Option<&Summary>,
) -> Result<(), Error> {
    limits::annotations("annotations", annotations.iter())?;
    summary.map_or(Ok(()), |summary| limits::summary(summary, name.parent()))
}

impl Service {
    /// Stores a new result.
    ///
    /// # Errors
    /// If its name is taken, or its summary is not one.
    pub async fn create_result(
        &self,
        by: &RequestContext,
        grant: &Grant,
        name: ResultName,
        annotations: BTreeMap<String, String>,
        summary: Option<Summary>,
    ) -> Result<RunResult, Error> {
        grant.check(Verb::Create, RESULTS, name.parent())?;
        let checked = check(&name, &annotations, summary.as_ref());
        self.audited(by, Verb::Create, &name, checked).await?;
        let result = self.new_result(name, annotations, summary);
        let change = Change::InsertResult(result.clone());
        self.commit(by, change.into(), AuditPolicy::All).await?;
        Ok(result)
    }

    /// A result as it is stored first.
    pub(super) fn new_result(
        &self,
        name: ResultName,
        annotations: BTreeMap<String, String>,
        summary: Option<Summary>,
    ) -> RunResult {
        let now = self.clock.now();
        let uid = write::new_uid(Resource::Results, name.id(), now);
        RunResult {
            name,
            etag: Etag::new(&uid, now),
            uid,
            create_time: now,
            update_time: now,
            annotations,
            summary,
        }
    }

    /// `current` in another state.
    pub(super) fn changed_result(
        &self,
        current: &RunResult,
        annotations: BTreeMap<String, String>,
        summary: Option<Summary>,
    ) -> RunResult {
        let now = write::after(self.clock.now(), current.update_time);
        RunResult {
            name: current.name.clone(),
            uid: current.uid.clone(),
            etag: Etag::new(&current.uid, now),
            create_time: current.create_time,
            update_time: now,
            annotations,
            summary,
        }
    }

    /// Reads a result.
    ///
    /// # Errors
    /// If it is not there.
    pub async fn get_result(&self, grant: &Grant, name: &ResultName) -> Result<RunResult, Error> {
        grant.check(Verb::Get, RESULTS, name.parent())?;
        self.read_result(name).await
    }

    async fn read_result(&self, name: &ResultName) -> Result<RunResult, Error> {
        let found = self.store.result(name).await?;
        found.ok_or_else(|| storage::Error::Missing(name.to_string()).into())
    }

    /// Replaces annotations and summary of a result. `etags` are those sent with the request
    /// and in the resource; empty ones ask for nothing.
    ///
    /// # Errors
    /// If it is not there, has another etag, or its summary is not one.
    pub async fn update_result(
        &self,
        by: &RequestContext,
        grant: &Grant,
        name: &ResultName,
        annotations: BTreeMap<String, String>,
        summary: Option<Summary>,
        etags: [&str; 2],
    ) -> Result<RunResult, Error> {
        grant.check(Verb::Update, RESULTS, name.parent())?;
        let checked = check(name, &annotations, summary.as_ref());
        self.audited(by, Verb::Update, name, checked).await?;
        let full = name.to_string();
        let (full, annotations, summary) = (full.as_str(), &annotations, &summary);
        let step = move || async move {
            let current = self.read_result(name).await?;
            write::expect(full, &current.etag, etags)?;
            let value = self.changed_result(&current, annotations.clone(), summary.clone());
            let change = Change::ReplaceResult {
                expect: current.etag,
                value: value.clone(),
            };
            Ok((change, value))
        };
        self.update(by, full, etags, step).await
    }

    /// Removes a result and its records.
    ///
    /// # Errors
    /// If it is not there.
    pub async fn delete_result(
        &self,
        by: &RequestContext,
        grant: &Grant,
        name: &ResultName,
    ) -> Result<(), Error> {
        grant.check(Verb::Delete, RESULTS, name.parent())?;
        let find = || async { Ok(self.store.result(name).await?.map(|found| found.etag)) };
        let change = |expect| Change::DeleteResult {
            name: name.clone(),
            expect,
        };
        self.delete(by, name, find, change).await
    }

    /// One page of the results of the parent that `grant` is for.
    ///
    /// # Errors
    /// If filter, order or token are wrong.
    pub async fn list_results(
        &self,
        by: &RequestContext,
        grant: &Grant,
        request: ListRequest,
    ) -> Result<Page<RunResult>, Error> {
        let parent = grant.scope(Verb::List, RESULTS)?.clone();
        let scope = ResultPattern { parent, id: None };
        let list = self.list(&by.quota, request, RESULTS, scope, "ListResults");
        let list = list.await?;
        Ok(self.engine.with_quota(&by.quota).results(list).await?)
    }
}
