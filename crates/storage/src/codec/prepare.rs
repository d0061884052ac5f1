//! A batch made ready for tables: all that can be computed before a transaction begins.

use std::sync::Arc;

use super::{
    body::Help,
    dictionary::{Loaded, Shelf},
    known::Known,
    parallel::in_parts,
    pieces::Pieces,
    row::{Ready, RecordRow, row},
};
use crate::seam::{Batch, Change, Error};
use hindsight_filter::model::Record;

/// What a change refers to was deleted, or other fields were promoted, while it was on its way.
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

/// Makes a batch ready; big ones on threads that may block. Without `pieces` its bodies refer to
/// nothing, nor do those that take more than `above` bytes, because they will lie outside.
pub(crate) async fn ready(
    batch: &Batch,
    pieces: Option<&Pieces>,
    shelf: &impl Shelf,
    known: &Arc<Known>,
    above: Option<usize>,
) -> Result<Vec<Ready>, Error> {
    let known = Arc::clone(known);
    let make = move |change| make_ready(change, &known);
    let mut changes = in_parts(batch.changes.clone(), payload_bytes, make).await?;
    let rows: Vec<&RecordRow> = changes.iter().filter_map(Ready::record_row).collect();
    if rows.iter().all(|row| row.body.is_none()) {
        return Ok(changes);
    }
    let (chosen, loaded) = match pieces {
        Some(pieces) => pieces.choose(shelf, &rows).await?,
        None => (Vec::new(), Loaded::new()),
    };
    let loaded = Arc::new(loaded);
    let mut chosen = chosen.into_iter();
    let loose: Vec<(Ready, Option<i64>)> = changes
        .drain(..)
        .map(|change| match change.record_row() {
            Some(_) => (change, chosen.next().flatten()),
            None => (change, None),
        })
        .collect();
    let compress = move |(change, piece)| compress(change, piece, &loaded, above);
    let packed = in_parts(loose, |(change, _)| change.weight(), compress).await?;
    for (change, help) in &packed {
        if let Some(keys) = change.record_row().and_then(|row| row.keys.as_ref())
            && let Some(pieces) = pieces
        {
            pieces.learn(keys, *help);
        }
    }
    Ok(packed.into_iter().map(|(change, _)| change).collect())
}

fn compress(
    mut change: Ready,
    piece: Option<i64>,
    loaded: &Loaded,
    above: Option<usize>,
) -> (Ready, Help) {
    let mut help = Help::Well;
    if let Ready::InsertRecord(row) | Ready::ReplaceRecord(_, row) = &mut change
        && let Some(body) = &mut row.body
    {
        let piece = piece.and_then(|id| loaded.get(&id));
        let loose = body.clone();
        help = body.compress(piece.map(|piece| &**piece));
        if body.piece.is_some() && above.is_some_and(|above| body.bytes.len() > above) {
            *body = loose;
            body.compress(None);
        }
    }
    (change, help)
}

fn payload_bytes(change: &Change) -> usize {
    match change {
        Change::InsertRecord(record) | Change::ReplaceRecord { value: record, .. } => {
            record.data.as_ref().map_or(0, |data| data.value.len())
        }
        _ => 0,
    }
}

fn make_ready(change: Change, known: &Known) -> Ready {
    match change {
        Change::InsertResult(value) => Ready::InsertResult(value),
        Change::ReplaceResult { expect, value } => Ready::ReplaceResult(expect, value),
        Change::DeleteResult { name, expect } => Ready::DeleteResult(name, expect),
        Change::InsertRecord(record) => Ready::InsertRecord(Box::new(claimed(record, known))),
        Change::ReplaceRecord { expect, value } => {
            Ready::ReplaceRecord(expect, Box::new(claimed(value, known)))
        }
        Change::DeleteRecord { name, expect } => Ready::DeleteRecord(name, expect),
    }
}

/// The row of a record, with what is known to be promoted of it.
fn claimed(record: Record, known: &Known) -> RecordRow {
    let claim = known.claim(&record);
    RecordRow {
        claim,
        ..row(record)
    }
}
