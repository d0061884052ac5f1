//! One level of a run: the parts of one node, with many that are alike as one.

use std::collections::{BTreeMap, BTreeSet};

use hindsight_proto::v1::{RunNode, RunTree};

use crate::status::Status;
use crate::time::timestamp;

/// So many parts that are alike are one node.
const ALIKE: usize = 6;

/// A node of the drawing.
#[derive(Debug)]
pub(super) struct Part<'a> {
    /// The first of its parts, in the order of the run.
    pub(super) node: &'a RunNode,
    pub(super) count: usize,
    pub(super) status: Status,
    pub(super) is_critical: bool,
    /// What is below it: how many there are, and how many of them failed.
    pub(super) below: usize,
    pub(super) failed: usize,
}

/// The parts of a node and which waits for which.
#[derive(Debug)]
pub(super) struct Level<'a> {
    /// The nodes above, the run first.
    pub(super) path: Vec<&'a RunNode>,
    pub(super) parts: Vec<Part<'a>>,
    pub(super) arrows: Vec<(usize, usize)>,
}

/// How a node stands.
pub(super) fn status(node: &RunNode) -> Status {
    let (start, end) = (timestamp(node.start_time), timestamp(node.end_time));
    Status::of_node(node.outcome(), start.is_some(), end.is_some())
}

/// The name of a node without the item of a fan-out that it is for.
pub(super) fn base(node: &RunNode) -> &str {
    let name = if node.name.is_empty() {
        &node.object
    } else {
        &node.name
    };
    let name = name.split('(').next().unwrap_or(name);
    match name.rsplit_once('-') {
        Some((head, number)) if !number.is_empty() && is_number(number) => head,
        _ => name,
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The level below the node with this id; below the run, or the first node in it that has several
/// parts, if the id is empty or of no node.
pub(super) fn level<'a>(tree: &'a RunTree, id: &str) -> Option<Level<'a>> {
    let root = tree.nodes.first()?;
    let mut below: BTreeMap<&str, Vec<&RunNode>> = BTreeMap::new();
    for node in tree.nodes.iter().skip(1).filter(|node| !node.reference) {
        below.entry(&node.parent).or_default().push(node);
    }
    let ids: BTreeMap<&str, &RunNode> = tree
        .nodes
        .iter()
        .map(|node| (node.id.as_str(), node))
        .collect();
    let asked = ids.get(id).copied().filter(|_| !id.is_empty());
    let mut at = asked.unwrap_or(root);
    if asked.is_none() {
        while let Some([only]) = below.get(at.id.as_str()).map(Vec::as_slice)
            && below.contains_key(only.id.as_str())
        {
            at = only;
        }
    }
    let mut path = vec![at];
    while let Some(above) = ids.get(path[path.len() - 1].parent.as_str())
        && path.len() < 100
    {
        path.push(above);
    }
    path.reverse();
    let nodes = below.get(at.id.as_str()).map_or(&[][..], Vec::as_slice);
    let critical: BTreeSet<&str> = tree.critical_path.iter().map(String::as_str).collect();
    let (parts, arrows) = grouped(nodes, &critical, &below);
    Some(Level {
        path,
        parts,
        arrows,
    })
}

