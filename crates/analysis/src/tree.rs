//! The tree of a run: the run and everything below it, whichever controller ran it, with times,
//! dependencies, the critical path and the gaps in which nothing ran.
//!
//! Nothing recurses over the graph, because owners and references come from outside and may be
//! circular or nested without end.

mod argo;
mod cause;
mod failure;
mod gaps;
mod grow;
mod part;
mod path;
mod pipeline;
mod steps;

use hindsight_run::Outcome;
use jiff::Timestamp;

pub use cause::Said;
pub use gaps::Gap;
pub use part::{PIPELINE_TASK, Part, RAY_CLUSTER, ray_cluster};

/// Most nodes of a tree.
pub const MAX_NODES: usize = 20_000;
/// Deepest node of a tree; the root has depth 0.
pub const MAX_DEPTH: u32 = 100;
/// Most dependencies of all nodes together.
pub const MAX_DEPENDENCIES: usize = 50_000;
/// Longest message of a node or step, in characters.
pub const MAX_MESSAGE: usize = 300;
/// Longest name or reason, in characters.
const MAX_NAME: usize = 253;
/// Most steps of a node, and most names of a list that a node came with.
const MAX_STEPS: usize = 200;
/// Most circles that are reported.
const MAX_CYCLES: usize = 20;

/// How a node ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum State {
    /// Not finished, or not known.
    #[default]
    Unknown,
    /// It did what it should.
    Success,
    /// It ended without doing what it should.
    Failure,
    /// It ran out of time.
    Timeout,
    /// It was stopped.
    Cancelled,
    /// It was not to run.
    Skipped,
}

impl State {
    /// Whether it is the end of something that did not do what it should.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failure | Self::Timeout)
    }
}

impl From<Outcome> for State {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Unknown => Self::Unknown,
            Outcome::Success => Self::Success,
            Outcome::Failure => Self::Failure,
            Outcome::Timeout => Self::Timeout,
            Outcome::Cancelled => Self::Cancelled,
        }
    }
}

/// A run, a task, or a node of a workflow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Node {
    /// The UID of the object, or the id that the workflow gives; unique in the tree.
    pub id: String,
    /// What people call it: the name of the task in its pipeline, else that of the object.
    pub name: String,
    /// `metadata.name` of the object; of a node of a workflow its full name there.
    pub object: String,
    /// The kind of the object, or the type of the node, such as `TaskRun`, `Pod` or `DAG`.
    pub kind: String,
    /// How it ended.
    pub state: State,
    /// The reason that it gives.
    pub reason: String,
    /// The message that it gives, cut to [`MAX_MESSAGE`].
    pub message: String,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When its first step began, after images were pulled and so on.
    pub ready: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// How often it may be tried again.
    pub retries: u32,
    /// It runs after all others, whatever became of them.
    pub finally: bool,
    /// It was there before the run, which refers to it: what the run ran on or was made from. It has no times.
    pub reference: bool,
    /// Siblings that it waits for, by their places in the tree.
    pub depends_on: Vec<usize>,
    /// The record it is stored as; absent if it is a part of another one or not stored.
    pub record: Option<String>,
    /// What ran in it, in order.
    pub steps: Vec<Step>,
    /// The node above, by its place in the tree; absent from the root.
    pub parent: Option<usize>,
    /// How many nodes are above.
    pub depth: u32,
}

impl Node {
    /// The same, with names no longer than those of nodes that are made from payloads.
    #[must_use]
    pub fn with_short_names(self) -> Self {
        let name = |text: String| match text.len() > MAX_NAME {
            true => cut(&text, MAX_NAME),
            false => text,
        };
        Self {
            id: name(self.id),
            name: name(self.name),
            object: name(self.object),
            kind: name(self.kind),
            reason: name(self.reason),
            ..self
        }
    }

    /// Seconds from its creation to its start.
    pub fn wait(&self) -> Option<f64> {
        seconds(self.created, self.started)
    }

    /// Seconds from its start to that of its first step.
    pub fn init(&self) -> Option<f64> {
        seconds(self.started, self.ready)
    }

    /// Seconds from the start of its first step, or from its own, to its end.
    pub fn run(&self) -> Option<f64> {
        seconds(self.ready.or(self.started), self.ended)
    }

    /// Seconds from its start to its end.
    pub fn took(&self) -> Option<f64> {
        seconds(self.started, self.ended)
    }

    /// The first step that failed.
    pub fn failed_step(&self) -> Option<&Step> {
        self.steps.iter().find(|step| step.state.is_failure())
    }
}

/// A container of a task that ran as one of several in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// Its name, unique in its node.
    pub name: String,
    /// How it ended.
    pub state: State,
    /// The exit code of the process; absent if it has not ended.
    pub exit_code: Option<i32>,
    /// Why it ended, such as `OOMKilled`.
    pub reason: String,
    /// What it said at its end.
    pub message: String,
    /// When its process started.
    pub started: Option<Timestamp>,
    /// When its process ended.
    pub ended: Option<Timestamp>,
}

impl Step {
    /// Seconds from its start to its end.
    pub fn took(&self) -> Option<f64> {
        seconds(self.started, self.ended)
    }
}

/// A run and what is below it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tree {
    /// The root first, each node before those below it, siblings in the order of their start.
    pub nodes: Vec<Node>,
    /// What the end of the run waited for, from the first to the last, by places in `nodes`.
    pub critical_path: Vec<usize>,
    /// The time of the nodes of the critical path together.
    pub critical_seconds: f64,
    /// When nothing ran between the start and the end of the run, longest first.
    pub gaps: Vec<Gap>,
    /// The time of all gaps together, also of those that are not told.
    pub idle_seconds: f64,
    /// Circles among owners and references, as `parent > child`; the child is not repeated.
    pub cycles: Vec<String>,
    /// Nodes that are too many or too deep.
    pub left_out: usize,
    /// What else is missing, and why.
    pub notes: Vec<String>,
}

impl Tree {
    /// The tree of `root`, of which `parts` may be below it or not, and `leaves`, of which the same is
    /// true and which have nothing below them.
    pub fn of(root: Part, parts: Vec<Part>, leaves: Vec<Node>) -> Self {
        let mut tree = grow::grow(root, parts, leaves);
        path::find(&mut tree);
        gaps::find(&mut tree);
        tree
    }
}

fn seconds(from: Option<Timestamp>, to: Option<Timestamp>) -> Option<f64> {
    let micros = to?.as_microsecond().checked_sub(from?.as_microsecond())?;
    #[expect(clippy::cast_precision_loss, reason = "seconds are doubles")]
    let seconds = micros.max(0) as f64 / 1e6;
    Some(seconds)
}

/// A text without what is longer than so many characters.
fn cut(text: &str, most: usize) -> String {
    let end = text.char_indices().nth(most).map(|(end, _)| end);
    text[..end.unwrap_or(text.len())].to_owned()
}

#[cfg(test)]
mod tests;
