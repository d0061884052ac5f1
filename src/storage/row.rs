//! A batch made ready for tables: all that can be computed before a transaction begins.

use std::collections::BTreeMap;

use bytes::Bytes;
use hindsight_proto::run::{Kind, View};

use super::{
    Batch, Change, Error,
    body::{Packed, pack},
};
use crate::{
    filter::columns::{ObjectColumns, object_columns},
    model::{Etag, Payload, Record, RecordName, ResultName, RunResult},
};

/// Above so many bytes of payload, packing and unpacking leave the async threads.
pub(super) const BIG: usize = 64 << 10;

/// A record with all that its row needs.
#[derive(Debug, Clone)]
pub(super) struct RecordRow {
    /// The record; the bytes of its payload are in `body`.
    pub(super) record: Record,
    /// The packed payload, if there is one.
    pub(super) body: Option<Packed>,
    /// What filters ask for.
    pub(super) columns: ObjectColumns,
    /// What the run says of itself, if it is one.
    pub(super) run: RunColumns,
}

/// How a run went, the same for every kind of run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RunColumns {
    /// Number of its outcome.
    pub(super) outcome: Option<i64>,
    /// When it began, in microseconds.
    pub(super) began: Option<i64>,
    /// When it ended, in microseconds.
    pub(super) ended: Option<i64>,
}

impl RunColumns {
    /// How long it took.
    pub(super) fn duration(&self) -> Option<i64> {
        self.ended?.checked_sub(self.began?)
    }
}

/// A [`Change`] made ready.
#[derive(Debug, Clone)]
pub(super) enum Ready {
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
    pub(super) fn name(&self) -> String {
        match self {
            Self::InsertResult(value) | Self::ReplaceResult(_, value) => value.name.to_string(),
            Self::DeleteResult(name, _) => name.to_string(),
            Self::InsertRecord(row) | Self::ReplaceRecord(_, row) => row.record.name.to_string(),
            Self::DeleteRecord(name, _) => name.to_string(),
        }
    }

    /// The result that is changed, or whose record is.
    pub(super) fn result(&self) -> &ResultName {
        match self {
            Self::InsertResult(value) | Self::ReplaceResult(_, value) => &value.name,
            Self::DeleteResult(name, _) => name,
            Self::InsertRecord(row) | Self::ReplaceRecord(_, row) => row.record.name.result(),
            Self::DeleteRecord(name, _) => name.result(),
        }
    }

    /// The etag that must be there.
    pub(super) fn expected(&self) -> Option<&Etag> {
        match self {
            Self::ReplaceResult(etag, _) | Self::ReplaceRecord(etag, _) => Some(etag),
            Self::DeleteResult(_, etag) | Self::DeleteRecord(_, etag) => etag.as_ref(),
            Self::InsertResult(_) | Self::InsertRecord(_) => None,
        }
    }

    /// Why it changed no row, given the etag of the row of that name, if there is one.
    pub(super) fn refusal(&self, found: Option<Etag>) -> Error {
        match (self, self.expected()) {
            (Self::InsertRecord(row), _) => Error::Missing(row.record.name.result().to_string()),
            (_, Some(expected)) if found.is_some() => Error::Stale {
                name: self.name(),
                expected: expected.clone(),
            },
            _ => Error::Missing(self.name()),
        }
    }

    /// How many bytes it takes to the database, about.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::InsertRecord(row) | Self::ReplaceRecord(_, row) => {
                1024 + row.body.as_ref().map_or(0, |body| body.bytes.len())
            }
            _ => 1024,
        }
    }
}

/// Makes a batch ready; big ones on a thread that may block.
pub(super) async fn ready(batch: &Batch) -> Result<Vec<Ready>, Error> {
    let size: usize = batch.changes.iter().map(payload_bytes).sum();
    let changes = batch.changes.clone();
    if size <= BIG {
        return Ok(changes.into_iter().map(make_ready).collect());
    }
    tokio::task::spawn_blocking(move || changes.into_iter().map(make_ready).collect())
        .await
        .map_err(|e| Error::Database {
            what: "packing payloads",
            source: e.into(),
        })
}

fn payload_bytes(change: &Change) -> usize {
    match change {
        Change::InsertRecord(record) | Change::ReplaceRecord { value: record, .. } => {
            record.data.as_ref().map_or(0, |data| data.value.len())
        }
        _ => 0,
    }
}

fn make_ready(change: Change) -> Ready {
    match change {
        Change::InsertResult(value) => Ready::InsertResult(value),
        Change::ReplaceResult { expect, value } => Ready::ReplaceResult(expect, value),
        Change::DeleteResult { name, expect } => Ready::DeleteResult(name, expect),
        Change::InsertRecord(record) => Ready::InsertRecord(Box::new(row(record))),
        Change::ReplaceRecord { expect, value } => {
            Ready::ReplaceRecord(expect, Box::new(row(value)))
        }
        Change::DeleteRecord { name, expect } => Ready::DeleteRecord(name, expect),
    }
}

fn row(mut record: Record) -> RecordRow {
    let Some(data) = &mut record.data else {
        return RecordRow {
            record,
            body: None,
            columns: ObjectColumns::default(),
            run: RunColumns::default(),
        };
    };
    let columns = object_columns(data);
    let run = run_columns(data);
    let body = Some(pack(&std::mem::replace(&mut data.value, Bytes::new())));
    RecordRow {
        record,
        body,
        columns,
        run,
    }
}

fn run_columns(data: &Payload) -> RunColumns {
    if Kind::of_type(&data.data_type).is_none() {
        return RunColumns::default();
    }
    let Ok(object) = serde_json::from_slice(&data.value) else {
        return RunColumns::default();
    };
    let view = View::new(&object);
    RunColumns {
        outcome: Some(view.finish().outcome as i64),
        began: view.started().map(|time| time.as_microsecond()),
        ended: view.ended().map(|time| time.as_microsecond()),
    }
}

/// A map of texts as the JSON that columns hold.
pub(super) fn json(map: &BTreeMap<String, String>) -> String {
    use super::sql::text::stored;
    let kept: BTreeMap<_, _> = map
        .iter()
        .map(|(key, value)| (stored(key), stored(value)))
        .collect();
    serde_json::to_string(&kept).expect("a map of texts is JSON")
}
