//! Where the time of a run went: a row for each part, with waiting, starting and running as bars.

use std::collections::{BTreeMap, BTreeSet};

use hindsight_proto::v1::{RunNode, RunStep, RunTree};
use jiff::Timestamp;

use super::rows::{DEEPEST, Line, lines, status};
use crate::ask::Ask;
use crate::html::{Name, end_cut};
use crate::status::{Shape, Status};
use crate::svg::{Bar, Mark, Scale, Track};
use crate::time::{between, length, timestamp};

/// Longest name and message of a row.
const NAME: usize = 48;
const MESSAGE: usize = 160;

/// The drawing and its rows.
#[derive(Debug)]
pub(super) struct Waterfall {
    pub(super) marks: Vec<Mark>,
    pub(super) folds: Vec<Mark>,
    pub(super) lines: Vec<Drawn>,
    pub(super) critical: String,
    pub(super) idle: String,
    pub(super) has_times: bool,
}

/// A line of the page.
#[derive(Debug)]
pub(super) enum Drawn {
    Open(Row, bool),
    Leaf(Row),
    Close,
}

/// A part of a run.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) class: &'static str,
    pub(super) shape: Option<Shape>,
    pub(super) depth: usize,
    pub(super) name: Name,
    pub(super) link: String,
    pub(super) note: String,
    pub(super) message: String,
    pub(super) is_critical: bool,
    pub(super) is_step: bool,
    pub(super) track: Track,
    pub(super) wait: String,
    pub(super) took: String,
}

struct Drawing<'a> {
    ask: &'a Ask,
    begin: Timestamp,
    now: Timestamp,
    scale: Scale,
    critical: BTreeSet<&'a str>,
    root: &'a str,
}

impl Waterfall {
    pub(super) fn of(ask: &Ask, tree: &RunTree) -> Self {
        let times = tree
            .nodes
            .iter()
            .flat_map(|node| [node.create_time, node.start_time, node.end_time].map(timestamp));
        let times: Vec<_> = times.flatten().collect();
        let begin = times.iter().min().copied().unwrap_or(ask.clock.now);
        let is_unfinished = tree
            .nodes
            .first()
            .is_some_and(|root| status(root).is_unfinished());
        let now = if is_unfinished {
            Some(ask.clock.now)
        } else {
            None
        };
        let end = times.iter().copied().chain(now).max().unwrap_or(begin);
        let offset =
            |time: Option<prost_types::Timestamp>| timestamp(time).map(|time| between(begin, time));
        let gaps = tree
            .gaps
            .iter()
            .filter_map(|gap| Some((offset(gap.start_time)?, offset(gap.end_time)?)));
        let gaps: Vec<_> = match is_unfinished {
            // The services tell gaps of runs that ended.
            true => idle(tree, between(begin, end), &offset),
            false => gaps.collect(),
        };
        let drawing = Drawing {
            ask,
            begin,
            now: end,
            scale: Scale::new(between(begin, end), &gaps),
            critical: tree.critical_path.iter().map(String::as_str).collect(),
            root: tree.nodes.first().map_or("", |root| root.id.as_str()),
        };
        let mut drawn = Vec::new();
        for line in lines(tree) {
            match line {
                Line::Open(node, depth, is_open) => {
                    drawn.push(Drawn::Open(drawing.node(node, depth), is_open));
                    let steps = node.steps.iter().take(NODES_STEPS);
                    let steps = steps.map(|step| Drawn::Leaf(drawing.step(step, depth + 1)));
                    drawn.extend(steps);
                }
                Line::Leaf(node, depth) => drawn.push(Drawn::Leaf(drawing.node(node, depth))),
                Line::Rest(nodes, depth) => drawn.push(Drawn::Leaf(drawing.rest(&nodes, depth))),
                Line::Close => drawn.push(Drawn::Close),
            }
        }
        Self {
            marks: drawing.scale.marks(),
            folds: drawing.scale.folds(),
            lines: drawn,
            critical: critical(tree),
            idle: match tree.idle_seconds {
                seconds if seconds >= 1.0 => length(seconds),
                _ => String::new(),
            },
            has_times: !times.is_empty(),
        }
    }
}

/// When no part of a run ran, of so many seconds.
fn idle(
    tree: &RunTree,
    total: f64,
    offset: &impl Fn(Option<prost_types::Timestamp>) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let above: BTreeSet<&str> = tree.nodes.iter().map(|node| node.parent.as_str()).collect();
    let parts = tree
        .nodes
        .iter()
        .filter(|node| !above.contains(node.id.as_str()));
    let spans = parts.filter_map(|part| {
        let start = offset(part.create_time.or(part.start_time))?;
        Some((start, offset(part.end_time).unwrap_or(total)))
    });
    let mut spans: Vec<_> = spans.collect();
    spans.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut gaps, mut until) = (Vec::new(), 0.0_f64);
    for (start, end) in spans {
        if start > until {
            gaps.push((until, start));
        }
        until = until.max(end);
    }
    gaps
}

/// What a part is called.
fn called(node: &RunNode) -> &str {
    match node.name.as_str() {
        "" => &node.object,
        name => name,
    }
}

/// Most steps of one part that are drawn.
const NODES_STEPS: usize = 50;

