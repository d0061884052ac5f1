//! Rows: changes with all that tables hold of them.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use jiff::Timestamp;

use super::{
    body::Packed,
    dictionary::Keys,
    known::IndexEntries,
    text::{self, words},
};
use crate::seam::{Error, Hold, WholeVersion};
use hindsight_filter::model::{Etag, Record, RecordName, ResultName, RunResult};
use hindsight_filter::{columns::ObjectColumns, extract::Extract};

/// A record with all that its row needs.
#[derive(Debug, Clone)]
pub(crate) struct RecordRow {
    /// The number that its row had before, if it comes back.
    pub(crate) number: Option<i64>,
    /// The record; the bytes of its payload are in `body`.
    pub(crate) record: Record,
    /// The packed payload, if there is one.
    pub(crate) body: Option<Packed>,
    /// What filters ask for.
    pub(crate) extract: Arc<Extract>,
    /// Which other bodies its body is like, if it is JSON.
    pub(crate) keys: Option<Keys>,
    /// What indexes of paths hold of it.
    pub(crate) entries: IndexEntries,
}

/// A [`Change`] made ready.
#[derive(Debug, Clone)]
pub(crate) enum PreparedChange {
    InsertResult(RunResult),
    ReplaceResult(Etag, RunResult),
    DeleteResult(ResultName, Option<Etag>),
    ExpireResult(ResultName, WholeVersion, Timestamp),
    ArchiveResult(ResultName, WholeVersion, Timestamp, i64),
    ReturnResult(ResultName, i64),
    InsertHold(Hold),
    DeleteHold(ResultName),
    InsertRecord(Box<RecordRow>),
    ReplaceRecord(Etag, Box<RecordRow>),
    DeleteRecord(RecordName, Option<Etag>),
}

impl PreparedChange {
    /// The name of what is changed.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::InsertResult(value) | Self::ReplaceResult(_, value) => value.name.to_string(),
            Self::InsertHold(hold) => hold.result.to_string(),
            Self::DeleteResult(name, _)
            | Self::ExpireResult(name, ..)
            | Self::ArchiveResult(name, ..)
            | Self::ReturnResult(name, _)
            | Self::DeleteHold(name) => name.to_string(),
            Self::InsertRecord(row) | Self::ReplaceRecord(_, row) => row.record.name.to_string(),
            Self::DeleteRecord(name, _) => name.to_string(),
        }
    }

    /// Whether records may come, change or go.
    pub(crate) fn is_of_records(&self) -> bool {
        match self {
            Self::InsertResult(_)
            | Self::ReplaceResult(..)
            | Self::InsertHold(_)
            | Self::DeleteHold(_) => false,
            Self::DeleteResult(..)
            | Self::ExpireResult(..)
            | Self::ArchiveResult(..)
            | Self::ReturnResult(..)
            | Self::InsertRecord(_)
            | Self::ReplaceRecord(..)
            | Self::DeleteRecord(..) => true,
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
            Self::InsertHold(hold) => &hold.result,
            Self::DeleteResult(name, _)
            | Self::ExpireResult(name, ..)
            | Self::ArchiveResult(name, ..)
            | Self::ReturnResult(name, _)
            | Self::DeleteHold(name) => name,
            Self::InsertRecord(row) | Self::ReplaceRecord(_, row) => row.record.name.result(),
            Self::DeleteRecord(name, _) => name.result(),
        }
    }

    /// The etag that must be there.
    pub(crate) fn expected(&self) -> Option<&Etag> {
        match self {
            Self::ReplaceResult(etag, _) | Self::ReplaceRecord(etag, _) => Some(etag),
            Self::DeleteResult(_, etag) | Self::DeleteRecord(_, etag) => etag.as_ref(),
            Self::ExpireResult(_, version, _) | Self::ArchiveResult(_, version, ..) => {
                Some(&version.etag)
            }
            Self::InsertResult(_)
            | Self::ReturnResult(..)
            | Self::InsertRecord(_)
            | Self::InsertHold(_)
            | Self::DeleteHold(_) => None,
        }
    }

    /// Why it changed no row, given the etag of the row of that name, if there is one.
    pub(crate) fn refusal(&self, found: Option<Etag>) -> Error {
        match (self, self.expected()) {
            (Self::InsertResult(_), _) => Error::Exists(self.name()),
            (Self::InsertHold(_) | Self::InsertRecord(_), _) if found.is_some() => {
                Error::Exists(self.name())
            }
            (Self::InsertRecord(row), _) => Error::Missing(row.record.name.result().to_string()),
            (_, Some(expected)) if found.is_some() => Error::Stale {
                name: self.name(),
                expected: expected.clone(),
            },
            _ => Error::Missing(self.name()),
        }
    }

    /// The result that is inserted.
    pub(crate) fn new_result(&self) -> Option<&RunResult> {
        match self {
            Self::InsertResult(value) => Some(value),
            _ => None,
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

/// The row of a record; its body is not compressed yet.
pub(crate) fn row(mut record: Record) -> RecordRow {
    let Some(data) = &mut record.data else {
        return RecordRow {
            number: None,
            record,
            body: None,
            extract: Arc::default(),
            keys: None,
            entries: IndexEntries::default(),
        };
    };
    let (value, extract) = data.take();
    let parent = record.name.result().parent().as_str();
    let keys = keys(parent, &data.data_type, &value, &extract);
    RecordRow {
        number: None,
        record,
        body: Some(Packed::loose(value)),
        extract,
        keys,
        entries: IndexEntries::default(),
    }
}

/// Which other bodies a body is like.
fn keys(parent: &str, data_type: &str, value: &[u8], extract: &Extract) -> Option<Keys> {
    // Other bytes may look like a dictionary of zstd's own form, which JSON never does.
    let plain = value.starts_with(b"{");
    plain.then(|| match &extract.family {
        Some(family) => Keys::of_run(parent, data_type, family),
        None => Keys::of_type(parent, data_type),
    })
}

/// A map of texts as the JSON that columns hold.
pub(crate) fn json(map: &BTreeMap<String, String>) -> String {
    written(&kept(map, text::stored))
}

/// Labels likewise, whose keys and values are words.
pub(crate) fn labels_json(labels: &BTreeMap<String, String>) -> String {
    written(&kept(labels, words::stored))
}

/// The labels of a record, with [`text::SAME`] among the keys where they are odd.
pub(crate) fn all_labels_json(columns: &ObjectColumns) -> Option<String> {
    if columns.labels.is_empty() {
        return None;
    }
    if !columns.has_odd_labels {
        return Some(labels_json(&columns.labels));
    }
    let mut kept = kept(&columns.labels, words::stored);
    kept.insert(text::SAME.into(), "".into());
    Some(written(&kept))
}

type Kept<'m> = BTreeMap<Cow<'m, str>, Cow<'m, str>>;

fn kept(map: &BTreeMap<String, String>, stored: impl Fn(&str) -> Cow<'_, str>) -> Kept<'_> {
    map.iter().map(|(k, v)| (stored(k), stored(v))).collect()
}

fn written(kept: &Kept<'_>) -> String {
    serde_json::to_string(kept).expect("a map of texts is JSON")
}
