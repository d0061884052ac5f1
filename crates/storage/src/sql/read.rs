//! Reading rows: which columns are fetched, and what they say.

use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::Timestamp;

use super::{
    columns::{self, Holds},
    condition::RESULT_ID,
    dialect::Dialect,
    etag,
    row::SqlRow,
    statement::{Bind, Statement},
};
use crate::{
    codec::{
        body::Stored,
        dictionary::{Key, StoredDictionary},
        record::StoredRecord,
        short::Ids,
        text, uid,
    },
    seam::{Error, ListQuery, Listed},
};
use hindsight_filter::model::{
    Payload, Record, RecordName, Resource, ResultName, RunResult, Summary, Tier,
};
use hindsight_filter::order::{KeyValue, Order, Position};

/// Appends the columns that [`result`] or [`raw_record`] reads. The keys of the order
/// follow, and where bodies are asked for, how many bytes come before, and [`BODY`].
pub(super) fn fields(out: &mut Statement, dialect: Dialect, resource: Resource) {
    match resource {
        Resource::Results => {
            out.push("row_id, parent, id, uid, etag, create_us, update_us, annotations");
            out.push(dialect.json_as_text());
            out.push(", summary_record, summary_type, summary_start_us, summary_end_us");
            out.push(", summary_status, summary_annotations")
                .push(dialect.json_as_text());
        }
        Resource::Records => {
            record_fields(out);
            out.push(", body_size, body_sha256");
        }
    }
}

/// Appends the columns that [`record`] reads. The keys of the order follow.
pub(super) fn record_fields(out: &mut Statement) {
    out.push("row_id, parent, ").push(RESULT_ID);
    out.push(" AS result_id, id, uid, etag, create_us, update_us, data_type");
}

/// The statement that reads one result.
pub(crate) fn one_result(dialect: Dialect, name: &ResultName) -> Statement {
    let mut out = Statement::new("SELECT ");
    fields(&mut out, dialect, Resource::Results);
    out.push(" FROM results WHERE id = ").bind_id(name.id());
    out.push(" AND parent = ").bind(name.parent().as_str());
    out
}

/// The statement that reads one record with its body.
pub(crate) fn one_record(dialect: Dialect, name: &RecordName) -> Statement {
    let mut out = Statement::new("SELECT ");
    fields(&mut out, dialect, Resource::Records);
    out.push(", ").push(BODY);
    out.push(" FROM records LEFT JOIN bodies ON record_row = row_id");
    out.push(" WHERE id = ").bind_id(name.id()).push(" AND ");
    super::condition::in_result(&mut out, name);
    out
}

/// Where the keys of the order stand after the fields of a result.
const RESULT_KEYS: usize = 14;
/// Where the keys of the order stand after the fields of a record without its body.
pub(super) const RECORD_KEYS: usize = 9;
/// The same with what is said of the body.
const RAW_RECORD_KEYS: usize = 11;
/// What is read of a body.
pub(super) const BODY: &str = "codec, bytes, dictionary";

/// The result in a row of a list.
pub(crate) fn listed_result(row: &impl SqlRow, order: &Order) -> Result<Listed<RunResult>, Error> {
    Ok(Listed {
        item: result(row)?,
        position: position(row, RESULT_KEYS, order)?,
        tier: Tier::Hot,
    })
}

/// The record in a row of a list, whose body is still packed.
pub(crate) fn listed_record(
    row: &impl SqlRow,
    query: &ListQuery,
) -> Result<(StoredRecord, Position), Error> {
    // What comes before the page's bodies stands between.
    let body = RAW_RECORD_KEYS + query.order.keys().len() + 1;
    Ok((
        raw_record(row, query.bodies.then_some(body))?,
        position(row, RAW_RECORD_KEYS, &query.order)?,
    ))
}

/// A row's place, given where its keys begin.
pub(super) fn position(row: &impl SqlRow, from: usize, order: &Order) -> Result<Position, Error> {
    let keys = order.keys().iter().enumerate().map(|(number, key)| {
        Ok(match columns::holds(&key.column) {
            Holds::Text => row.text(from + number)?.map(KeyValue::Text),
            Holds::Int | Holds::Time => row.int(from + number)?.map(KeyValue::Int),
        })
    });
    Ok(Position {
        keys: keys.collect::<Result<_, Error>>()?,
        id: need(row.int(0)?, "row_id")?,
    })
}

