//! The containers of a run that have a log, and which of them is shown first.

use std::collections::HashMap;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use hindsight_proto::v1::{LogContainer, LogMatch, LogSource, RunNode, RunTree};

use crate::api::{Answer, Kind};
use crate::ask::Ask;
use crate::status::Status;

/// Most runs below one whose containers are asked for, and how many of them at once.
const RUNS: usize = 50;
const TOGETHER: usize = 8;
/// Most containers that are listed.
const MOST: usize = 200;

/// How names of containers of steps begin in Tekton.
const STEP: &str = "step-";
/// Containers that Argo puts beside the one of a node.
const BESIDE: [&str; 2] = ["wait", "init"];

/// The log of one start of a container.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// The record of the run that it belongs to.
    pub(super) record: String,
    /// What its part of the run is called; empty for the run itself.
    pub(super) task: String,
    pub(super) log: LogContainer,
    /// How its step or node stands, if that is known.
    pub(super) status: Option<Status>,
}

/// What there is of a run.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// In the order in which their runs began.
    pub(super) all: Vec<Source>,
    /// The records of the runs that were asked.
    pub(super) runs: Vec<String>,
    /// Runs that were not asked, and containers that are not listed.
    pub(super) more_runs: usize,
    pub(super) more: usize,
    /// A page elsewhere that shows the log, where nothing is here.
    pub(super) page: Option<String>,
}

/// What an address says of a container.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted<'a> {
    pub(super) task: &'a str,
    pub(super) pod: &'a str,
    pub(super) step: &'a str,
    pub(super) start: Option<i32>,
}

impl<'a> Wanted<'a> {
    pub(super) fn of(ask: &'a Ask) -> Self {
        Self {
            task: ask.query.get("task"),
            pod: ask.query.get("pod"),
            step: ask.query.get("step"),
            start: ask.query.get("start").parse().ok(),
        }
    }

    pub(super) fn is_any(&self) -> bool {
        let texts = [self.task, self.pod, self.step];
        texts.iter().all(|text| text.is_empty()) && self.start.is_none()
    }

    fn fits(&self, source: &Source) -> bool {
        let asked = source.id();
        let step = &asked.container;
        (self.task.is_empty() || is_named(&source.record, self.task))
            && (self.pod.is_empty() || self.pod == asked.pod)
            && (self.step.is_empty() || self.step == step || self.step == step_of(step))
            && self.start.is_none_or(|start| start == asked.restart)
    }
}

/// Whether a record has this name, or this last part of its name.
fn is_named(record: &str, name: &str) -> bool {
    record == name || record.rsplit('/').next() == Some(name)
}

/// The name of a step in the name of its container.
fn step_of(container: &str) -> &str {
    container.strip_prefix(STEP).unwrap_or(container)
}

impl Source {
    /// The container in which something was found.
    pub(super) fn of_match(found: &LogMatch) -> Self {
        let (result, id) = found.name.rsplit_once("/logs/").unwrap_or_default();
        Self {
            record: format!("{result}/records/{id}"),
            task: String::new(),
            log: LogContainer {
                name: found.name.clone(),
                source: found.source.clone(),
                ..LogContainer::default()
            },
            status: None,
        }
    }

    pub(super) fn id(&self) -> LogSource {
        self.log.source.clone().unwrap_or_default()
    }

    /// The step, or the container; with its number if it was restarted.
    pub(super) fn name(&self) -> String {
        let LogSource {
            container, restart, ..
        } = self.id();
        match (step_of(&container), restart) {
            ("", _) => "uploaded log".to_owned(),
            (step, 0) => step.to_owned(),
            (step, start) => format!("{step}, start {}", i64::from(start) + 1),
        }
    }

    fn has_failed(&self) -> bool {
        self.status.is_some_and(Status::is_failure)
    }
}

impl Sources {
    /// The containers of a run and of those below it.
    pub(super) async fn of(ask: &Ask, record: &str, tree: &RunTree) -> Answer<Self> {
        let wanted = Wanted::of(ask);
        let mut runs: Vec<&RunNode> = tree.nodes.iter().filter(|it| is_run(it)).collect();
        runs.sort_by_key(|node| {
            let time = node.start_time.or(node.create_time);
            time.map_or((i64::MAX, 0), |time| (time.seconds, time.nanos))
        });
        // Of many runs those that are asked for and those that failed come before others.
        let mut chosen: Vec<(usize, &RunNode)> = runs.into_iter().enumerate().collect();
        chosen.sort_by_key(|(_, node)| {
            let is_asked = !wanted.task.is_empty() && is_named(&node.record, wanted.task);
            let is_first = is_asked || node.record == record;
            (!is_first, !stands(node).is_failure())
        });
        let more_runs = chosen.len().saturating_sub(RUNS);
        chosen.truncate(RUNS);
        chosen.sort_by_key(|(at, _)| *at);
        let pods = pods(tree);
        let asked = chosen.iter().map(|(_, node)| {
            let task = match node.record == record {
                true => "",
                false => node.name.as_str(),
            };
            of_run(ask, &node.record, task, node, &pods)
        });
        let asked: Vec<_> = asked.collect();
        let found: Vec<Logs> = stream::iter(asked).buffered(TOGETHER).try_collect().await?;
        let mut pages = found.iter().map(|logs| &logs.page);
        let page = pages.find(|page| !page.is_empty()).cloned();
        let all = found.into_iter().flat_map(|logs| logs.sources);
        let mut all: Vec<(usize, Source)> = all.enumerate().collect();
        let more = all.len().saturating_sub(MOST);
        all.sort_by_key(|(_, source)| {
            let is_asked = !wanted.is_any() && wanted.fits(source);
            (!is_asked, !source.has_failed())
        });
        all.truncate(MOST);
        all.sort_by_key(|(at, _)| *at);
        Ok(Self {
            all: all.into_iter().map(|(_, source)| source).collect(),
            runs: chosen.iter().map(|(_, node)| node.record.clone()).collect(),
            more_runs,
            more,
            page,
        })
    }

