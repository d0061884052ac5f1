//! Reads a run and what is below it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hindsight_analysis::diff::{Side, Values};
use hindsight_analysis::tree::{
    MAX_NODES, Node, PIPELINE_TASK, Part, RAY_CLUSTER, State, Tree, ray_cluster,
};
use hindsight_run::{View, json};
use jiff::Timestamp;
use serde_json::Value;

use super::series;
use crate::query::{Engine, Fold};
use crate::service::{Error, Service};
use hindsight_access::RequestContext;
use hindsight_filter::Order;
use hindsight_filter::condition::{Column, Condition, Is, ObjectField, Test, Value as ColumnValue};
use hindsight_filter::model::{ParentPattern, Record, ResultName, ResultPattern};
use hindsight_storage::RecordColumns;

/// Most memory of values of the runs below one that is compared, in bytes.
const MAX_VALUES: usize = 32 << 20;

/// What the records of a result give to a tree, and their values if those are compared.
#[derive(Debug, Default)]
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
            let object = record.data.as_ref().map(|data| json::parse(&data.value));
            if let Some(Ok(object)) = object {
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
#[derive(Debug, Default)]
struct Brief {
    parts: Vec<Part>,
    nodes: usize,
    bytes: usize,
}

impl Fold for Brief {
    type Row = RecordColumns;

    fn add(&mut self, rows: Vec<RecordColumns>) -> bool {
        for row in rows {
            if self.nodes >= MAX_NODES {
                return false;
            }
            let part = Part::of_leaf(leaf(&row));
            self.nodes += 1;
            self.bytes += part.bytes();
            self.parts.push(part);
        }
        true
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Brief {
    /// Whether others say where each of its TaskRuns is, whose owners no column has.
    fn has_places<'p>(&self, others: impl IntoIterator<Item = &'p Part>) -> bool {
        let children = others.into_iter().flat_map(Part::children);
        let mut places: HashSet<_> = children.collect();
        self.parts.iter().all(|part| places.remove(&part.object()))
    }
}

/// What columns say of a TaskRun that succeeded.
fn leaf(row: &RecordColumns) -> Node {
    let object = &row.object;
    let text = |field| object.text(field).unwrap_or_default().to_owned();
    let time = |micros: Option<i64>| Timestamp::from_microsecond(micros?).ok();
    let record = row.record.name.to_string();
    let name = text(ObjectField::Name);
    let task = object.labels.get(PIPELINE_TASK);
    Node {
        id: object.text(ObjectField::Uid).unwrap_or(&record).to_owned(),
        name: task.unwrap_or(&name).clone(),
        object: name,
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
}

/// What a tree says of TaskRuns that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::service) enum Succeeded {
    /// What they say of themselves.
    Whole,
    /// What columns keep: no steps, message, retries, nor when their first step began.
    Brief,
    /// That they are not stored. No failure is in them.
    Absent,
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
        succeeded: Succeeded,
    ) -> Result<Tree, Error> {
        let engine = self.engine.with_quota(&by.quota);
        let grown = gather(&engine, record, object, succeeded, None).await?;
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
        let values = HashMap::new();
        let grown = gather(&engine, record, object, Succeeded::Whole, Some(values)).await?;
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

/// The tree of the run in `record`, with the values of what is below it if `values` are given. It
/// reads as many records as `engine` may.
pub(super) async fn gather(
    engine: &Engine,
    record: &Record,
    object: &Arc<Value>,
    succeeded: Succeeded,
    values: Option<HashMap<String, Values>>,
) -> Result<Grown, Error> {
    let (name, own) = (record.name.to_string(), Arc::clone(object));
    let root = engine.compute(move || Part::of(&name, &own)).await?;
    let mut gathered = Gathered {
        values,
        ..Gathered::default()
    };
    let mut had_all = true;
    // Nothing is below a TaskRun.
    if object.get("kind").and_then(Value::as_str) != Some("TaskRun") {
        let scope = whole(record.name.result());
        (gathered, had_all) = read(engine, scope, &root, succeeded, gathered).await?;
    }
    if let Some(cluster) = cluster_elsewhere(engine, record, object, &gathered).await? {
        gathered.add(vec![cluster]);
    }
    let growing = engine.compute(move || {
        let mut tree = Tree::of(root, gathered.parts);
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

/// The record of the RayCluster that a RayJob ran on, where it is not in the result of the job: the one of this name that
/// was made last before the job ended.
async fn cluster_elsewhere(
    engine: &Engine,
    record: &Record,
    job: &Value,
    gathered: &Gathered,
) -> Result<Option<Record>, Error> {
    let Some(name) = ray_cluster(job) else {
        return Ok(None);
    };
    let is_there = |part: &Part| part.object() == (RAY_CLUSTER, name);
    let run = View::new(job);
    let Some(namespace) = run
        .namespace()
        .filter(|_| !gathered.parts.iter().any(is_there))
    else {
        return Ok(None);
    };
    let text = |field, text: &str| test(field, Is::Equal(ColumnValue::Text(text.to_owned())));
    let mut tests = vec![
        text(ObjectField::Kind, RAY_CLUSTER),
        text(ObjectField::Namespace, namespace),
        text(ObjectField::Name, name),
    ];
    let ended = run.ended();
    tests.extend(ended.map(|end| {
        test(
            ObjectField::CreationTime,
            Is::AtMost(ColumnValue::Time(end)),
        )
    }));
    let scope = ResultPattern {
        parent: ParentPattern::Exact(record.name.result().parent().clone()),
        id: None,
    };
    let newest = Order::by(Column::Object(ObjectField::CreationTime), true);
    Ok(engine.first(scope, Condition::And(tests), newest).await?)
}

fn test(field: ObjectField, is: Is) -> Condition {
    Condition::Test(Test {
        column: Column::Object(field),
        is,
        negated: false,
    })
}

/// Reads what may be below `root`, and says whether that is all there is in `scope`.
async fn read(
    engine: &Engine,
    scope: ResultPattern,
    root: &Part,
    succeeded: Succeeded,
    gathered: Gathered,
) -> Result<(Gathered, bool), Error> {
    if succeeded == Succeeded::Whole {
        return Ok(engine.fold(scope, Condition::All, gathered).await?);
    }
    let others = series::no_succeeded_tasks();
    let (mut gathered, had_all) = engine.fold(scope.clone(), others, gathered).await?;
    if succeeded == Succeeded::Absent || !had_all {
        return Ok((gathered, had_all));
    }
    let rest = engine.scan_budget().saturating_sub(gathered.rows);
    let brief = Brief {
        nodes: gathered.nodes,
        ..Brief::default()
    };
    let tasks = series::succeeded_tasks();
    let reading = engine.clone().within(rest);
    let (brief, had_all) = reading.fold(scope.clone(), tasks, brief).await?;
    if !brief.has_places(gathered.parts.iter().chain([root])) {
        let nothing = Gathered::default();
        return Ok(engine.fold(scope, Condition::All, nothing).await?);
    }
    gathered.rows += brief.parts.len() as u64;
    gathered.parts.extend(brief.parts);
    Ok((gathered, had_all))
}

/// Every record of a result.
fn whole(result: &ResultName) -> ResultPattern {
    ResultPattern {
        parent: ParentPattern::Exact(result.parent().clone()),
        id: Some(result.id().to_owned()),
    }
}
