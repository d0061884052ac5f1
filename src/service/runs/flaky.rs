//! Pipelines that succeed and fail on the same code.

use std::cmp::Reverse;

use hindsight_analysis::flaky::{Pair, Settings, Verdict, flaky};
use jiff::Timestamp;

use super::{
    RunPoint,
    history::{History, HistoryAsk, RunSeries},
};
use crate::service::{Error, Service};
use hindsight_access::RequestContext;
use hindsight_access::auth::Grant;

/// Pipelines of an answer when none are asked for.
const USUAL: usize = 50;
/// Most pipelines of an answer.
const MOST: usize = 1_000;
/// Labels that name a version when none are asked for.
const VERSIONS: [&str; 2] = ["pipelinesascode.tekton.dev/sha", "tekton.dev/commit"];

/// What is flaky.
#[derive(Debug)]
pub struct FlakyPipelines {
    /// Those that are certain first.
    pub found: Vec<FlakyPipeline>,
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

/// A series with both outcomes on one version.
#[derive(Debug)]
pub struct FlakyPipeline {
    /// The series whose outcomes these are.
    pub series: RunSeries,
    /// Whether it is more than suspected.
    pub is_flaky: bool,
    /// How many runs succeeded or failed.
    pub runs: usize,
    /// In how many episodes it failed.
    pub episodes: usize,
    /// One pair for each of the latest episodes.
    pub pairs: Vec<FlakyPair>,
}

/// A failure and a success of one version.
#[derive(Debug)]
pub struct FlakyPair {
    /// The version of the code.
    pub version: String,
    /// The run that failed.
    pub failed: Option<RunPoint>,
    /// The run that succeeded.
    pub succeeded: RunPoint,
}

impl Service {
    /// What is flaky among the runs that `ask` means, under the parent that `grant` is for. The first
    /// of `versions` that a run has as a label names its version. It fails if a text is wrong.
    pub async fn list_flaky(
        &self,
        by: &RequestContext,
        grant: &Grant,
        result: Option<String>,
        ask: HistoryAsk,
        mut versions: Vec<String>,
        limit: i32,
    ) -> Result<FlakyPipelines, Error> {
        let limit = super::limit(limit, USUAL, MOST)?;
        if versions.is_empty() {
            versions = VERSIONS.map(str::to_owned).into();
        }
        let history = History::with_versions(versions);
        let words = "status:succeeded,failed,timeout";
        let looked = self.history(by, grant, result, ask, words, history).await?;
        let engine = self.engine.with_quota(&by.quota);
        let (runs_read, history) = (looked.history.read(), looked.history);
        let (found, left_out) = engine.compute(move || pipelines(&history, limit)).await?;
        Ok(FlakyPipelines {
            found,
            left_out,
            since: looked.since,
            runs_read,
            is_whole: looked.is_whole,
            query_filter: looked.query_filter,
        })
    }
}

/// The pipelines with the most episodes, and how many more there are.
fn pipelines(history: &History, limit: usize) -> (Vec<FlakyPipeline>, usize) {
    let runs = history.runs();
    let mut found = flaky(&runs, &Settings::default());
    found.sort_by_key(|it| (it.verdict != Verdict::Flaky, Reverse(it.episodes)));
    let left_out = found.len().saturating_sub(limit);
    found.truncate(limit);
    let told = found.into_iter().filter_map(|it| {
        let first = it.pairs.first()?.succeeded;
        let pairs = it.pairs.iter();
        Some(FlakyPipeline {
            series: history.series(first)?.clone(),
            is_flaky: it.verdict == Verdict::Flaky,
            runs: it.runs,
            episodes: it.episodes,
            pairs: pairs.filter_map(|it| pair(history, it)).collect(),
        })
    });
    (told.collect(), left_out)
}

fn pair(history: &History, pair: &Pair) -> Option<FlakyPair> {
    Some(FlakyPair {
        version: history.version(pair.succeeded)?.to_owned(),
        failed: pair.failed.and_then(|at| history.point(at)),
        succeeded: history.point(pair.succeeded)?,
    })
}
