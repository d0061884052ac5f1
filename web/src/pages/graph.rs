//! The parts of a run as a graph of what waited for what.

mod level;

use std::fmt::Write as _;

use askama::Template;

use super::frame::{Frame, Place};
use super::{Page, Shown};
use crate::ask::Ask;
use crate::html::{Name, end_cut, middle_cut};
use crate::layers::{self, HEIGHT, Layout, WIDTH};
use crate::status::Badge;
use crate::time::{between, length, timestamp};

use level::{Level, Part, base, level};

/// Most nodes and arrows that are drawn.
const NODES: usize = 400;
const ARROWS: usize = 4_000;
/// Longest name in a box, in characters.
const NAME: usize = 20;

#[derive(Debug, Template)]
#[template(path = "graph.html")]
struct Graph {
    frame: Frame,
    name: Name,
    badge: Option<Badge>,
    run: String,
    path: Vec<Step>,
    boxes: Vec<Node>,
    arrows: Vec<Arrow>,
    width: f64,
    height: f64,
    /// How many nodes there are, if those are too many to be drawn.
    too_many: Option<usize>,
    has_critical: bool,
}

#[derive(Debug)]
struct Step {
    name: String,
    link: String,
}

#[derive(Debug)]
struct Node {
    x: f64,
    y: f64,
    class: &'static str,
    name: String,
    note: String,
    title: String,
    link: String,
    is_critical: bool,
    after: String,
    badge: Badge,
}

#[derive(Debug)]
struct Arrow {
    path: String,
    is_critical: bool,
}

pub(crate) async fn graph(ask: &Ask, record: &str) -> Shown {
    let tree = ask.api.tree(record, true).await?;
    let root = tree.nodes.first().cloned().unwrap_or_default();
    let found = level(&tree, ask.query.get("of"));
    let count = found.as_ref().map_or(0, |found| found.parts.len());
    let too_many = found
        .as_ref()
        .is_some_and(|found| count > NODES || found.arrows.len() > ARROWS);
    let drawn = found.as_ref().filter(|_| !too_many);
    let layout = drawn.map_or_else(
        || layers::layout(0, &[]),
        |found| layers::layout(count, &found.arrows),
    );
    let path = found.iter().flat_map(|found| &found.path);
    let path = path.map(|node| Step {
        name: end_cut(
            if node.name.is_empty() {
                &node.object
            } else {
                &node.name
            },
            80,
        ),
        link: ask.links.graph(record, &node.id),
    });
    let boxes = drawn.map(|found| boxes(ask, record, found, &layout));
    let view = Graph {
        frame: Frame::new(ask, format!("Graph of {}", root.object), Place::Elsewhere),
        name: Name::new(&root.object, 80),
        badge: tree.nodes.first().map(|root| level::status(root).badge()),
        run: ask.links.run(record),
        path: path.collect(),
        has_critical: drawn.is_some_and(|found| found.parts.iter().any(|part| part.is_critical)),
        boxes: boxes.unwrap_or_default(),
        arrows: drawn
            .map(|found| arrows(found, &layout))
            .unwrap_or_default(),
        width: layout.width,
        height: layout.height,
        too_many: too_many.then_some(count),
    };
    Ok(Page::of(&view))
}

fn boxes(ask: &Ask, record: &str, level: &Level<'_>, layout: &Layout) -> Vec<Node> {
    let mut after: Vec<Vec<String>> = vec![Vec::new(); level.parts.len()];
    for &(from, to) in &level.arrows {
        after[to].push(called(&level.parts[from]));
    }
    let boxes = level.parts.iter().zip(&layout.nodes).zip(after);
    let boxes = boxes.map(|((part, &(x, y)), after)| {
        let name = called(part);
        let mut notes = Vec::new();
        if part.below > 0 {
            notes.push(format!("{} parts", part.below));
            if part.failed > 0 {
                notes.push(format!("{} failed", part.failed));
            }
        }
        let (start, end) = (
            timestamp(part.node.start_time),
            timestamp(part.node.end_time),
        );
        if let (Some(start), Some(end), 1, 0) = (start, end, part.count, part.below) {
            notes.push(length(between(start, end)));
        }
        let note = notes.join(", ");
        let critical = if part.is_critical {
            ", on the critical path"
        } else {
            ""
        };
        Node {
            x,
            y,
            class: part.status.word(),
            title: format!("{name}: {} {note}{critical}", part.status.word()),
            name: middle_cut(&name, NAME),
            link: match (part.below, part.node.record.as_str()) {
                (0, "") => ask.links.run(record),
                (0, own) => ask.links.run(own),
                _ => ask.links.graph(record, &part.node.id),
            },
            note: if note.is_empty() {
                part.status.word().to_owned()
            } else {
                note
            },
            is_critical: part.is_critical,
            after: match after.len() {
                0..=8 => after.join(", "),
                many => format!("{} and {} more", after[..8].join(", "), many - 8),
            },
            badge: part.status.badge(),
        }
    });
    boxes.collect()
}

/// A node as people call it.
fn called(part: &Part<'_>) -> String {
    let name = match part.node.name.as_str() {
        "" => &part.node.object,
        name => name,
    };
    match part.count {
        1 => end_cut(name, 120),
        count => format!("{} × {count}", end_cut(base(part.node), 100)),
    }
}

fn arrows(level: &Level<'_>, layout: &Layout) -> Vec<Arrow> {
    let arrows = level.arrows.iter().zip(&layout.arrows);
    let arrows = arrows.map(|(&(from, to), points)| {
        let mut path = String::new();
        for (at, (x, y)) in points.iter().enumerate() {
            let written = match at.checked_sub(1).map(|at| points[at]) {
                None => write!(path, "M{x:.0} {y:.0}"),
                // Arrows bend between layers, and pass a layer in a straight line.
                Some((before, _)) if x - before > WIDTH - 1.0 => write!(path, "H{x:.0}"),
                Some((before, above)) => {
                    let half = f64::midpoint(before, *x);
                    write!(path, "C{half:.0} {above:.0} {half:.0} {y:.0} {x:.0} {y:.0}")
                }
            };
            debug_assert!(written.is_ok(), "texts take everything");
        }
        Arrow {
            path,
            is_critical: level.parts[from].is_critical && level.parts[to].is_critical,
        }
    });
    arrows.collect()
}
