//! Reads a run and what is below it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hindsight_analysis::diff::{Side, Values};
use hindsight_analysis::tree::{MAX_NODES, Node, Part, State, Tree};
use hindsight_run::json;
use jiff::Timestamp;
use serde_json::Value;

use super::reference::Reference;
use super::series;
use crate::query::{Engine, Fold};
use crate::service::{Error, Service};
use hindsight_access::RequestContext;
use hindsight_filter::condition::{Condition, ObjectField};
use hindsight_filter::model::{Parent, Record, RecordName, ResultPattern};
use hindsight_storage::{Projection, RecordColumns};

/// Most memory of values of the runs below one that is compared, in bytes.
const MAX_VALUES: usize = 32 << 20;
/// About how many bytes of memory a leaf takes, here and in the answer.
const LEAF_BYTES: usize = 1_700;

/// What the records of a result other than the run itself give to a tree, and their values if those are
/// compared.
#[derive(Debug)]
struct Gathered {
    parts: Vec<Part>,
    values: Option<HashMap<String, Values>>,
    /// How many records were read.
    rows: u64,
    nodes: usize,
    bytes: usize,
    value_bytes: usize,
}

impl Fold for Gathered {
    type Row = Record;

    fn add(&mut self, records: Vec<Record>) -> bool {
        self.rows += records.len() as u64;
        for record in records {
            if self.nodes >= MAX_NODES {
                return false;
            }
            let data = record.data.as_ref();
            if let Some(Ok(object)) = data.map(|data| json::parse(&data.value)) {
                self.add_object(&record, &object);
            }
        }
        true
    }

    fn bytes(&self) -> usize {
        self.bytes + self.value_bytes
    }
}

impl Gathered {
    /// Nothing yet, beside the part that the run gives, whose memory counts.
    fn beside(root: &Part, values: Option<HashMap<String, Values>>) -> Self {
        Self {
            parts: Vec::new(),
            values,
            rows: 0,
            nodes: 0,
            bytes: root.bytes(),
            value_bytes: 0,
        }
    }

    fn add_object(&mut self, record: &Record, object: &Value) {
        let part = Part::of(&record.name.to_string(), object);
        self.nodes += part.nodes();
        self.bytes += part.bytes();
        if let Some(all) = &mut self.values {
            let values = Values::of(object, true);
            let bytes = values.bytes();
            if self.value_bytes + bytes <= MAX_VALUES {
                self.value_bytes += bytes;
                all.insert(part.id().to_owned(), values);
            }
        }
        self.parts.push(part);
    }
}

/// TaskRuns that succeeded, by what columns keep of them.
#[derive(Debug)]
struct Brief {
    leaves: Vec<Node>,
    /// Most of them.
    most: usize,
}

impl Fold for Brief {
    type Row = RecordColumns;

    fn add(&mut self, rows: Vec<RecordColumns>) -> bool {
        let room = self.most - self.leaves.len();
        let had_all = rows.len() <= room;
        self.leaves.extend(rows.iter().take(room).map(leaf));
        had_all
    }

    fn bytes(&self) -> usize {
        self.leaves.len() * LEAF_BYTES
    }

    fn projection(&self) -> Projection {
        const FIELDS: [ObjectField; 5] = [
            ObjectField::Uid,
            ObjectField::Name,
            ObjectField::Kind,
            ObjectField::Reason,
            ObjectField::CreationTime,
        ];
        Projection::of(&FIELDS).with_end()
    }
}

impl Brief {
    /// Whether others say which task each of its TaskRuns is, and of what: no column has its owners.
    fn has_places<'p>(&self, others: impl IntoIterator<Item = &'p Part>) -> bool {
        let tasks = others.into_iter().flat_map(Part::tasks);
        let mut places: HashSet<_> = tasks.collect();
        let mut leaves = self.leaves.iter();
        leaves.all(|leaf| places.remove(&(leaf.kind.as_str(), leaf.object.as_str())))
    }
}

/// What columns say of a TaskRun that succeeded.
fn leaf(row: &RecordColumns) -> Node {
    let object = &row.object;
    let text = |field| object.text(field).unwrap_or_default().to_owned();
    let time = |micros: Option<i64>| Timestamp::from_microsecond(micros?).ok();
    let record = row.record.name.to_string();
    Node {
        id: object.text(ObjectField::Uid).unwrap_or(&record).to_owned(),
        object: text(ObjectField::Name),
        kind: text(ObjectField::Kind),
        state: State::Success,
        reason: text(ObjectField::Reason),
        created: object.time(ObjectField::CreationTime),
        started: time(object.run.began),
        ended: time(object.run.ended),
        attempt: object
            .attempt
            .map_or(1, |attempt| u32::try_from(attempt).unwrap_or(1)),
        record: Some(record),
        ..Node::default()
    }
    .with_short_names()
}

/// What a tree says of TaskRuns that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::service) enum Succeeded {
    /// What they say of themselves.
    Whole,
    /// What columns keep: no steps, message, retries, nor when their first step began.
    Brief,
    /// Nothing. No failure is in them, nor in what is not stored.
    Absent,
}

/// What is read for a tree.
#[derive(Debug)]
pub(in crate::service) struct Extent {
    succeeded: Succeeded,
    values: Option<HashMap<String, Values>>,
    /// The parents under which the definition of the run is sought, if any.
    definitions: Vec<Parent>,
}

impl From<Succeeded> for Extent {
    fn from(succeeded: Succeeded) -> Self {
        Self {
            succeeded,
            values: None,
            definitions: Vec::new(),
        }
    }
}

impl Extent {
    /// The same, with the definition of the run.
    pub(super) fn with_definitions(self, definitions: Vec<Parent>) -> Self {
        Self {
            definitions,
            ..self
        }
    }
}