/// The result in a row.
pub(crate) fn result(row: &impl SqlRow) -> Result<RunResult, Error> {
    let parent = need(row.text(1)?, "parent")?;
    let id = need(row.text(2)?, "id")?;
    let name: ResultName = format!("{parent}/results/{id}").parse().map_err(corrupt)?;
    let create_us = need(row.int(5)?, "create_us")?;
    let uid = uid::shown(
        Resource::Results,
        need(row.text(3)?, "uid")?,
        &id,
        create_us,
    )?;
    let update_us = need(row.int(6)?, "update_us")?;
    let summary = match text(row, 8)? {
        None => None,
        Some(record) => Some(Summary {
            record: record.parse().map_err(corrupt)?,
            data_type: need(text(row, 9)?, "summary_type")?,
            start_time: row.int(10)?.map(time).transpose()?,
            end_time: row.int(11)?.map(time).transpose()?,
            status: i32::try_from(need(row.int(12)?, "summary_status")?).map_err(corrupt)?,
            annotations: map(&need(row.text(13)?, "summary_annotations")?)?,
        }),
    };
    Ok(RunResult {
        name,
        etag: etag::shown(need(text(row, 4)?, "etag")?, &uid, update_us),
        uid,
        create_time: time(create_us)?,
        update_time: time(update_us)?,
        annotations: map(&need(row.text(7)?, "annotations")?)?,
        summary,
    })
}

/// The record in a row; `body` says where its body is, if it was asked for.
pub(crate) fn raw_record(row: &impl SqlRow, body: Option<usize>) -> Result<StoredRecord, Error> {
    let record = record(row)?;
    let size = row.int(9)?.unwrap_or(0);
    let stored = match body {
        Some(at) => row.int(at)?.zip(row.bytes(at + 1)?).zip(Some(at)),
        None => None,
    };
    if body.is_some() && size > 0 && stored.is_none() {
        let name = &record.name;
        return Err(Error::Corrupt(format!("the body of `{name}` is gone")));
    }
    let stored = match stored {
        None => None,
        Some(((codec, bytes), at)) => Some(Stored {
            codec,
            bytes,
            size,
            sha256: need(row.bytes(10)?, "body_sha256")?,
            dictionary: row.int(at + 2)?,
            ids: Ids::new(record.name.id(), record.name.result().id()),
        }),
    };
    Ok(StoredRecord::new(record, stored))
}

/// The record in a row, without its body.
pub(super) fn record(row: &impl SqlRow) -> Result<Record, Error> {
    let parent = need(row.text(1)?, "parent")?;
    let result = need(row.text(2)?, "result_id")?;
    let id = need(row.text(3)?, "id")?;
    let name = format!("{parent}/results/{result}/records/{id}");
    let create_us = need(row.int(6)?, "create_us")?;
    let uid = uid::shown(
        Resource::Records,
        need(row.text(4)?, "uid")?,
        &id,
        create_us,
    )?;
    let update_us = need(row.int(7)?, "update_us")?;
    Ok(Record {
        name: name.parse().map_err(corrupt)?,
        etag: etag::shown(need(text(row, 5)?, "etag")?, &uid, update_us),
        uid,
        create_time: time(create_us)?,
        update_time: time(update_us)?,
        data: text(row, 8)?.map(|data_type| Payload::new(data_type, Bytes::new())),
    })
}

/// A row of a page.
pub(crate) trait ListRow {
    /// Whether statements end with the row that brings the bytes to those of a query.
    const CUT_BY_STATEMENT: bool;

    /// How many bytes count: those of its body, if that was read, else of what was.
    fn bytes(&self) -> usize;

    /// Where the item stands in the order of the list, for the token of the next page.
    fn position(&self) -> &Position;
}

impl ListRow for Listed<RunResult> {
    const CUT_BY_STATEMENT: bool = false;

    fn bytes(&self) -> usize {
        self.item.weight()
    }

