//! The limits of requests, and the checks that hold them.

use std::num::NonZeroU32;

use hindsight_run::json;
use hindsight_run::{Completion, Kind};
use jiff::tz::TimeZone;
use serde_json::Value;

use super::Error;
use hindsight_filter::model::{Parent, Payload, Summary};
use hindsight_filter::outline::outline;

/// Longest `data.type` and `summary.type`, in bytes.
pub const MAX_TYPE_BYTES: usize = 768;
/// Longest text of a request that is no filter and no payload, in bytes.
pub(super) const MAX_TEXT_BYTES: usize = 4_096;
/// Rows of a page when none are asked for.
const DEFAULT_PAGE: u32 = 50;
/// Most rows of a page.
const MAX_PAGE: u32 = 10_000;
/// Most labels of a payload. Each is a row of an index, which is written while other writers wait.
const MAX_LABELS: usize = 1_000;
/// Largest labels of a payload, keys and values together, in bytes. Lists keep those of each row in memory.
const MAX_LABELS_BYTES: usize = 256 << 10;
/// What a payload of more labels has at least, in bytes.
const LABELS_BYTES: usize = MAX_LABELS * r#""a":"","#.len();
/// Largest result annotations, or summary annotations, keys and values together, in bytes.
const MAX_ANNOTATIONS_BYTES: usize = 256 << 10;

/// The rows of a page: 0 means 50, 1 to 10,000 are taken.
///
/// # Errors
/// If it is outside.
pub fn page_size(asked: i32) -> Result<NonZeroU32, Error> {
    match u32::try_from(asked) {
        Ok(0) => Ok(NonZeroU32::new(DEFAULT_PAGE).unwrap_or(NonZeroU32::MIN)),
        Ok(size @ 1..=MAX_PAGE) => Ok(NonZeroU32::new(size).unwrap_or(NonZeroU32::MIN)),
        _ => Err(Error::Invalid(format!(
            "page_size {asked} is out of range: want 1 to {MAX_PAGE}, or 0 for {DEFAULT_PAGE}"
        ))),
    }
}

/// A text that names a few things, such as `order_by`, is not longer than [`MAX_TEXT_BYTES`].
pub(super) fn text(what: &str, text: &str) -> Result<(), Error> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(Error::Invalid(format!(
            "{what} has {} bytes, at most {MAX_TEXT_BYTES} are read",
            text.len()
        )));
    }
    Ok(())
}

/// The zone of this name; UTC if it is empty.
pub(super) fn zone(name: &str) -> Result<TimeZone, Error> {
    text("time_zone", name)?;
    match name.trim() {
        "" => Ok(TimeZone::UTC),
        name => TimeZone::get(name).map_err(|_unknown| {
            Error::Invalid(format!(
                "time_zone `{name}` is not known: want a name of the IANA database, such as \
                 `Europe/Berlin`"
            ))
        }),
    }
}

pub(super) fn annotations<'a>(
    what: &str,
    pairs: impl Iterator<Item = (&'a String, &'a String)>,
) -> Result<(), Error> {
    let bytes: usize = pairs.map(|(key, value)| key.len() + value.len()).sum();
    if bytes > MAX_ANNOTATIONS_BYTES {
        return Err(Error::Invalid(format!(
            "{what} has {bytes} bytes, at most {MAX_ANNOTATIONS_BYTES} are kept; put large data \
             into a record"
        )));
    }
    Ok(())
}

pub(super) fn data_type(what: &str, text: &str) -> Result<(), Error> {
    if text.len() > MAX_TYPE_BYTES {
        return Err(Error::Invalid(format!(
            "{what} has {} bytes, at most {MAX_TYPE_BYTES} are allowed",
            text.len()
        )));
    }
    Ok(())
}

/// A result is summed up by a record of its own parent: a caller that reads the one may read the other.
pub(super) fn summary(summary: &Summary, parent: &Parent) -> Result<(), Error> {
    if summary.record.result().parent() != parent {
        return Err(Error::Invalid(format!(
            "summary.record: `{}` is not below the parent of its result, `{parent}`; name a record \
             of that parent",
            summary.record
        )));
    }
    if summary.data_type.is_empty() {
        return Err(Error::Invalid(
            "summary.type is empty; name the type of summary.record".into(),
        ));
    }
    data_type("summary.type", &summary.data_type)?;
    annotations("summary.annotations", summary.annotations.iter())
}

/// Payloads of runs are JSON objects with the shape of a Kubernetes object, because filters and
/// dashboards read them; anything else is kept as it is. What is read of one is remembered in it.
pub(super) fn payload(payload: &Payload) -> Result<(), Error> {
    let data_type = payload.data_type.as_str();
    self::data_type("data.type", data_type)?;
    if payload.value.is_empty() {
        return Err(Error::Invalid(format!(
            "data.value of type `{data_type}` is empty; leave out `data` for a record without \
             payload"
        )));
    }
    let Some(kind) = Kind::of_type(data_type) else {
        if payload.value.len() < LABELS_BYTES {
            return Ok(());
        }
        let Ok(object) = outline(&payload.value) else {
            return Ok(());
        };
        labels(&object)?;
        payload.remember(&object);
        return Ok(());
    };
    let invalid = |why: String| Err(Error::Invalid(format!("data.value of type {why}")));
    let object = match outline(&payload.value) {
        Ok(object) => object,
        Err(error) if json::is_too_deep(&error) => {
            let most = json::MAX_DEPTH;
            return invalid(format!(
                "`{data_type}` is nested more than {most} deep; store it under another type, whose \
                 payloads are not read"
            ));
        }
        Err(error) => return invalid(format!("`{data_type}` is not JSON: {error}")),
    };
    labels(&object)?;
    let Some(parts) = object.as_object() else {
        return invalid(format!("`{data_type}` is not a JSON object"));
    };
    let is_declared = matches!(kind.completion, Completion::Declared(_));
    let odd = ["metadata", "spec", "status"].into_iter().find(|part| {
        let part = parts.get(*part);
        !part.is_none_or(|part| part.is_object() || part.is_null())
    });
    if let Some(part) = odd.filter(|_| !is_declared) {
        return invalid(format!(
            "`{data_type}` has a `{part}` that is not a JSON object"
        ));
    }
    payload.remember(&object);
    Ok(())
}

