//! A pipeline: its last runs as bars, or those around one of them, how long they take and since when
//! longer, how each task ended, and what failed.

mod grid;
mod steps;
mod window;

use askama::Template;
use hindsight_filter::words::value;
use hindsight_proto::v1::RunRow;

use super::frame::{Frame, Place};
use super::list::{Row, rows, seconds_of, status_of};
use super::series::Series;
use super::{Page, Shown};
use crate::ask::Ask;
use crate::route::Of;
use crate::status::Status;
use crate::time::length;

use grid::Grid;
use steps::Step;
use window::window;

/// Runs that are read, and drawn.
const RUNS: usize = 60;
/// Failures and other runs that are listed.
const FAILURES: usize = 8;
/// Height of the drawing, and of the lowest bar.
const HEIGHT: f64 = 120.0;
const LOWEST: f64 = 3.0;
/// Width of a bar and the gap beside it, in percent.
const STEP: f64 = 100.0 / RUNS as f64;

#[derive(Debug, Template)]
#[template(path = "pipeline.html")]
struct Pipeline {
    frame: Frame,
    namespace: String,
    namespace_link: String,
    name: String,
    bars: Vec<Bar>,
    /// Lines of percentiles: height from above and label.
    lines: Vec<Line>,
    marks: Vec<Mark>,
    /// The run in the middle, if one was asked for.
    middle: Option<String>,
    count: usize,
    rate: String,
    p50: String,
    p95: String,
    streak: String,
    streak_class: &'static str,
    failures: Vec<Row>,
    rows: Vec<Row>,
    all: String,
    /// Where it says whether the pipeline is flaky or slower, which only those of Tekton are asked.
    health: Option<String>,
    stats: String,
    feed: String,
    badge: String,
    grid: Grid,
    older: Option<String>,
    newest: Option<String>,
}

#[derive(Debug)]
struct Bar {
    x: f64,
    width: f64,
    y: f64,
    height: f64,
    class: &'static str,
    link: String,
    title: String,
    is_middle: bool,
}

/// A step of durations, at the middle of the bar with which it began.
#[derive(Debug)]
struct Mark {
    x: f64,
    step: Step,
}

#[derive(Debug)]
struct Line {
    y: f64,
    label: String,
}

pub(crate) async fn pipeline(ask: &Ask, of: Of, namespace: &str, name: &str) -> Shown {
    let parent = match ask.query.get("in") {
        "" => namespace,
        parent => parent,
    };
    let series = Series { of, name };
    let query = series.query(namespace);
    let (window, found) = futures::try_join!(
        window(ask, series, parent, namespace),
        steps::found(ask, series, parent, namespace)
    )?;
    let (runs, middle) = (window.runs, window.middle);
    let grid = grid::grid(ask, series, parent, namespace, &runs, middle).await?;
    let durations = durations(&runs);
    let finished: Vec<_> = runs
        .iter()
        .map(status_of)
        .filter(|it| is_counted(*it))
        .collect();
    let good = finished
        .iter()
        .filter(|status| **status == Status::Succeeded)
        .count();
    let (p50, p95) = (percentile(&durations, 0.5), percentile(&durations, 0.95));
    let top = runs
        .iter()
        .filter_map(|run| seconds_of(ask, run))
        .fold(0.0, f64::max);
    let (streak, streak_class) = streak(&finished);
    let failed = |run: &&RunRow| status_of(run).is_failure();
    let failures: Vec<_> = runs.iter().filter(failed).take(FAILURES).cloned().collect();
    let view = Pipeline {
        frame: Frame::new(ask, name, Place::Elsewhere),
        namespace: namespace.to_owned(),
        namespace_link: ask.links.runs("", parent),
        name: name.to_owned(),
        bars: bars(ask, &runs, middle, top),
        marks: steps::steps(ask, &runs, &found)
            .into_iter()
            .map(|step| Mark {
                x: place(runs.len(), step.at) + STEP / 2.0,
                step,
            })
            .collect(),
        middle: middle.map(|at| runs[at].name.clone()),
        lines: [(p50, "p50"), (p95, "p95")]
            .into_iter()
            .filter_map(|(seconds, label)| {
                Some(Line {
                    y: HEIGHT - height(seconds?, top),
                    label: format!("{label} {}", length(seconds?)),
                })
            })
            .collect(),
        count: runs.len(),
        rate: match finished.len() {
            0 => "–".to_owned(),
            of => format!("{:.0} %", good as f64 / of as f64 * 100.0),
        },
        p50: p50.map_or_else(|| "–".to_owned(), length),
        p95: p95.map_or_else(|| "–".to_owned(), length),
        streak,
        streak_class,
        failures: rows(ask, &failures),
        rows: rows(ask, &runs[..runs.len().min(FAILURES * 2)]),
        all: ask.links.runs(&query, parent),
        health: (of == Of::Pipeline).then(|| {
            let word = format!("pipeline:{}", value(name));
            ask.links.health(&word, parent)
        }),
        stats: ask.links.stats(&query, parent, "day(started)", ""),
        feed: ask.links.feed(&query, parent),
        badge: ask.links.badge(of, parent, namespace, name),
        grid,
        older: window.older,
        newest: window.newest,
    };
    Ok(Page::of(&view))
}

