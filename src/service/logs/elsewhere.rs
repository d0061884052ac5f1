//! Logs that another system keeps, which are read where nothing is stored: bounded in time and memory.

mod asked;
mod spool;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::BoxFuture;
use hindsight_logs::Redaction;
use tokio::{sync::Semaphore, time::Instant};

pub use asked::AskedLog;
pub(super) use spool::Lent;
pub use spool::Spool;

use super::metrics::LogMetrics;
use crate::service::Error;

/// Memory of logs that were read from elsewhere and are still used, in KiB.
const MEMORY_KIB: usize = 128 << 10;
/// Logs that are read at once; others wait for their turn.
const AT_ONCE: usize = 4;
/// How long a log is kept that was read, so that one page does not read it several times.
const KEPT: Duration = Duration::from_secs(20);
/// Most logs that are kept so, and what they take together, in bytes.
const MOST_KEPT: usize = 64;
const BYTES_KEPT: usize = 32 << 20;

/// Another system that keeps logs.
pub trait LogHome: std::fmt::Debug + Send + Sync + 'static {
    /// What messages call it: what it is and where, without credentials.
    fn name(&self) -> &str;

    /// Gives `to` the lines of a run, those of each container in order; none if it has no log of the run.
    fn read<'a>(
        &'a self,
        run: &'a AskedLog,
        to: &'a mut Spool,
    ) -> BoxFuture<'a, Result<(), HomeError>>;
}

/// Why a log was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HomeError {
    /// The other system does not answer, refuses, or gives what is no log. The text has no credentials.
    #[error("{0}")]
    Away(String),
    /// There is no memory for it.
    #[error(
        "the logs that are read at once take all memory that such logs may take; try again later"
    )]
    Busy,
}

/// Where logs are that are not stored, and how they are read.
#[derive(Debug)]
pub struct LogHomes {
    homes: Vec<Arc<dyn LogHome>>,
    /// How long reading one log may take.
    timeout: Duration,
    /// Most bytes that are read of one log.
    most: usize,
    memory: Arc<Semaphore>,
    turns: Semaphore,
    kept: Mutex<VecDeque<Kept>>,
}

#[derive(Debug)]
struct Kept {
    run: AskedLog,
    until: Instant,
    log: Option<Arc<Lent>>,
}

impl LogHomes {
    /// Systems that are asked in this order, until one has a log. Reading one takes `timeout` at most, and what
    /// is longer than `most` bytes is cut.
    #[must_use]
    pub fn new(homes: Vec<Arc<dyn LogHome>>, timeout: Duration, most: usize) -> Self {
        Self {
            homes,
            timeout,
            most,
            memory: Arc::new(Semaphore::new(MEMORY_KIB)),
            turns: Semaphore::new(AT_ONCE),
            kept: Mutex::default(),
        }
    }

    /// Whether there is no such system.
    pub(super) fn is_empty(&self) -> bool {
        self.homes.is_empty()
    }

    /// The log of a run; none if no system has one.
    pub(super) async fn read(
        &self,
        run: AskedLog,
        redaction: &Arc<Redaction>,
        metrics: &LogMetrics,
    ) -> Result<Option<Arc<Lent>>, Error> {
        if let Some(log) = self.recall(&run) {
            return Ok(log);
        }
        let ends = Instant::now() + self.timeout;
        let mut log = None;
        for home in &self.homes {
            let reading = self.read_from(&**home, &run, redaction);
            let read = match tokio::time::timeout_at(ends, reading).await {
                Ok(read) => read,
                Err(_elapsed) => Err(HomeError::Away(format!(
                    "no whole answer within {:?} (logs_home_timeout)",
                    self.timeout
                ))),
            };
            metrics.read_elsewhere(read.is_ok());
            let (found, redactions) = read.map_err(|error| failed(&**home, &run, error))?;
            metrics.redacted(redactions);
            if let Some(found) = found {
                log = Some(Arc::new(found));
                break;
            }
        }
        self.remember(run, log.as_ref());
        Ok(log)
    }

    async fn read_from(
        &self,
        home: &dyn LogHome,
        run: &AskedLog,
        redaction: &Arc<Redaction>,
    ) -> Result<(Option<Lent>, u64), HomeError> {
        let _turn = self
            .turns
            .acquire()
            .await
            .map_err(|_closed| HomeError::Busy)?;
        let mut again = true;
        loop {
            let memory = Arc::clone(&self.memory);
            let mut spool = Spool::new(Arc::clone(redaction), memory, self.most, home.name());
            let read = home.read(run, &mut spool).await;
            match read.and_then(|()| spool.finish(run)) {
                // What is kept for later takes memory too.
                Err(HomeError::Busy) if again => {
                    again = false;
                    self.kept().clear();
                }
                other => return other,
            }
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, VecDeque<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recall(&self, run: &AskedLog) -> Option<Option<Arc<Lent>>> {
        let mut kept = self.kept();
        let now = Instant::now();
        kept.retain(|log| log.until > now);
        let found = kept.iter().find(|log| log.run == *run)?;
        Some(found.log.clone())
    }

    /// Keeps the log of a run that has ended for a while.
    fn remember(&self, run: AskedLog, log: Option<&Arc<Lent>>) {
        if run.ended().is_none() {
            return;
        }
        let mut kept = self.kept();
        kept.push_back(Kept {
            run,
            until: Instant::now() + KEPT,
            log: log.cloned(),
        });
        let size = |kept: &Kept| kept.log.as_ref().map_or(0, |log| log.bytes());
        while kept.len() > MOST_KEPT || kept.iter().map(size).sum::<usize>() > BYTES_KEPT {
            kept.pop_front();
        }
    }
}

fn failed(home: &dyn LogHome, run: &AskedLog, error: HomeError) -> Error {
    let name = home.name();
    match error {
        HomeError::Away(why) => {
            tracing::warn!(run = %run.record(), home = name, "a log is not read: {why}");
            Error::LogHome(format!(
                "the log is not stored here, and {name} does not give it: {why}"
            ))
        }
        HomeError::Busy => Error::LogsBusy(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
