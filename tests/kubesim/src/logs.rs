//! Logs of containers: the lines that a test or a player writes, kept apart from the objects, as a
//! kubelet keeps them on its node. How they are read is in `log_reader`.

mod status;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use jiff::Timestamp;
use tokio::sync::watch;

pub(crate) use status::{ended, list_of, of, pod_is_over, started};

/// One line as the container runtime wrote it, with its line feed if it has one.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) at: Timestamp,
    pub(crate) text: Bytes,
}

/// The log of one start of a container. It outlives its pod for those who have it open.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) lines: VecDeque<Line>,
    /// How many lines were rotated away.
    pub(crate) rotated: usize,
    /// Whether no more lines come.
    pub(crate) ended: bool,
}

/// A log, which its readers and its writer have.
pub(crate) type SharedLog = Arc<Mutex<Log>>;

/// The logs of all containers, by the uid of the pod and the name of the container; one for each start.
#[derive(Debug)]
pub(crate) struct Logs {
    pods: Mutex<BTreeMap<String, BTreeMap<String, Vec<SharedLog>>>>,
    news: watch::Sender<u64>,
}

impl Default for Logs {
    fn default() -> Self {
        Self {
            pods: Mutex::default(),
            news: watch::Sender::new(0),
        }
    }
}

impl Logs {
    /// Begins the log of another start of a container.
    pub(crate) fn begin(&self, pod: &str, container: &str) {
        let mut pods = self.pods();
        let starts = pods.entry(pod.to_owned()).or_default();
        let starts = starts.entry(container.to_owned()).or_default();
        for before in &*starts {
            lock(before).ended = true;
        }
        starts.push(SharedLog::default());
        drop(pods);
        self.tell();
    }

    /// Ends the log of the last start of a container.
    pub(crate) fn end(&self, pod: &str, container: &str) {
        if let Some(log) = self.start(pod, container, None) {
            lock(&log).ended = true;
        }
        self.tell();
    }

    /// Appends the lines of `text` to the last start. `false` if there is none that goes on.
    pub(crate) fn append(&self, pod: &str, container: &str, text: &[u8], at: Timestamp) -> bool {
        let Some(log) = self.start(pod, container, None) else {
            return false;
        };
        let mut log = lock(&log);
        if log.ended {
            return false;
        }
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        log.lines.extend(lines.map(|line| Line {
            at,
            text: Bytes::copy_from_slice(line),
        }));
        drop(log);
        self.tell();
        true
    }

    /// Rotates all lines but the last `kept` of the last start away.
    pub(crate) fn rotate(&self, pod: &str, container: &str, kept: usize) {
        if let Some(log) = self.start(pod, container, None) {
            let mut log = lock(&log);
            let gone = log.lines.len().saturating_sub(kept);
            log.lines.drain(..gone);
            log.rotated += gone;
        }
    }

    /// Ends and forgets the logs of pods that went.
    pub(crate) fn forget(&self, gone: &[String]) {
        if gone.is_empty() {
            return;
        }
        let mut pods = self.pods();
        for containers in gone.iter().filter_map(|pod| pods.remove(pod)) {
            for log in containers.values().flatten() {
                lock(log).ended = true;
            }
        }
        drop(pods);
        self.tell();
    }

    /// The log of a start, the last one unless said otherwise.
    pub(crate) fn start(
        &self,
        pod: &str,
        container: &str,
        number: Option<usize>,
    ) -> Option<SharedLog> {
        let pods = self.pods();
        let starts = pods.get(pod)?.get(container)?;
        let log = match number {
            None => starts.last(),
            Some(number) => starts.get(number),
        };
        log.map(Arc::clone)
    }

    /// Tells when something happened to a log.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    fn tell(&self) {
        self.news.send_modify(|number| *number += 1);
    }

    fn pods(&self) -> MutexGuard<'_, BTreeMap<String, BTreeMap<String, Vec<SharedLog>>>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A log as it is now; no one may wait while holding it.
pub(crate) fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}
