//! Logs of runs: who may do what with them, and which run a name means.

mod append;
mod elsewhere;
mod list;
mod metrics;
mod place;
mod quota;
mod read;
mod record;
mod run;
mod search;
mod text;
mod upload;

use std::{
    collections::BTreeMap,
    fmt::Display,
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};

use hindsight_logs::{Redaction, Template};
use hindsight_run::View;
use hindsight_storage::{LogStore, StoredLog};
use tokio::sync::Notify;

pub use append::{AppendAsk, MAX_APPEND};
pub use elsewhere::{AskedLog, HomeError, LogHome, LogHomes, Spool};
pub use list::StoredLogs;
pub use metrics::LogMetrics;
pub use read::{LogReading, ReadAsk};
pub use search::{LogHit, SearchAsk, Searched};
pub use text::{LogText, PART};
pub use upload::Upload;

use elsewhere::Lent;
use place::Place;

use super::{Error, ListRequest, Service};
use crate::query::Page;
use hindsight_access::RequestContext;
use hindsight_access::audit::{AuditEvent, Changed};
use hindsight_access::auth::{Grant, Guarded, Verb};
use hindsight_access::budget::QuotaGuard;
use hindsight_filter::Filter;
use hindsight_filter::model::{LogName, Record, RecordName, Resource, ResultName, ResultPattern};
use hindsight_storage as storage;

/// Which records tell of logs, as a filter.
const LOG_RECORDS: &str =
    r#"data_type in ["results.tekton.dev/v1alpha3.Log", "results.tekton.dev/v1alpha2.Log"]"#;

/// How many sets of runs are told apart by those who wait for lines.
const WAKES: usize = 64;

/// Where logs are kept, and what is done to them on their way there. Clones share it.
#[derive(Debug, Clone)]
pub struct Logs {
    pub(super) store: Arc<dyn LogStore>,
    redaction: Arc<Redaction>,
    homes: Arc<LogHomes>,
    link: Option<Arc<Template>>,
    quota: Arc<quota::Quota>,
    metrics: LogMetrics,
    wakes: Arc<[Notify]>,
    hasher: RandomState,
}

impl Logs {
    /// Logs in `store`, in which what `redaction` matches is replaced before. Those that are not stored are
    /// read from `homes`.
    pub fn new(
        store: Arc<dyn LogStore>,
        homes: LogHomes,
        redaction: Redaction,
        metrics: LogMetrics,
    ) -> Self {
        Self {
            store,
            redaction: Arc::new(redaction),
            homes: Arc::new(homes),
            link: None,
            quota: Arc::default(),
            metrics,
            wakes: std::iter::repeat_with(Notify::new).take(WAKES).collect(),
            hasher: RandomState::new(),
        }
    }

    /// The same, where people find a log that is not here at the address that a template gives.
    #[must_use]
    pub fn with_link(self, link: Option<Template>) -> Self {
        let link = link.map(Arc::new);
        Self { link, ..self }
    }

    /// The same, of which the lines of each parent have so many bytes at most.
    #[must_use]
    pub fn with_quota(self, most: Option<u64>) -> Self {
        let quota = Arc::new(quota::Quota::of(most));
        Self { quota, ..self }
    }

    /// What is notified when something is appended to logs of this run, and of others.
    fn wake(&self, run: &RecordName) -> &Notify {
        let hash = usize::try_from(self.hasher.hash_one(run) >> 32).unwrap_or_default();
        &self.wakes[hash % WAKES]
    }

    /// What is notified, as something that outlives a borrow.
    fn waker(&self, run: &RecordName) -> (Arc<[Notify]>, usize) {
        let hash = usize::try_from(self.hasher.hash_one(run) >> 32).unwrap_or_default();
        (Arc::clone(&self.wakes), hash % WAKES)
    }
}

/// What there is of the logs of a run.
#[derive(Debug)]
pub struct LogsOfRun {
    /// The sources, in the order in which they began.
    pub sources: Vec<StoredLog>,
    /// Whether they are stored, and not read from another system.
    pub is_stored: bool,
    /// Where people find the log, if there is none here.
    pub link: Option<String>,
}

/// The run that a name means, and what is stored of its logs.
struct Found {
    /// The record that its logs belong to, which need not be there.
    run: RecordName,
    /// The record with the name that was asked for, if it was looked up and is there.
    record: Option<Named>,
    sources: Vec<StoredLog>,
    /// Where the sources are read.
    place: Place,
}

