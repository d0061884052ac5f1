//! A batch made ready for tables: all that can be computed before a transaction begins.

use std::sync::Arc;

use super::{
    body::Help,
    dictionaries::DictionaryCache,
    dictionary::{DictionaryStore, Loaded},
    known::IndexedPaths,
    parallel::par_map_blocking,
    row::{PreparedChange, RecordRow, row},
    short::Ids,
};
use crate::seam::{Batch, Change, Error};
use hindsight_filter::model::Record;

/// What a change refers to was deleted, or other paths were indexed, while it was on its way.
#[derive(Debug, thiserror::Error)]
#[error("what it was prepared from has changed meanwhile")]
struct Outdated;

/// The error of a batch that is to be prepared again.
pub(crate) fn outdated() -> Error {
    Error::Unavailable {
        what: "storing a record",
        source: Box::new(Outdated),
    }
}

/// Whether it is that error.
pub(crate) fn is_outdated(error: &Error) -> bool {
    matches!(error, Error::Unavailable { source, .. } if source.is::<Outdated>())
}

/// How often a batch is prepared again.
pub(crate) const REPACKS: usize = 4;

/// Makes a batch ready; big ones on threads that may block. Without `dictionaries` its bodies refer
/// to nothing, nor do those that take more than `above` bytes, because they will lie outside.
pub(crate) async fn ready(
    batch: &Batch,
    dictionaries: Option<&DictionaryCache>,
    store: &impl DictionaryStore,
    known: &Arc<IndexedPaths>,
    above: Option<usize>,
) -> Result<Vec<PreparedChange>, Error> {
    let known = Arc::clone(known);
    let make = move |change| make_ready(change, &known);
    let mut changes = par_map_blocking(batch.changes.clone(), payload_bytes, make).await?;
    let rows: Vec<&RecordRow> = changes
        .iter()
        .filter_map(PreparedChange::record_row)
        .collect();
    if rows.iter().all(|row| row.body.is_none()) {
        return Ok(changes);
    }
    let (chosen, loaded) = match dictionaries {
        Some(dictionaries) => dictionaries.choose(store, &rows).await?,
        None => (Vec::new(), Loaded::new()),
    };
    let loaded = Arc::new(loaded);
    let mut chosen = chosen.into_iter();
    let loose: Vec<(PreparedChange, Option<i64>)> = changes
        .drain(..)
        .map(|change| match change.record_row() {
            Some(_) => (change, chosen.next().flatten()),
            None => (change, None),
        })
        .collect();
    let compress = move |(change, dictionary)| compress(change, dictionary, &loaded, above);
    let packed = par_map_blocking(loose, |(change, _)| change.weight(), compress).await?;
    for (change, help) in &packed {
        if let Some(keys) = change.record_row().and_then(|row| row.keys.as_ref())
            && let Some(dictionaries) = dictionaries
        {
            dictionaries.learn(keys, *help);
        }
    }
    Ok(packed.into_iter().map(|(change, _)| change).collect())
}

fn compress(
    mut change: PreparedChange,
    dictionary: Option<i64>,
    loaded: &Loaded,
    above: Option<usize>,
) -> (PreparedChange, Help) {
    let mut help = Help::Well;
    if let PreparedChange::InsertRecord(row) | PreparedChange::ReplaceRecord(_, row) = &mut change
        && let Some(body) = &mut row.body
    {
        let dictionary = dictionary.and_then(|id| loaded.get(&id));
        let loose = body.clone();
        let name = &row.record.name;
        let ids = Ids::new(name.id(), name.result().id());
        help = body.compress(&ids, dictionary.map(|dictionary| &**dictionary));
        if body.dictionary.is_some() && above.is_some_and(|above| body.bytes.len() > above) {
            *body = loose;
            body.compress(&ids, None);
        }
    }
    (change, help)
}

fn payload_bytes(change: &Change) -> usize {
    match change {
        Change::InsertRecord(record)
        | Change::ReturnRecord { value: record, .. }
        | Change::ReplaceRecord { value: record, .. } => {
            record.data.as_ref().map_or(0, |data| data.value.len())
        }
        _ => 0,
    }
}

fn make_ready(change: Change, known: &IndexedPaths) -> PreparedChange {
    match change {
        Change::InsertResult(value) => PreparedChange::InsertResult(value),
        Change::ReplaceResult { expect, value } => PreparedChange::ReplaceResult(expect, value),
        Change::DeleteResult { name, expect } => PreparedChange::DeleteResult(name, expect),
        Change::ExpireResult { name, version, now } => {
            PreparedChange::ExpireResult(name, version, now)
        }
        Change::ArchiveResult {
            name,
            version,
            now,
            file,
        } => PreparedChange::ArchiveResult(name, version, now, file),
        Change::ReturnResult { name, file } => PreparedChange::ReturnResult(name, file),
        Change::InsertHold(hold) => PreparedChange::InsertHold(hold),
        Change::DeleteHold { name } => PreparedChange::DeleteHold(name),
        Change::InsertRecord(record) => {
            PreparedChange::InsertRecord(Box::new(claimed(record, known)))
        }
        Change::ReturnRecord { number, value } => {
            PreparedChange::InsertRecord(Box::new(RecordRow {
                number: Some(number),
                ..claimed(value, known)
            }))
        }
        Change::ReplaceRecord { expect, value } => {
            PreparedChange::ReplaceRecord(expect, Box::new(claimed(value, known)))
        }
        Change::DeleteRecord { name, expect } => PreparedChange::DeleteRecord(name, expect),
    }
}

/// The row of a record, with what is known to be indexed of it.
fn claimed(record: Record, known: &IndexedPaths) -> RecordRow {
    let entries = known.entries(&record);
    RecordRow {
        entries,
        ..row(record)
    }
}
