//! Messages to types and back.

use std::collections::BTreeMap;

use hindsight_proto::{time, v1alpha2 as pb};
use jiff::Timestamp;

use crate::service::{Error, Group, SummaryValue};
use hindsight_filter::model::{Payload, Record, RecordName, RunResult, Summary};

/// A name or pattern, or a refusal that says which field it came from.
pub(super) fn name<T>(field: &str, text: &str) -> Result<T, Error>
where
    T: std::str::FromStr<Err = hindsight_filter::model::ParseNameError>,
{
    text.parse()
        .map_err(|error| Error::Invalid(format!("{field}: {error}")))
}

/// A message that must be there.
pub(super) fn required<T>(field: &str, message: Option<T>) -> Result<T, Error> {
    message.ok_or_else(|| Error::Invalid(format!("{field} is missing")))
}

/// Microseconds since 1970 of the first moment of the year 1. What was before has no JSON, and what
/// is after the year 9999 is no `Timestamp`.
const FIRST: i64 = -62_135_596_800_000_000;

pub(super) fn to_time(field: &str, time: prost_types::Timestamp) -> Result<Timestamp, Error> {
    let made = time::at(time.seconds, time.nanos);
    made.filter(|made| made.as_microsecond() >= FIRST)
        .ok_or_else(|| {
            Error::Invalid(format!(
                "{field} of {} s and {} ns since 1970 is not a time; want the years 1 to 9999, and 0 \
                 to 999999999 ns",
                time.seconds, time.nanos
            ))
        })
}

/// What another program stored from before the first moment becomes that. The last moment stands for
/// the end of the year 9999.
pub(super) fn from_time(time: Timestamp) -> prost_types::Timestamp {
    if time == time::last() {
        return prost_types::Timestamp {
            seconds: time::LAST_SECOND,
            nanos: 0,
        };
    }
    let micros = time.as_microsecond().max(FIRST);
    prost_types::Timestamp {
        seconds: micros.div_euclid(1_000_000),
        nanos: i32::try_from(micros.rem_euclid(1_000_000) * 1000)
            .expect("a fraction of a second is below 10^9 ns"),
    }
}

pub(super) fn to_summary(summary: pb::RecordSummary) -> Result<Summary, Error> {
    if summary.record.is_empty() {
        return Err(Error::Invalid(
            "summary.record is empty; name the record that is summed up".into(),
        ));
    }
    let time = |field, time: Option<_>| time.map(|time| to_time(field, time)).transpose();
    Ok(Summary {
        record: name::<RecordName>("summary.record", &summary.record)?,
        data_type: summary.r#type,
        start_time: time("summary.start_time", summary.start_time)?,
        end_time: time("summary.end_time", summary.end_time)?,
        status: summary.status,
        annotations: summary.annotations,
    })
}

fn from_summary(summary: Summary) -> pb::RecordSummary {
    pb::RecordSummary {
        record: summary.record.to_string(),
        r#type: summary.data_type,
        start_time: summary.start_time.map(from_time),
        end_time: summary.end_time.map(from_time),
        status: summary.status,
        annotations: summary.annotations,
    }
}

#[expect(deprecated, reason = "old clients read the old spellings")]
pub(super) fn from_result(result: RunResult) -> pb::Result {
    let (created, updated) = (from_time(result.create_time), from_time(result.update_time));
    pb::Result {
        name: result.name.to_string(),
        id: result.uid.clone(),
        uid: result.uid,
        created_time: Some(created),
        create_time: Some(created),
        updated_time: Some(updated),
        update_time: Some(updated),
        annotations: result.annotations,
        etag: result.etag.to_string(),
        summary: result.summary.map(from_summary),
    }
}

#[expect(deprecated, reason = "old clients read the old spellings")]
pub(super) fn from_record(record: Record) -> pb::Record {
    let (created, updated) = (from_time(record.create_time), from_time(record.update_time));
    pb::Record {
        name: record.name.to_string(),
        id: record.uid.clone(),
        uid: record.uid,
        created_time: Some(created),
        create_time: Some(created),
        updated_time: Some(updated),
        update_time: Some(updated),
        etag: record.etag.to_string(),
        data: record.data.map(|data| pb::Any {
            r#type: data.data_type,
            value: data.value,
        }),
    }
}

/// The payload of a new record. A message without type and value is no payload, which is what
/// clients that cannot leave a message out send.
pub(super) fn to_payload(data: Option<pb::Any>) -> Option<Payload> {
    data.filter(|data| !(data.r#type.is_empty() && data.value.is_empty()))
        .map(|data| Payload::new(data.r#type, data.value))
}

pub(super) fn from_groups(groups: Vec<Group>) -> pb::RecordListSummary {
    let value = |value: SummaryValue| prost_types::Value {
        kind: Some(match value {
            SummaryValue::Null => prost_types::value::Kind::NullValue(0),
            #[expect(
                clippy::cast_precision_loss,
                reason = "numbers of a Struct are doubles"
            )]
            SummaryValue::Number(number) => prost_types::value::Kind::NumberValue(number as f64),
            SummaryValue::Text(text) => prost_types::value::Kind::StringValue(text),
        }),
    };
    let summary = groups
        .into_iter()
        .map(|group| {
            let mut fields: BTreeMap<String, prost_types::Value> = group
                .measures
                .into_iter()
                .map(|(measure, amount)| (measure.name().to_owned(), value(amount)))
                .collect();
            if let Some(key) = group.group {
                fields.insert("group_value".to_owned(), value(key));
            }
            prost_types::Struct { fields }
        })
        .collect();
    pb::RecordListSummary { summary }
}
