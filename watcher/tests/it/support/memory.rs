//! A server in memory, which can go away, forget and refuse.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use async_trait::async_trait;
use hindsight_proto::{
    names::{Parent, RecordName},
    v1::{AppendLogRequest, LogContainer, LogSource},
};
use hindsight_run::{Upload, View};
use hindsight_watcher::sink::{LineTimes, Severity, Sink, SinkError, Unended, UnendedPage};
use jiff::Timestamp;
use serde_json::Value;
use tokio::{sync::watch, time::Instant};
use tonic::{Code, Status};

use super::LogStore;

#[derive(Debug, Default)]
pub(crate) struct MemorySink {
    state: Mutex<State>,
    changed: watch::Sender<()>,
    asked: Mutex<Hook>,
    stored: Mutex<Hook>,
    is_silent: watch::Sender<bool>,
    pub(crate) logs: LogStore,
}

/// Something that happens once.
#[derive(Default)]
struct Hook(Option<Box<dyn FnOnce() + Send>>);

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hook")
    }
}

#[derive(Debug, Default)]
struct State {
    records: BTreeMap<String, Vec<u8>>,
    results: BTreeMap<String, Upload>,
    /// Every store that changed something, in order.
    writes: Vec<String>,
    calls: usize,
    is_away: bool,
    /// Names of objects that are refused.
    refused: Vec<String>,
    /// The name of objects at which it falls over.
    poison: String,
    /// UIDs of runs that are listed and cannot be read.
    damaged: Vec<String>,
    /// It keeps no logs.
    has_no_logs: bool,
    /// How long it takes to store one.
    takes: Duration,
}

impl MemorySink {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn away(&self, is_away: bool) {
        self.state().is_away = is_away;
    }

    /// From now on knows nothing of logs, or does.
    pub(crate) fn no_logs(&self, has_none: bool) {
        self.state().has_no_logs = has_none;
    }

    /// What a call for logs answers.
    fn log<T>(&self, with: impl FnOnce(&LogStore) -> Result<T, Status>) -> Result<T, SinkError> {
        let has_none = self.state().has_no_logs;
        let refuse = |code, message: &str, severity| SinkError {
            code,
            message: message.to_owned(),
            severity,
            retry_after: None,
        };
        if has_none {
            return Err(refuse(
                "UNIMPLEMENTED",
                "no such service",
                Severity::Lasting,
            ));
        }
        let answer = self.answer("", |_| with(&self.logs))?;
        answer.map_err(|status| match status.code() {
            Code::FailedPrecondition => {
                refuse("FAILED_PRECONDITION", status.message(), Severity::Passing)
            }
            Code::PermissionDenied => {
                refuse("PERMISSION_DENIED", status.message(), Severity::Denied)
            }
            Code::ResourceExhausted => {
                refuse("RESOURCE_EXHAUSTED", status.message(), Severity::Passing)
            }
            _ => refuse("INVALID_ARGUMENT", status.message(), Severity::Lasting),
        })
    }

    /// From now on refuses objects of this name; none with `""`.
    pub(crate) fn refuse(&self, name: &str) {
        let mut state = self.state();
        state.refused.clear();
        if !name.is_empty() {
            state.refused.push(name.to_owned());
        }
    }

    /// From now on cannot read what it stores of this run.
    pub(crate) fn damage(&self, uid: &str) {
        self.state().damaged.push(uid.to_owned());
    }

    /// From now on takes so long to store a run; with zero, nobody waits any longer.
    pub(crate) fn take(&self, time: Duration) {
        self.state().takes = time;
    }

    /// From now on falls over whenever an object of this name comes; never with `""`.
    pub(crate) fn choke_on(&self, name: &str) {
        name.clone_into(&mut self.state().poison);
    }

    /// From now on answers no question about what it stores, or all again.
    pub(crate) fn be_silent(&self, is_silent: bool) {
        self.is_silent.send_replace(is_silent);
    }

    /// Lets something happen in the cluster between the proof of a run and its delete.
    pub(crate) fn when_asked(&self, happens: impl FnOnce() + Send + 'static) {
        self.asked.lock().unwrap().0 = Some(Box::new(happens));
    }

    /// Lets something happen in the cluster while a run is being stored.
    pub(crate) fn when_stored(&self, happens: impl FnOnce() + Send + 'static) {
        self.stored.lock().unwrap().0 = Some(Box::new(happens));
    }

    /// Another client changes the record of the object with this UID.
    pub(crate) fn change(&self, uid: &str, change: impl FnOnce(&mut Value)) {
        let end = format!("/records/{uid}");
        let mut state = self.state();
        let mut records = state.records.iter_mut();
        let (_, bytes) = records.find(|(name, _)| name.ends_with(&end)).unwrap();
        let mut object = serde_json::from_slice(bytes).unwrap();
        change(&mut object);
        *bytes = serde_json::to_vec(&object).unwrap();
    }

    /// Loses every record, as if an old backup had been restored.
    pub(crate) fn forget(&self) {
        self.state().records.clear();
    }

    pub(crate) fn calls(&self) -> usize {
        self.state().calls
    }

    /// How often something was written.
    pub(crate) fn writes(&self) -> usize {
        self.state().writes.len()
    }

    pub(crate) fn records(&self) -> Vec<String> {
        self.state().records.keys().cloned().collect()
    }

