//! A run: how it ended and why, where its time went, and what it was given.

mod beside;
mod facts;
mod rows;
mod waterfall;
mod why;

use askama::Template;
use futures::FutureExt as _;
use hindsight_proto::v1::{RunNode, RunTree};
use hindsight_proto::v1alpha2::Record;

use super::frame::{Frame, Place};
use super::logs::{Tail, tail};
use super::{Begun, Made, Page, Shown};
use crate::api::Kind;
use crate::ask::Ask;
use crate::fault::Fault;
use crate::html::{Name, end_cut};
use crate::pages::series::parent_of;
use crate::status::{Badge, Status};
use crate::time::{When, between, length, timestamp};

use beside::Beside;
use facts::Facts;
use waterfall::{Drawn, Waterfall};
use why::Why;

pub(super) use why::{gain, label, value};

/// Longest message that is shown whole.
const MESSAGE: usize = 300;
/// Of a run with more children the tasks that succeeded are told briefly.
const WIDE: usize = 400;

#[derive(Debug, Template)]
#[template(path = "run.html")]
struct Run {
    frame: Frame,
    name: Name,
    namespace: String,
    namespace_link: String,
    pipeline: String,
    pipeline_link: String,
    kind: String,
    status: Status,
    badge: Badge,
    started: Option<When>,
    took: String,
    waited: String,
    reason: String,
    message: String,
    why: Option<Why>,
    /// The last lines of what ended the run.
    tail: Option<Tail>,
    waterfall: Waterfall,
    facts: Option<Facts>,
    /// The address of this page, if the run goes on.
    again: Option<String>,
    beside: Beside,
    compare: String,
    raw: String,
    logs: String,
    graph: Option<String>,
    /// Where it says why the payload is not shown, if it is too large.
    stored: Option<String>,
    children: String,
    notes: Vec<String>,
    commands: Vec<String>,
}

/// A run as it is stored.
#[derive(Debug)]
struct Stored {
    /// None if the caller may list records and not get them, or its payload is too large.
    record: Option<Record>,
    facts: Option<Facts>,
    is_large: bool,
}

impl Stored {
    fn is_wide(&self) -> bool {
        let facts = self.facts.as_ref();
        self.is_large || facts.is_some_and(|facts| facts.children > WIDE)
    }
}

/// The page of a run. That of a run with many children begins before its tree is read, if it `may_begin`: the
/// browser loads styles and shows the bar meanwhile. If there is no tree then, the page says so.
pub(crate) async fn run(ask: &Ask, record: &str, may_begin: bool) -> Result<Made, Fault> {
    let stored = ask.api.record(record).await;
    let is_large = matches!(&stored, Err(refusal) if refusal.kind == Kind::Large);
    let stored = stored.ok();
    let stored = Stored {
        facts: stored.as_ref().and_then(|stored| Facts::of(ask, stored)),
        record: stored,
        is_large,
    };
    let begins = may_begin && stored.is_wide();
    let Some(facts) = stored.facts.as_ref().filter(|_| begins) else {
        return Ok(Made::Whole(whole(ask, record, stored).await?));
    };
    let frame = Frame::new(ask, facts.name.clone(), Place::Elsewhere);
    let (ask, record) = (ask.clone(), record.to_owned());
    let whole = async move { whole(&ask, &record, stored).await };
    Ok(Made::Begun(Begun::new(frame, whole.boxed())))
}

