//! Graphs that no controller makes.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::tree;
use crate::tree::{MAX_DEPENDENCIES, MAX_DEPTH, MAX_NODES, Tree};

/// An object that each of `owners` owns, and that refers to `children`.
fn object(id: usize, owners: &[usize], children: &[usize]) -> Value {
    let owners = owners
        .iter()
        .map(|owner| json!({"kind": "K", "name": "n", "uid": owner.to_string()}));
    let children = children
        .iter()
        .map(|child| json!({"kind": "K", "name": format!("n{child}")}));
    json!({"kind": "K", "metadata": {"name": format!("n{id}"), "uid": id.to_string(),
            "ownerReferences": owners.collect::<Value>()},
        "status": {"childReferences": children.collect::<Value>()}})
}

/// What holds of every tree.
fn holds(tree: &Tree) {
    assert!(!tree.nodes.is_empty() && tree.nodes.len() <= MAX_NODES);
    for (at, node) in tree.nodes.iter().enumerate() {
        match node.parent {
            None => assert_eq!((at, node.depth), (0, 0)),
            Some(parent) => {
                assert!(parent < at);
                assert_eq!(node.depth, tree.nodes[parent].depth + 1);
            }
        }
        assert!(node.depth <= MAX_DEPTH);
        for before in &node.depends_on {
            assert_eq!(tree.nodes[*before].parent, node.parent);
        }
    }
    let all = tree.nodes.iter().map(|node| node.depends_on.len());
    assert!(all.sum::<usize>() <= MAX_DEPENDENCIES);
    let mut path = tree.critical_path.clone();
    path.sort_unstable();
    path.dedup();
    assert_eq!(path.len(), tree.critical_path.len());
}

#[test]
fn a_circle_of_owners_and_references_is_reported_and_not_followed() {
    let owners = tree(
        &object(0, &[2], &[]),
        &[object(1, &[0], &[]), object(2, &[1], &[])],
    );
    assert_eq!(
        (owners.nodes.len(), owners.cycles.as_slice()),
        (3, &["2 > 0".to_owned()][..])
    );
    let references = tree(&object(0, &[], &[0, 1]), &[object(1, &[0, 1], &[0])]);
    assert_eq!(references.nodes.len(), 2);
    assert_eq!(references.cycles, ["0 > 0", "1 > 1", "1 > 0"]);
}

#[test]
fn nesting_without_end_is_cut() {
    let rest: Vec<_> = (1..5_000).map(|id| object(id, &[id - 1], &[])).collect();
    let tree = tree(&object(0, &[], &[]), &rest);
    holds(&tree);
    assert_eq!((tree.nodes.len(), tree.left_out), (101, 1));
}

/// A workflow of so many pods, each of which waits for the one before.
fn chain(length: usize, inside: impl Fn(usize) -> String) -> Value {
    let nodes = (0..length).map(|at| {
        let time = |second: usize| super::objects::at(i64::try_from(second).unwrap());
        let node = json!({"name": at.to_string(), "displayName": at.to_string(), "type": "Pod",
            "phase": "Succeeded", "startedAt": time(at), "finishedAt": time(at + 1),
            "boundaryID": inside(at), "children": [(at + 1).to_string()]});
        (at.to_string(), node)
    });
    let nodes: Map<_, _> = nodes.collect();
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": {"name": "w", "uid": "w"}, "status": {"nodes": nodes}})
}

#[test]
fn time_and_memory_grow_with_the_nodes() {
    let began = Instant::now();
    let chain = tree(&chain(MAX_NODES + 10, |_| String::new()), &[]);
    holds(&chain);
    assert_eq!(chain.nodes.len(), MAX_NODES);
    assert_eq!(chain.critical_path.len(), MAX_NODES - 1);
    // Of a square of the nodes there would be 400 million steps.
    let took = began.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn nodes_nested_without_end_are_cut() {
    let nested = tree(&chain(MAX_NODES - 1, |at| (at + 1).to_string()), &[]);
    holds(&nested);
    assert_eq!(nested.nodes.len(), 101);
}

proptest! {
    #[test]
    fn every_graph_becomes_a_tree(
        edges in prop::collection::vec((0..12_usize, 0..12_usize, any::<bool>()), 0..60),
    ) {
        let objects: Vec<_> = (0..12).map(|id| {
            let of = |owned: bool| edges.iter().filter(move |edge| edge.2 == owned);
            let owners: Vec<_> = of(true).filter(|e| e.1 == id).map(|e| e.0).collect();
            let children: Vec<_> = of(false).filter(|e| e.0 == id).map(|e| e.1).collect();
            object(id, &owners, &children)
        }).collect();
        let found = tree(&objects[0], &objects[1..]);
        holds(&found);
        // What can be reached is there, once.
        let mut reached = vec![0];
        let mut at = 0;
        while let Some(&from) = reached.get(at) {
            let next = edges.iter().filter(|edge| edge.0 == from).map(|edge| edge.1);
            for next in next.collect::<Vec<_>>() {
                if !reached.contains(&next) {
                    reached.push(next);
                }
            }
            at += 1;
        }
        let mut ids: Vec<usize> = found.nodes.iter().map(|node| node.id.parse().unwrap()).collect();
        ids.sort_unstable();
        reached.sort_unstable();
        prop_assert_eq!(ids, reached);
    }

    #[test]
    fn every_workflow_becomes_a_tree(
        nodes in prop::collection::vec(
            (0..8_usize, prop::collection::vec(0..24_usize, 0..4), 0..24_usize, 0..50_i64), 1..24),
    ) {
        const TYPES: [&str; 8] =
            ["Pod", "DAG", "Steps", "StepGroup", "TaskGroup", "Retry", "Skipped", "Suspend"];
        let list = nodes.iter().enumerate().map(|(at, (kind, children, inside, from))| {
            let children: Vec<_> = children.iter().map(ToString::to_string).collect();
            let node = json!({"name": at.to_string(), "type": TYPES[*kind], "phase": "Failed",
                "startedAt": super::objects::at(*from), "finishedAt": super::objects::at(from + 9),
                "boundaryID": inside.to_string(), "children": children});
            (at.to_string(), node)
        });
        let list: Map<_, _> = list.collect();
        let workflow = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
            "metadata": {"name": "0", "uid": "w"}, "status": {"nodes": list}});
        let found = tree(&workflow, &[]);
        holds(&found);
        let merged = nodes.len() + 1 - found.nodes.len();
        prop_assert!(merged <= 1, "at most one node is the workflow itself");
    }
}
