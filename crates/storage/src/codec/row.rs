//! A batch made ready for tables: all that can be computed before a transaction begins.

use std::{collections::BTreeMap, num::NonZeroUsize, sync::Arc};

use bytes::Bytes;
use hindsight_run::{Kind, View};
use serde_json::Value;

use super::{
    body::{Help, Packed},
    known::Known,
    pieces::{Keys, Loaded, Pieces, Shelf},
};
use crate::seam::{Batch, Change, Error};
use hindsight_filter::model::{Etag, Record, RecordName, ResultName, RunResult};
use hindsight_filter::{
    columns::{ObjectColumns, columns_of},
    outline::outline,
};

/// Above so many bytes of payload, packing and unpacking leave the async threads.
pub(crate) const BIG: usize = 64 << 10;

/// A record with all that its row needs.
#[derive(Debug, Clone)]
pub(crate) struct RecordRow {
    /// The record; the bytes of its payload are in `body`.
    pub(crate) record: Record,
    /// The packed payload, if there is one.
    pub(crate) body: Option<Packed>,
    /// What filters ask for.
    pub(crate) columns: ObjectColumns,
    /// Which other bodies its body is like, if it is JSON.
    pub(crate) keys: Option<Keys>,
    /// What indexes of promoted fields hold of it.
    pub(crate) claim: Claim,
}

/// What indexes of promoted fields hold of a record, as far as its writer knows. The write happens
/// only if that is all that there is to know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Of which set of fields.
    pub(crate) generation: i64,
    /// Whether there are any fields.
    pub(crate) has_fields: bool,
    /// Numbers of fields, and keys.
    pub(crate) keys: Vec<(i64, String)>,
}

/// A [`Change`] made ready.
#[derive(Debug, Clone)]
pub(crate) enum Ready {
    /// [`Change::InsertResult`].
    InsertResult(RunResult),
    /// [`Change::ReplaceResult`].
    ReplaceResult(Etag, RunResult),
    /// [`Change::DeleteResult`].
    DeleteResult(ResultName, Option<Etag>),
    /// [`Change::InsertRecord`].
    InsertRecord(Box<RecordRow>),
    /// [`Change::ReplaceRecord`].
    ReplaceRecord(Etag, Box<RecordRow>),
    /// [`Change::DeleteRecord`].
    DeleteRecord(RecordName, Option<Etag>),
}

impl Ready {
    /// The name of what is changed.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::InsertResult(value) | Self::ReplaceResult(_, value) => value.name.to_string(),
            Self::DeleteResult(name, _) => name.to_string(),
            Self::InsertRecord(row) | Self::ReplaceRecord(_, row) => row.record.name.to_string(),
            Self::DeleteRecord(name, _) => name.to_string(),
        }
    }

    /// The same as parts, to compare without making a text.
    pub(crate) fn key(&self) -> (&ResultName, Option<&str>) {
        let id = match self {
            Self::InsertRecord(row) | Self::ReplaceRecord(_, row) => Some(row.record.name.id()),
            Self::DeleteRecord(name, _) => Some(name.id()),
            _ => None,
        };
        (self.result(), id)
    }

    /// The result that is changed, or whose record is.
    pub(crate) fn result(&self) -> &ResultName {
        match self {
            Self::InsertResult(value) | Self::ReplaceResult(_, value) => &value.name,
            Self::DeleteResult(name, _) => name,
            Self::InsertRecord(row) | Self::ReplaceRecord(_, row) => row.record.name.result(),
            Self::DeleteRecord(name, _) => name.result(),
        }
    }

    /// The etag that must be there.
    pub(crate) fn expected(&self) -> Option<&Etag> {
        match self {
            Self::ReplaceResult(etag, _) | Self::ReplaceRecord(etag, _) => Some(etag),
            Self::DeleteResult(_, etag) | Self::DeleteRecord(_, etag) => etag.as_ref(),
            Self::InsertResult(_) | Self::InsertRecord(_) => None,
        }
    }

    /// Why it changed no row, given the etag of the row of that name, if there is one.
    pub(crate) fn refusal(&self, found: Option<Etag>) -> Error {
        match (self, self.expected()) {
            (Self::InsertRecord(row), _) => Error::Missing(row.record.name.result().to_string()),
            (_, Some(expected)) if found.is_some() => Error::Stale {
                name: self.name(),
                expected: expected.clone(),
            },
            _ => Error::Missing(self.name()),
        }
    }

    /// The row of the record that is written.
    pub(crate) fn record_row(&self) -> Option<&RecordRow> {
        match self {
            Self::InsertRecord(row) | Self::ReplaceRecord(_, row) => Some(row),
            _ => None,
        }
    }

    /// The body that is written.
    pub(crate) fn body(&mut self) -> Option<&mut Packed> {
        match self {
            Self::InsertRecord(row) | Self::ReplaceRecord(_, row) => row.body.as_mut(),
            _ => None,
        }
    }

    /// How many bytes it takes to the database, about.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::InsertRecord(row) | Self::ReplaceRecord(_, row) => {
                1024 + row.body.as_ref().map_or(0, |body| body.bytes.len())
            }
            _ => 1024,
        }
    }
}

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