async fn whole(ask: &Ask, record: &str, stored: Stored) -> Shown {
    let tree = ask.api.tree(record, stored.is_wide()).await?;
    let absent = stored.is_large.then(|| ask.links.raw(record, "yaml"));
    let (stored, facts) = (stored.record, stored.facts);
    let empty = RunNode::default();
    let root = tree.nodes.first().unwrap_or(&empty);
    let (start, end) = (timestamp(root.start_time), timestamp(root.end_time));
    let status = Status::of_node(root.outcome(), start.is_some(), end.is_some());
    let why = why(ask, record, status);
    let beside = Beside::of(ask, stored.as_ref(), facts.as_ref(), start);
    let ((why, tail), beside) = futures::join!(why, beside);
    let commands = commands(record, why.is_some());
    let waterfall = Waterfall::of(ask, &tree);
    let lasted = start.map(|start| between(start, end.unwrap_or(ask.clock.now)));
    let lasted = lasted.filter(|_| end.is_some() || status == Status::Running);
    let (namespace, pipeline) = facts.as_ref().map_or(("", ""), |facts| {
        (facts.namespace.as_str(), facts.pipeline.as_str())
    });
    let listed = facts.as_ref().and_then(|facts| facts.listed.as_ref());
    let parent = parent_of(record);
    let view = Run {
        frame: Frame::new(ask, root.object.clone(), Place::Elsewhere),
        name: Name::new(&root.object, 80),
        namespace_link: ask.links.runs("", parent),
        pipeline_link: match listed {
            Some((of, name)) if !namespace.is_empty() => {
                ask.links.pipeline(*of, parent, namespace, name)
            }
            _ => String::new(),
        },
        graph: (tree.nodes.len() > 2).then(|| ask.links.graph(record, "")),
        stored: absent,
        kind: root.kind.clone(),
        status,
        badge: status.badge(),
        started: start.map(|start| ask.clock.when(start)),
        took: lasted.map(length).unwrap_or_default(),
        waited: root
            .wait_seconds
            .filter(|wait| *wait >= 1.0)
            .map(length)
            .unwrap_or_default(),
        reason: if is_plain(&root.reason) {
            String::new()
        } else {
            root.reason.clone()
        },
        message: end_cut(&root.message, MESSAGE),
        why,
        tail,
        logs: ask.links.logs(record, &[]),
        waterfall,
        again: status.is_unfinished().then(|| ask.links.run(record)),
        beside,
        compare: ask.links.compare(record, ""),
        raw: ask.links.raw(record, "yaml"),
        children: children_of(ask, root, parent),
        notes: notes(&tree),
        commands,
        namespace: if namespace.is_empty() {
            parent
        } else {
            namespace
        }
        .to_owned(),
        pipeline: pipeline.to_owned(),
        facts,
    };
    Ok(Page::of(&view))
}

/// Why a run that did not succeed ended, and the last lines of what ended it.
async fn why(ask: &Ask, record: &str, status: Status) -> (Option<Why>, Option<Tail>) {
    let (Status::Failed | Status::Timeout | Status::Cancelled) = status else {
        return (None, None);
    };
    let Ok(found) = ask.api.failure(record).await else {
        return (None, None);
    };
    let step = found.step.as_ref().map_or("", |step| step.name.as_str());
    let tail = match &found.leaf {
        Some(leaf) => tail(ask, record, leaf, step).await,
        None => None,
    };
    (Some(Why::of(ask, record, &found)), tail)
}

/// Whether a reason says no more than the state beside it.
fn is_plain(reason: &str) -> bool {
    matches!(
        reason,
        "Succeeded" | "Failed" | "Running" | "Completed" | "Error"
    )
}

/// The list of what is below a PipelineRun.
fn children_of(ask: &Ask, root: &RunNode, parent: &str) -> String {
    if root.kind != "PipelineRun" || root.object.is_empty() {
        return String::new();
    }
    let name = hindsight_filter::words::value(&root.object);
    ask.links
        .runs(&format!("label:tekton.dev/pipelineRun={name}"), parent)
}

fn notes(tree: &RunTree) -> Vec<String> {
    let cycles = tree
        .cycles
        .iter()
        .map(|cycle| format!("circle of owners: {cycle}"));
    let mut notes: Vec<_> = tree.notes.iter().cloned().chain(cycles).take(20).collect();
    if tree.nodes_left_out > 0 {
        notes.push(format!("{} nodes are left out", tree.nodes_left_out));
    }
    notes
}

fn commands(record: &str, has_failed: bool) -> Vec<String> {
    let name = super::shell::quoted(record);
    let why = has_failed.then_some("why");
    let all = ["describe"].into_iter().chain(why).chain(["diff"]);
    all.map(|command| format!("hindsight {command} {name}"))
        .collect()
}