impl Found {
    /// The record of the run, which need not be there.
    fn record_of_run(&self) -> &RecordName {
        match &self.record {
            Some(record) if !record.is_log => &record.name,
            _ => &self.run,
        }
    }
}

/// A record that was looked up.
struct Named {
    name: RecordName,
    /// Whether it tells of a log, and is not of a run.
    is_log: bool,
}

/// The sources of a log, wherever they are.
struct Anywhere {
    sources: Vec<StoredLog>,
    /// Where they are read.
    place: Place,
    /// Whether another system was asked.
    is_asked: bool,
}

/// What another system has of a run.
enum Asked {
    /// It was not asked.
    Nowhere,
    /// It has nothing.
    Absent,
    Found(Arc<Lent>),
}

fn missing(name: &LogName) -> Error {
    Error::Store(storage::Error::Missing(name.to_string()))
}

impl Service {
    /// Finds what a name means: by the run itself, by the record that tells of its log, or by the UID of its
    /// object; all within the result that the name says.
    async fn find_log(&self, quota: &QuotaGuard, name: &LogName) -> Result<Found, Error> {
        let store = &self.logs.store;
        let asked = name.record();
        let sources = store.logs(asked).await?;
        if !sources.is_empty() {
            return Ok(Found {
                run: asked.clone(),
                record: None,
                sources,
                place: Place::Stored(Arc::clone(store)),
            });
        }
        // What is told apart here is short, and its payload is not held while lines are read.
        let part = quota.part();
        let look = self.look_at(&part, asked, |record, object| {
            let is_log = record::is_log(record);
            let subject = object.and_then(|object| record::subject(is_log, &object));
            (is_log, subject)
        });
        let Some((is_log, subject)) = look.await? else {
            return Err(missing(name));
        };
        drop(part);
        let run = match subject {
            Some(uid) => asked
                .result()
                .record(&uid)
                .unwrap_or_else(|_odd| asked.clone()),
            None => asked.clone(),
        };
        let sources = match run == *asked {
            true => Vec::new(),
            false => store.logs(&run).await?,
        };
        Ok(Found {
            run,
            record: Some(Named {
                name: asked.clone(),
                is_log,
            }),
            sources,
            place: Place::Stored(Arc::clone(store)),
        })
    }

    /// What a name means, and where nothing is stored of it, what another system has.
    async fn find_log_anywhere(&self, quota: &QuotaGuard, name: &LogName) -> Result<Found, Error> {
        let mut found = self.find_log(quota, name).await?;
        if found.sources.is_empty()
            && let Asked::Found(lent) = self.lent(quota, found.record_of_run()).await?
        {
            found.sources = lent.sources.clone();
            found.place = Place::Lent(lent);
        }
        Ok(found)
    }

    /// What is stored of a run, or else what another system has, at the expense of `quota`.
    async fn sources_for(&self, quota: &QuotaGuard, run: &RecordName) -> Result<Anywhere, Error> {
        let mut anywhere = Anywhere {
            sources: self.logs.store.logs(run).await?,
            place: Place::Stored(Arc::clone(&self.logs.store)),
            is_asked: false,
        };
        if anywhere.sources.is_empty() {
            let asked = self.lent(quota, run).await?;
            anywhere.is_asked = !matches!(asked, Asked::Nowhere);
            if let Asked::Found(lent) = asked {
                anywhere.sources = lent.sources.clone();
                anywhere.place = Place::Lent(lent);
            }
        }
        Ok(anywhere)
    }

    /// The log of a run that is not stored, if another system has it.
    async fn lent(&self, quota: &QuotaGuard, run: &RecordName) -> Result<Asked, Error> {
        let logs = &self.logs;
        if logs.homes.is_empty() {
            return Ok(Asked::Nowhere);
        }
        let Some(asked) = self.asked_log(quota, run).await? else {
            return Ok(Asked::Nowhere);
        };
        let found = logs.homes.read(asked, &logs.redaction, &logs.metrics);
        Ok(found.await?.map_or(Asked::Absent, Asked::Found))
    }

    /// What is known of a run whose log is kept elsewhere; none without its record.
    async fn asked_log(
        &self,
        quota: &QuotaGuard,
        run: &RecordName,
    ) -> Result<Option<AskedLog>, Error> {
        let Some(result) = self.store.result(run.result()).await? else {
            return Ok(None);
        };
        let (part, name, now) = (quota.part(), run.clone(), self.clock.now());
        let look = self.look_at(&part, run, move |record, object| {
            let object = object.filter(|_| !record::is_of_results(record))?;
            let view = View::new(&object);
            let log = record::id(&result.uid, view.uid().unwrap_or(name.id()));
            let times = (record.create_time, now);
            Some(AskedLog::new(name.clone(), &view, times, log))
        });
        Ok(look.await?.flatten())
    }

