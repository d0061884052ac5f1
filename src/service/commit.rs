//! The one way to the store for what changes it: with a line in the audit log for each change, and
//! for each that was refused on its way there.

use std::{fmt::Display, sync::Arc};

use tracing::Instrument as _;

use super::{Error, Service};
use hindsight_access::audit::{Changed, Line};
use hindsight_access::auth::{Caller, Grant, Verb};
use hindsight_filter::model::Etag;
use hindsight_runtime::error::HasKind as _;
use hindsight_storage as storage;
use hindsight_storage::{Batch, Change};

/// How often a delete is tried again that lost against an update.
const RACES: usize = 64;

/// Which outcomes are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// Whatever it is.
    All,
    /// Not that somebody else changed it first, because then it is tried again.
    UnlessStale,
    /// Not that somebody else was faster, because then it is tried again.
    UnlessLost,
}

impl Told {
    fn tells(self, outcome: Result<(), &storage::Error>) -> bool {
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
    /// Tells that `caller` asked to do this with what has the name, and was refused.
    pub async fn tell_refused(
        &self,
        caller: &Caller,
        request: Option<&str>,
        verb: Verb,
        name: &(dyn Display + Sync),
        why: &Error,
    ) {
        if self.audit.is_on() {
            let (name, now) = (name.to_string(), self.clock.now());
            let line = Line::refused(caller, verb, name, why.kind(), now);
            self.audit.tell(vec![line.in_request(request)]).await;
        }
    }

    /// Tells of a read that is denied, where that is wanted.
    pub async fn tell_denied_read(
        &self,
        caller: &Caller,
        request: Option<&str>,
        verb: Verb,
        name: &(dyn Display + Sync),
        why: &Error,
    ) {
        if self.audit.tells_denied_reads() {
            self.tell_refused(caller, request, verb, name, why).await;
        }
    }

    /// Gives back what `by` is used with, and tells if it is a refusal.
    ///
    /// # Errors
    /// The refusal in `prepared`, once it is in the audit log.
    pub async fn told<T>(
        &self,
        by: &Grant,
        verb: Verb,
        name: &(dyn Display + Sync),
        prepared: Result<T, Error>,
    ) -> Result<T, Error> {
        if let Err(why) = &prepared {
            self.tell_refused(by.caller(), by.request(), verb, name, why)
                .await;
        }
        prepared
    }

    /// Commits a batch that `by` gives leave for. Once begun it is done and told, also if the
    /// caller goes away.
    pub(super) async fn commit(
        &self,
        by: &Grant,
        batch: Batch,
        told: Told,
    ) -> Result<(), storage::Error> {
        if !self.audit.is_on() {
            return self.store.commit(&batch).await;
        }
        let (store, audit) = (Arc::clone(&self.store), self.audit.clone());
        let lines = self.lines(batch.changes.iter().map(|change| (by, change)));
        let work = async move {
            let outcome = store.commit(&batch).await;
            let came = outcome.as_ref().copied();
            if told.tells(came) {
                let lines = lines.into_iter().map(|line| line.ended(came));
                audit.tell(lines.collect()).await;
            }
            outcome
        };
        let task = tokio::spawn(work.in_current_span());
        task.await.unwrap_or_else(|broken| Err(stopped(broken)))
    }

    /// Commits changes each by itself, of which some may fail.
    pub(super) async fn commit_each(
        &self,
        by: Vec<Grant>,
        changes: Vec<Change>,
    ) -> Vec<Result<(), storage::Error>> {
        if !self.audit.is_on() {
            return self.store.commit_each(&changes).await;
        }
        let (store, audit) = (Arc::clone(&self.store), self.audit.clone());
        let lines = self.lines(by.iter().zip(&changes));
        let count = changes.len();
        let work = async move {
            let outcomes = store.commit_each(&changes).await;
            let lines = lines
                .into_iter()
                .zip(&outcomes)
                .filter_map(|(line, outcome)| {
                    let came = outcome.as_ref().copied();
                    Told::UnlessLost.tells(came).then(|| line.ended(came))
                });
            audit.tell(lines.collect()).await;
            outcomes
        };
        let task = tokio::spawn(work.in_current_span());
        task.await.unwrap_or_else(|broken| {
            let text = broken.to_string();
            let each = || stopped(std::io::Error::other(text.clone()));
            std::iter::repeat_with(|| Err(each())).take(count).collect()
        })
    }

    fn lines<'a>(&self, changes: impl Iterator<Item = (&'a Grant, &'a Change)>) -> Vec<Line> {
        let now = self.clock.now();
        changes
            .map(|(by, change)| Line::new(by, changed(change), now))
            .collect()
    }

    /// Deletes what `find` gives the etag of. Where deletes are told the etag is part of it, so
    /// that exactly what is told is deleted.
    pub(super) async fn delete<F>(
        &self,
        by: &Grant,
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
                self.told(by, Verb::Delete, name, found).await?
            } else {
                None
            };
            match self
                .commit(by, change(expect).into(), Told::UnlessStale)
                .await
            {
                Err(storage::Error::Stale { .. }) => {}
                outcome => return Ok(outcome?),
            }
        }
        Ok(self.commit(by, change(None).into(), Told::All).await?)
    }
}

/// What the audit log says of a change.
fn changed(change: &Change) -> Changed {
    let (verb, name, before, after): (_, &dyn Display, _, _) = match change {
        Change::InsertResult(new) => (Verb::Create, &new.name, None, Some(&new.etag)),
        Change::InsertRecord(new) => (Verb::Create, &new.name, None, Some(&new.etag)),
        Change::ReplaceResult { expect, value } => {
            (Verb::Update, &value.name, Some(expect), Some(&value.etag))
        }
        Change::ReplaceRecord { expect, value } => {
            (Verb::Update, &value.name, Some(expect), Some(&value.etag))
        }
        Change::DeleteResult { name, expect } => (Verb::Delete, name, expect.as_ref(), None),
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