/// A tree, and what was read for it.
pub(super) struct Grown {
    pub(super) tree: Tree,
    values: Option<HashMap<String, Values>>,
    /// How many records were read.
    pub(super) rows: u64,
    /// Whether those are all of its result.
    pub(super) had_all: bool,
}

impl Service {
    /// The tree of the run in `record`.
    pub(in crate::service) async fn tree(
        &self,
        by: &RequestContext,
        record: &Record,
        object: &Arc<Value>,
        extent: impl Into<Extent>,
    ) -> Result<Tree, Error> {
        let engine = self.engine.with_quota(&by.quota);
        let grown = gather(&engine, record, object, extent.into()).await?;
        Ok(grown.tree)
    }

    /// What is compared of the run in `record`.
    pub(super) async fn side(
        &self,
        by: &RequestContext,
        record: &Record,
        object: &Arc<Value>,
    ) -> Result<Side, Error> {
        let engine = self.engine.with_quota(&by.quota);
        let extent = Extent {
            values: Some(HashMap::new()),
            ..Extent::from(Succeeded::Whole)
        };
        let grown = gather(&engine, record, object, extent).await?;
        let (tree, values) = (grown.tree, grown.values);
        let object = Arc::clone(object);
        let making = engine.compute(move || {
            let mut values = values.unwrap_or_default();
            if let Some(run) = tree.nodes.first() {
                values.insert(run.id.clone(), Values::of(&object, false));
            }
            Side::of(&tree, values)
        });
        Ok(making.await?)
    }
}

/// The tree of the run in `record`, with the values of what is below it if those are asked for. It
/// reads as many records as `engine` may.
pub(super) async fn gather(
    engine: &Engine,
    record: &Record,
    object: &Arc<Value>,
    extent: Extent,
) -> Result<Grown, Error> {
    let (name, own) = (record.name.to_string(), Arc::clone(object));
    let mut root = engine.compute(move || Part::of(&name, &own)).await?;
    let mut gathered = Gathered::beside(&root, extent.values);
    let mut leaves = Vec::new();
    let mut had_all = true;
    // Nothing is below a TaskRun.
    if object.get("kind").and_then(Value::as_str) != Some("TaskRun") {
        let reading = read(engine, &record.name, &root, extent.succeeded, gathered);
        (gathered, leaves, had_all) = reading.await?;
    }
    let only_stored = extent.succeeded == Succeeded::Absent;
    let (at, parents) = (&mut gathered, extent.definitions.as_slice());
    add_reference(engine, record, object, parents, &mut root, at).await?;
    let growing = engine.compute(move || {
        if only_stored {
            Part::retain_stored(&mut root, &mut gathered.parts);
        }
        let mut tree = Tree::of(root, gathered.parts, leaves);
        if !had_all {
            let note = "the result has more records than are read; runs may be missing";
            tree.notes.push(note.to_owned());
        }
        Grown {
            tree,
            values: gathered.values,
            rows: gathered.rows,
            had_all,
        }
    });
    Ok(growing.await?)
}

/// Adds what the run refers to, where it is not among what was read, to that and to the run.
async fn add_reference(
    engine: &Engine,
    record: &Record,
    object: &Arc<Value>,
    definitions: &[Parent],
    root: &mut Part,
    gathered: &mut Gathered,
) -> Result<(), Error> {
    let (parent, run) = (record.name.result().parent().clone(), Arc::clone(object));
    let definitions = definitions.to_vec();
    let finding = engine.compute(move || Reference::of(&parent, &run, &definitions));
    let Some(reference) = finding.await? else {
        return Ok(());
    };
    let sought = reference.object.as_ref();
    let sought = sought.map(|(kind, name)| (*kind, name.as_str()));
    if sought.is_some_and(|sought| gathered.parts.iter().any(|part| part.object() == sought)) {
        return Ok(());
    }
    let found = reference.newest(engine).await?;
    let before = gathered.parts.len();
    gathered.add(found.into_iter().collect());
    if let Some(part) = gathered.parts.get_mut(before) {
        root.refer(part);
    }
    Ok(())
}

/// Reads what may be below `root`, which is the record `run`: parts, and leaves of which columns say enough. Says
/// whether that is all there is in its result.
async fn read(
    engine: &Engine,
    run: &RecordName,
    root: &Part,
    succeeded: Succeeded,
    gathered: Gathered,
) -> Result<(Gathered, Vec<Node>, bool), Error> {
    let scope = ResultPattern::from(run.result());
    let all = series::other_ids(run.id());
    if succeeded == Succeeded::Whole {
        let (gathered, had_all) = engine.fold(scope, all, gathered).await?;
        return Ok((gathered, Vec::new(), had_all));
    }
    let others = Condition::And(vec![all.clone(), series::no_succeeded_tasks()]);
    let (mut gathered, had_all) = engine.fold(scope.clone(), others, gathered).await?;
    if succeeded == Succeeded::Absent || !had_all {
        return Ok((gathered, Vec::new(), had_all));
    }
    let rest = engine.scan_budget().saturating_sub(gathered.rows);
    let brief = Brief {
        leaves: Vec::new(),
        most: MAX_NODES.saturating_sub(gathered.nodes),
    };
    let tasks = series::succeeded_tasks();
    let reading = engine.clone().within(rest);
    let (brief, had_all) = reading.fold(scope.clone(), tasks, brief).await?;
    if !brief.has_places(gathered.parts.iter().chain([root])) {
        let nothing = Gathered::beside(root, None);
        let (gathered, had_all) = engine.fold(scope, all, nothing).await?;
        return Ok((gathered, Vec::new(), had_all));
    }
    gathered.rows += brief.leaves.len() as u64;
    Ok((gathered, brief.leaves, had_all))
}

#[cfg(test)]
mod tests;