    /// The log that is shown: the one that is asked for, else that of the step that failed first, else the one
    /// that was written last.
    pub(super) fn shown(&self, wanted: &Wanted<'_>) -> Option<&Source> {
        if !wanted.is_any() {
            let mut fitting = self.all.iter().filter(|it| wanted.fits(it));
            let first = fitting
                .clone()
                .find(|it| it.has_failed())
                .or_else(|| fitting.next())?;
            return match wanted.start {
                Some(_) => Some(first),
                None => self.last_start(first),
            };
        }
        let failed = self.all.iter().find(|it| it.has_failed());
        failed.and_then(|it| self.last_start(it)).or_else(|| {
            let last = |source: &&Source| {
                let time = source.log.last_time;
                let time = time.map_or((i64::MIN, 0), |time| (time.seconds, time.nanos));
                (source.status.is_some(), time)
            };
            self.all.iter().max_by_key(last)
        })
    }

    /// The last start of a container.
    fn last_start(&self, first: &Source) -> Option<&Source> {
        let id = first.id();
        let is_same = |it: &&Source| {
            let other = it.id();
            let has_name = (&other.pod, &other.container) == (&id.pod, &id.container);
            it.record == first.record && has_name
        };
        self.all
            .iter()
            .filter(is_same)
            .max_by_key(|it| it.id().restart)
    }
}

/// The log of the step of a node that ended a run, by the record of the run that it is part of.
pub(super) async fn of_failure(
    ask: &Ask,
    record: &str,
    node: &RunNode,
    step: &str,
) -> Answer<Option<Source>> {
    let mut pods = Pods::new();
    let owner = match is_run(node) {
        true => node.record.as_str(),
        false => {
            pods.insert(tail(&node.id), node);
            record
        }
    };
    let all = of_run(ask, owner, "", node, &pods).await?.sources;
    let found = Sources {
        all,
        ..Sources::default()
    };
    let wanted = Wanted {
        step,
        ..Wanted::default()
    };
    let failed = found.all.iter().any(Source::has_failed);
    Ok(match step.is_empty() && !failed {
        true => None,
        false => {
            let whole = || found.all.iter().find(|it| it.id().container.is_empty());
            found.shown(&wanted).or_else(whole).cloned()
        }
    })
}

fn is_run(node: &RunNode) -> bool {
    !node.record.is_empty()
}

fn stands(node: &RunNode) -> Status {
    let (started, ended) = (node.start_time.is_some(), node.end_time.is_some());
    Status::of_node(node.outcome(), started, ended)
}

/// Nodes that have pods of their own and no record, by what the names of node and pod end with.
type Pods<'a> = HashMap<&'a str, &'a RunNode>;

fn tail(name: &str) -> &str {
    name.rsplit('-').next().unwrap_or(name)
}

fn pods(tree: &RunTree) -> Pods<'_> {
    let nodes = tree.nodes.iter().filter(|node| !is_run(node));
    nodes.map(|node| (tail(&node.id), node)).collect()
}

/// The logs of one run.
#[derive(Debug, Default)]
struct Logs {
    sources: Vec<Source>,
    /// A page elsewhere that shows them, if there are none; else nothing.
    page: String,
}

/// The containers of one run; none if it has no log.
async fn of_run(
    ask: &Ask,
    record: &str,
    task: &str,
    node: &RunNode,
    pods: &Pods<'_>,
) -> Answer<Logs> {
    let found = match ask.api.log(record).await {
        Ok(found) => found,
        Err(refusal) if refusal.kind == Kind::NotFound => return Ok(Logs::default()),
        Err(refusal) => return Err(refusal),
    };
    let source = |log: LogContainer| {
        let id = log.source.clone().unwrap_or_default();
        let step = step_of(&id.container);
        let step = node.steps.iter().find(|it| it.name == step);
        let (started, ended) = match step {
            Some(step) => (step.start_time.is_some(), step.end_time.is_some()),
            None => (false, false),
        };
        let part = pods.get(tail(&id.pod)).copied();
        let is_beside = BESIDE.contains(&id.container.as_str());
        let status = match (step, part) {
            (Some(step), _) => Some(Status::of_node(step.outcome(), started, ended)),
            (None, Some(part)) if !is_beside => Some(stands(part)),
            // A log that was uploaded is of all steps.
            (None, None) if id.container.is_empty() => Some(stands(node)),
            _ => None,
        };
        Source {
            record: record.to_owned(),
            task: part.map_or(task, |part| part.name.as_str()).to_owned(),
            status,
            log,
        }
    };
    Ok(Logs {
        sources: found.containers.into_iter().map(source).collect(),
        page: found.link,
    })
}
