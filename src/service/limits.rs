//! The limits of requests, and the checks that hold them.

use std::num::NonZeroU32;

use hindsight_proto::run::Kind;
use serde_json::Value;

use super::Error;
use crate::{
    filter::outline::outline,
    model::{Payload, Summary},
};

/// Longest `data.type` and `summary.type`, in bytes.
pub const MAX_TYPE_BYTES: usize = 768;
/// Rows of a page when none are asked for.
const DEFAULT_PAGE: u32 = 50;
/// Most rows of a page.
const MAX_PAGE: u32 = 10_000;
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

pub(super) fn summary(summary: &Summary) -> Result<(), Error> {
    if summary.data_type.is_empty() {
        return Err(Error::Invalid(
            "summary.type is empty; name the type of summary.record".into(),
        ));
    }
    data_type("summary.type", &summary.data_type)?;
    annotations("summary.annotations", summary.annotations.iter())
}

/// Payloads of runs are JSON objects, because filters and dashboards read them; anything else
/// is kept as it is.
pub(super) fn payload(payload: &Payload) -> Result<(), Error> {
    data_type("data.type", &payload.data_type)?;
    if payload.value.is_empty() {
        return Err(Error::Invalid(format!(
            "data.value of type `{}` is empty; leave out `data` for a record without payload",
            payload.data_type
        )));
    }
    if Kind::of_type(&payload.data_type).is_none() {
        return Ok(());
    }
    match outline(&payload.value) {
        Ok(Value::Object(_)) => Ok(()),
        Ok(_) => Err(Error::Invalid(format!(
            "data.value of type `{}` is not a JSON object",
            payload.data_type
        ))),
        Err(error) => Err(Error::Invalid(format!(
            "data.value of type `{}` is not JSON: {error}",
            payload.data_type
        ))),
    }
}
