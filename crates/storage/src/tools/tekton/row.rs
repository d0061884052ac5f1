//! What rows of Tekton Results say, and where they cannot be taken at their word.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sqlx::{Row as _, postgres::PgRow};

use crate::{
    codec::digest::{cut, digest},
    tools::copy::{Outline, Said},
};
use hindsight_filter::model::{Etag, Payload, Record, RunResult, Summary};

/// A row's text; null and empty are the same to Tekton Results.
fn text(row: &PgRow, at: usize) -> Result<String, sqlx::Error> {
    Ok(row.try_get::<Option<String>, _>(at)?.unwrap_or_default())
}

fn time(row: &PgRow, at: usize) -> Result<Option<Timestamp>, sqlx::Error> {
    let micros: Option<i64> = row.try_get(at)?;
    let parts = |micros: i64| {
        let nanos = i32::try_from(micros.rem_euclid(1_000_000) * 1_000).ok()?;
        hindsight_proto::time::at(micros.div_euclid(1_000_000), nanos)
    };
    Ok(micros.and_then(parts))
}

/// Annotations: a missing map is JSON's `null` there.
fn map(json: &str) -> Result<BTreeMap<String, String>, serde_json::Error> {
    if json.is_empty() {
        return Ok(BTreeMap::new());
    }
    serde_json::from_str::<Option<_>>(json).map(Option::unwrap_or_default)
}

/// When a row was made and changed; one stands for the other, because both may be null.
fn times(
    of: &str,
    created: Option<Timestamp>,
    updated: Option<Timestamp>,
    notes: &mut Vec<Said>,
) -> Result<(Timestamp, Timestamp), Said> {
    let mut note = |missing: &str, other: &str| {
        notes.push(Said {
            of: of.to_owned(),
            why: format!("it has no `{missing}` that can be kept; `{other}` was taken"),
        });
    };
    match (created, updated) {
        (Some(created), Some(updated)) => Ok((created, updated)),
        (Some(created), None) => {
            note("updated_time", "created_time");
            Ok((created, created))
        }
        (None, Some(updated)) => {
            note("created_time", "updated_time");
            Ok((updated, updated))
        }
        (None, None) => Err(Said {
            of: of.to_owned(),
            why: "it has neither `created_time` nor `updated_time` that can be kept; give it one"
                .to_owned(),
        }),
    }
}

/// The etag of a row, or the one that it would have got.
fn etag(stored: String, uid: &str, updated: Timestamp) -> Etag {
    match stored.as_str() {
        "" => Etag::new(uid, updated),
        _ => Etag::from_text(stored),
    }
}

/// The result in a row, or why it cannot be taken.
pub(super) fn result(
    row: &PgRow,
    notes: &mut Vec<Said>,
) -> Result<Result<RunResult, Said>, sqlx::Error> {
    let of = format!("{}/results/{}", text(row, 0)?, text(row, 2)?);
    let refuse = |why: String| {
        Ok(Err(Said {
            of: of.clone(),
            why,
        }))
    };
    let name = match of.parse() {
        Ok(name) => name,
        Err(error) => return refuse(format!("{error}")),
    };
    let uid = text(row, 1)?;
    let (create_time, update_time) = match times(&of, time(row, 4)?, time(row, 5)?, notes) {
        Ok(times) => times,
        Err(said) => return Ok(Err(said)),
    };
    let annotations = match map(&text(row, 6)?) {
        Ok(annotations) => annotations,
        Err(error) => return refuse(format!("its annotations are no map of texts: {error}")),
    };
    let summary = match summary(row)? {
        Ok(summary) => summary,
        Err(why) => {
            let why = format!("its summary was left out: {why}");
            notes.push(Said {
                of: of.clone(),
                why,
            });
            None
        }
    };
    Ok(Ok(RunResult {
        name,
        etag: etag(text(row, 3)?, &uid, update_time),
        uid,
        create_time,
        update_time,
        annotations,
        summary,
    }))
}

/// The summary of a result, which is there if it names a record; or why it cannot be taken.
fn summary(row: &PgRow) -> Result<Result<Option<Summary>, String>, sqlx::Error> {
    let record = text(row, 7)?;
    if record.is_empty() {
        return Ok(Ok(None));
    }
    let record = match record.parse() {
        Ok(record) => record,
        Err(error) => return Ok(Err(format!("{error}"))),
    };
    let annotations = match map(&text(row, 12)?) {
        Ok(annotations) => annotations,
        Err(error) => return Ok(Err(format!("its annotations are no map of texts: {error}"))),
    };
    let status: Option<i64> = row.try_get(11)?;
    Ok(Ok(Some(Summary {
        record,
        data_type: text(row, 8)?,
        start_time: time(row, 9)?,
        end_time: time(row, 10)?,
        status: i32::try_from(status.unwrap_or(0)).unwrap_or(0),
        annotations,
    })))
}

/// Who the record in a row is, or why it cannot be taken.
pub(super) fn outline(
    row: &PgRow,
    place: i64,
    notes: &mut Vec<Said>,
) -> Result<Result<Outline, Said>, sqlx::Error> {
    let (parent, result) = (text(row, 0)?, text(row, 3)?);
    let of = format!("{parent}/results/{result}/records/{}", text(row, 4)?);
    let refuse = |why: String| {
        Ok(Err(Said {
            of: of.clone(),
            why,
        }))
    };
    let name = match of.parse() {
        Ok(name) => name,
        Err(error) => return refuse(format!("{error}")),
    };
    match row.try_get::<Option<String>, _>(11)? {
        None => return refuse("its result is not there".to_owned()),
        Some(named) if named != result => {
            return refuse(format!(
                "it is shown below `{result}` and belongs to the result `{named}`; put \
                 `result_name` right"
            ));
        }
        Some(_) => {}
    }
    let (create_time, update_time) = match times(&of, time(row, 6)?, time(row, 7)?, notes) {
        Ok(times) => times,
        Err(said) => return Ok(Err(said)),
    };
    let uid = text(row, 2)?;
    let data_type = text(row, 8)?;
    let sha256: Option<Vec<u8>> = row.try_get(9)?;
    // A type without data is a payload of no bytes; neither is no payload.
    let is_empty = sha256.is_none() && data_type.is_empty();
    Ok(Ok(Outline {
        place,
        name,
        result_uid: text(row, 1)?,
        etag: etag(text(row, 5)?, &uid, update_time),
        uid,
        create_time,
        update_time,
        sha256: match is_empty {
            true => None,
            false => Some(
                sha256
                    .map_or_else(|| digest(&[]), |sha256| cut(&sha256))
                    .to_vec(),
            ),
        },
        data_type: (!is_empty).then_some(data_type),
    }))
}

/// The record of an outline with its payload.
pub(super) fn record(outline: Outline, bytes: Option<Vec<u8>>) -> Record {
    Record {
        name: outline.name,
        uid: outline.uid,
        etag: outline.etag,
        create_time: outline.create_time,
        update_time: outline.update_time,
        data: outline
            .data_type
            .map(|data_type| Payload::new(data_type, bytes.unwrap_or_default().into())),
    }
}