/// Whether a run counts for the rate of success: it ended, and no one stopped it.
fn is_counted(status: Status) -> bool {
    matches!(status, Status::Succeeded | Status::Failed | Status::Timeout)
}

/// Durations of runs that succeeded, the shortest first.
fn durations(runs: &[RunRow]) -> Vec<f64> {
    let good = runs
        .iter()
        .filter(|run| status_of(run) == Status::Succeeded);
    let mut durations: Vec<_> = good.filter_map(|run| run.duration_seconds).collect();
    durations.sort_by(f64::total_cmp);
    durations
}

/// The smallest value that this part of the values does not exceed.
fn percentile(sorted: &[f64], part: f64) -> Option<f64> {
    let rank = (sorted.len() as f64 * part).ceil().max(1.0);
    let at = (1..=sorted.len()).find(|at| *at as f64 >= rank)?;
    sorted.get(at - 1).copied()
}

/// How many runs in a row ended alike, of those that count, the newest first.
fn streak(finished: &[Status]) -> (String, &'static str) {
    let Some(first) = finished.first() else {
        return ("no finished run".to_owned(), "unknown");
    };
    let is_bad = first.is_failure();
    let count = finished
        .iter()
        .take_while(|it| it.is_failure() == is_bad)
        .count();
    let since = if count == finished.len() {
        " or more"
    } else {
        ""
    };
    match is_bad {
        true => (format!("{count}{since} failed in a row"), "failed"),
        false => (format!("{count}{since} succeeded in a row"), "succeeded"),
    }
}

fn height(seconds: f64, top: f64) -> f64 {
    let share = if top > 0.0 { seconds / top } else { 0.0 };
    (share * (HEIGHT - 8.0)).clamp(LOWEST, HEIGHT)
}

/// Where the bar of a run begins, of so many that are drawn, in percent.
fn place(count: usize, at: usize) -> f64 {
    (RUNS.saturating_sub(count) + at) as f64 * STEP
}

/// A bar for each run, the oldest first; that in the middle is set apart.
fn bars(ask: &Ask, runs: &[RunRow], middle: Option<usize>, top: f64) -> Vec<Bar> {
    let bars = runs.iter().enumerate().rev().map(|(from_newest, run)| {
        let at = runs.len() - 1 - from_newest;
        let status = status_of(run);
        let seconds = seconds_of(ask, run);
        let height = height(seconds.unwrap_or_default(), top);
        let took = seconds.map(length).unwrap_or_default();
        Bar {
            x: place(runs.len(), at) + STEP * 0.1,
            width: STEP * 0.8,
            y: HEIGHT - height,
            height,
            class: status.word(),
            link: ask.links.run(&run.record),
            title: format!("{} {} {took}", run.name, status.word()),
            is_middle: middle == Some(from_newest),
        }
    });
    bars.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occur() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(percentile(&values, 0.5), Some(10.0));
        assert_eq!(percentile(&values, 0.95), Some(19.0));
        assert_eq!(percentile(&[3.0], 0.95), Some(3.0));
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn a_streak_counts_runs_that_ended_alike() {
        use Status::{Failed, Succeeded, Timeout};
        assert_eq!(streak(&[Failed, Timeout, Succeeded]).0, "2 failed in a row");
        assert_eq!(
            streak(&[Succeeded, Succeeded]).0,
            "2 or more succeeded in a row"
        );
        assert_eq!(streak(&[]).1, "unknown");
    }
}
