//! Reading rows: which columns are fetched, and what they say.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{dialect::Dialect, statement::Statement, text};
use crate::{
    model::{
        Etag, Payload, Position, Record, RecordName, Resource, ResultName, RunResult, Summary,
    },
    storage::{Error, Listed, body, row::BIG},
};

/// A row of any driver, read by position.
pub(in crate::storage) trait Cells {
    /// Text.
    fn text(&self, at: usize) -> Result<Option<String>, Error>;
    /// A number.
    fn int(&self, at: usize) -> Result<Option<i64>, Error>;
    /// Bytes.
    fn bytes(&self, at: usize) -> Result<Option<Vec<u8>>, Error>;
}

/// Appends the columns that [`result`] or [`RawRecord::read`] reads. The order key follows, and
/// after it `codec, bytes` where bodies are asked for.
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
            out.push("row_id, parent, result_id, id, uid, etag, create_us, update_us");
            out.push(", data_type, body_size");
        }
    }
}

/// The statement that reads one result.
pub(in crate::storage) fn one_result(dialect: Dialect, name: &ResultName) -> Statement {
    let mut out = Statement::new("SELECT ");
    fields(&mut out, dialect, Resource::Results);
    out.push(" FROM results WHERE id = ").bind(name.id());
    out.push(" AND parent = ").bind(name.parent().as_str());
    out
}

/// The statement that reads one record with its body.
pub(in crate::storage) fn one_record(dialect: Dialect, name: &RecordName) -> Statement {
    let mut out = Statement::new("SELECT ");
    fields(&mut out, dialect, Resource::Records);
    out.push(", NULL, codec, bytes FROM records LEFT JOIN bodies ON record_row = row_id");
    out.push(" WHERE id = ").bind(name.id()).push(" AND ");
    super::condition::in_result(&mut out, name);
    out
}

/// Where the order key stands after the fields of a result.
const RESULT_KEY: usize = 14;
/// Where the order key stands after the fields of a record.
const RECORD_KEY: usize = 10;

/// The result in a row of a list, and what it weighs.
pub(in crate::storage) fn listed_result(
    row: &impl Cells,
) -> Result<(Listed<RunResult>, usize), Error> {
    let item = result(row)?;
    let weight = item.weight();
    let position = position(row, RESULT_KEY)?;
    Ok((Listed { item, position }, weight))
}

/// The record in a row of a list, to be unpacked by [`unpack_all`], and what it will weigh.
pub(in crate::storage) fn listed_record(
    row: &impl Cells,
    bodies: bool,
) -> Result<((RawRecord, Position), usize), Error> {
    let raw = RawRecord::read(row, bodies)?;
    let weight = raw.weight();
    Ok(((raw, position(row, RECORD_KEY)?), weight))
}

/// A row's place, given where its order key stands.
fn position(row: &impl Cells, key: usize) -> Result<Position, Error> {
    Ok(Position {
        key: row.int(key)?,
        id: need(row.int(0)?, "row_id")?,
    })
}

/// The result in a row.
pub(in crate::storage) fn result(row: &impl Cells) -> Result<RunResult, Error> {
    let parent = need(row.text(1)?, "parent")?;
    let id = need(row.text(2)?, "id")?;
    let name: ResultName = format!("{parent}/results/{id}").parse().map_err(corrupt)?;
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
        uid: need(text(row, 3)?, "uid")?,
        etag: Etag::from_text(need(text(row, 4)?, "etag")?),
        create_time: time(need(row.int(5)?, "create_us")?)?,
        update_time: time(need(row.int(6)?, "update_us")?)?,
        annotations: map(&need(row.text(7)?, "annotations")?)?,
        summary,
    })
}

/// A record whose body is still packed.
#[derive(Debug)]
pub(in crate::storage) struct RawRecord {
    record: Record,
    size: i64,
    packed: Option<(i64, Vec<u8>)>,
}