    /// The bytes of the record of the object with this UID.
    pub(crate) fn bytes(&self, uid: &str) -> Option<Vec<u8>> {
        let end = format!("/records/{uid}");
        let state = self.state();
        state
            .records
            .iter()
            .find(|(name, _)| name.ends_with(&end))
            .map(|(_, v)| v.clone())
    }

    pub(crate) fn copy(&self, uid: &str) -> Option<Value> {
        self.bytes(uid)
            .map(|bytes| serde_json::from_slice(&bytes).unwrap())
    }

    /// What was sent last for a result.
    pub(crate) fn result(&self, name: &str) -> Option<Upload> {
        self.state().results.get(name).cloned()
    }

    pub(crate) async fn until(&self, holds: impl Fn(&Self) -> bool) {
        let mut changed = self.changed.subscribe();
        while !holds(self) {
            changed.changed().await.unwrap();
        }
    }

    fn answer<T>(&self, name: &str, with: impl FnOnce(&mut State) -> T) -> Result<T, SinkError> {
        let mut state = self.state();
        state.calls += 1;
        let error = |code, message: &str, severity| SinkError {
            code,
            message: message.to_owned(),
            severity,
            retry_after: None,
        };
        let is_poison = !name.is_empty() && state.poison == name;
        let answer = if state.is_away || is_poison {
            Err(error(
                "UNAVAILABLE",
                "nobody is there",
                Severity::Unavailable,
            ))
        } else if state.refused.iter().any(|refused| refused == name) {
            Err(error(
                "INVALID_ARGUMENT",
                "not like that",
                Severity::Lasting,
            ))
        } else {
            Ok(with(&mut state))
        };
        drop(state);
        self.changed.send_replace(());
        answer
    }
}

fn happen(hook: &Mutex<Hook>) {
    let happens = hook.lock().unwrap().0.take();
    if let Some(happens) = happens {
        happens();
    }
}

#[async_trait]
impl Sink for MemorySink {
    async fn store(&self, upload: &Upload, value: &[u8]) -> Result<(), SinkError> {
        let object: Value = serde_json::from_slice(value).unwrap();
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        happen(&self.stored);
        let until = Instant::now() + self.state().takes;
        while self.state().takes > Duration::ZERO && Instant::now() < until {
            let step = (self.state().takes / 50).max(Duration::from_millis(5));
            tokio::time::sleep(step).await;
        }
        self.answer(name, |state| {
            let record = upload.grouping.record.to_string();
            let old = state.records.insert(record.clone(), value.to_vec());
            if old.as_deref() != Some(value) {
                state.writes.push(record);
            }
            if upload.summary.is_some() {
                let result = upload.grouping.record.result().to_string();
                state.results.insert(result, upload.clone());
            }
        })
    }

    async fn stored(&self, record: &RecordName) -> Result<Option<Vec<u8>>, SinkError> {
        happen(&self.asked);
        let mut is_silent = self.is_silent.subscribe();
        is_silent.wait_for(|is_silent| !is_silent).await.unwrap();
        let name = record.to_string();
        self.answer("", |state| {
            if state.damaged.iter().any(|uid| name.ends_with(uid)) {
                return Err(SinkError {
                    code: "DATA_LOSS",
                    message: "it cannot be read".to_owned(),
                    severity: Severity::Lasting,
                    retry_after: None,
                });
            }
            Ok(state.records.get(&name).cloned())
        })?
    }

    async fn append_log(&self, messages: Vec<AppendLogRequest>) -> Result<(), SinkError> {
        self.log(|logs| logs.append(&messages))
    }

    async fn describe_log(&self, log: &str) -> Result<Vec<LogContainer>, SinkError> {
        self.log(|logs| logs.check(log).map(|()| logs.describe(log)))
    }

    async fn log_times(
        &self,
        log: &str,
        source: &LogSource,
        since: Timestamp,
    ) -> Result<LineTimes, SinkError> {
        let lines = self.log(|logs| Ok(logs.read(log, source, since.as_microsecond())))?;
        let mut found = LineTimes::default();
        let mut time = 0;
        for (number, after) in (lines.first_line..).zip(&lines.times) {
            time += after;
            if !lines.holes.contains(&number) {
                found.times.push(time);
            }
        }
        Ok(found)
    }

    async fn unended(
        &self,
        _parent: Option<&Parent>,
        page: &str,
    ) -> Result<UnendedPage, SinkError> {
        // A page has one run.
        self.answer("", |state| {
            let mut unended = state.records.iter().filter_map(|(name, value)| {
                let object: Value = serde_json::from_slice(value).unwrap();
                let view = View::new(&object);
                // Of others the server cannot tell.
                let kind = view.known_kind()?;
                let is_open = !view.finish().done && view.closed().is_none();
                (is_open && name.as_str() > page).then(|| Unended {
                    record: name.parse().unwrap(),
                    data_type: kind.data_type(),
                    uid: view.uid().unwrap().to_owned(),
                    namespace: view.namespace().unwrap().to_owned(),
                })
            });
            let runs: Vec<_> = unended.next().into_iter().collect();
            let next = unended
                .next()
                .and_then(|_| Some(runs.first()?.record.to_string()));
            UnendedPage {
                runs,
                next: next.unwrap_or_default(),
            }
        })
    }
}
