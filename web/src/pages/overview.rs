//! What is broken: pipelines by how they stand, newly failing ones first.

use std::collections::BTreeMap;

use askama::Template;
use hindsight_proto::v1::{ListRunsRequest, RunRow};
use jiff::Timestamp;

use super::frame::{Frame, Place};
use super::list::{newest_first, seconds_of, status_of};
use super::series::{Series, asking, parent_of};
use super::{Page, Shown};
use crate::ask::Ask;
use crate::html::{Name, end_cut};
use crate::status::{Badge, Status, telling};
use crate::time::{When, length, timestamp};

/// Runs that are read: the newest whole ones.
const RUNS: i32 = 1_000;
/// Runs that a strip shows.
const STRIP: usize = 20;
/// Pipelines of all groups that are shown at first: a row is some 70 elements, of which a page has
/// 3,000. A group has a few even if others before it are full.
const PIPELINES: usize = 32;
const FEW: usize = 4;
/// Pipelines of one group where all are asked for.
const ALL: usize = 200;

#[derive(Debug, Template)]
#[template(path = "overview.html")]
struct Overview {
    frame: Frame,
    scope: String,
    action: String,
    groups: Vec<Group>,
    /// Where what is left out is shown.
    all: Option<String>,
    count: usize,
    since: Option<When>,
    has_more: bool,
    runs: String,
}

#[derive(Debug)]
struct Group {
    title: &'static str,
    about: &'static str,
    rows: Vec<Row>,
    left_out: usize,
}

#[derive(Debug)]
struct Row {
    badge: Badge,
    class: &'static str,
    namespace: String,
    name: Name,
    link: String,
    strip: Vec<Cell>,
    /// The first failure after a success, or the latest run.
    point: Point,
    reason: Name,
    took: String,
    rate: String,
}

#[derive(Debug)]
struct Cell {
    class: &'static str,
    x: usize,
    link: String,
    title: String,
}

#[derive(Debug)]
struct Point {
    name: Name,
    link: String,
    start: Option<When>,
}

/// How a pipeline stands, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    NewlyFailing,
    Failing,
    Unfinished,
    Fine,
}