    fn position(&self) -> &Position {
        &self.position
    }
}

impl ListRow for (StoredRecord, Position) {
    const CUT_BY_STATEMENT: bool = true;

    fn bytes(&self) -> usize {
        self.0.size()
    }

    fn position(&self) -> &Position {
        &self.1
    }
}

/// The record of [`one_record`], with no place in any list.
pub(crate) fn alone(row: &impl SqlRow) -> Result<(StoredRecord, Position), Error> {
    let nowhere = Position {
        keys: Vec::new(),
        id: 0,
    };
    Ok((raw_record(row, Some(RAW_RECORD_KEYS))?, nowhere))
}

/// What is said when rows go on referring to dictionaries that are not there.
pub(crate) fn without_dictionary() -> Error {
    Error::Corrupt("a body refers to a dictionary that is gone; restore a backup".to_owned())
}

/// The statement that reads the current dictionaries of these keys, each after its key.
pub(crate) fn current_dictionaries(keys: &[Key]) -> Statement {
    let mut out = Statement::new("SELECT key, row_id, sha256, size, bytes FROM dictionary_keys ");
    out.push("JOIN dictionaries ON row_id = dictionary WHERE key IN (");
    for (at, key) in keys.iter().enumerate() {
        out.push(if at == 0 { "" } else { ", " });
        out.bind(Some(Bytes::copy_from_slice(key)));
    }
    out.push(")");
    out
}

/// The statement that reads the dictionaries in these rows.
pub(crate) fn dictionaries(dialect: Dialect, ids: &[i64]) -> Statement {
    let mut out =
        Statement::new("SELECT row_id, sha256, size, bytes FROM dictionaries WHERE row_id");
    dialect.one_of(&mut out, false, Bind::Ints(ids.to_vec()));
    out
}

/// The key of a row of [`current_dictionaries`], and its dictionary.
pub(crate) fn current_dictionary(row: &impl SqlRow) -> Result<(Key, StoredDictionary), Error> {
    let key = need(row.bytes(0)?, "key")?;
    let key = Key::try_from(key)
        .map_err(|_wrong_length| corrupt("a key of a dictionary is no SHA-256"))?;
    Ok((key, dictionary(row, 1)?))
}

/// The dictionary in a row, its columns beginning at `from`.
pub(crate) fn dictionary(row: &impl SqlRow, from: usize) -> Result<StoredDictionary, Error> {
    Ok(StoredDictionary {
        id: need(row.int(from)?, "row_id")?,
        sha256: need(row.bytes(from + 1)?, "sha256")?,
        size: need(row.int(from + 2)?, "size")?,
        bytes: need(row.bytes(from + 3)?, "bytes")?,
    })
}

/// The value of a column that is never null in a row that is whole.
pub(super) fn need<T>(value: Option<T>, column: &str) -> Result<T, Error> {
    value.ok_or_else(|| Error::Corrupt(format!("a row without `{column}`")))
}

/// The text of a column, as it was before it was stored.
pub(crate) fn text(row: &impl SqlRow, at: usize) -> Result<Option<String>, Error> {
    row.text(at)?.map(text::shown).transpose()
}

pub(super) fn time(microseconds: i64) -> Result<Timestamp, Error> {
    Timestamp::from_microsecond(microseconds).map_err(corrupt)
}

/// The labels that a column holds, and whether they are odd.
pub(super) fn labels(json: &str) -> Result<(BTreeMap<String, String>, bool), Error> {
    let mut kept: BTreeMap<String, String> = serde_json::from_str(json).map_err(corrupt)?;
    let is_odd = kept.remove(text::SAME).is_some();
    Ok((shown(kept)?, is_odd))
}

pub(super) fn map(json: &str) -> Result<BTreeMap<String, String>, Error> {
    shown(serde_json::from_str(json).map_err(corrupt)?)
}

fn shown(kept: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Error> {
    kept.into_iter()
        .map(|(key, value)| Ok((text::shown(key)?, text::shown(value)?)))
        .collect()
}

pub(crate) fn corrupt(why: impl std::fmt::Display) -> Error {
    Error::Corrupt(why.to_string())
}
