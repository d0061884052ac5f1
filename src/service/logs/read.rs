//! Reading lines, source by source, and those to come.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use hindsight_logs::{Lines, Reader, Selection};
use hindsight_storage::{LogKind, LogSource, LogStore, StoredLog};
use tokio::sync::Notify;

use super::place::Place;
use crate::service::{Error, Service};
use hindsight_access::RequestContext;
use hindsight_access::auth::{Grant, Guarded, Verb};
use hindsight_access::budget::QuotaGuard;
use hindsight_filter::model::{LogName, RecordName};

/// How often it is asked what other servers appended.
const POLL: Duration = Duration::from_secs(1);
/// Most bytes of text that are given at once, unless a line has more.
const PIECE: usize = 256 << 10;

/// Which lines are wanted.
#[derive(Debug, Clone, Default)]
pub struct ReadAsk {
    /// Only this pod, unless it is empty.
    pub pod: String,
    /// Only these containers, unless there are none.
    pub containers: Vec<String>,
    /// Only this start.
    pub restart: Option<i32>,
    /// Which lines of each source.
    pub selection: Selection,
    /// Most lines in all; 0 is no limit.
    pub limit: u64,
    /// Also lines to come.
    pub follow: bool,
}

impl ReadAsk {
    fn wants(&self, log: &StoredLog) -> bool {
        let LogSource {
            pod,
            container,
            restart,
        } = &log.key.source;
        log.key.kind == LogKind::Container
            && (self.pod.is_empty() || self.pod == *pod)
            && (self.containers.is_empty() || self.containers.contains(container))
            && self.restart.is_none_or(|wanted| wanted == *restart)
            || log.key.kind == LogKind::Uploaded
                && self.pod.is_empty()
                && self.containers.is_empty()
                && self.restart.is_none()
    }
}

/// One source that is read.
struct Open {
    log: StoredLog,
    reader: Reader,
}

/// A read that is under way.
pub struct LogReading {
    service: Service,
    run: RecordName,
    place: Place,
    ask: ReadAsk,
    left: u64,
    open: Vec<Open>,
    /// Which source is read now.
    at: usize,
    ready: VecDeque<(LogSource, Lines)>,
    waker: (Arc<[Notify]>, usize),
}

impl std::fmt::Debug for LogReading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogReading")
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

impl Service {
    /// Begins to read lines of the log of a run. It fails if there is neither a log nor a record of that name,
    /// unless it is followed.
    pub async fn read_log(
        &self,
        by: &RequestContext,
        grant: &Grant,
        name: &LogName,
        mut ask: ReadAsk,
    ) -> Result<LogReading, Error> {
        grant.check(Verb::Get, Guarded::Logs, name.record().result().parent())?;
        let found = match self.find_to_read(&by.quota, name, ask.follow).await {
            Ok(found) => found,
            Err(error) if ask.follow && error.lacks_result() => super::Found {
                run: name.record().clone(),
                record: None,
                sources: Vec::new(),
                place: Place::Stored(Arc::clone(&self.logs.store)),
            },
            Err(error) => return Err(error),
        };
        if let Place::Lent(_) = found.place {
            // Of a run that has ended; nothing follows.
            ask.follow = false;
        }
        let mut reading = LogReading {
            waker: self.logs.waker(&found.run),
            service: self.clone(),
            run: found.run,
            place: found.place,
            left: if ask.limit == 0 { u64::MAX } else { ask.limit },
            ask,
            open: Vec::new(),
            at: 0,
            ready: VecDeque::new(),
        };
        reading
            .take(found.sources, reading.ask.selection.tail)
            .await?;
        Ok(reading)
    }

    /// What is read. Lines to come are appended here, so that of a run that goes on no other system is asked.
    async fn find_to_read(
        &self,
        quota: &QuotaGuard,
        name: &LogName,
        follow: bool,
    ) -> Result<super::Found, Error> {
        if follow {
            let found = self.find_log(quota, name).await?;
            if !found.sources.is_empty() || self.is_going_on(&found.run).await? {
                return Ok(found);
            }
        }
        self.find_log_anywhere(quota, name).await
    }
}

impl LogReading {
    fn store(&self) -> &dyn LogStore {
        &*self.service.logs.store
    }

    /// Takes what sources there are now; those that are new are read from `tail` lines before their end.
    async fn take(&mut self, sources: Vec<StoredLog>, tail: u64) -> Result<(), Error> {
        for log in sources {
            if let Some(known) = self.open.iter_mut().find(|known| known.log.row == log.row) {
                known.log = log;
            } else if self.ask.wants(&log) {
                let selection = Selection {
                    tail,
                    ..self.ask.selection
                };
                let reader = self.place.open(log.row, selection).await?;
                self.open.push(Open { log, reader });
            }
        }
        Ok(())
    }

    /// The next lines; none at the end. A wait that is given up loses nothing.
    pub async fn next(&mut self) -> Result<Option<(LogSource, Lines)>, Error> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Ok(Some(piece));
            }
            if self.left == 0 {
                return Ok(None);
            }
            // Before it is looked at what there is, so that nothing is appended unnoticed in between.
            let (wakes, which) = (Arc::clone(&self.waker.0), self.waker.1);
            let mut woken = std::pin::pin!(wakes[which].notified());
            woken.as_mut().enable();
            if self.read_more().await? {
                continue;
            }
            if !self.ask.follow || self.is_over().await? {
                return Ok(None);
            }
            // An error is that nothing was appended here, and perhaps by another server.
            drop(tokio::time::timeout(POLL, woken).await);
            let sources = self.store().logs(&self.run).await?;
            self.take(sources, 0).await?;
            self.at = 0;
        }
    }

    /// Reads on where there is more; says whether there was.
    async fn read_more(&mut self) -> Result<bool, Error> {
        while let Some(open) = self.open.get_mut(self.at) {
            match self.place.next(open.log.row, &mut open.reader).await? {
                None => self.at += 1,
                Some(lines) => {
                    let source = open.log.key.source.clone();
                    let most = usize::try_from(self.left).unwrap_or(usize::MAX);
                    let lines = lines.slice(0..lines.len().min(most));
                    self.left -= lines.len() as u64;
                    let pieces = pieces(&lines).into_iter();
                    self.ready
                        .extend(pieces.map(|piece| (source.clone(), piece)));
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether nothing follows: all that was read was sealed before it was read, there is no other source, and the
    /// run has ended.
    async fn is_over(&self) -> Result<bool, Error> {
        let sources = self.store().logs(&self.run).await?;
        let mut wanted = sources.iter().filter(|log| self.ask.wants(log));
        let is_read = |log: &StoredLog| {
            let known = self.open.iter().find(|known| known.log.row == log.row);
            known.is_some_and(|known| known.log.sha256.is_some())
        };
        let is_read = !sources.is_empty() && wanted.all(is_read);
        Ok(is_read && !self.service.is_going_on(&self.run).await?)
    }
}

/// Lines in pieces that fit in messages.
fn pieces(lines: &Lines) -> Vec<Lines> {
    if lines.text.len() <= PIECE {
        return vec![lines.clone()];
    }
    let (mut pieces, mut from, mut began, mut before) = (Vec::new(), 0, 0, 0);
    for (at, end) in hindsight_logs::ends(&lines.text).enumerate() {
        if end - began > PIECE && at > from {
            pieces.push(lines.slice(from..at));
            (from, began) = (at, before);
        }
        before = end;
    }
    pieces.push(lines.slice(from..lines.len()));
    pieces
}

#[cfg(test)]
mod tests;
