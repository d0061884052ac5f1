//! What a call may say beside its message to select rows, for clients whose messages have a
//! filter and nothing else.

use hindsight_proto::metadata::{FIELD_SELECTOR, FILTER_LANGUAGE, LABEL_SELECTOR};
use tonic::metadata::MetadataMap;

use crate::service::{Error, Selector};

/// What a call selects rows by: the filter of its message, and what its metadata says.
pub(super) fn selector(metadata: &MetadataMap, filter: String) -> Result<Selector, Error> {
    Ok(Selector {
        filter,
        language: one(metadata, FILTER_LANGUAGE)?,
        labels: one(metadata, LABEL_SELECTOR)?,
        fields: one(metadata, FIELD_SELECTOR)?,
    })
}

/// The text under `key`. Twice is not guessed at.
pub(super) fn one(metadata: &MetadataMap, key: &str) -> Result<String, Error> {
    let mut values = metadata.get_all(key).iter();
    let Some(value) = values.next() else {
        return Ok(String::new());
    };
    if values.next().is_some() {
        return Err(Error::Invalid(format!("`{key}` is given twice")));
    }
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => Ok(text.to_owned()),
        Err(_not_text) => Err(Error::Invalid(format!("`{key}` is not UTF-8"))),
    }
}