fn labels(object: &Value) -> Result<(), Error> {
    let labels = object.pointer("/metadata/labels");
    let Some(labels) = labels.and_then(Value::as_object) else {
        return Ok(());
    };
    let value = |value: &Value| value.as_str().map_or(0, str::len);
    let bytes = labels.iter().map(|(key, of)| key.len() + value(of));
    let (entries, bytes) = (labels.len(), bytes.sum::<usize>());
    if entries > MAX_LABELS || bytes > MAX_LABELS_BYTES {
        return Err(Error::Invalid(format!(
            "metadata.labels of the payload has {entries} entries with {bytes} bytes, at most {MAX_LABELS} with \
             {MAX_LABELS_BYTES} are indexed; put what is not selected by into annotations"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(data_type: &str, value: &str) -> Option<String> {
        let payload = payload(&Payload::new(
            data_type.to_owned(),
            value.as_bytes().to_vec().into(),
        ));
        payload.err().map(|error| error.to_string())
    }

    #[test]
    fn what_is_read_of_a_payload_is_read_once() {
        let is_remembered = |data_type: &str, value: String| {
            let mut given = Payload::new(data_type.to_owned(), value.into());
            payload(&given).unwrap();
            let mut same = given.clone();
            std::sync::Arc::ptr_eq(&given.take().1, &same.take().1)
        };
        let padded = |bytes| format!(r#"{{"metadata":{{"name":"{}"}}}}"#, "a".repeat(bytes));
        assert!(is_remembered("tekton.dev/v1.TaskRun", padded(1)));
        assert!(is_remembered("batch/v1.Job", padded(1)));
        // Another type is read for its labels alone, if it may have too many.
        assert!(is_remembered("v1.Pod", padded(LABELS_BYTES)));
        assert!(!is_remembered("v1.Pod", padded(1)));
    }

    #[test]
    fn a_run_has_the_shape_of_a_run() {
        for data_type in [
            "tekton.dev/v1.TaskRun",
            "tekton.dev/v1beta1.CustomRun",
            "pipeline.tekton.dev/TaskRun",
        ] {
            for (value, part) in [
                (r#"{"spec":5}"#, "spec"),
                (r#"{"spec":[{}]}"#, "spec"),
                (r#"{"metadata":"a"}"#, "metadata"),
                (r#"{"metadata":{},"status":[]}"#, "status"),
                (r#"{"status":true}"#, "status"),
            ] {
                let wanted = format!(
                    "data.value of type `{data_type}` has a `{part}` that is not a JSON object"
                );
                let told = refusal(data_type, value).unwrap();
                assert!(told.ends_with(&wanted), "{value}: {told}");
            }
            for value in ["{}", r#"{"metadata":{"a":1},"spec":{},"status":null}"#] {
                assert_eq!(refusal(data_type, value), None, "{value}");
            }
        }
        assert_eq!(refusal("example.com/v1.Report", r#"{"spec":5}"#), None);
    }

    #[test]
    fn a_payload_has_no_more_labels_than_an_index_takes() {
        let labelled = |count: usize| {
            let labels: Vec<_> = (0..count).map(|n| format!(r#""k{n}":"""#)).collect();
            format!(r#"{{"metadata":{{"labels":{{{}}}}}}}"#, labels.join(","))
        };
        for data_type in ["tekton.dev/v1.TaskRun", "example.com/v1.Report"] {
            assert_eq!(refusal(data_type, &labelled(1_000)), None, "{data_type}");
            let told = refusal(data_type, &labelled(1_001)).unwrap();
            assert!(
                told.contains("1001 entries with 3895 bytes, at most 1000 with 262144 are indexed"),
                "{told}"
            );
            let long = |bytes| {
                format!(
                    r#"{{"metadata":{{"labels":{{"k":"{}"}}}}}}"#,
                    "v".repeat(bytes)
                )
            };
            assert_eq!(
                refusal(data_type, &long(MAX_LABELS_BYTES - 1)),
                None,
                "{data_type}"
            );
            let told = refusal(data_type, &long(MAX_LABELS_BYTES)).unwrap();
            assert!(told.contains("1 entries with 262145 bytes"), "{told}");
        }
        assert_eq!(refusal("text/plain", &"x".repeat(LABELS_BYTES)), None);
    }

    #[test]
    fn a_run_that_is_nested_too_deep_is_told_from_what_is_no_json() {
        let nested = |depth| format!(r#"{{"spec":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        let told = refusal("tekton.dev/v1.TaskRun", &nested(127)).unwrap();
        assert!(told.contains("is nested more than 127 deep"), "{told}");
        assert!(
            refusal("tekton.dev/v1.TaskRun", "{")
                .unwrap()
                .contains("is not JSON")
        );
        assert_eq!(refusal("example.com/v1.Report", &nested(127)), None);
    }
}
