//! Reads a run and what is below it.

use std::{collections::HashMap, sync::Arc};

use hindsight_analysis::diff::{Side, Values};
use hindsight_analysis::tree::{MAX_NODES, Part, Tree};
use hindsight_run::json;
use serde_json::Value;

use crate::query::{Engine, Fold};
use crate::service::{Error, Service};
use hindsight_access::RequestContext;
use hindsight_filter::model::{ParentPattern, Record, ResultName, ResultPattern};

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
    ) -> Result<Tree, Error> {
        let engine = self.engine.with_quota(&by.quota);
        let grown = gather(&engine, record, object, None).await?;
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
        let grown = gather(&engine, record, object, Some(values)).await?;
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
    values: Option<HashMap<String, Values>>,
) -> Result<Grown, Error> {
    let mut gathered = Gathered {
        values,
        ..Gathered::default()
    };
    let mut had_all = true;
    // Nothing is below a TaskRun.
    if object.get("kind").and_then(Value::as_str) != Some("TaskRun") {
        let scope = whole(record.name.result());
        (gathered, had_all) = engine.fold(scope, gathered).await?;
    }
    let (name, object) = (record.name.to_string(), Arc::clone(object));
    let growing = engine.compute(move || {
        let root = Part::of(&name, &object);
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

/// Every record of a result.
fn whole(result: &ResultName) -> ResultPattern {
    ResultPattern {
        parent: ParentPattern::Exact(result.parent().clone()),
        id: Some(result.id().to_owned()),
    }
}
