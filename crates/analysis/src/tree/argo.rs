//! The nodes of a workflow of Argo.
//!
//! `children` of Argo are what comes next, and not what is inside: of a `DAG` or `Steps` node where
//! it begins, of a `Retry`, `TaskGroup` or `StepGroup` node its parts, and of any other node what
//! waits for it. `boundaryID` is the template that a node is inside of.

use std::{collections::HashMap, io::Read as _};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::read::GzDecoder;
use hindsight_proto::time;
use hindsight_run::{Kind, View, json};
use serde_json::{Map, Value};

use super::{MAX_MESSAGE, MAX_NAME, MAX_NODES, Node, State, Step, cut};

/// Most bytes of nodes that are kept compressed.
const MAX_BYTES: u64 = 32 << 20;

/// Most children of all nodes of a workflow that are looked at.
const MAX_CHILDREN: usize = 100_000;

/// The nodes of a workflow.
#[derive(Debug, Clone, Default)]
pub(super) struct Flow {
    pub(super) nodes: Vec<FlowNode>,
    /// The place of the node that is the workflow itself.
    pub(super) top: Option<usize>,
    /// Nodes that are too many.
    pub(super) left_out: usize,
    /// Why nodes are missing.
    pub(super) note: Option<String>,
}

/// A node, and what is around it.
#[derive(Debug, Clone, Default)]
pub(super) struct FlowNode {
    pub(super) node: Node,
    /// The node that it is inside of, by its place in the flow; the workflow itself if absent.
    pub(super) inside: Option<usize>,
    /// Nodes that wait for it.
    pub(super) next: Vec<usize>,
}

/// The nodes that the status of `object` has, if it is a workflow of Argo.
pub(super) fn flow(object: &Value, view: &View<'_>) -> Flow {
    if view.known_kind() != Kind::named("argoproj.io", "Workflow") {
        return Flow::default();
    }
    let status = object.get("status").unwrap_or(&Value::Null);
    let name = view.name().unwrap_or_default();
    if let Some(nodes) = status.get("nodes").and_then(Value::as_object)
        && !nodes.is_empty()
    {
        return read(name, nodes);
    }
    let text = |key: &str| status.get(key).and_then(Value::as_str).unwrap_or_default();
    let compressed = text("compressedNodes");
    if !compressed.is_empty() {
        return match decompressed(compressed) {
            Ok(nodes) => read(name, &nodes),
            Err(why) => Flow {
                note: Some(format!("status.compressedNodes: {why}")),
                ..Flow::default()
            },
        };
    }
    let note = (!text("offloadNodeStatusVersion").is_empty()).then(|| {
        "the nodes of the workflow are in a database of Argo (status.offloadNodeStatusVersion)"
            .to_owned()
    });
    Flow {
        note,
        ..Flow::default()
    }
}

fn decompressed(text: &str) -> Result<Map<String, Value>, &'static str> {
    let bytes = STANDARD.decode(text).map_err(|_error| "not base64")?;
    let mut plain = Vec::new();
    let mut reader = GzDecoder::new(bytes.as_slice()).take(MAX_BYTES + 1);
    reader
        .read_to_end(&mut plain)
        .map_err(|_error| "not gzip")?;
    if plain.len() as u64 > MAX_BYTES {
        return Err("more than 32 MiB");
    }
    match json::parse(&plain) {
        Ok(Value::Object(nodes)) => Ok(nodes),
        _ => Err("not a JSON object"),
    }
}

fn read(workflow: &str, nodes: &Map<String, Value>) -> Flow {
    let places: HashMap<&str, usize> = nodes
        .keys()
        .take(MAX_NODES)
        .enumerate()
        .map(|(at, id)| (id.as_str(), at))
        .collect();
    let mut flow: Vec<_> = nodes
        .iter()
        .take(MAX_NODES)
        .map(|(id, node)| of(id, node))
        .collect();
    let mut attempts: HashMap<usize, u32> = HashMap::new();
    let mut room = MAX_CHILDREN;
    let mut is_child = vec![false; flow.len()];
    for (at, (_, value)) in nodes.iter().take(MAX_NODES).enumerate() {
        if flow[at].inside.is_none() {
            let boundary = value.get("boundaryID").and_then(Value::as_str);
            flow[at].inside = boundary.and_then(|id| places.get(id).copied());
        }
        let children = value.get("children").and_then(Value::as_array);
        for child in children.into_iter().flatten().take(room) {
            room -= 1;
            let Some(&child) = child.as_str().and_then(|id| places.get(id)) else {
                continue;
            };
            is_child[child] = true;
            match flow[at].node.kind.as_str() {
                "Retry" | "TaskGroup" | "StepGroup" => {
                    flow[child].inside = Some(at);
                    if flow[at].node.kind == "Retry" {
                        let attempt = attempts.entry(at).or_default();
                        *attempt += 1;
                        flow[child].node.attempt = *attempt;
                    }
                }
                "DAG" | "Steps" => {}
                _ => flow[at].next.push(child),
            }
        }
    }
    let top = top(workflow, &flow, &is_child);
    if let Some(top) = top {
        for node in &mut flow {
            node.inside = node.inside.filter(|inside| *inside != top);
        }
    }
    Flow {
        nodes: flow,
        top,
        left_out: nodes.len().saturating_sub(MAX_NODES),
        note: None,
    }
}

/// The place of the node that is the workflow itself: the template that has its name, or else the only
/// one that is inside of nothing and that nothing leads to.
fn top(workflow: &str, flow: &[FlowNode], is_child: &[bool]) -> Option<usize> {
    let is_template = |node: &FlowNode| matches!(node.node.kind.as_str(), "DAG" | "Steps");
    let named = |node: &FlowNode| node.node.object == workflow && is_template(node);
    flow.iter().position(named).or_else(|| {
        let nodes = flow.iter().zip(is_child).enumerate();
        let mut free = nodes.filter(|(_, (node, is_child))| {
            is_template(node) && node.inside.is_none() && !**is_child
        });
        let only = free.next();
        only.filter(|_| free.next().is_none()).map(|(at, _)| at)
    })
}

fn of(id: &str, value: &Value) -> FlowNode {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let at = |key: &str| time::parse(text(key));
    let object = cut(text("name"), MAX_NAME);
    let shown = match text("displayName") {
        "" => object.clone(),
        name => cut(name, MAX_NAME),
    };
    let message = text("message");
    let state = match text("phase") {
        "Succeeded" => State::Success,
        "Failed" | "Error" if message.contains("deadline") => State::Timeout,
        "Failed" | "Error" => State::Failure,
        "Skipped" | "Omitted" => State::Skipped,
        _ => State::Unknown,
    };
    let mut node = Node {
        id: cut(id, MAX_NAME),
        name: shown,
        object,
        kind: cut(text("type"), MAX_NAME),
        state,
        reason: cut(text("phase"), MAX_NAME),
        message: cut(message, MAX_MESSAGE),
        started: at("startedAt"),
        ended: at("finishedAt").filter(|_| state != State::Unknown),
        attempt: 1,
        ..Node::default()
    };
    let code = json::at(value, "/outputs/exitCode").and_then(Value::as_str);
    if let Some(code) = code.and_then(|code| code.parse().ok()) {
        node.steps.push(Step {
            name: "main".to_owned(),
            state: if code == 0 {
                State::Success
            } else {
                State::Failure
            },
            exit_code: Some(code),
            started: node.started,
            ended: node.ended,
            ..Step::default()
        });
    }
    FlowNode {
        node,
        ..FlowNode::default()
    }
}
