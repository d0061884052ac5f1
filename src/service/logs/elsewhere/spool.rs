//! Lines of a run that were read from elsewhere: redacted, compressed, and counted against the memory of all.

use std::sync::Arc;

use hindsight_logs::{Damaged, Gathered, Gatherer, Redaction};
use hindsight_storage::{LogKey, LogKind, LogSource, StoredLog};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{AskedLog, HomeError};

/// Most sources of one log.
const SOURCES: usize = 500;

/// Takes the lines of one run.
#[derive(Debug)]
pub struct Spool {
    sources: Vec<(LogSource, Gatherer)>,
    redaction: Arc<Redaction>,
    memory: Arc<Semaphore>,
    room: Option<OwnedSemaphorePermit>,
    most: usize,
    taken: usize,
    home: String,
    is_full: bool,
}

/// The log of a run, as it was read.
#[derive(Debug)]
pub(in crate::service::logs) struct Lent {
    pub(in crate::service::logs) sources: Vec<StoredLog>,
    gathered: Vec<Gathered>,
    /// What is counted of the memory of all while it is used.
    _room: Option<OwnedSemaphorePermit>,
}

fn damaged(damaged: Damaged) -> HomeError {
    HomeError::Away(damaged.to_string())
}

impl Spool {
    pub(super) fn new(
        redaction: Arc<Redaction>,
        memory: Arc<Semaphore>,
        most: usize,
        home: &str,
    ) -> Self {
        Self {
            sources: Vec::new(),
            redaction,
            memory,
            room: None,
            most,
            taken: 0,
            home: home.to_owned(),
            is_full: false,
        }
    }

    /// Whether nothing more is taken.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Takes the next bytes of a source, which were written at a time. Once it is full, a line says so in the
    /// log, and nothing more is taken.
    pub fn write(
        &mut self,
        source: &LogSource,
        time_us: i64,
        text: &[u8],
    ) -> Result<(), HomeError> {
        if self.is_full {
            return Ok(());
        }
        let known = self.sources.iter().position(|(known, _)| known == source);
        let at = match known {
            Some(at) => at,
            None if self.sources.len() >= SOURCES => {
                let why = format!(
                    "{} has more than {SOURCES} containers of this log",
                    self.home
                );
                return self.cut(self.sources.len() - 1, time_us, &why);
            }
            None => {
                self.sources.push((source.clone(), Gatherer::default()));
                self.sources.len() - 1
            }
        };
        let fits = text.len().min(self.most - self.taken);
        let gatherer = &mut self.sources[at].1;
        gatherer
            .write(time_us, &text[..fits], &self.redaction)
            .map_err(damaged)?;
        self.taken += fits;
        if fits < text.len() {
            let why = format!(
                "{} has more of this log; {} bytes of one are read (logs_home_bytes)",
                self.home, self.most
            );
            self.cut(at, time_us, &why)?;
        }
        self.count()
    }

    /// Puts a line in the place of what is missing, and takes nothing more.
    pub fn stop(&mut self, time_us: i64, why: &str) -> Result<(), HomeError> {
        let why = format!("{}: {why}", self.home);
        if self.sources.is_empty() {
            let none = (LogSource::default(), Gatherer::default());
            self.sources.push(none);
        }
        self.cut(self.sources.len() - 1, time_us, &why)
    }

    fn cut(&mut self, at: usize, time_us: i64, why: &str) -> Result<(), HomeError> {
        self.is_full = true;
        let gatherer = &mut self.sources[at].1;
        gatherer
            .hole(time_us, why, &self.redaction)
            .map_err(damaged)
    }

    /// Takes as much of the memory of all as it uses.
    fn count(&mut self) -> Result<(), HomeError> {
        let bytes: usize = self.sources.iter().map(|(_, it)| it.memory()).sum();
        let kib = bytes / 1024 + 1;
        let has = self
            .room
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits);
        if kib > has {
            let more = u32::try_from(kib - has).unwrap_or(u32::MAX);
            let more = Arc::clone(&self.memory).try_acquire_many_owned(more);
            let more = more.map_err(|_none| HomeError::Busy)?;
            match &mut self.room {
                Some(room) => room.merge(more),
                none => *none = Some(more),
            }
        } else if let Some(room) = &mut self.room {
            // What is compressed takes less than before.
            drop(room.split(has - kib));
        }
        Ok(())
    }

    /// Ends it: sources have the order of the containers of the run. None if there are none.
    pub(super) fn finish(mut self, run: &AskedLog) -> Result<(Option<Lent>, u64), HomeError> {
        if self.sources.is_empty() {
            return Ok((None, 0));
        }
        self.count()?;
        let (mut all, mut redactions) = (Vec::new(), 0);
        for (source, gatherer) in std::mem::take(&mut self.sources) {
            let finished = gatherer.finish(&self.redaction);
            let (gathered, count) = finished.map_err(damaged)?;
            redactions += count;
            all.push((source, gathered));
        }
        let begins = |pod: &str| {
            let of_pod = all.iter().filter(|(source, _)| source.pod == pod);
            of_pod.filter_map(|(_, it)| it.first_us).min()
        };
        let order: Vec<_> = all
            .iter()
            .map(|(source, gathered)| {
                let place = run.place_of(&source.container);
                (begins(&source.pod), place, gathered.first_us)
            })
            .collect();
        let mut places: Vec<_> = (0..all.len()).collect();
        places.sort_by_key(|at| order[*at]);
        let mut all: Vec<_> = all.into_iter().map(Some).collect();
        let all = places.into_iter().filter_map(|at| all[at].take());
        let is_whole = run.ended().is_some() && !self.is_full;
        let (mut sources, mut kept) = (Vec::new(), Vec::new());
        for (row, (source, gathered)) in (1..).zip(all) {
            let kind = match source.container.is_empty() {
                true => LogKind::Uploaded,
                false => LogKind::Container,
            };
            sources.push(StoredLog {
                row,
                key: LogKey {
                    run: run.record().clone(),
                    kind,
                    source,
                },
                lines: gathered.lines,
                bytes: gathered.bytes,
                stored_bytes: i64::try_from(gathered.stored_bytes).unwrap_or(i64::MAX),
                first_us: gathered.first_us,
                last_us: gathered.last_us,
                holes: gathered.holes,
                sha256: is_whole.then(|| gathered.sha256.clone()),
                packed: gathered.lines,
                signed: true,
                version: 0,
            });
            kept.push(gathered);
        }
        let lent = Lent {
            sources,
            gathered: kept,
            _room: self.room,
        };
        Ok((Some(lent), redactions))
    }
}

impl Lent {
    /// The lines of a source by its number.
    pub(in crate::service::logs) fn source(&self, row: i64) -> Option<&Gathered> {
        let at = usize::try_from(row.checked_sub(1)?).ok()?;
        self.gathered.get(at)
    }

    /// Bytes of memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.gathered.iter().map(|it| it.stored_bytes).sum()
    }
}
