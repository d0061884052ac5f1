//! Tasks by runs: how each task ended in each of the last runs.

use std::collections::BTreeMap;

use hindsight_filter::words;
use hindsight_proto::v1::{ListRunsRequest, RunRow, RunTree};
use jiff::Timestamp;

use super::super::list::status_of;
use super::super::series::{Series, asking};
use crate::api::Refusal;
use crate::ask::Ask;
use crate::html::{Name, end_cut};
use crate::route::Of;
use crate::status::{Shape, Status};
use crate::time::{length, timestamp};

/// Runs that are drawn, of Tekton and of Argo, whose tasks are in their payloads.
const RUNS: usize = 30;
const WORKFLOWS: usize = 10;
/// Tasks that are drawn.
const TASKS: usize = 60;
/// Parts of runs that are read.
const PARTS: i32 = 2_000;
const TASK: &str = "tekton.dev/pipelineTask";

/// The drawing, the oldest run first.
#[derive(Debug, Default)]
pub(super) struct Grid {
    pub(super) runs: Vec<Cell>,
    pub(super) rows: Vec<Row>,
    pub(super) left_out: usize,
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) task: Name,
    pub(super) cells: Vec<Option<Cell>>,
    /// How many of its runs failed.
    pub(super) failed: String,
}

#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) shape: Shape,
    pub(super) link: String,
    pub(super) title: String,
    /// Whether it is of the run in the middle.
    pub(super) is_here: bool,
}

/// A task in one run. Several of one name are one cell, with the worst state.
#[derive(Debug, Clone)]
struct Part {
    run: usize,
    task: String,
    status: Status,
    start: Option<Timestamp>,
    seconds: Option<f64>,
    record: String,
    count: usize,
}

/// The tasks of these runs, the newest first: of the newest, or of those around the one in the middle.
pub(super) async fn grid(
    ask: &Ask,
    series: Series<'_>,
    scope: &str,
    namespace: &str,
    runs: &[RunRow],
    middle: Option<usize>,
) -> Result<Grid, Refusal> {
    let near = |most: usize| {
        let most = most.min(runs.len());
        let first = middle.unwrap_or_default().saturating_sub(most / 2);
        let first = first.min(runs.len() - most);
        &runs[first..first + most]
    };
    let here = middle.map(|at| runs[at].record.as_str());
    let (runs, parts) = match series.of {
        Of::Pipeline => {
            let runs = near(RUNS);
            (
                runs,
                of_rows(ask, series.name, scope, namespace, runs).await?,
            )
        }
        _ => {
            let runs = near(WORKFLOWS);
            (runs, of_trees(ask, runs).await?)
        }
    };
    Ok(drawn(ask, runs, here, parts))
}

async fn of_rows(
    ask: &Ask,
    pipeline: &str,
    scope: &str,
    namespace: &str,
    runs: &[RunRow],
) -> Result<Vec<Part>, Refusal> {
    let began = runs
        .iter()
        .filter_map(|run| timestamp(run.start_time))
        .min();
    let ended = runs.iter().map(|run| timestamp(run.end_time));
    let ended = ended.collect::<Option<Vec<_>>>();
    let ended = ended.and_then(|ended| ended.into_iter().max());
    let Some(began) = began else {
        return Ok(Vec::new());
    };
    let until = ended.unwrap_or(ask.clock.now);
    let mut request = asking(
        scope,
        &format!(
            "pipeline:{} is:child ns:{}",
            words::value(pipeline),
            words::value(namespace)
        ),
    );
    request.label_keys.push(TASK.to_owned());
    let request = ListRunsRequest {
        filter: format!(
            "run.start_time >= timestamp('{began}') && run.start_time <= timestamp('{until}')"
        ),
        page_size: PARTS,
        ..request
    };
    let found = ask.api.list_runs(request).await?;
    let places: BTreeMap<&str, usize> = runs
        .iter()
        .enumerate()
        .map(|(at, run)| (run.name.as_str(), at))
        .collect();
    let parts = found.runs.iter().filter_map(|row| {
        let task = row.labels.get(TASK).unwrap_or(&row.name);
        Some(Part {
            run: *places.get(row.parent_run.as_str())?,
            task: task.clone(),
            status: status_of(row),
            start: timestamp(row.start_time),
            seconds: row.duration_seconds,
            record: row.record.clone(),
            count: 1,
        })
    });
    Ok(parts.collect())
}

async fn of_trees(ask: &Ask, runs: &[RunRow]) -> Result<Vec<Part>, Refusal> {
    let mut parts = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let tree = ask.api.tree(&run.record, true).await?;
        parts.extend(parts_of(at, &run.record, &tree));
    }
    Ok(parts)
}

