//! The one way to the store for what changes it: with a line in the audit log for each change, and
//! for each that was refused on its way there.

use std::{fmt::Display, sync::Arc};

use tracing::Instrument as _;

use super::{Error, Service};
use hindsight_access::RequestContext;
use hindsight_access::audit::{AuditEvent, Changed, Expired};
use hindsight_access::auth::Verb;
use hindsight_filter::model::{Etag, ResultName};
use hindsight_runtime::error::HasKind as _;
use hindsight_storage as storage;
use hindsight_storage::{Batch, Change};

/// How often a delete is tried again that lost against an update.
const RACES: usize = 64;

/// Which outcomes of a commit are written to the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuditPolicy {
    /// Every outcome, also of writes that lost a race.
    All,
    /// Not that another writer changed it first, because then it is tried again.
    UnlessStale,
    /// Not that another writer was faster, because then it is tried again.
    UnlessLost,
}

impl AuditPolicy {
    fn covers(self, outcome: Result<(), &storage::Error>) -> bool {
        let is_stale = matches!(outcome, Err(storage::Error::Stale { .. }));
        match self {
            Self::All => true,
            Self::UnlessStale => !is_stale,
            Self::UnlessLost => !outcome.is_err_and(lost),
        }
    }
}

/// Somebody else was faster: the row changed, came or went since it was read.
pub(super) fn lost(error: &storage::Error) -> bool {
    matches!(
        error,
        storage::Error::Stale { .. } | storage::Error::Missing(_) | storage::Error::Exists(_)
    )
}

impl Service {
    /// Writes to the audit log that a request asked to do this with what has the name,
    /// and was refused.
    pub async fn audit_refused(
        &self,
        by: &RequestContext,
        verb: Verb,
        name: &(dyn Display + Sync),
        why: &Error,
    ) {
        if self.audit.is_on() {
            let (name, now) = (name.to_string(), self.clock.now());
            let line = AuditEvent::refused(by, verb, name, why.kind(), now);
            self.audit.write(vec![line]).await;
        }
    }

    /// Writes to the audit log that a read was denied, where that is configured.
    pub async fn audit_denied_read(
        &self,
        by: &RequestContext,
        verb: Verb,
        name: &(dyn Display + Sync),
        why: &Error,
    ) {
        if self.audit.has_denied_reads() {
            self.audit_refused(by, verb, name, why).await;
        }
    }

    /// Gives back `prepared`, and writes it to the audit log if it is a refusal.
    ///
    /// # Errors
    /// The refusal in `prepared`, once it is in the audit log.
    pub async fn audited<T>(
        &self,
        by: &RequestContext,
        verb: Verb,
        name: &(dyn Display + Sync),
        prepared: Result<T, Error>,
    ) -> Result<T, Error> {
        if let Err(why) = &prepared {
            self.audit_refused(by, verb, name, why).await;
        }
        prepared
    }

    /// Commits a batch for the request `by`, for which it has a grant. Once begun it is done and
    /// audited, also if the caller goes away.
    pub(super) async fn commit(
        &self,
        by: &RequestContext,
        batch: Batch,
        policy: AuditPolicy,
    ) -> Result<(), storage::Error> {
        if !self.audit.is_on() {
            return self.store.commit(&batch).await;
        }
        let lines = self.lines(batch.changes.iter().map(|change| (by, change)));
        self.commit_told(batch, policy, lines).await
    }

    /// Commits a batch by which retention deletes a result; false if another was faster. The audit log has it before it is
    /// done, so that nothing goes without a line, and what came of it afterwards. It fails if the store or
    /// the audit log does not do it.
    pub async fn expire(
        &self,
        by: &RequestContext,
        batch: Batch,
        expired: Expired,
    ) -> Result<bool, Error> {
        let lines = self.lines(batch.changes.iter().map(|change| (by, change)));
        let lines: Vec<_> = lines
            .into_iter()
            .map(|line| line.expired(expired.clone()))
            .collect();
        let ahead = lines.iter().map(AuditEvent::pending).collect();
        let written = self.audit.write_ahead(ahead).await;
        written.map_err(|error| storage::Error::Unavailable {
            what: "writing the audit log",
            source: Box::new(error),
        })?;
        let told = self.commit_told(batch, AuditPolicy::All, lines);
        match told.await {
            Err(error) if lost(&error) => Ok(false),
            outcome => Ok(outcome.map(|()| true)?),
        }
    }

    /// Commits a batch, and writes these lines about it.
    async fn commit_told(
        &self,
        batch: Batch,
        policy: AuditPolicy,
        lines: Vec<AuditEvent>,
    ) -> Result<(), storage::Error> {
        let (store, audit) = (Arc::clone(&self.store), self.audit.clone());
        let work = async move {
            let outcome = store.commit(&batch).await;
            let came = outcome.as_ref().copied();
            if policy.covers(came) {
                let lines = lines.into_iter().map(|line| line.ended(came));
                audit.write(lines.collect()).await;
            }
            outcome
        };
        let task = tokio::spawn(work.in_current_span());
        task.await.unwrap_or_else(|broken| Err(stopped(broken)))
    }

