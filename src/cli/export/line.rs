//! A record as one line of an export.

use std::io::Write;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hindsight_proto::v1alpha2 as pb;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::cli::{failure::Failure, output};

/// The columns of records between commas.
pub(super) const COLUMNS: &str = "name,uid,type,create_time,update_time,encoding,data";

/// A record as `hindsight import` reads it: with its payload, byte for byte.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'r> {
    name: &'r str,
    uid: &'r str,
    create_time: Option<String>,
    update_time: Option<String>,
    data: Data<'r>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'r> {
    r#type: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Box<RawValue>>,
    /// Payloads that are no JSON, or more than one line of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_base64: Option<String>,
}

/// Writes a record as an object of JSON on one line.
pub(super) fn json(record: &pb::Record, out: &mut impl Write) -> Result<(), Failure> {
    let data = record.data.clone().unwrap_or_default();
    let value = one_line(&data.value);
    let line = Line {
        name: &record.name,
        uid: &record.uid,
        create_time: time(record.create_time),
        update_time: time(record.update_time),
        data: Data {
            r#type: &data.r#type,
            value_base64: value.is_none().then(|| STANDARD.encode(&data.value)),
            value,
        },
    };
    serde_json::to_writer(&mut *out, &line).map_err(std::io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

/// Writes a record as values between commas.
pub(super) fn csv(record: &pb::Record, out: &mut impl Write) -> Result<(), Failure> {
    let data = record.data.clone().unwrap_or_default();
    let (encoding, text) = match one_line(&data.value) {
        Some(value) => ("json", value.get().to_owned()),
        None => ("base64", STANDARD.encode(&data.value)),
    };
    let values = [
        record.name.clone(),
        record.uid.clone(),
        data.r#type,
        time(record.create_time).unwrap_or_default(),
        time(record.update_time).unwrap_or_default(),
        encoding.to_owned(),
        text,
    ];
    let values = values.map(|value| quoted(&value));
    writeln!(out, "{}", values.join(","))?;
    Ok(())
}

/// A payload that is one line of JSON and nothing around it.
fn one_line(payload: &[u8]) -> Option<Box<RawValue>> {
    let text = std::str::from_utf8(payload).ok()?;
    if text.contains(output::steers) {
        return None;
    }
    let value = RawValue::from_string(text.to_owned()).ok()?;
    (value.get().len() == payload.len()).then_some(value)
}

fn time(time: Option<prost_types::Timestamp>) -> Option<String> {
    time.and_then(output::time).map(|time| time.to_string())
}

/// A value as RFC 4180 quotes it.
fn quoted(value: &str) -> String {
    match value.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", value.replace('"', "\"\"")),
        false => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_stays_as_it_is_or_becomes_base64() {
        for (payload, kept) in [
            (&br#"{"b": 1.00, "a":9007199254740993,"a":2}"#[..], true),
            (b"[]", true),
            (b" {}", false),
            (b"{}\n", false),
            (b"{\n}", false),
            (b"{\"a\": \"\xe2\x80\xae\"}", false),
            (b"no JSON", false),
            (b"\xff", false),
            (b"", false),
        ] {
            let found = one_line(payload);
            assert_eq!(found.is_some(), kept, "{payload:?}");
            if let Some(value) = found {
                assert_eq!(value.get().as_bytes(), payload);
            }
        }
    }
}
