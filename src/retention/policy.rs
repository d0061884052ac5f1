//! Which policy a run is kept by, and whether it is due. Pure: no store, no clock.
//!
//! What is deleted is a result with everything in it. Its *top runs* decide: those of no other run, or all of its
//! runs if each is of another. Each is governed by the first policy that matches it, and the result is due once
//! all of them are. Its age counts from the end of the last of its runs; while one goes on it has none.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    num::NonZeroU32,
    time::Duration,
};

use hindsight_filter::Filter;
use hindsight_filter::model::ResultName;
use hindsight_run::Outcome;
use jiff::Timestamp;

/// How long the age of a run keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeepFor {
    /// Age never makes a run due.
    Forever,
    /// For so long after its end; not at all if that is zero.
    Age(Duration),
}

/// What keeps a run: either is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) keep_for: KeepFor,
    /// So many results of a pipeline in a namespace are kept whatever their age: those that ended last.
    pub(crate) keep_last: Option<NonZeroU32>,
    /// So long after its end it is moved to the archive, if it still is there.
    pub(crate) archive_after: Option<Duration>,
}

/// Which runs are kept on which terms.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    pub(crate) name: String,
    /// What records of runs must match.
    pub(crate) when: Option<Filter>,
    /// How runs must have ended; any way if there are none.
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) terms: Terms,
    /// Shorter terms of single namespaces.
    pub(crate) namespaces: BTreeMap<String, Terms>,
}

impl Policy {
    /// The terms in a namespace.
    pub(crate) fn terms(&self, namespace: &str) -> Terms {
        *self.namespaces.get(namespace).unwrap_or(&self.terms)
    }

    /// Whether it keeps a number of runs anywhere.
    pub(crate) fn counts(&self) -> bool {
        let mut all = self.namespaces.values().chain([&self.terms]);
        all.any(|terms| terms.keep_last.is_some())
    }

    /// Whether it governs runs that ended so, if they match its filter.
    pub(crate) fn is_about(&self, outcome: Outcome) -> bool {
        self.outcomes.is_empty() || self.outcomes.contains(&outcome)
    }
}

/// A top run, with the policy that governs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopRun {
    /// The number of the first policy that matches it, in the order of the file.
    pub(crate) policy: usize,
    /// What it is a run of; some are of nothing that others are runs of, too.
    pub(crate) pipeline: Option<String>,
}

/// A result all of whose runs have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) name: ResultName,
    /// When the last of its runs ended.
    pub(crate) at: Timestamp,
    pub(crate) tops: Vec<TopRun>,
}

/// The results that ended last of each policy, namespace and pipeline.
#[derive(Debug, Default)]
pub(crate) struct Newest(HashMap<(usize, String, String), BTreeSet<(Timestamp, ResultName)>>);

impl Newest {
    /// Takes a result into account.
    pub(crate) fn note(&mut self, policies: &[Policy], ended: &Ended) {
        let namespace = ended.name.parent().as_str();
        for top in &ended.tops {
            let keep_last = policies[top.policy].terms(namespace).keep_last;
            let (Some(most), Some(pipeline)) = (keep_last, &top.pipeline) else {
                continue;
            };
            let group = (top.policy, namespace.to_owned(), pipeline.clone());
            let newest = self.0.entry(group).or_default();
            let noted = (ended.at, ended.name.clone());
            if newest.contains(&noted) {
                continue;
            }
            // It may have ended at another time when it was noted before.
            newest.retain(|(_, name)| *name != ended.name);
            newest.insert(noted);
            if newest.len() > most.get() as usize {
                newest.pop_first();
            }
        }
    }

    fn has(&self, top: &TopRun, pipeline: &str, ended: &Ended) -> bool {
        let namespace = ended.name.parent().as_str().to_owned();
        let group = (top.policy, namespace, pipeline.to_owned());
        let newest = self.0.get(&group);
        newest.is_some_and(|newest| newest.contains(&(ended.at, ended.name.clone())))
    }
}

/// The policy by which a result goes at `now`: that of its first top run. None if it stays.
pub(crate) fn due(
    policies: &[Policy],
    newest: &Newest,
    ended: &Ended,
    now: Timestamp,
) -> Option<usize> {
    let is_due = |top: &TopRun| {
        let terms = policies[top.policy].terms(ended.name.parent().as_str());
        let is_old = match terms.keep_for {
            KeepFor::Forever => false,
            KeepFor::Age(age) => {
                let end = ended.at.checked_add(age);
                end.is_ok_and(|end| end <= now)
            }
        };
        let is_beyond = match (terms.keep_last, &top.pipeline) {
            (None, _) => true,
            (Some(_), Some(pipeline)) => !newest.has(top, pipeline, ended),
            // Of what no other run is of, none comes after it: only age makes it due.
            (Some(_), None) => terms.keep_for != KeepFor::Age(Duration::ZERO),
        };
        is_old && is_beyond
    };
    let all = !ended.tops.is_empty() && ended.tops.iter().all(is_due);
    all.then(|| ended.tops[0].policy)
}

/// The policy by which a result is moved to the archive at `now`: that of its first top run. None if it stays.
pub(crate) fn archivable(policies: &[Policy], ended: &Ended, now: Timestamp) -> Option<usize> {
    let is_old = |top: &TopRun| {
        let terms = policies[top.policy].terms(ended.name.parent().as_str());
        let at = terms.archive_after.map(|age| ended.at.checked_add(age));
        at.is_some_and(|at| at.is_ok_and(|at| at <= now))
    };
    let all = !ended.tops.is_empty() && ended.tops.iter().all(is_old);
    all.then(|| ended.tops[0].policy)
}

#[cfg(test)]
mod tests;
