//! Since when watches have not worked. It decides nothing; readiness is made of it.
//!
//! That a watch works again shows only when something happens in the cluster. So one that has not
//! failed for longer than it takes to try again counts as one that works.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use hindsight_proto::run::Kind;

/// Watches that are broken.
#[derive(Debug)]
pub(crate) struct Health {
    /// After such a time without a failure a watch works.
    quiet: Duration,
    broken: Mutex<BTreeMap<(&'static str, &'static str), Broken>>,
}

#[derive(Debug, Clone, Copy)]
struct Broken {
    since: Instant,
    last: Instant,
}

impl Health {
    /// All watches work.
    pub(crate) fn new(quiet: Duration) -> Self {
        Self {
            quiet,
            broken: Mutex::default(),
        }
    }

    /// The watch of a kind works, or the cluster does not have it.
    pub(crate) fn works(&self, kind: &Kind) {
        self.lock().remove(&(kind.kind, kind.group));
    }

    /// The watch of a kind does not work.
    pub(crate) fn broke(&self, kind: &Kind) {
        let now = Instant::now();
        let mut all = self.lock();
        let new = Broken {
            since: now,
            last: now,
        };
        let broken = all.entry((kind.kind, kind.group)).or_insert(new);
        if now - broken.last > self.quiet {
            *broken = new;
        }
        broken.last = now;
    }

    /// The kind whose watch has been broken for the longest time, and how long.
    pub(crate) fn worst(&self) -> Option<(String, Duration)> {
        let all = self.lock();
        let is_broken = |broken: &Broken| broken.last.elapsed() <= self.quiet;
        let broken = all.iter().filter(|(_, broken)| is_broken(broken));
        let ((kind, group), worst) = broken.min_by_key(|(_, broken)| broken.since)?;
        Some((format!("{kind}.{group}"), worst.since.elapsed()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(&'static str, &'static str), Broken>> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