pub(crate) async fn overview(ask: &Ask) -> Shown {
    let scope = ask.scope();
    let is_all = ask.query.get("all") == "1";
    let request = ListRunsRequest {
        page_size: RUNS,
        ..asking(scope, "is:top")
    };
    let found = ask.api.list_runs(request).await?;
    let mut pipelines: BTreeMap<(&str, &str, Series<'_>), Vec<&RunRow>> = BTreeMap::new();
    for run in &found.runs {
        let series = Series::of(run).filter(|_| !run.namespace.is_empty());
        if let Some(series) = series {
            let key = (parent_of(&run.record), run.namespace.as_str(), series);
            pipelines.entry(key).or_default().push(run);
        }
    }
    let count = pipelines.len();
    let mut standing: BTreeMap<Standing, Vec<(Option<Timestamp>, Row)>> = BTreeMap::new();
    for ((_, _, series), runs) in &mut pipelines {
        newest_first(runs);
        let (stands, at, row) = row(ask, *series, runs);
        standing.entry(stands).or_default().push((at, row));
    }
    let oldest = found
        .runs
        .iter()
        .filter_map(|run| timestamp(run.start_time))
        .min();
    let view = Overview {
        frame: Frame::new(ask, "Overview", Place::Overview),
        scope: scope.to_owned(),
        action: ask.links.overview(""),
        groups: groups(standing, is_all),
        all: (!is_all).then(|| ask.links.whole_overview(scope)),
        count,
        since: oldest.map(|oldest| ask.clock.when(oldest)),
        has_more: !found.next_page_token.is_empty(),
        runs: ask.links.runs("", scope),
    };
    Ok(Page::of(&view))
}

/// The groups, the worst first, with as many rows as a page has.
fn groups(standing: BTreeMap<Standing, Vec<(Option<Timestamp>, Row)>>, all: bool) -> Vec<Group> {
    let mut left = if all { usize::MAX } else { PIPELINES };
    let group = |(standing, rows): (Standing, Vec<_>)| {
        let most = share(&mut left, rows.len());
        group(standing, rows, most)
    };
    standing.into_iter().map(group).collect()
}

/// How many of so many rows a group shows, of those that are left.
fn share(left: &mut usize, rows: usize) -> usize {
    let shown = rows.min((*left).clamp(FEW, ALL));
    *left = left.saturating_sub(shown);
    shown
}

fn group(standing: Standing, mut rows: Vec<(Option<Timestamp>, Row)>, most: usize) -> Group {
    rows.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let (title, about) = match standing {
        Standing::NewlyFailing => (
            "Newly failing",
            "They succeeded before; the latest break first.",
        ),
        Standing::Failing => ("Failing", "No success among the runs that are read."),
        Standing::Unfinished => ("Not finished yet", "No run of them ended."),
        Standing::Fine => (
            "Succeeding",
            "The last finished run succeeded or was cancelled.",
        ),
    };
    let left_out = rows.len().saturating_sub(most);
    rows.truncate(most);
    Group {
        title,
        about,
        rows: rows.into_iter().map(|(_, row)| row).collect(),
        left_out,
    }
}

/// A pipeline of these runs, the newest first: how it stands, since when, and its row.
fn row(ask: &Ask, series: Series<'_>, runs: &[&RunRow]) -> (Standing, Option<Timestamp>, Row) {
    let latest = runs[0];
    let states: Vec<_> = runs.iter().map(|run| status_of(run)).collect();
    let (standing, at) = stand(&states);
    let run = runs[at];
    let finished = states
        .iter()
        .filter(|it| **it == Status::Succeeded || it.is_failure());
    let finished: Vec<_> = finished.collect();
    let good = finished
        .iter()
        .filter(|it| ***it == Status::Succeeded)
        .count();
    let shown = states[at];
    let took = runs
        .iter()
        .find(|run| status_of(run) == Status::Succeeded)
        .unwrap_or(&latest);
    let row = Row {
        badge: shown.badge(),
        class: shown.word(),
        namespace: latest.namespace.clone(),
        name: Name::new(series.name, 40),
        link: series.link(ask, latest).unwrap_or_default(),
        strip: strip(ask, runs),
        point: Point {
            name: Name::new(&run.name, 36),
            link: ask.links.run(&run.record),
            start: ask.clock.when_of(run.start_time.or(run.created)),
        },
        reason: Name::new(telling(&run.reason), 32),
        took: seconds_of(ask, took).map(length).unwrap_or_default(),
        rate: match finished.len() {
            0 => String::new(),
            of => format!("{good} of {of}"),
        },
    };
    (standing, timestamp(run.start_time), row)
}

/// How a pipeline with runs in these states stands, the newest first, and which run says so.
fn stand(states: &[Status]) -> (Standing, usize) {
    let mut ended = states
        .iter()
        .enumerate()
        .filter(|(_, state)| **state == Status::Succeeded || state.is_failure());
    let Some((newest, state)) = ended.next() else {
        let is_open = states.iter().any(|state| state.is_unfinished());
        return (
            if is_open {
                Standing::Unfinished
            } else {
                Standing::Fine
            },
            0,
        );
    };
    if *state == Status::Succeeded {
        return (Standing::Fine, newest);
    }
    let mut first = newest;
    for (at, state) in ended {
        if *state == Status::Succeeded {
            return (Standing::NewlyFailing, first);
        }
        first = at;
    }
    (Standing::Failing, first)
}

/// The newest runs, the oldest of them first.
fn strip(ask: &Ask, runs: &[&RunRow]) -> Vec<Cell> {
    let shown = &runs[..runs.len().min(STRIP)];
    let empty = STRIP - shown.len();
    let cells = shown.iter().rev().enumerate().map(|(at, run)| {
        let status = status_of(run);
        Cell {
            class: status.word(),
            x: (empty + at) * 9,
            link: ask.links.run(&run.record),
            title: format!("{} {}", end_cut(&run.name, 100), status.word()),
        }
    });
    cells.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_shows_the_worst_pipelines_and_a_few_of_each_group() {
        let shares = |mut left: usize, sizes: &[usize]| -> Vec<usize> {
            sizes.iter().map(|rows| share(&mut left, *rows)).collect()
        };
        assert_eq!(shares(PIPELINES, &[3, 10, 2, 500]), [3, 10, 2, 17]);
        assert_eq!(shares(PIPELINES, &[40, 10, 2, 500]), [32, 4, 2, 4]);
        assert_eq!(shares(usize::MAX, &[40, 10, 2, 500]), [40, 10, 2, 200]);
    }

    #[test]
    fn a_row_has_the_status_of_the_run_that_it_names() {
        let run = |name: &str, outcome: &str| RunRow {
            name: name.to_owned(),
            pipeline: "e2e".to_owned(),
            outcome: outcome.to_owned(),
            ..RunRow::default()
        };
        let (newest, before) = (run("e2e-2", "CANCELLED"), run("e2e-1", "SUCCESS"));
        let series = Series::of(&newest).unwrap();
        let (_, _, row) = row(&Ask::sample(), series, &[&newest, &before]);
        assert_eq!(row.class, Status::Succeeded.word());
        assert_eq!(row.point.name.to_string(), "e2e-1");
    }

    #[test]
    fn a_pipeline_stands_as_its_finished_runs_say() {
        use Status::{Cancelled, Failed, Running, Succeeded, Timeout};
        for (states, standing, at) in [
            (
                &[Running, Failed, Cancelled, Timeout, Succeeded][..],
                Standing::NewlyFailing,
                3,
            ),
            (&[Failed, Failed], Standing::Failing, 1),
            (&[Succeeded, Failed], Standing::Fine, 0),
            (&[Running], Standing::Unfinished, 0),
            (&[Cancelled], Standing::Fine, 0),
        ] {
            assert_eq!(stand(states), (standing, at), "{states:?}");
        }
    }
}