/// Does `work` on each item, in order; if there is much of it, on as many threads as there are
/// cores.
pub(crate) async fn in_parts<T, U>(
    items: Vec<T>,
    bytes: impl Fn(&T) -> usize,
    work: impl Fn(T) -> U + Clone + Send + 'static,
) -> Result<Vec<U>, Error>
where
    T: Send + 'static,
    U: Send + 'static,
{
    if items.iter().map(bytes).sum::<usize>() <= BIG {
        return Ok(items.into_iter().map(work).collect());
    }
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let most = items.len().div_ceil(cores).max(1);
    let mut parts = Vec::new();
    let mut items = items.into_iter().peekable();
    while items.peek().is_some() {
        let part: Vec<T> = items.by_ref().take(most).collect();
        let work = work.clone();
        parts.push(tokio::task::spawn_blocking(move || {
            part.into_iter().map(work).collect::<Vec<U>>()
        }));
    }
    let mut done = Vec::new();
    for part in parts {
        done.extend(part.await.map_err(|e| Error::Database {
            what: "packing or unpacking payloads",
            source: e.into(),
        })?);
    }
    Ok(done)
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

/// The row of a record; its body is not compressed yet.
pub(crate) fn row(mut record: Record) -> RecordRow {
    let Some(data) = &mut record.data else {
        return RecordRow {
            record,
            body: None,
            columns: ObjectColumns::default(),
            keys: None,
            claim: Claim::default(),
        };
    };
    let value = std::mem::replace(&mut data.value, Bytes::new());
    let object = outline(&value).ok();
    let columns = object
        .as_ref()
        .map(|object| columns_of(&data.data_type, object));
    let parent = record.name.result().parent().as_str();
    let keys = keys(parent, &data.data_type, &value, object.as_ref());
    RecordRow {
        record,
        body: Some(Packed::loose(value)),
        columns: columns.unwrap_or_default(),
        keys,
        claim: Claim::default(),
    }
}

/// Which other bodies a body is like, given what matters of it, if it is JSON.
fn keys(parent: &str, data_type: &str, value: &[u8], object: Option<&Value>) -> Option<Keys> {
    // Other bytes may look like a dictionary of zstd's own form, which JSON never does.
    let plain = value
        .starts_with(b"{")
        .then(|| Keys::of_type(parent, data_type));
    if Kind::of_type(data_type).is_none() {
        return plain;
    }
    let Some(object) = object else {
        return plain;
    };
    plain.map(|_| Keys::of_run(parent, data_type, &View::new(object)))
}

/// A map of texts as the JSON that columns hold.
pub(crate) fn json(map: &BTreeMap<String, String>) -> String {
    use super::text::stored;
    let kept: BTreeMap<_, _> = map
        .iter()
        .map(|(key, value)| (stored(key), stored(value)))
        .collect();
    serde_json::to_string(&kept).expect("a map of texts is JSON")
}
