//! Hours in which so many pipelines failed that the cause is shared.

use std::collections::BTreeMap;

use crate::series::Run;

/// The length of the spans that are looked at, in seconds.
const SPAN: i64 = 3600;

/// How many pipelines must have run in a span for it to say anything.
const LEAST_PIPELINES: usize = 5;

/// One of how many of these failed in it, though they usually succeed.
const SHARE: usize = 3;

/// The same for a span beside such a one, in which the outage may have begun or ended.
const SHARE_BESIDE: usize = 6;

/// Spans of time, by their number.
#[derive(Debug)]
pub(super) struct Outages(Vec<i64>);

impl Outages {
    /// Finds the spans in which at least a third of the pipelines failed that ran in them, counting
    /// only pipelines that succeed more often than not.
    pub(super) fn of(runs: &[Run<'_>], pipelines: &[(&str, Vec<usize>)]) -> Self {
        let mut spans: BTreeMap<i64, (usize, usize)> = BTreeMap::new();
        for (_, positions) in pipelines {
            let failed = |at: &&usize| super::succeeded(&runs[**at]) == Some(false);
            if positions.iter().filter(failed).count() * 2 > positions.len() {
                continue;
            }
            // The runs of a pipeline are in the order of time, so those of a span are neighbours.
            let span = |at: &usize| runs[*at].began.div_euclid(SPAN);
            for group in positions.chunk_by(|a, b| span(a) == span(b)) {
                let (ran, lost) = spans.entry(span(&group[0])).or_default();
                *ran += 1;
                *lost += usize::from(group.iter().any(|at| failed(&at)));
            }
        }
        let failed = |span: i64, one_of: usize| {
            let counts = spans.get(&span);
            counts.is_some_and(|(ran, lost)| *ran >= LEAST_PIPELINES && lost * one_of >= *ran)
        };
        let shared = |span: i64| {
            let beside = failed(span - 1, SHARE) || failed(span + 1, SHARE);
            failed(span, SHARE) || (beside && failed(span, SHARE_BESIDE))
        };
        Self(spans.keys().copied().filter(|span| shared(*span)).collect())
    }

    /// Whether a run that began at `time` lies in a shared outage.
    pub(super) fn covers(&self, time: i64) -> bool {
        self.0.binary_search(&time.div_euclid(SPAN)).is_ok()
    }
}
