//! The gaps of a run: when nothing ran.

use jiff::Timestamp;

use super::{RAY_CLUSTER, Tree, seconds};

/// Shortest gap that is told, in seconds.
const LEAST: f64 = 1.0;
/// Most gaps that are told.
const MOST: usize = 20;

/// A time in which nothing ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Gap {
    /// When it began.
    pub from: Timestamp,
    /// When something ran again, or the run ended.
    pub to: Timestamp,
    /// How long it was.
    pub seconds: f64,
}

/// Finds the gaps of a run that has something below it.
pub(super) fn find(tree: &mut Tree) {
    let Some((start, end)) = tree
        .nodes
        .first()
        .and_then(|run| run.started.zip(run.ended))
    else {
        return;
    };
    let mut is_leaf = vec![true; tree.nodes.len()];
    for parent in tree.nodes.iter().filter_map(|node| node.parent) {
        is_leaf[parent] = false;
    }
    is_leaf[0] = false;
    // That there is a cluster does not mean that something runs.
    for (leaf, node) in is_leaf.iter_mut().zip(&tree.nodes) {
        *leaf &= node.kind != RAY_CLUSTER;
    }
    let leaves = tree.nodes.iter().zip(&is_leaf).filter(|(_, leaf)| **leaf);
    let mut spans: Vec<_> = leaves
        .filter_map(|(leaf, _)| Some((leaf.started?, leaf.ended.unwrap_or(end))))
        .collect();
    if spans.is_empty() {
        return;
    }
    spans.sort_unstable();
    spans.push((end, end));
    let mut until = start;
    for (from, to) in spans {
        let idle = seconds(Some(until), Some(from.min(end))).unwrap_or_default();
        if idle >= LEAST {
            tree.idle_seconds += idle;
            tree.gaps.push(Gap {
                from: until,
                to: from.min(end),
                seconds: idle,
            });
        }
        until = until.max(to);
    }
    tree.gaps.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    tree.gaps.truncate(MOST);
}
