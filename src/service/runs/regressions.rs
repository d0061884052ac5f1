//! Pipelines that became slower.

use std::cmp::Reverse;

use hindsight_analysis::regression::{Change, Kind, Quantiles, Settings, changes};
use hindsight_analysis::series::Run;
use jiff::Timestamp;

use super::{
    RunPoint,
    history::{History, HistoryAsk, RunSeries},
};
use crate::service::{Error, Service};
use hindsight_access::RequestContext;
use hindsight_access::auth::Grant;

/// Changes of an answer when none are asked for.
const USUAL: usize = 50;
/// Most changes of an answer.
const MOST: usize = 1_000;

/// What became slower.
#[derive(Debug)]
pub struct Regressions {
    /// The latest first.
    pub found: Vec<Regression>,
    /// How many more there are.
    pub left_out: usize,
    /// From when on runs were compared.
    pub since: Timestamp,
    /// How many runs were read.
    pub runs_read: usize,
    /// Whether these are all that match.
    pub is_whole: bool,
    /// The query in CEL.
    pub query_filter: String,
}

/// A step up of durations.
#[derive(Debug)]
pub struct Regression {
    /// The series whose durations these are.
    pub series: RunSeries,
    /// Which part of the runs takes longer.
    pub kind: Kind,
    /// The run with which it began.
    pub began: RunPoint,
    /// The run with which the next change began.
    pub ended: Option<RunPoint>,
    /// Durations before the change.
    pub before: Quantiles,
    /// Durations since then.
    pub after: Quantiles,
    /// How many runs `after` is of.
    pub runs: usize,
}

impl Service {
    /// What became slower among the runs that `ask` means, under the parent that `grant` is for. It
    /// fails if a text of the request is wrong.
    pub async fn list_regressions(
        &self,
        by: &RequestContext,
        grant: &Grant,
        result: Option<String>,
        ask: HistoryAsk,
        limit: i32,
    ) -> Result<Regressions, Error> {
        let limit = super::limit(limit, USUAL, MOST)?;
        let history = History::default();
        let looked = self.history(by, grant, result, ask, "succeeded", history);
        let looked = looked.await?;
        let engine = self.engine.with_quota(&by.quota);
        let (runs_read, history) = (looked.history.read(), looked.history);
        let (found, left_out) = engine.compute(move || slower(&history, limit)).await?;
        Ok(Regressions {
            found,
            left_out,
            since: looked.since,
            runs_read,
            is_whole: looked.is_whole,
            query_filter: looked.query_filter,
        })
    }
}

/// The latest changes for the worse, and how many more there are.
fn slower(history: &History, limit: usize) -> (Vec<Regression>, usize) {
    let runs = history.runs();
    let changes = changes(&runs, &Settings::default());
    let mut found: Vec<_> = (0..changes.len())
        .filter(|at| changes[*at].kind != Kind::Faster)
        .collect();
    found.sort_by_key(|at| Reverse(runs[changes[*at].began].began));
    let left_out = found.len().saturating_sub(limit);
    found.truncate(limit);
    let told = found.into_iter().filter_map(|at| {
        let next = changes.get(at + 1);
        let next = next.filter(|next| next.pipeline == changes[at].pipeline);
        regression(history, &runs, &changes[at], next)
    });
    (told.collect(), left_out)
}

fn regression(
    history: &History,
    runs: &[Run<'_>],
    change: &Change<'_>,
    next: Option<&Change<'_>>,
) -> Option<Regression> {
    let place = |at: usize| (runs[at].began, at);
    let from = place(change.began);
    let to = next.map(|next| place(next.began));
    let durations: Vec<_> = runs
        .iter()
        .enumerate()
        .filter(|(at, run)| {
            let here = (run.began, *at);
            run.pipeline == change.pipeline && here >= from && to.is_none_or(|to| here < to)
        })
        .map(|(_, run)| run.duration)
        .collect();
    Some(Regression {
        series: history.series(change.began)?.clone(),
        kind: change.kind,
        began: history.point(change.began)?,
        ended: next.and_then(|next| history.point(next.began)),
        before: change.before,
        runs: durations.len(),
        after: Quantiles::of(durations),
    })
}