    /// What there is of the logs of a run: with `only_stored` what is stored, else what another system has where
    /// nothing is, and the address of that. It fails if there is neither a log nor a record of that name.
    pub async fn describe_log(
        &self,
        by: &RequestContext,
        grant: &Grant,
        name: &LogName,
        only_stored: bool,
    ) -> Result<LogsOfRun, Error> {
        grant.check(Verb::Get, Guarded::Logs, name.record().result().parent())?;
        let found = match only_stored {
            true => self.find_log(&by.quota, name).await?,
            false => self.find_log_anywhere(&by.quota, name).await?,
        };
        let link = match (found.sources.is_empty(), &self.logs.link) {
            (true, Some(link)) => self
                .asked_log(&by.quota, found.record_of_run())
                .await?
                .and_then(|it| it.link(link)),
            _ => None,
        };
        Ok(LogsOfRun {
            is_stored: matches!(found.place, Place::Stored(_)),
            sources: found.sources,
            link,
        })
    }

    /// Removes the logs of a run and the record that tells of them; the record of the run stays.
    pub async fn delete_log(
        &self,
        by: &RequestContext,
        grant: &Grant,
        name: &LogName,
    ) -> Result<(), Error> {
        grant.check(Verb::Delete, Guarded::Logs, name.record().result().parent())?;
        let deleted = self.delete_found(by, name).await;
        self.audit_change(by, Verb::Delete, name, deleted.as_ref().copied())
            .await;
        deleted
    }

    async fn delete_found(&self, by: &RequestContext, name: &LogName) -> Result<(), Error> {
        let found = self.find_log(&by.quota, name).await?;
        let told = self.log_record_of(&by.quota, &found).await?;
        if found.sources.is_empty() && told.is_none() {
            return Err(missing(name));
        }
        self.logs.store.delete_logs(&found.run).await?;
        let Some(told) = told else {
            return Ok(());
        };
        let change = storage::Change::DeleteRecord {
            name: told,
            expect: None,
        };
        match self.commit_log_record(by, change).await {
            Err(storage::Error::Missing(_)) => Ok(()),
            outcome => Ok(outcome?),
        }
    }

    /// One page of the records that tell of logs.
    pub async fn list_logs(
        &self,
        by: &RequestContext,
        grant: &Grant,
        result: Option<String>,
        request: ListRequest,
    ) -> Result<Page<Record>, Error> {
        let parent = grant.scope(Verb::List, Guarded::Logs)?.clone();
        let scope = ResultPattern { parent, id: result };
        let list = self.list(&by.quota, request, Resource::Records, scope, "ListLogs");
        let mut list = list.await?;
        // The filter of the caller is a whole one by itself: its text cannot reach past this.
        let logs = Filter::compile(LOG_RECORDS, Resource::Records)?;
        list.filter = Arc::new(Filter::all([(*list.filter).clone(), logs]));
        Ok(self.engine.with_quota(&by.quota).records(list).await?)
    }

    /// Writes a change of what is in no store, such as a log, to the audit log.
    pub async fn audit_change(
        &self,
        by: &RequestContext,
        verb: Verb,
        name: &(dyn Display + Sync),
        outcome: Result<(), &Error>,
    ) {
        if self.audit.is_on() {
            let changed = Changed {
                verb,
                name: name.to_string(),
                before: None,
                after: None,
            };
            let line = AuditEvent::new(by, changed, self.clock.now());
            let line = line.ended(outcome);
            self.audit.write(vec![line]).await;
        }
    }

    /// What time it is for requests.
    pub fn now(&self) -> jiff::Timestamp {
        self.clock.now()
    }

    /// Whether a result is there.
    pub async fn has_result(&self, name: &ResultName) -> Result<bool, Error> {
        Ok(self.store.result(name).await?.is_some())
    }

    /// Makes a result that has nothing yet, for a run whose lines come before its record.
    pub async fn make_result(
        &self,
        by: &RequestContext,
        grant: &Grant,
        name: ResultName,
    ) -> Result<(), Error> {
        match self
            .create_result(by, grant, name, BTreeMap::new(), None)
            .await
        {
            Ok(_) | Err(Error::Store(storage::Error::Exists(_))) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
