//! Appending lines: what a caller may send, what is kept of it, and what is told of it.

use std::collections::BTreeSet;

use hindsight_logs::Lines;
use hindsight_storage::{LogAppend, LogKey, LogKind, LogSource, StoredLog};

use super::record::Status;
use crate::service::{Error, Service};
use hindsight_access::RequestContext;
use hindsight_access::auth::{Grant, Guarded, Verb};
use hindsight_filter::model::{LogName, RecordName};
use hindsight_runtime::error::report;
use hindsight_storage as storage;

/// Most bytes of text in one message.
pub const MAX_APPEND: usize = 4 << 20;
/// Longest name of a pod, in bytes.
const MAX_POD: usize = 253;
/// Longest name of a container, in bytes.
const MAX_CONTAINER: usize = 63;
/// The times that lines may have, in microseconds: the years 1 to 9999.
const TIMES: std::ops::Range<i64> = -62_135_596_800_000_000..253_402_300_800_000_000;

/// Lines of one source, as a message brings them.
#[derive(Debug, Clone)]
pub struct AppendAsk {
    /// The log, by the record of its run.
    pub name: LogName,
    /// Where the lines come from.
    pub source: LogSource,
    /// The lines; there may be none.
    pub lines: Lines,
    /// Whether nothing follows.
    pub seal: bool,
}

impl AppendAsk {
    /// Says what of it is wrong in itself.
    pub fn check(&self) -> Result<(), Error> {
        let LogSource {
            pod,
            container,
            restart,
        } = &self.source;
        let named = |field, text: &str, most| match text.len() {
            length if (1..=most).contains(&length) => Ok(()),
            length => Err(Error::Invalid(format!(
                "source.{field} has {length} bytes; want 1 to {most}"
            ))),
        };
        named("pod", pod, MAX_POD)?;
        named("container", container, MAX_CONTAINER)?;
        if *restart < 0 {
            return Err(Error::Invalid(format!(
                "source.restart of {restart} is below 0"
            )));
        }
        let bytes = self.lines.text.len();
        if bytes > MAX_APPEND {
            return Err(Error::Invalid(format!(
                "lines.text has {bytes} bytes; a message may have {MAX_APPEND}"
            )));
        }
        let odd = self.lines.times.iter().find(|time| !TIMES.contains(time));
        odd.map_or(Ok(()), |time| {
            Err(Error::Invalid(format!(
                "lines.times: {time} us since 1970 is not in the years 1 to 9999"
            )))
        })
    }

    fn key(&self) -> LogKey {
        LogKey {
            run: self.name.record().clone(),
            kind: LogKind::Container,
            source: self.source.clone(),
        }
    }
}

impl Service {
    /// Appends what messages bring, each for which `grants` has a grant, and says what is stored of each source, in
    /// their order. Messages before the one that is refused are kept.
    pub async fn append_logs(
        &self,
        by: &RequestContext,
        grants: &[Grant],
        asks: Vec<AppendAsk>,
    ) -> Result<Vec<StoredLog>, Error> {
        let mut stored = Vec::new();
        let mut asks = asks.into_iter().peekable();
        while asks.peek().is_some() {
            // As many messages as are about different sources, or go on with one another.
            let (mut round, mut seals) = (Vec::<LogAppend>::new(), Vec::new());
            while let Some(ask) = asks.peek() {
                let parent = ask.name.record().result().parent();
                let may = |grant: &Grant| grant.check(Verb::Update, Guarded::Logs, parent).is_ok();
                if !grants.iter().any(may) {
                    let first = grants.first();
                    return Err(first.map_or_else(
                        || Error::Invalid("no parent was named".to_owned()),
                        |grant| grant.denied().into(),
                    ));
                }
                let key = ask.key();
                if seals.contains(&key) {
                    break;
                }
                let goes_on = round.iter_mut().find(|append| append.key == key);
                let goes_on = match goes_on {
                    Some(append)
                        if append
                            .parts
                            .last()
                            .is_some_and(|last| ask.lines.first > last.end()) =>
                    {
                        break;
                    }
                    other => other,
                };
                let Some(ask) = asks.next() else { break };
                let seal = ask.seal;
                let lines = self.taken(ask.lines);
                let parts: Vec<_> = Some(lines)
                    .filter(|lines| !lines.is_empty())
                    .into_iter()
                    .collect();
                match goes_on {
                    Some(append) => append.parts.extend(parts),
                    None => round.push(LogAppend {
                        key: key.clone(),
                        parts,
                    }),
                }
                if seal {
                    seals.push(key);
                }
            }
            stored.extend(self.append_round(by, round, &seals).await?);
        }
        Ok(stored)
    }

    /// Lines as they are kept.
    pub(super) fn taken(&self, mut lines: Lines) -> Lines {
        let bytes = lines.text.len();
        let redactions = match self.logs.redaction.is_empty() {
            true => 0,
            false => self.logs.redaction.apply(&mut lines),
        };
        self.logs.metrics.took(lines.len(), bytes, redactions);
        lines
    }

    /// Appends to different sources at once, then seals, then tells of it.
    async fn append_round(
        &self,
        by: &RequestContext,
        round: Vec<LogAppend>,
        seals: &[LogKey],
    ) -> Result<Vec<StoredLog>, Error> {
        let logs = &self.logs;
        let now = self.clock.now();
        let (mut all, mut refused, mut told) = (Vec::new(), None, BTreeSet::<RecordName>::new());
        let mut admitted = Vec::with_capacity(round.len());
        for append in round {
            match logs.admit(&append, seals.contains(&append.key), now).await {
                Ok(()) => admitted.push(append),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        let round = admitted;
        let outcomes = logs.store.append_logs(&round, now).await;
        for (append, outcome) in round.iter().zip(outcomes) {
            match outcome {
                Ok(mut stored) => {
                    let run = &append.key.run;
                    if !append.parts.is_empty() {
                        logs.wake(run).notify_waiters();
                    }
                    let began = append.parts.first().is_some_and(|first| first.first == 0);
                    if seals.contains(&append.key) {
                        stored = logs.store.seal_log(&append.key, now).await?;
                        logs.wake(run).notify_waiters();
                        told.insert(run.clone());
                    } else if began {
                        told.insert(run.clone());
                    }
                    all.push(stored);
                }
                Err(error) => refused = refused.or_else(|| Some(error.into())),
            }
        }
        for run in told {
            let sources = logs.store.logs(&run).await?;
            let status = Status::of(&sources);
            match self.tell_of_log(by, &run, None, &status).await {
                // Another record has the name: lines are kept all the same.
                Err(error @ Error::Invalid(_)) => {
                    let error = report(&error);
                    tracing::warn!(record = %run, error, "no record tells of a log");
                }
                told => drop(told?),
            }
        }
        match refused {
            Some(error) => Err(error),
            None => Ok(all),
        }
    }
}

impl Error {
    /// Whether lines were refused because the result of their run is not there.
    #[must_use]
    pub fn lacks_result(&self) -> bool {
        matches!(self, Self::Store(storage::Error::Missing(_)))
    }
}
