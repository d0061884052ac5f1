//! The tree of a run as rows of a page: bounded, with long fan-outs in one row.

use std::collections::BTreeMap;

use hindsight_proto::v1::{RunNode, RunTree};

use crate::status::Status;

/// Most nodes that are drawn.
const MOST: usize = 400;
/// Most siblings that are drawn.
const SIBLINGS: usize = 40;
/// Siblings that are drawn of more than that, beside those that did not succeed.
const FEW: usize = 8;
/// Deepest level that is told apart by its place.
pub(super) const DEEPEST: usize = 9;

/// What comes next from the top of the page to its end.
#[derive(Debug)]
pub(super) enum Line<'a> {
    /// A node with others below it, and whether these are shown at first.
    Open(&'a RunNode, usize, bool),
    /// A node with nothing below it.
    Leaf(&'a RunNode, usize),
    /// Siblings that are not drawn one by one.
    Rest(Vec<&'a RunNode>, usize),
    /// What is below the last open node ends.
    Close,
}

/// How a node stands.
pub(super) fn status(node: &RunNode) -> Status {
    let (started, ended) = (node.start_time.is_some(), node.end_time.is_some());
    Status::of_node(node.outcome(), started, ended)
}

/// The nodes below the root, in the order of the page.
pub(super) fn lines(tree: &RunTree) -> Vec<Line<'_>> {
    let mut below: BTreeMap<&str, Vec<&RunNode>> = BTreeMap::new();
    for node in tree.nodes.iter().skip(1) {
        below.entry(&node.parent).or_default().push(node);
    }
    let critical: std::collections::BTreeSet<&str> =
        tree.critical_path.iter().map(String::as_str).collect();
    let mut writer = Writer {
        below,
        critical,
        left: MOST,
        lines: Vec::new(),
    };
    match tree.nodes.first() {
        Some(root) if writer.below.contains_key(root.id.as_str()) => writer.children(&root.id, 0),
        // A run without parts is its own row, with its steps.
        Some(root) => writer.node(root, 0),
        None => {}
    }
    writer.lines
}

struct Writer<'a> {
    below: BTreeMap<&'a str, Vec<&'a RunNode>>,
    critical: std::collections::BTreeSet<&'a str>,
    left: usize,
    lines: Vec<Line<'a>>,
}

impl<'a> Writer<'a> {
    fn children(&mut self, id: &'a str, depth: usize) {
        let all = self.below.remove(id).unwrap_or_default();
        let is_wide = all.len() > SIBLINGS;
        let (mut few, mut rest) = (0, Vec::new());
        let mut drawn = 0;
        for node in all {
            let is_first = self.is_remarkable(node);
            let fits = !is_wide || (is_first && drawn < SIBLINGS) || few < FEW;
            if self.left == 0 || !fits {
                rest.push(node);
                continue;
            }
            if !is_first {
                few += 1;
            }
            drawn += 1;
            self.node(node, depth);
        }
        if !rest.is_empty() {
            self.lines.push(Line::Rest(rest, depth));
        }
    }

    /// Whether a node is drawn before its siblings: it did not succeed, or the run waited for it.
    fn is_remarkable(&self, node: &RunNode) -> bool {
        let is_quiet = matches!(status(node), Status::Succeeded | Status::Skipped);
        !is_quiet || self.critical.contains(node.id.as_str())
    }

    fn node(&mut self, node: &'a RunNode, depth: usize) {
        self.left = self.left.saturating_sub(1);
        let has_children = self.below.contains_key(node.id.as_str());
        if !has_children && node.steps.is_empty() {
            self.lines.push(Line::Leaf(node, depth.min(DEEPEST)));
            return;
        }
        // Of what succeeded the steps are not shown at first.
        let is_open = has_children || status(node) != Status::Succeeded;
        self.lines
            .push(Line::Open(node, depth.min(DEEPEST), is_open));
        self.children(&node.id, depth + 1);
        self.lines.push(Line::Close);
    }
}

#[cfg(test)]
mod tests {
    use hindsight_proto::v1::run_node::Outcome;

    use super::*;

    fn node(id: &str, parent: &str, outcome: Outcome) -> RunNode {
        RunNode {
            id: id.to_owned(),
            parent: parent.to_owned(),
            outcome: outcome.into(),
            ..RunNode::default()
        }
    }

    #[test]
    fn a_long_fan_out_is_bounded_and_shows_what_failed() {
        let mut nodes = vec![node("run", "", Outcome::Failure)];
        for number in 0..2_000 {
            let outcome = match number % 500 {
                499 => Outcome::Failure,
                _ => Outcome::Success,
            };
            nodes.push(node(&format!("n{number}"), "run", outcome));
        }
        let tree = RunTree {
            nodes,
            ..RunTree::default()
        };
        let lines = lines(&tree);
        let failed = lines.iter().filter(
            |line| matches!(line, Line::Leaf(node, _) if node.outcome() == Outcome::Failure),
        );
        assert_eq!(failed.count(), 4);
        assert!(matches!(lines.last(), Some(Line::Rest(rest, 0)) if rest.len() == 2_000 - FEW - 4));
    }

    #[test]
    fn a_deep_tree_is_bounded_and_closed() {
        let mut nodes = vec![node("0", "", Outcome::Success)];
        for number in 1..1_000 {
            let parent = (number - 1).to_string();
            nodes.push(node(&number.to_string(), &parent, Outcome::Success));
        }
        let tree = RunTree {
            nodes,
            ..RunTree::default()
        };
        let lines = lines(&tree);
        let count = |wanted: fn(&Line<'_>) -> bool| lines.iter().filter(|it| wanted(it)).count();
        let open = count(|line| matches!(line, Line::Open(..)));
        assert_eq!(open, count(|line| matches!(line, Line::Close)));
        assert_eq!(
            (open, count(|line| matches!(line, Line::Rest(..)))),
            (MOST, 1)
        );
    }
}
