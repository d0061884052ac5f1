//! Which logs are printed of a run: by default those of the steps that failed.

use hindsight_proto::v1::{RunNode, RunTree, run_node::Outcome};

/// The container of a step in Tekton.
const STEP: &str = "step-";

/// A log to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    /// The record of the run.
    pub(super) record: String,
    /// What the task is called; empty where there is only one.
    pub(super) task: String,
    /// Which containers; all if empty.
    pub(super) containers: Vec<String>,
}

/// The logs of a run and of those below it, in the order in which they began. Unless `all` are wanted or steps are
/// named, of a run that failed only those that failed.
pub(super) fn sources(tree: &RunTree, steps: &[String], all: bool) -> Vec<Source> {
    let mut nodes: Vec<&RunNode> = tree
        .nodes
        .iter()
        .filter(|it| !it.record.is_empty())
        .collect();
    nodes.sort_by_key(|node| {
        let time = node.start_time.or(node.create_time);
        time.map_or((i64::MAX, 0), |time| (time.seconds, time.nanos))
    });
    let is_several = nodes.len() > 1;
    let failed = |node: &&RunNode| failed_steps(node);
    let only_failed = !all && steps.is_empty() && nodes.iter().any(|it| !failed(it).is_empty());
    let source = |node: &RunNode| {
        let containers: Vec<String> = match only_failed {
            true => failed_steps(node),
            false => steps.to_vec(),
        };
        // A step has a container of its own name.
        let named = containers
            .iter()
            .flat_map(|name| [name.clone(), format!("{STEP}{name}")]);
        Source {
            record: node.record.clone(),
            task: match is_several {
                true => node.name.clone(),
                false => String::new(),
            },
            containers: named.collect(),
        }
    };
    let wanted = nodes
        .iter()
        .filter(|node| !only_failed || !failed(node).is_empty());
    wanted.map(|node| source(node)).collect()
}

/// The names of the steps of a node that failed.
fn failed_steps(node: &RunNode) -> Vec<String> {
    let failed = |outcome| matches!(outcome, Outcome::Failure | Outcome::Timeout);
    let steps = node.steps.iter().filter(|step| failed(step.outcome()));
    steps.map(|step| step.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use hindsight_proto::v1::RunStep;

    use super::*;

    fn node(name: &str, second: i64, steps: &[(&str, Outcome)]) -> RunNode {
        let step = |(name, outcome): &(&str, Outcome)| RunStep {
            name: (*name).to_owned(),
            outcome: (*outcome).into(),
            ..RunStep::default()
        };
        RunNode {
            record: format!("shop/results/r/records/{name}"),
            name: name.to_owned(),
            start_time: Some(prost_types::Timestamp {
                seconds: second,
                nanos: 0,
            }),
            steps: steps.iter().map(step).collect(),
            ..RunNode::default()
        }
    }

    fn told(tree: &RunTree, steps: &[&str], all: bool) -> Vec<String> {
        let steps: Vec<_> = steps.iter().map(ToString::to_string).collect();
        let sources = sources(tree, &steps, all).into_iter();
        sources
            .map(|it| format!("{} {}", it.task, it.containers.join(",")))
            .collect()
    }

    #[test]
    fn a_failed_run_shows_its_failed_steps_first() {
        let nodes = vec![
            node("release", 0, &[]),
            node(
                "test",
                9,
                &[("unit", Outcome::Failure), ("lint", Outcome::Success)],
            ),
            node("build", 5, &[("compile", Outcome::Success)]),
        ];
        let tree = RunTree {
            nodes,
            ..RunTree::default()
        };
        assert_eq!(told(&tree, &[], false), ["test unit,step-unit"]);
        assert_eq!(told(&tree, &[], true), ["release ", "build ", "test "]);
        let lint = told(&tree, &["lint"], false);
        assert_eq!(
            lint,
            [
                "release lint,step-lint",
                "build lint,step-lint",
                "test lint,step-lint"
            ]
        );
        let alone = RunTree {
            nodes: vec![node("one", 0, &[])],
            ..RunTree::default()
        };
        assert_eq!(told(&alone, &[], false), [" "]);
    }
}