fn parts_of(run: usize, record: &str, tree: &RunTree) -> Vec<Part> {
    let above: std::collections::BTreeSet<&str> =
        tree.nodes.iter().map(|node| node.parent.as_str()).collect();
    let leaves = tree.nodes.iter().skip(1);
    let leaves = leaves.filter(|node| !above.contains(node.id.as_str()));
    let parts = leaves.map(|node| {
        let (start, end) = (timestamp(node.start_time), timestamp(node.end_time));
        // Items of a fan-out are called `name(number:item)`.
        let task = node.name.split('(').next().unwrap_or_default();
        Part {
            run,
            task: end_cut(task, 100),
            status: Status::of_node(node.outcome(), start.is_some(), end.is_some()),
            start,
            seconds: start
                .zip(end)
                .map(|(start, end)| crate::time::between(start, end)),
            record: match node.record.as_str() {
                "" => record.to_owned(),
                own => own.to_owned(),
            },
            count: 1,
        }
    });
    parts.collect()
}

/// One cell for each task of a run, in the order in which tasks begin in the newest run that has them.
fn drawn(ask: &Ask, runs: &[RunRow], here: Option<&str>, mut parts: Vec<Part>) -> Grid {
    parts.sort_by_key(|part| (part.run, part.start));
    let mut order: BTreeMap<&str, usize> = BTreeMap::new();
    for part in &parts {
        let next = order.len();
        order.entry(&part.task).or_insert(next);
    }
    let mut rows: Vec<Vec<Option<Part>>> = vec![vec![None; runs.len()]; order.len()];
    for part in &parts {
        let (Some(row), at) = (order.get(part.task.as_str()), part.run) else {
            continue;
        };
        let cell = &mut rows[*row][at];
        match cell {
            // States are in the order of their weight.
            Some(worst) if worst.status <= part.status => worst.count += 1,
            _ => {
                let before = cell.as_ref().map_or(0, |cell| cell.count);
                *cell = Some(Part {
                    count: before + 1,
                    ..part.clone()
                });
            }
        }
    }
    let mut names: Vec<_> = order.into_iter().map(|(name, at)| (at, name)).collect();
    names.sort_unstable();
    let left_out = names.len().saturating_sub(TASKS);
    let rows = names.into_iter().take(TASKS).map(|(at, task)| {
        let ended = rows[at].iter().flatten();
        let failed = ended.filter(|part| part.status.is_failure()).count();
        let cells = rows[at].iter().zip(runs).rev();
        Row {
            task: Name::new(task, 36),
            failed: match failed {
                0 => String::new(),
                failed => failed.to_string(),
            },
            cells: cells
                .map(|(part, run)| part.as_ref().map(|part| cell(ask, run, part)))
                .collect(),
        }
    });
    Grid {
        rows: rows.collect(),
        runs: runs
            .iter()
            .rev()
            .map(|run| Cell {
                shape: status_of(run).shape(),
                link: ask.links.run(&run.record),
                title: format!("{} {}", end_cut(&run.name, 100), status_of(run).word()),
                is_here: here == Some(run.record.as_str()),
            })
            .collect(),
        left_out,
    }
}

fn cell(ask: &Ask, run: &RunRow, part: &Part) -> Cell {
    let took = part
        .seconds
        .map(|seconds| format!(" {}", length(seconds)))
        .unwrap_or_default();
    let many = match part.count {
        1 => String::new(),
        count => format!(", the worst of {count}"),
    };
    Cell {
        shape: part.status.shape(),
        link: ask.links.run(&part.record),
        title: format!(
            "{} in {}: {}{took}{many}",
            end_cut(&part.task, 100),
            end_cut(&run.name, 100),
            part.status.word()
        ),
        is_here: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(run: usize, task: &str, at: i64, status: Status) -> Part {
        Part {
            run,
            task: task.to_owned(),
            status,
            start: Timestamp::from_second(at).ok(),
            seconds: Some(1.0),
            record: format!("shop/results/r/records/{task}{run}"),
            count: 1,
        }
    }

    #[tokio::test]
    async fn a_grid_has_a_cell_for_each_task_of_each_run() {
        use Status::{Failed, Succeeded};
        let ask = Ask::sample();
        let runs = ["new", "old"].map(|name| RunRow {
            name: name.to_owned(),
            ..RunRow::default()
        });
        let parts = vec![
            part(1, "gone", 1, Succeeded),
            part(1, "test", 2, Succeeded),
            part(0, "test", 12, Failed),
            part(0, "test", 13, Succeeded),
            part(0, "build", 11, Succeeded),
        ];
        let grid = drawn(&ask, &runs, None, parts);
        let names: Vec<_> = grid.rows.iter().map(|row| row.task.to_string()).collect();
        assert_eq!(names, ["build", "test", "gone"]);
        let test = &grid.rows[1];
        assert_eq!(test.failed, "1");
        let titles: Vec<_> = test.cells.iter().flatten().map(|it| &it.title).collect();
        assert_eq!(
            titles,
            [
                "test in old: succeeded 1.0 s",
                "test in new: failed 1.0 s, the worst of 2"
            ]
        );
        // The oldest run is first, and has no such task.
        assert!(grid.rows[0].cells[0].is_none() && grid.rows[0].cells[1].is_some());
    }
}
