//! The critical path: what the end of the run waited for.

use jiff::Timestamp;

use super::{RAY_CLUSTER, Tree};

/// Finds the critical path: from what ended last, each time back to what ended last of that which
/// had to end before it, or before what it is a part of.
pub(super) fn find(tree: &mut Tree) {
    let last = last_leaves(tree);
    let waited = last_waited_for(tree, &last);
    let mut seen = vec![false; tree.nodes.len()];
    let mut path = Vec::new();
    let mut next = last.first().copied().flatten();
    while let Some(at) = next {
        if at == 0 || std::mem::replace(&mut seen[at], true) {
            break;
        }
        path.push(at);
        next = before(tree, at, &waited);
    }
    path.reverse();
    let took = path.iter().filter_map(|at| tree.nodes[*at].took());
    tree.critical_seconds = took.sum();
    tree.critical_path = path;
}

/// By when something ended; what has not ended is later than all that has.
fn end(tree: &Tree, at: usize) -> (bool, Option<Timestamp>, usize) {
    let node = &tree.nodes[at];
    (node.ended.is_none(), node.ended, at)
}

/// Of each node that which ended last of what is below it and ran; of a leaf itself.
fn last_leaves(tree: &Tree) -> Vec<Option<usize>> {
    let mut last: Vec<Option<usize>> = vec![None; tree.nodes.len()];
    let mut has_children = vec![false; tree.nodes.len()];
    // Children are after their parents.
    for at in (0..tree.nodes.len()).rev() {
        let node = &tree.nodes[at];
        // A run ends before the cluster that it ran on.
        if !has_children[at] && node.started.is_some() && node.kind != RAY_CLUSTER {
            last[at] = Some(at);
        }
        if let Some(parent) = node.parent {
            has_children[parent] = true;
            let latest = last[parent].into_iter().chain(last[at]);
            last[parent] = latest.max_by_key(|at| end(tree, *at));
        }
    }
    last
}

/// Of each node that which ended last of what it waited for itself.
fn last_waited_for(tree: &Tree, last: &[Option<usize>]) -> Vec<Option<usize>> {
    let mut tasks: Vec<Option<usize>> = vec![None; tree.nodes.len()];
    for (at, node) in tree.nodes.iter().enumerate() {
        if let Some(parent) = node.parent.filter(|_| !node.finally) {
            let latest = tasks[parent].into_iter().chain(last[at]);
            tasks[parent] = latest.max_by_key(|at| end(tree, *at));
        }
    }
    let waited = tree.nodes.iter().map(|node| {
        let all = node.parent.filter(|_| node.finally);
        let all = all.and_then(|parent| tasks[parent]);
        let some = node.depends_on.iter().filter_map(|before| last[*before]);
        some.chain(all).max_by_key(|at| end(tree, *at))
    });
    waited.collect()
}

/// What had to end before a node, or before what it is a part of.
fn before(tree: &Tree, mut at: usize, waited: &[Option<usize>]) -> Option<usize> {
    loop {
        if waited[at].is_some() {
            return waited[at];
        }
        at = tree.nodes[at].parent?;
    }
}