    /// Commits changes each by itself, of which some may fail.
    pub(super) async fn commit_each(
        &self,
        by: &[&RequestContext],
        changes: Vec<Change>,
    ) -> Vec<Result<(), storage::Error>> {
        if !self.audit.is_on() {
            return self.store.commit_each(&changes).await;
        }
        let (store, audit) = (Arc::clone(&self.store), self.audit.clone());
        let lines = self.lines(by.iter().copied().zip(&changes));
        let count = changes.len();
        let work = async move {
            let outcomes = store.commit_each(&changes).await;
            let lines = lines
                .into_iter()
                .zip(&outcomes)
                .filter_map(|(line, outcome)| {
                    let came = outcome.as_ref().copied();
                    AuditPolicy::UnlessLost
                        .covers(came)
                        .then(|| line.ended(came))
                });
            audit.write(lines.collect()).await;
            outcomes
        };
        let task = tokio::spawn(work.in_current_span());
        task.await.unwrap_or_else(|broken| {
            let text = broken.to_string();
            let each = || stopped(std::io::Error::other(text.clone()));
            std::iter::repeat_with(|| Err(each())).take(count).collect()
        })
    }

    fn lines<'a>(
        &self,
        changes: impl Iterator<Item = (&'a RequestContext, &'a Change)>,
    ) -> Vec<AuditEvent> {
        let now = self.clock.now();
        changes
            .map(|(by, change)| AuditEvent::new(by, changed(change), now))
            .collect()
    }

    /// Deletes what `find` gives the etag of. Where deletes are audited the etag is part of it,
    /// so that exactly what the audit log says is deleted.
    pub(super) async fn delete<F>(
        &self,
        by: &RequestContext,
        name: &(dyn Display + Sync),
        find: impl Fn() -> F,
        change: impl Fn(Option<Etag>) -> Change,
    ) -> Result<(), Error>
    where
        F: Future<Output = Result<Option<Etag>, storage::Error>>,
    {
        for _ in 0..RACES {
            let expect = if self.audit.is_on() {
                let found = find().await.map_err(Error::from);
                self.audited(by, Verb::Delete, name, found).await?
            } else {
                None
            };
            match self
                .commit(by, change(expect).into(), AuditPolicy::UnlessStale)
                .await
            {
                Err(storage::Error::Stale { .. }) => {}
                outcome => return Ok(outcome?),
            }
        }
        Ok(self
            .commit(by, change(None).into(), AuditPolicy::All)
            .await?)
    }
}

/// How the hold of a result is called.
pub(super) fn hold_name(result: &ResultName) -> String {
    format!("{result}/hold")
}

/// What the audit log says of a change.
fn changed(change: &Change) -> Changed {
    let hold;
    let (verb, name, before, after): (_, &dyn Display, _, _) = match change {
        Change::InsertResult(new) => (Verb::Create, &new.name, None, Some(&new.etag)),
        Change::InsertRecord(new) | Change::ReturnRecord { value: new, .. } => {
            (Verb::Create, &new.name, None, Some(&new.etag))
        }
        Change::ReplaceResult { expect, value } => {
            (Verb::Update, &value.name, Some(expect), Some(&value.etag))
        }
        Change::ReplaceRecord { expect, value } => {
            (Verb::Update, &value.name, Some(expect), Some(&value.etag))
        }
        Change::DeleteResult { name, expect } => (Verb::Delete, name, expect.as_ref(), None),
        Change::ExpireResult { name, version, .. } => {
            (Verb::Delete, name, Some(&version.etag), None)
        }
        Change::ArchiveResult { name, version, .. } => {
            (Verb::Update, name, Some(&version.etag), Some(&version.etag))
        }
        Change::ReturnResult { name, .. } => (Verb::Update, name, None, None),
        Change::InsertHold(new) => {
            hold = hold_name(&new.result);
            (Verb::Create, &hold, None, None)
        }
        Change::DeleteHold { name } => {
            hold = hold_name(name);
            (Verb::Delete, &hold, None, None)
        }
        Change::DeleteRecord { name, expect } => (Verb::Delete, name, expect.as_ref(), None),
    };
    let text = |etag: &Etag| etag.as_str().to_owned();
    Changed {
        verb,
        name: name.to_string(),
        before: before.map(text),
        after: after.map(text),
    }
}

/// Only a server that stops gives up such work.
fn stopped(error: impl std::error::Error + Send + Sync + 'static) -> storage::Error {
    storage::Error::Unavailable {
        what: "committing",
        source: Box::new(error),
    }
}