/// The nodes of a level and the arrows between them.
fn grouped<'a>(
    nodes: &[&'a RunNode],
    critical: &BTreeSet<&str>,
    below: &BTreeMap<&str, Vec<&'a RunNode>>,
) -> (Vec<Part<'a>>, Vec<(usize, usize)>) {
    let own: BTreeSet<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
    let mut after: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for node in nodes {
        for on in node
            .depends_on
            .iter()
            .filter(|on| own.contains(on.as_str()))
        {
            after.entry(on).or_default().insert(&node.id);
        }
    }
    type Key<'k> = (&'k str, Status, Vec<&'k str>, Vec<&'k str>);
    let mut alike: BTreeMap<Key<'_>, Vec<&RunNode>> = BTreeMap::new();
    for node in nodes.iter().copied() {
        let mut on: Vec<&str> = node.depends_on.iter().map(String::as_str).collect();
        on.sort_unstable();
        let then = after.get(node.id.as_str()).into_iter().flatten().copied();
        let key = (base(node), status(node), on, then.collect());
        alike.entry(key).or_default().push(node);
    }
    let mut groups: Vec<Vec<&'a RunNode>> = Vec::new();
    for nodes in alike.into_values() {
        match nodes.len() {
            ALIKE.. => groups.push(nodes),
            _ => groups.extend(nodes.into_iter().map(|node| vec![node])),
        }
    }
    let places: BTreeMap<&str, usize> = nodes
        .iter()
        .enumerate()
        .map(|(at, node)| (node.id.as_str(), at))
        .collect();
    groups.sort_by_key(|group| places.get(group[0].id.as_str()).copied());
    let mut of: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, group) in groups.iter().enumerate() {
        of.extend(group.iter().map(|node| (node.id.as_str(), at)));
    }
    let arrows: BTreeSet<(usize, usize)> = nodes
        .iter()
        .flat_map(|node| node.depends_on.iter().map(move |on| (on, node)))
        .filter_map(|(on, node)| Some((*of.get(on.as_str())?, *of.get(node.id.as_str())?)))
        .filter(|(from, to)| from != to)
        .collect();
    let parts = groups.iter().map(|group| {
        let parts = group.iter().map(|node| inside(node, below));
        let (all, failed) = parts.fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        Part {
            node: group[0],
            count: group.len(),
            status: status(group[0]),
            is_critical: group.iter().any(|it| critical.contains(it.id.as_str())),
            below: all,
            failed,
        }
    });
    (parts.collect(), arrows.into_iter().collect())
}

/// How many leaves are below a node, and how many of them failed.
fn inside(node: &RunNode, below: &BTreeMap<&str, Vec<&RunNode>>) -> (usize, usize) {
    let (mut all, mut failed) = (0, 0);
    let mut next: Vec<&str> = vec![node.id.as_str()];
    while let Some(id) = next.pop() {
        for node in below.get(id).into_iter().flatten() {
            match below.contains_key(node.id.as_str()) {
                true => next.push(&node.id),
                false => {
                    all += 1;
                    failed += usize::from(status(node).is_failure());
                }
            }
        }
    }
    (all, failed)
}

#[cfg(test)]
mod tests {
    use hindsight_proto::v1::run_node::Outcome;

    use super::*;

    fn node(id: &str, parent: &str, after: &[&str], outcome: Outcome) -> RunNode {
        RunNode {
            id: id.to_owned(),
            parent: parent.to_owned(),
            name: id.to_owned(),
            depends_on: after.iter().map(|&on| on.to_owned()).collect(),
            outcome: outcome.into(),
            ..RunNode::default()
        }
    }

    #[test]
    fn a_fan_out_is_one_node_and_what_failed_in_it_another() {
        let mut nodes = vec![
            node("run", "", &[], Outcome::Failure),
            node("main", "run", &[], Outcome::Failure),
            node("fetch", "main", &[], Outcome::Success),
        ];
        for item in 0..2_000 {
            let outcome = match item {
                7 => Outcome::Failure,
                _ => Outcome::Success,
            };
            nodes.push(node(
                &format!("test({item}:x)"),
                "main",
                &["fetch"],
                outcome,
            ));
        }
        let all: Vec<_> = (0..2_000).map(|item| format!("test({item}:x)")).collect();
        let all: Vec<_> = all.iter().map(String::as_str).collect();
        nodes.push(node("report", "main", &all, Outcome::Skipped));
        nodes.push(node("inner", "main", &["report"], Outcome::Failure));
        nodes.push(node("leaf", "inner", &[], Outcome::Failure));
        let tree = RunTree {
            nodes,
            critical_path: vec!["fetch".to_owned(), "test(9:x)".to_owned()],
            ..RunTree::default()
        };
        let level = level(&tree, "").unwrap();
        let parts: Vec<_> = level
            .parts
            .iter()
            .map(|part| (part.node.name.as_str(), part.count, part.is_critical))
            .collect();
        assert_eq!(
            parts,
            [
                ("fetch", 1, true),
                ("test(0:x)", 1_999, true),
                ("test(7:x)", 1, false),
                ("report", 1, false),
                ("inner", 1, false),
            ]
        );
        assert_eq!(level.arrows, [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)]);
        assert_eq!((level.parts[4].below, level.parts[4].failed), (1, 1));
        let path: Vec<_> = level.path.iter().map(|node| node.id.as_str()).collect();
        assert_eq!(path, ["run", "main"]);
        let inner = super::level(&tree, "inner").unwrap();
        assert_eq!((inner.parts.len(), inner.path.len()), (1, 3));
    }
}
