//! Where durations of a pipeline stepped up: marks at the bars of the runs with which that began.

use hindsight_proto::v1::{ListRegressionsRequest, Regression, RunRow, regression};

use super::super::series::Series;
use crate::api::Refusal;
use crate::ask::{Ask, results_of};
use crate::time::length;

/// How far back runs are compared, in days.
const DAYS: i32 = 90;

/// A step, and the run with which it began.
#[derive(Debug)]
pub(super) struct Step {
    /// Place among the bars, the oldest first.
    pub(super) at: usize,
    pub(super) name: String,
    pub(super) link: String,
    /// Which percentile rose, and from what to what.
    pub(super) what: &'static str,
    pub(super) before: String,
    pub(super) after: String,
    pub(super) change: String,
    /// Whether another change followed.
    pub(super) is_over: bool,
}

pub(super) async fn found(
    ask: &Ask,
    series: Series<'_>,
    parent: &str,
    namespace: &str,
) -> Result<Vec<Regression>, Refusal> {
    let request = ListRegressionsRequest {
        parent: results_of(parent),
        query: series.query(namespace),
        days: DAYS,
        ..ListRegressionsRequest::default()
    };
    Ok(ask.api.regressions(request).await?.regressions)
}

/// Those that began with one of these runs, which are the newest first; the oldest step first.
pub(super) fn steps(ask: &Ask, runs: &[RunRow], found: &[Regression]) -> Vec<Step> {
    let steps = found.iter().filter_map(|regression| {
        let began = regression.began.as_ref()?;
        let at = runs
            .iter()
            .rev()
            .position(|run| run.record == began.record)?;
        let (before, after) = (regression.before?, regression.after?);
        let (what, before, after) = match regression.kind() {
            regression::Kind::Tail => ("p95", before.p95_seconds, after.p95_seconds),
            _ => ("median", before.p50_seconds, after.p50_seconds),
        };
        Some(Step {
            at,
            name: began.name.clone(),
            link: ask.links.run(&began.record),
            what,
            before: length(before),
            after: length(after),
            change: format!("{:+.0} %", (regression.ratio - 1.0) * 100.0),
            is_over: regression.ended.is_some(),
        })
    });
    let mut steps: Vec<_> = steps.collect();
    steps.sort_by_key(|step| step.at);
    steps
}

#[cfg(test)]
mod tests {
    use hindsight_proto::v1::{RunDurations, RunPoint};

    use super::*;

    #[tokio::test]
    async fn a_step_is_marked_at_the_run_with_which_it_began() {
        let ask = Ask::sample();
        let runs = ["new", "middle", "old"].map(|record| RunRow {
            record: record.to_owned(),
            ..RunRow::default()
        });
        let regression = |record: &str, kind: regression::Kind| Regression {
            kind: kind.into(),
            began: Some(RunPoint {
                record: record.to_owned(),
                name: format!("run {record}"),
                start_time: None,
            }),
            before: Some(RunDurations {
                p50_seconds: 60.0,
                p95_seconds: 70.0,
            }),
            after: Some(RunDurations {
                p50_seconds: 90.0,
                p95_seconds: 140.0,
            }),
            ratio: 1.5,
            ..Regression::default()
        };
        let all = [
            regression("new", regression::Kind::Tail),
            regression("gone", regression::Kind::Slower),
            regression("middle", regression::Kind::Slower),
        ];
        let steps = steps(&ask, &runs, &all);
        let told: Vec<_> = steps
            .iter()
            .map(|step| (step.at, step.name.as_str(), step.what, step.after.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (1, "run middle", "median", "1 m 30 s"),
                (2, "run new", "p95", "2 m 20 s")
            ]
        );
        assert_eq!(steps[0].change, "+50 %");
    }
}