impl RawRecord {
    /// The record in a row; `bodies` says whether the body was asked for.
    pub(in crate::storage) fn read(row: &impl Cells, bodies: bool) -> Result<Self, Error> {
        let parent = need(row.text(1)?, "parent")?;
        let result = need(row.text(2)?, "result_id")?;
        let id = need(row.text(3)?, "id")?;
        let name = format!("{parent}/results/{result}/records/{id}");
        let size = row.int(9)?.unwrap_or(0);
        let packed = match bodies {
            true => row.int(RECORD_KEY + 1)?.zip(row.bytes(RECORD_KEY + 2)?),
            false => None,
        };
        if bodies && size > 0 && packed.is_none() {
            return Err(Error::Corrupt(format!("the body of `{name}` is gone")));
        }
        let record = Record {
            name: name.parse().map_err(corrupt)?,
            uid: need(text(row, 4)?, "uid")?,
            etag: Etag::from_text(need(text(row, 5)?, "etag")?),
            create_time: time(need(row.int(6)?, "create_us")?)?,
            update_time: time(need(row.int(7)?, "update_us")?)?,
            data: text(row, 8)?.map(|data_type| Payload {
                data_type,
                value: bytes::Bytes::new(),
            }),
        };
        Ok(Self {
            record,
            size,
            packed,
        })
    }

    /// What the record will weigh once its body is unpacked.
    pub(in crate::storage) fn weight(&self) -> usize {
        self.record.weight() + self.body_size()
    }

    fn body_size(&self) -> usize {
        match self.packed {
            Some(_) => usize::try_from(self.size).unwrap_or(usize::MAX / 2),
            None => 0,
        }
    }

    fn unpack(mut self) -> Result<Record, Error> {
        if let (Some(data), Some((codec, bytes))) = (&mut self.record.data, self.packed) {
            data.value = body::unpack(codec, bytes, self.size).map_err(|e| match e {
                Error::Corrupt(why) => Error::Corrupt(format!("`{}`: {why}", self.record.name)),
                other => other,
            })?;
        }
        Ok(self.record)
    }
}

/// Unpacks the bodies of a page; big pages on a thread that may block.
pub(in crate::storage) async fn unpack_all(
    rows: Vec<(RawRecord, Position)>,
) -> Result<Vec<Listed<Record>>, Error> {
    let unpack = |rows: Vec<(RawRecord, Position)>| {
        rows.into_iter()
            .map(|(raw, position)| {
                Ok(Listed {
                    item: raw.unpack()?,
                    position,
                })
            })
            .collect()
    };
    let packed = |raw: &RawRecord| if raw.packed.is_some() { raw.size } else { 0 };
    let size: i64 = rows.iter().map(|(raw, _)| packed(raw)).sum();
    if usize::try_from(size).is_ok_and(|size| size <= BIG) {
        return unpack(rows);
    }
    tokio::task::spawn_blocking(move || unpack(rows))
        .await
        .map_err(|e| Error::Database {
            what: "unpacking bodies",
            source: e.into(),
        })?
}

/// Unpacks the body of one record likewise.
pub(in crate::storage) async fn unpack_one(raw: RawRecord) -> Result<Record, Error> {
    let alone = vec![(raw, Position { key: None, id: 0 })];
    let listed = unpack_all(alone)
        .await?
        .pop()
        .expect("one record is unpacked to one");
    Ok(listed.item)
}

/// The value of a column that is never null in a row that is whole.
fn need<T>(value: Option<T>, column: &str) -> Result<T, Error> {
    value.ok_or_else(|| Error::Corrupt(format!("a row without `{column}`")))
}

fn text(row: &impl Cells, at: usize) -> Result<Option<String>, Error> {
    row.text(at)?.map(text::shown).transpose()
}

fn time(microseconds: i64) -> Result<Timestamp, Error> {
    Timestamp::from_microsecond(microseconds).map_err(corrupt)
}

fn map(json: &str) -> Result<BTreeMap<String, String>, Error> {
    let kept: BTreeMap<String, String> = serde_json::from_str(json).map_err(corrupt)?;
    kept.into_iter()
        .map(|(key, value)| Ok((text::shown(key)?, text::shown(value)?)))
        .collect()
}

fn corrupt(why: impl std::fmt::Display) -> Error {
    Error::Corrupt(why.to_string())
}
