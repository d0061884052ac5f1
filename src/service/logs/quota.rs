//! How many bytes the logs of a parent may have, and how many they have.
//!
//! What is stored is added up when a parent is first written to and then once a minute; in between, what this server
//! appends is added. What other servers append is so known a minute later.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use hindsight_filter::model::Parent;
use hindsight_logs::Lines;
use hindsight_storage::{LogAppend, LogStore};
use jiff::{SignedDuration, Timestamp};

use super::Logs;
use crate::service::Error;

/// How long a sum is taken for true, and how long if lines would be refused for it.
const KNOWN: SignedDuration = SignedDuration::from_secs(60);
const KNOWN_IF_REFUSED: SignedDuration = SignedDuration::from_secs(1);
/// Parents that are remembered.
const PARENTS: usize = 10_000;
/// Most bytes of the line that says why a log ends.
const LAST_LINE: usize = 1024;

/// The bound, and what is used of it.
#[derive(Debug, Default)]
pub(super) struct Quota {
    most: Option<u64>,
    parents: Mutex<HashMap<Parent, Arc<tokio::sync::Mutex<Use>>>>,
}

#[derive(Debug, Default)]
struct Use {
    bytes: u64,
    measured: Option<Timestamp>,
    /// Whether lines were refused since there was room.
    is_over: bool,
}

impl Quota {
    pub(super) fn of(most: Option<u64>) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    fn used(&self, parent: &Parent) -> Arc<tokio::sync::Mutex<Use>> {
        let mut parents = self.parents.lock().unwrap_or_else(PoisonError::into_inner);
        if parents.len() >= PARENTS && !parents.contains_key(parent) {
            parents.clear();
        }
        Arc::clone(parents.entry(parent.clone()).or_default())
    }

    /// Takes so many bytes for logs of a parent, or says that there is no room.
    async fn take(
        &self,
        store: &dyn LogStore,
        parent: &Parent,
        bytes: u64,
        now: Timestamp,
    ) -> Result<(), Error> {
        let Some(most) = self.most else {
            return Ok(());
        };
        let used = self.used(parent);
        let mut used = used.lock().await;
        loop {
            let age = used.measured.map(|measured| now.duration_since(measured));
            let has_room = used.bytes.saturating_add(bytes) <= most;
            let known = if has_room { KNOWN } else { KNOWN_IF_REFUSED };
            if age.is_none_or(|age| age >= known || age.is_negative()) {
                used.bytes = store.log_usage(parent).await?;
                used.measured = Some(now);
                continue;
            }
            if has_room {
                used.bytes += bytes;
                used.is_over = false;
                return Ok(());
            }
            if !std::mem::replace(&mut used.is_over, true) {
                tracing::warn!(%parent, used = used.bytes, quota = most, "logs have reached logs_quota");
            }
            return Err(Error::LogQuota {
                parent: parent.to_string(),
                most,
                used: used.bytes,
            });
        }
    }
}

impl Logs {
    /// Says whether there is room for lines, and takes it. Lines that are stored already need none, nor does a line
    /// that stands for those that are missing and ends a log.
    pub(super) async fn admit(
        &self,
        append: &LogAppend,
        seals: bool,
        now: Timestamp,
    ) -> Result<(), Error> {
        let bytes: usize = append.parts.iter().map(|part| part.text.len()).sum();
        let is_end = seals && bytes <= LAST_LINE && append.parts.iter().all(is_hole);
        if self.quota.most.is_none() || bytes == 0 || is_end {
            return Ok(());
        }
        let parent = append.key.run.result().parent();
        let taken = self
            .quota
            .take(&*self.store, parent, bytes as u64, now)
            .await;
        let Err(refused @ Error::LogQuota { .. }) = taken else {
            return taken;
        };
        let stored = self.store.log(&append.key).await?;
        let stored = stored.map_or(0, |stored| stored.lines);
        match append.parts.iter().all(|part| part.end() <= stored) {
            true => Ok(()),
            false => {
                self.metrics.refused();
                Err(refused)
            }
        }
    }
}

fn is_hole(lines: &Lines) -> bool {
    lines.holes.len() == lines.len()
}