/// The names on the critical path and their time together.
fn critical(tree: &RunTree) -> String {
    let names: BTreeMap<&str, &str> = tree
        .nodes
        .iter()
        .map(|node| (node.id.as_str(), node.name.as_str()))
        .collect();
    let path = tree.critical_path.iter().take(12);
    let path: Vec<_> = path
        .filter_map(|id| names.get(id.as_str()).copied())
        .collect();
    if path.is_empty() {
        return String::new();
    }
    let more = if tree.critical_path.len() > 12 {
        " › …"
    } else {
        ""
    };
    format!(
        "{}{more}, {}",
        path.join(" › "),
        length(tree.critical_seconds)
    )
}

impl Drawing<'_> {
    fn offset(&self, time: Option<prost_types::Timestamp>) -> Option<f64> {
        timestamp(time).map(|time| between(self.begin, time))
    }

    fn node(&self, node: &RunNode, depth: usize) -> Row {
        let status = status(node);
        let (created, start, end) = (
            self.offset(node.create_time),
            self.offset(node.start_time),
            self.offset(node.end_time),
        );
        let until = end.unwrap_or_else(|| between(self.begin, self.now));
        let mut bars = Vec::new();
        let mut bar = |from: f64, to: f64, class| {
            if to > from || class != "wait" && class != "init" {
                bars.push(Bar { from, to, class });
            }
        };
        if let (Some(created), Some(start)) = (created, start) {
            bar(created, start, "wait");
        } else if let (Some(created), None, Status::Waiting) = (created, start, status) {
            bar(created, until, "wait");
        }
        if let Some(start) = start {
            let init = node
                .init_seconds
                .unwrap_or_default()
                .clamp(0.0, (until - start).max(0.0));
            bar(start, start + init, "init");
            bar(start + init, until.max(start), status.word());
        }
        let took = start.map(|start| until - start);
        let mut notes = Vec::new();
        if node.attempt > 1 {
            notes.push(format!("attempt {} of {}", node.attempt, node.retries + 1));
        }
        if node.finally {
            notes.push("finally".to_owned());
        }
        if node.reference {
            notes.push(end_cut(&node.kind, NAME));
        }
        let is_plain = matches!(
            node.reason.as_str(),
            "" | "Succeeded" | "Failed" | "Running"
        );
        if !is_plain {
            notes.push(end_cut(&node.reason, NAME));
        }
        let is_quiet = status == Status::Succeeded;
        Row {
            class: match node.reference {
                true => "",
                false => status.word(),
            },
            shape: (!node.reference).then(|| status.shape()),
            depth,
            name: Name::new(called(node), NAME),
            link: match node.record.as_str() {
                "" => String::new(),
                _ if node.id == self.root => String::new(),
                record => self.ask.links.run(record),
            },
            note: notes.join(", "),
            message: if is_quiet {
                String::new()
            } else {
                end_cut(&node.message, MESSAGE)
            },
            is_critical: self.critical.contains(node.id.as_str()),
            is_step: false,
            track: self.scale.track(&bars),
            wait: node
                .wait_seconds
                .filter(|wait| *wait >= 0.5)
                .map(length)
                .unwrap_or_default(),
            took: took.map(length).unwrap_or_default(),
        }
    }

    fn step(&self, step: &RunStep, depth: usize) -> Row {
        let (start, end) = (self.offset(step.start_time), self.offset(step.end_time));
        let status = Status::of_node(step.outcome(), start.is_some(), end.is_some());
        let bars = start.map(|from| Bar {
            from,
            to: end.unwrap_or_else(|| between(self.begin, self.now)),
            class: status.word(),
        });
        let exit = step.exit_code.filter(|code| *code != 0);
        let exit = exit.map(|code| format!("exit {code}"));
        let is_plain = matches!(step.reason.as_str(), "" | "Completed" | "Error");
        let reason = (!is_plain).then(|| end_cut(&step.reason, NAME));
        let notes: Vec<_> = reason.into_iter().chain(exit).collect();
        Row {
            class: status.word(),
            shape: Some(status.shape()),
            depth: depth.min(DEEPEST),
            name: Name::new(&step.name, NAME),
            link: String::new(),
            note: notes.join(", "),
            message: end_cut(&step.message, MESSAGE),
            is_critical: false,
            is_step: true,
            track: self.scale.track(bars.as_slice()),
            wait: String::new(),
            took: bars
                .map(|bar| length(bar.to - bar.from))
                .unwrap_or_default(),
        }
    }

    /// Siblings in one row, with how many of each state there are.
    fn rest(&self, nodes: &[&RunNode], depth: usize) -> Row {
        let mut counts: BTreeMap<Status, usize> = BTreeMap::new();
        for node in nodes {
            *counts.entry(status(node)).or_default() += 1;
        }
        let worst = counts.keys().next().copied().unwrap_or(Status::Unknown);
        let counts: Vec<_> = counts
            .iter()
            .map(|(status, count)| format!("{count} {}", status.word()))
            .collect();
        let from = nodes.iter().filter_map(|node| self.offset(node.start_time));
        let to = nodes.iter().filter_map(|node| self.offset(node.end_time));
        let (from, to) = (from.fold(f64::INFINITY, f64::min), to.fold(0.0, f64::max));
        let bars = (from.is_finite() && to >= from).then_some(Bar {
            from,
            to,
            class: worst.word(),
        });
        Row {
            class: worst.word(),
            shape: None,
            depth: depth.min(DEEPEST),
            name: Name::new(&format!("{} more", nodes.len()), NAME),
            link: String::new(),
            note: counts.join(", "),
            message: String::new(),
            is_critical: false,
            is_step: true,
            track: self.scale.track(bars.as_slice()),
            wait: String::new(),
            took: bars
                .map(|bar| length(bar.to - bar.from))
                .unwrap_or_default(),
        }
    }
}
