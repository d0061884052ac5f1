//! Which pipelines are flaky: the same code succeeds and fails.
//!
//! A failure is evidence if the same version succeeded too: before it, after it, or in a later
//! attempt of the same run. A score is not computed; the pairs of runs are the evidence.
//!
//! One such pair has other explanations: a dependency that broke while the code stayed, or an hour
//! in which the cluster was not well. So failures between which the pipeline did not succeed are one
//! *episode*, whatever their number and versions; and failures in a *shared outage*, an hour in
//! which many pipelines failed that seldom do, do not count. A pipeline is flaky from the second
//! episode on, and suspected at the first; one that broke twice while its code stayed is flaky too.

mod outage;

use std::collections::BTreeMap;

use hindsight_run::Outcome;

use crate::series::{Run, by_pipeline};
use outage::Outages;

/// What makes a pipeline flaky.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How many runs that succeeded or failed a pipeline needs to be judged.
    pub least_runs: usize,
    /// From how many episodes on it is flaky.
    pub least_episodes: usize,
    /// Most pairs that are given as evidence: the latest ones.
    pub most_pairs: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            least_runs: 5,
            least_episodes: 2,
            most_pairs: 10,
        }
    }
}

/// How sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Fewer episodes than a flaky pipeline has.
    Suspected,
    /// The same code succeeded and failed, time and again.
    Flaky,
}

/// A failure and a success of the same version, as positions in the runs that were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// The run that failed; none if only a success in a later attempt says that there was one.
    pub failed: Option<usize>,
    /// The run that succeeded.
    pub succeeded: usize,
}

/// A pipeline with both outcomes on one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding<'a> {
    /// Which pipeline it is, as its runs name it.
    pub pipeline: &'a str,
    /// How sure it is.
    pub verdict: Verdict,
    /// How many of its runs succeeded or failed.
    pub runs: usize,
    /// In how many episodes it failed on a version that succeeded too.
    pub episodes: usize,
    /// One pair for each of the latest episodes, the latest last.
    pub pairs: Vec<Pair>,
}

/// The pipelines of `runs` that are flaky or suspected to be, in the order of their names. A timeout
/// counts as a failure; runs that were cancelled or are not known to have ended do not count. Takes
/// O(n log n).
#[must_use]
pub fn flaky<'a>(runs: &[Run<'a>], settings: &Settings) -> Vec<Finding<'a>> {
    let pipelines = by_pipeline(runs);
    let outages = Outages::of(runs, &pipelines);
    let mut findings = Vec::new();
    for (pipeline, positions) in &pipelines {
        let judged = positions
            .iter()
            .filter(|at| succeeded(&runs[**at]).is_some());
        let judged = judged.count();
        if judged < settings.least_runs {
            continue;
        }
        let mut pairs = pairs(runs, positions, &outages);
        let episodes = pairs.len();
        if episodes == 0 {
            continue;
        }
        pairs.drain(..episodes.saturating_sub(settings.most_pairs));
        let flaky = episodes >= settings.least_episodes;
        let verdict = if flaky {
            Verdict::Flaky
        } else {
            Verdict::Suspected
        };
        findings.push(Finding {
            pipeline,
            verdict,
            runs: judged,
            episodes,
            pairs,
        });
    }
    findings
}

/// Whether a run succeeded; none if it says nothing of its code.
fn succeeded(run: &Run<'_>) -> Option<bool> {
    match run.outcome {
        Outcome::Success => Some(true),
        Outcome::Failure | Outcome::Timeout => Some(false),
        Outcome::Cancelled | Outcome::Unknown => None,
    }
}

/// What is known of a version while its runs are read.
#[derive(Debug, Default)]
struct Version {
    /// The last success, which nothing followed or only failures.
    success: Option<usize>,
    /// The first failure since then outside shared outages.
    failure: Option<usize>,
    /// The last run, if it did not succeed.
    tried: Option<usize>,
}

/// A pair for each episode of one pipeline, in the order of time.
fn pairs(runs: &[Run<'_>], positions: &[usize], outages: &Outages) -> Vec<Pair> {
    let mut versions: BTreeMap<&str, Version> = BTreeMap::new();
    let mut pairs = Vec::new();
    for &at in positions {
        let run = &runs[at];
        let inside = outages.covers(run.began);
        let version = versions.entry(run.version).or_default();
        let before = version
            .tried
            .filter(|it| runs[*it].attempt.checked_add(1) == Some(run.attempt));
        let Some(good) = succeeded(run) else {
            version.tried = Some(at);
            continue;
        };
        if good {
            let lost = |it: &usize| {
                succeeded(&runs[*it]) == Some(false) && !outages.covers(runs[*it].began)
            };
            let failed = if run.version.is_empty() {
                before.filter(lost)
            } else {
                version.failure
            };
            // An attempt that is not among the runs failed: after a success there is none.
            let unseen = run.attempt > 1 && before.is_none() && !inside;
            if failed.is_some() || unseen {
                pairs.push(Pair {
                    failed,
                    succeeded: at,
                });
            }
            *version = Version {
                success: Some(at),
                ..Version::default()
            };
            continue;
        }
        version.tried = Some(at);
        if !inside {
            version.failure.get_or_insert(at);
        }
    }
    // Versions that succeeded and then only failed.
    let open = versions.into_iter().filter_map(|(name, version)| {
        let (failed, succeeded) = (version.failure?, version.success?);
        (!name.is_empty()).then_some(Pair {
            failed: Some(failed),
            succeeded,
        })
    });
    pairs.extend(open);
    episodes(runs, positions, pairs)
}

/// One pair of those whose failures no success of the pipeline lies between: what broke for all
/// versions at once is one episode.
fn episodes(runs: &[Run<'_>], positions: &[usize], pairs: Vec<Pair>) -> Vec<Pair> {
    let mut by_failure: BTreeMap<usize, Pair> = BTreeMap::new();
    for pair in pairs {
        by_failure.insert(pair.failed.unwrap_or(pair.succeeded), pair);
    }
    let mut episodes = Vec::new();
    let mut separate = true;
    for at in positions {
        if let Some(pair) = by_failure.get(at)
            && (separate || pair.failed.is_none())
        {
            episodes.push(*pair);
            separate = false;
        }
        separate |= succeeded(&runs[*at]) == Some(true);
    }
    episodes
}
