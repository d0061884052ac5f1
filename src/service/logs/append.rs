//! Appending lines: what a caller may send, what is kept of it, and what is told of it.

use std::{collections::BTreeSet, iter::Peekable, vec::IntoIter};

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

/// Messages that are stored together: about different sources, or that go on with one another.
#[derive(Debug, Default)]
struct Round {
    appends: Vec<LogAppend>,
    /// Sources that are sealed after the lines of all are appended.
    seals: Vec<LogKey>,
}

/// What a round did, for the answer and for the audit log.
#[derive(Debug, Default)]
struct Appended {
    /// What is stored of each source.
    stored: Vec<StoredLog>,
    /// Runs of whose logs something was not done, each with the first reason.
    refused: Vec<(RecordName, Error)>,
}

impl Appended {
    fn refuse(&mut self, run: &RecordName, why: Error) {
        if self.refused.iter().all(|(known, _)| known != run) {
            self.refused.push((run.clone(), why));
        }
    }
}

impl Service {
    /// Appends what messages bring, each for which `grants` has a grant, and says what is stored of each source, in
    /// their order. Messages before the one that is refused are kept.
    ///
    /// The audit log has a line for each log that was changed, unless `told` has its run, to which it is added; and
    /// one for each that was refused. A caller that may be given up does this in a task of its own, so that no
    /// lines are stored without theirs.
    pub async fn append_logs(
        &self,
        by: &RequestContext,
        grants: &[Grant],
        asks: Vec<AppendAsk>,
        told: &mut BTreeSet<RecordName>,
    ) -> Result<Vec<StoredLog>, Error> {
        for ask in &asks {
            let may = may_append(grants, &ask.name);
            self.audited(by, Verb::Update, &ask.name, may).await?;
        }
        let mut stored = Vec::new();
        let mut asks = asks.into_iter().peekable();
        while asks.peek().is_some() {
            let round = self.round_of(&mut asks);
            let appended = self.append_round(by, round).await;
            self.audit_appended(by, &appended, told).await;
            if let Some((_, why)) = appended.refused.into_iter().next() {
                return Err(why);
            }
            stored.extend(appended.stored);
        }
        Ok(stored)
    }

    /// As many of the next messages as are about different sources, or go on with one another.
    fn round_of(&self, asks: &mut Peekable<IntoIter<AppendAsk>>) -> Round {
        let mut round = Round::default();
        while let Some(ask) = asks.peek() {
            let key = ask.key();
            if round.seals.contains(&key) {
                break;
            }
            let goes_on = round.appends.iter().position(|append| append.key == key);
            let last = goes_on.and_then(|at| round.appends[at].parts.last());
            if last.is_some_and(|last| ask.lines.first > last.end()) {
                break;
            }
            let Some(ask) = asks.next() else { break };
            let seal = ask.seal;
            let lines = self.taken(ask.lines);
            let parts = Some(lines).filter(|lines| !lines.is_empty());
            match goes_on {
                Some(at) => round.appends[at].parts.extend(parts),
                None => round.appends.push(LogAppend {
                    key: key.clone(),
                    parts: parts.into_iter().collect(),
                }),
            }
            if seal {
                round.seals.push(key);
            }
        }
        round
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
    async fn append_round(&self, by: &RequestContext, round: Round) -> Appended {
        let logs = &self.logs;
        let now = self.clock.now();
        let Round { appends, seals } = round;
        let (mut all, mut told) = (Appended::default(), BTreeSet::<RecordName>::new());
        let mut admitted = Vec::with_capacity(appends.len());
        for append in appends {
            match logs.admit(&append, seals.contains(&append.key), now).await {
                Ok(()) => admitted.push(append),
                Err(why) => all.refuse(&append.key.run, why),
            }
        }
        let outcomes = logs.store.append_logs(&admitted, now).await;
        for (append, outcome) in admitted.iter().zip(outcomes) {
            let run = &append.key.run;
            let mut stored = match outcome {
                Ok(stored) => stored,
                Err(why) => {
                    all.refuse(run, why.into());
                    continue;
                }
            };
            if !append.parts.is_empty() {
                logs.wake(run).notify_waiters();
            }
            let mut is_news = append.parts.first().is_some_and(|first| first.first == 0);
            if seals.contains(&append.key) {
                match logs.store.seal_log(&append.key, now).await {
                    Ok(sealed) => {
                        stored = sealed;
                        logs.wake(run).notify_waiters();
                        is_news = true;
                    }
                    // The lines are stored all the same.
                    Err(why) => all.refuse(run, why.into()),
                }
            }
            if is_news {
                told.insert(run.clone());
            }
            all.stored.push(stored);
        }
        for run in told {
            if let Err(why) = self.tell_of_lines(by, &run).await {
                all.refuse(&run, why);
            }
        }
        all
    }

    /// Brings the record up to date that tells of the log of a run.
    async fn tell_of_lines(&self, by: &RequestContext, run: &RecordName) -> Result<(), Error> {
        let sources = self.logs.store.logs(run).await?;
        let status = Status::of(&sources);
        match self.tell_of_log(by, run, None, &status).await {
            // Another record has the name: lines are kept all the same.
            Err(error @ Error::Invalid(_)) => {
                let error = report(&error);
                tracing::warn!(record = %run, error, "no record tells of a log");
                Ok(())
            }
            told => told.map(drop),
        }
    }

    /// Writes to the audit log what came of a round.
    async fn audit_appended(
        &self,
        by: &RequestContext,
        appended: &Appended,
        told: &mut BTreeSet<RecordName>,
    ) {
        for log in &appended.stored {
            let run = &log.key.run;
            if told.insert(run.clone()) {
                let name = LogName::from(run.clone());
                self.audit_change(by, Verb::Update, &name, Ok(())).await;
            }
        }
        for (run, why) in &appended.refused {
            let name = LogName::from(run.clone());
            self.audit_refused(by, Verb::Update, &name, why).await;
        }
    }
}

/// Whether one of these grants is to append to a log.
fn may_append(grants: &[Grant], name: &LogName) -> Result<(), Error> {
    let parent = name.record().result().parent();
    let may = |grant: &Grant| grant.check(Verb::Update, Guarded::Logs, parent).is_ok();
    if grants.iter().any(may) {
        return Ok(());
    }
    let first = grants.first();
    Err(first.map_or_else(
        || Error::Invalid("no parent was named".to_owned()),
        |grant| grant.denied().into(),
    ))
}

impl Error {
    /// Whether lines were refused because the result of their run is not there.
    #[must_use]
    pub fn lacks_result(&self) -> bool {
        matches!(self, Self::Store(storage::Error::Missing(_)))
    }
}
