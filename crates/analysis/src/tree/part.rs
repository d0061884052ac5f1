//! What one stored object gives to a tree. Small, so that the objects themselves need not be kept.

use std::collections::{BTreeMap, HashMap, HashSet};

use hindsight_run::{View, json};
use serde_json::Value;

use super::{
    MAX_MESSAGE, MAX_NAME, MAX_NODES, Node, argo,
    argo::Flow,
    cut,
    pipeline::{self, Waits},
    steps,
};

/// The kind of objects that RayJobs run on.
pub const RAY_CLUSTER: &str = "RayCluster";
/// Label naming the place of a run in its pipeline.
pub const PIPELINE_TASK: &str = "tekton.dev/pipelineTask";

/// What one stored object gives to a tree.
#[derive(Debug, Clone, Default)]
pub struct Part {
    pub(super) node: Node,
    /// UIDs of the objects that own it.
    pub(super) owners: Vec<String>,
    /// Objects that it says are below it.
    pub(super) children: Vec<Reference>,
    /// Tasks of its pipeline that were not to run, and why.
    pub(super) skipped: Vec<(String, String)>,
    /// What the tasks of its pipeline wait for.
    pub(super) waits: BTreeMap<String, Waits>,
    /// The nodes of a workflow.
    pub(super) flow: Flow,
}

/// An object that another one refers to by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Reference {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) task: String,
}

impl Part {
    /// What `object`, which is stored as `record`, gives to a tree.
    pub fn of(record: &str, object: &Value) -> Self {
        let view = View::new(object);
        let status = object.get("status").unwrap_or(&Value::Null);
        let end = view.finish();
        let closed = view.closed();
        let message = closed.map(|closed| closed.reason).or(end.message);
        let text = |text: Option<&str>| cut(text.unwrap_or_default(), MAX_NAME);
        let name = text(view.name());
        let task = view.label(PIPELINE_TASK).map(|task| cut(task, MAX_NAME));
        let steps = steps::of(status);
        let tries = status.get("retriesStatus").and_then(Value::as_array);
        let tries = tries.map_or(0, Vec::len);
        let retries = json::at(object, "/spec/retries").and_then(Value::as_u64);
        // Each attempt begins anew; the run has the times of the last one.
        let began = steps.iter().filter_map(|step| step.started).min();
        let node = Node {
            id: view
                .uid()
                .map_or_else(|| record.to_owned(), |uid| cut(uid, MAX_NAME)),
            name: task.unwrap_or_else(|| name.clone()),
            object: name,
            kind: text(view.kind()),
            state: end.outcome.into(),
            reason: text(end.reason),
            message: cut(message.unwrap_or_default(), MAX_MESSAGE),
            created: view.created(),
            started: view.started(),
            ready: began.filter(|began| view.started().is_some_and(|start| start <= *began)),
            ended: view.ended().filter(|_| end.done || closed.is_some()),
            attempt: u32::try_from(tries).unwrap_or(u32::MAX).saturating_add(1),
            retries: retries.map_or(0, |most| u32::try_from(most).unwrap_or(u32::MAX)),
            record: Some(record.to_owned()),
            steps,
            ..Node::default()
        };
        Self {
            node,
            owners: view
                .owners()
                .take(16)
                .map(|owner| owner.uid.to_owned())
                .collect(),
            children: references(object, status),
            skipped: skipped(status),
            waits: pipeline::of(object),
            flow: argo::flow(object, &view),
        }
    }

    /// The kinds and names of the objects that it says are below it.
    fn children(&self) -> impl Iterator<Item = (&str, &str)> {
        let children = self.children.iter();
        children.map(|child| (child.kind.as_str(), child.name.as_str()))
    }

    /// Those of them that it says are tasks of its pipeline.
    pub fn tasks(&self) -> impl Iterator<Item = (&str, &str)> {
        let tasks = self.children.iter().filter(|child| !child.task.is_empty());
        tasks.map(|child| (child.kind.as_str(), child.name.as_str()))
    }

    /// Puts another part below it as what was there before, and takes off its times, which are none of the run.
    pub fn refer(&mut self, other: &mut Self) {
        let node = &mut other.node;
        node.reference = true;
        (node.created, node.started) = (None, None);
        (node.ready, node.ended) = (None, None);
        if !self.children().any(|child| child == other.object()) {
            self.children.push(Reference {
                kind: other.node.kind.clone(),
                name: other.node.object.clone(),
                task: String::new(),
            });
        }
    }

    /// Takes off what `root` and `parts` say is below them and is not among `parts`.
    pub fn retain_stored(root: &mut Self, parts: &mut [Self]) {
        let mut stored: HashMap<String, HashSet<String>> = HashMap::new();
        for part in &*parts {
            let (kind, name) = part.object();
            let of_kind = stored.entry(kind.to_owned()).or_default();
            of_kind.insert(name.to_owned());
        }
        for part in std::iter::once(root).chain(parts) {
            part.children.retain(|child| {
                let of_kind = stored.get(&child.kind);
                of_kind.is_some_and(|names| names.contains(&child.name))
            });
        }
    }

    /// The kind and the name of its object.
    pub fn object(&self) -> (&str, &str) {
        (&self.node.kind, &self.node.object)
    }

    /// The id of its node.
    pub fn id(&self) -> &str {
        &self.node.id
    }

    /// How many nodes it may add to a tree.
    pub fn nodes(&self) -> usize {
        1 + self.children.len() + self.skipped.len() + self.flow.nodes.len()
    }

    /// About how many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        let waits = self
            .waits
            .values()
            .map(|waits| 100 + 50 * waits.for_tasks.len());
        1_000 + 200 * self.node.steps.len() + 700 * self.nodes() + waits.sum::<usize>()
    }
}

fn list<'a>(status: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    let list = status.get(key).and_then(Value::as_array);
    list.into_iter().flatten().take(MAX_NODES)
}

fn member(value: &Value, key: &str) -> String {
    cut(
        value.get(key).and_then(Value::as_str).unwrap_or_default(),
        MAX_NAME,
    )
}

fn references(object: &Value, status: &Value) -> Vec<Reference> {
    let cluster = ray_cluster(object).map(|name| Reference {
        kind: RAY_CLUSTER.to_owned(),
        name: cut(name, MAX_NAME),
        task: String::new(),
    });
    let references = list(status, "childReferences").map(|child| Reference {
        kind: member(child, "kind"),
        name: member(child, "name"),
        task: member(child, "pipelineTaskName"),
    });
    let references = references.filter(|child| !child.name.is_empty());
    cluster.into_iter().chain(references).collect()
}

/// The name of the RayCluster that a RayJob ran on: its own, or one that it selects by `ray.io/cluster`.
pub fn ray_cluster(object: &Value) -> Option<&str> {
    if object.get("kind").and_then(Value::as_str) != Some("RayJob") {
        return None;
    }
    let own = json::at(object, "/status/rayClusterName");
    let selector = json::at(object, "/spec/clusterSelector");
    let selected = selector.and_then(|selector| selector.get("ray.io/cluster"));
    [own, selected]
        .into_iter()
        .filter_map(|name| name?.as_str())
        .find(|name| !name.is_empty())
}

fn skipped(status: &Value) -> Vec<(String, String)> {
    list(status, "skippedTasks")
        .map(|task| (member(task, "name"), member(task, "reason")))
        .collect()
}
