//! Messages of `hindsight.v1.Runs/GetRunTree`, to types and back.

use hindsight_analysis::tree::{Node, State, Step, Tree};
use hindsight_proto::v1::{self as pb, run_node::Outcome};
use tonic::metadata::MetadataMap;

use super::super::{ResultsServer, convert, credentials};
use crate::service::Error;
use hindsight_access::auth::Verb;
use hindsight_filter::model::{ParentPattern, RecordName, Resource};

pub(super) async fn get_run_tree(
    server: &ResultsServer,
    metadata: MetadataMap,
    request: pb::GetRunTreeRequest,
) -> Result<pb::RunTree, Error> {
    let name: RecordName = convert::name("name", &request.name)?;
    let parent = ParentPattern::Exact(name.result().parent().clone());
    let (by, grant) = server
        .grant(&metadata, Verb::List, Resource::Records, parent)
        .await?;
    let service = &server.service;
    let run = service.run(&by, &grant, &name).await?;
    let beside = match service.definitions_beside(&run) {
        Some(parent) => {
            let parent = ParentPattern::Exact(parent.clone());
            let credentials = credentials(metadata.as_ref());
            let may = server.allow(&credentials, Verb::List, Resource::Records, parent);
            // A caller who may not list those gets the tree without them.
            may.await.ok()
        }
        None => None,
    };
    let tree = service
        .run_tree(&by, &run, beside.as_ref(), request.brief)
        .await?;
    Ok(reply(tree, request.steps))
}

fn reply(mut tree: Tree, with_steps: bool) -> pb::RunTree {
    let ids: Vec<_> = tree.nodes.iter().map(|node| node.id.clone()).collect();
    let id = |at: &usize| ids.get(*at).cloned().unwrap_or_default();
    let gaps = tree.gaps.iter().map(|gap| pb::IdleGap {
        start_time: Some(convert::from_time(gap.from)),
        end_time: Some(convert::from_time(gap.to)),
        seconds: gap.seconds,
    });
    let nodes = std::mem::take(&mut tree.nodes).into_iter().map(|mut one| {
        let steps = match with_steps {
            true => std::mem::take(&mut one.steps),
            false => Vec::new(),
        };
        pb::RunNode {
            parent: one.parent.as_ref().map(id).unwrap_or_default(),
            depends_on: one.depends_on.iter().map(id).collect(),
            steps: steps.into_iter().map(step).collect(),
            ..node(one)
        }
    });
    pb::RunTree {
        nodes: nodes.collect(),
        critical_path: tree.critical_path.iter().map(id).collect(),
        critical_seconds: tree.critical_seconds,
        gaps: gaps.collect(),
        idle_seconds: tree.idle_seconds,
        cycles: tree.cycles,
        nodes_left_out: i64::try_from(tree.left_out).unwrap_or(i64::MAX),
        notes: tree.notes,
    }
}

/// A node without what refers to others, and without its steps.
pub(super) fn node(node: Node) -> pb::RunNode {
    let count = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    pb::RunNode {
        parent: String::new(),
        outcome: outcome(node.state).into(),
        create_time: node.created.map(convert::from_time),
        start_time: node.started.map(convert::from_time),
        end_time: node.ended.map(convert::from_time),
        wait_seconds: node.wait(),
        init_seconds: node.init(),
        run_seconds: node.run(),
        attempt: count(node.attempt),
        retries: count(node.retries),
        finally: node.finally,
        reference: node.reference,
        depends_on: Vec::new(),
        steps: Vec::new(),
        id: node.id,
        name: node.name,
        object: node.object,
        kind: node.kind,
        reason: node.reason,
        message: node.message,
        record: node.record.unwrap_or_default(),
    }
}

pub(super) fn step(step: Step) -> pb::RunStep {
    pb::RunStep {
        name: step.name,
        outcome: outcome(step.state).into(),
        exit_code: step.exit_code,
        reason: step.reason,
        message: step.message,
        start_time: step.started.map(convert::from_time),
        end_time: step.ended.map(convert::from_time),
    }
}

fn outcome(state: State) -> Outcome {
    match state {
        State::Unknown => Outcome::Unknown,
        State::Success => Outcome::Success,
        State::Failure => Outcome::Failure,
        State::Timeout => Outcome::Timeout,
        State::Cancelled => Outcome::Cancelled,
        State::Skipped => Outcome::Skipped,
    }
}
