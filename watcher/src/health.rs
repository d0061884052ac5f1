//! How the watches of kinds get on: since when one is broken, when the API server was last heard over
//! it, and when anything at all was done about it. It decides nothing; readiness, liveness and
//! metrics are made of it.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use hindsight_run::Kind;

use crate::cluster::full_name;

/// The watches of kinds that the cluster has and shows.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<BTreeMap<(&'static str, &'static str), Watch>>);

#[derive(Debug, Clone, Copy)]
struct Watch {
    broken_since: Option<Instant>,
    heard: Instant,
    /// Something was heard, or a request failed in its time.
    moved: Instant,
}

impl Health {
    /// The API server was heard over the watch of a kind.
    pub(crate) fn works(&self, kind: &Kind) {
        let now = Instant::now();
        let watch = Watch {
            broken_since: None,
            heard: now,
            moved: now,
        };
        self.lock().insert((kind.kind, kind.group), watch);
    }

    /// The watch of a kind does not work.
    pub(crate) fn broke(&self, kind: &Kind) {
        let now = Instant::now();
        let mut all = self.lock();
        let watch = all.entry((kind.kind, kind.group)).or_insert(Watch {
            broken_since: None,
            heard: now,
            moved: now,
        });
        watch.broken_since.get_or_insert(now);
        watch.moved = now;
    }

    /// The kind is not watched, because the cluster does not have it, or does not show it.
    pub(crate) fn rests(&self, kind: &Kind) {
        self.lock().remove(&(kind.kind, kind.group));
    }

    /// The kind whose watch has been broken for the longest time, and how long.
    pub(crate) fn worst(&self) -> Option<(String, Duration)> {
        let all = self.lock();
        let broken = all
            .iter()
            .filter_map(|(name, watch)| Some((name, watch.broken_since?)));
        let (name, since) = broken.min_by_key(|(_, since)| *since)?;
        Some((full_name(name.0, name.1), since.elapsed()))
    }

    /// The kind whose watch has stood still for the longest time, and how long. As each request has
    /// a deadline, that is never long unless the watcher itself is stuck.
    pub(crate) fn slowest(&self) -> Option<(String, Duration)> {
        let all = self.lock();
        let (name, watch) = all.iter().min_by_key(|(_, watch)| watch.moved)?;
        Some((full_name(name.0, name.1), watch.moved.elapsed()))
    }

    /// How long ago the API server was heard over the watch of each kind.
    pub(crate) fn ages(&self) -> Vec<(String, Duration)> {
        let all = self.lock();
        let age =
            |(name, watch): (&(_, _), &Watch)| (full_name(name.0, name.1), watch.heard.elapsed());
        all.iter().map(age).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(&'static str, &'static str), Watch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use hindsight_run::KINDS;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_watch_is_broken_until_it_is_heard_and_moves_even_while_it_fails() {
        let health = Health::default();
        let (first, second) = (&KINDS[0], &KINDS[1]);
        health.works(first);
        health.works(second);
        tokio::time::advance(Duration::from_secs(40)).await;
        health.broke(first);
        tokio::time::advance(Duration::from_secs(30)).await;
        health.broke(first);
        let name = |kind: &Kind| format!("{}.{}", kind.kind, kind.group);
        assert_eq!(health.worst(), Some((name(first), Duration::from_secs(30))));
        assert_eq!(
            health.slowest(),
            Some((name(second), Duration::from_secs(70)))
        );
        assert!(
            health
                .ages()
                .contains(&(name(first), Duration::from_secs(70)))
        );
        health.works(first);
        assert_eq!(health.worst(), None);
        health.rests(second);
        assert_eq!(health.slowest(), Some((name(first), Duration::ZERO)));
    }
}
