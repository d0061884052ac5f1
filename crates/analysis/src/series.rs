//! The runs of a pipeline as a series: what the detectors of flaky and slowing pipelines read.

use hindsight_run::Outcome;

/// One run of a pipeline, or one attempt of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run<'a> {
    /// When it began, in seconds since 1970.
    pub began: i64,
    /// Which pipeline it is a run of.
    pub pipeline: &'a str,
    /// What it ran on: a commit, or a digest of its parameters. Empty if that is not known.
    pub version: &'a str,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took, in milliseconds.
    pub duration: u64,
    /// Which attempt it is, the first being 1; 0 if that is not known.
    pub attempt: u32,
}

/// The positions of `runs` by pipeline, each in the order of time. Runs of one time keep the order
/// in which they are given.
pub(crate) fn by_pipeline<'a>(runs: &[Run<'a>]) -> Vec<(&'a str, Vec<usize>)> {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(|at| (runs[*at].pipeline, runs[*at].began));
    let groups = order.chunk_by(|a, b| runs[*a].pipeline == runs[*b].pipeline);
    groups
        .map(|group| (runs[group[0]].pipeline, group.to_vec()))
        .collect()
}
