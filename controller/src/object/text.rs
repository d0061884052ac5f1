//! Objects as text, of which a part is read or replaced.

use std::collections::BTreeMap;

use hindsight_run::json;
use serde::Serialize;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

/// The members of an object, each as it is written.
type Members = BTreeMap<String, Box<RawValue>>;

/// A member of an object.
pub(super) fn member(object: &RawValue, name: &str) -> Result<Box<RawValue>, String> {
    let found = members(object)?.remove(name);
    found.ok_or_else(|| format!("it has no {name}"))
}

/// An object with another value of one member. All others stay as they are, however deep they are nested.
pub(super) fn with(
    object: &RawValue,
    name: &str,
    member: &(impl Serialize + ?Sized),
) -> Result<Box<RawValue>, String> {
    let mut members = members(object)?;
    let member = to_raw_value(member).map_err(|error| error.to_string())?;
    members.insert(name.to_owned(), member);
    to_raw_value(&members).map_err(|error| error.to_string())
}

/// An object as far as it is read, and what is wrong with its spec if that is not all of it.
pub(super) fn outline(text: &RawValue) -> Result<(Value, Option<String>), String> {
    let bytes = text.get().as_bytes();
    match json::parse(bytes) {
        Ok(value) => Ok((value, None)),
        Err(error) if json::is_too_deep(&error) => {
            let value = json::outline(bytes).map_err(|error| error.to_string())?;
            let most = json::MAX_DEPTH;
            Ok((
                value,
                Some(format!("spec: the object is nested more than {most} deep")),
            ))
        }
        Err(error) => Err(error.to_string()),
    }
}

fn members(object: &RawValue) -> Result<Members, String> {
    serde_json::from_str(object.get()).map_err(|error| error.to_string())
}
