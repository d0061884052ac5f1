//! Which kinds the cluster has and shows, and whether all of their objects were seen.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use hindsight_run::Kind;

use crate::cluster;

/// Whether the cluster has a kind, and whether all of its objects were seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KindPresence {
    /// The cluster was not asked yet, or did not answer.
    Unknown,
    /// The cluster does not have it.
    Absent,
    /// The cluster does not let us see it.
    Forbidden,
    /// The cluster has not been able to list it for long, although it answers.
    Broken,
    /// Its objects are in no namespace, and are not stored.
    ClusterScoped,
    /// Its first list is being read.
    Listing,
    /// All of its objects were seen, and a watch of them was open.
    Listed,
}

/// What is known about each kind that is watched.
#[derive(Debug)]
pub(crate) struct KindPresences(Mutex<BTreeMap<(&'static str, &'static str), KindPresence>>);

impl KindPresences {
    /// The cluster was asked about none of `kinds` yet.
    pub(crate) fn new(kinds: &[&'static Kind]) -> Self {
        let unknown = kinds
            .iter()
            .map(|kind| ((kind.group, kind.plural), KindPresence::Unknown));
        Self(Mutex::new(unknown.collect()))
    }

    pub(crate) fn get(&self, kind: &Kind) -> Option<KindPresence> {
        self.lock().get(&(kind.group, kind.plural)).copied()
    }

    /// Notes whether a kind is there; returns what was known before.
    pub(crate) fn set(&self, kind: &'static Kind, now: KindPresence) -> Option<KindPresence> {
        self.lock().insert((kind.group, kind.plural), now)
    }

    /// Whether every object was seen of every kind that the cluster has and shows.
    pub(crate) fn is_listed(&self) -> bool {
        self.unlisted().is_empty()
    }

    /// Whether every object of some kind was seen.
    pub(crate) fn is_any_listed(&self) -> bool {
        let is_listed = |known: &KindPresence| *known == KindPresence::Listed;
        self.lock().values().any(is_listed)
    }

    /// Kinds of which it is not known yet what there is.
    pub(crate) fn unlisted(&self) -> Vec<String> {
        use KindPresence::{Listing, Unknown};
        self.kinds_that(|presence| matches!(presence, Unknown | Listing))
    }

    /// Kinds whose runs are not stored, because the cluster does not show them.
    pub(crate) fn hidden(&self) -> Vec<String> {
        use KindPresence::{Broken, ClusterScoped, Forbidden};
        self.kinds_that(|presence| matches!(presence, Forbidden | Broken | ClusterScoped))
    }

    fn kinds_that(&self, holds: impl Fn(KindPresence) -> bool) -> Vec<String> {
        let all = self.lock();
        let kinds = all.iter().filter(|(_, known)| holds(**known));
        kinds
            .map(|((group, plural), _)| cluster::full_name(plural, group))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(&'static str, &'static str), KindPresence>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
