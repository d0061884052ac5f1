//! Members of JSON objects that may be missing or of another type, which is the default value then.

use std::collections::BTreeMap;

pub(crate) use hindsight_run::json::at;
use serde_json::{Map, Value};

/// The text at a pointer.
pub(crate) fn text(value: &Value, path: &str) -> String {
    let text = at(value, path).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

pub(crate) fn flag(value: &Value, path: &str) -> bool {
    at(value, path).and_then(Value::as_bool) == Some(true)
}

/// The number at a pointer, bounded by those of 32 bits.
pub(crate) fn number(value: &Value, path: &str) -> Option<i32> {
    let number = at(value, path)?.as_i64()?;
    Some(i32::try_from(number).unwrap_or(if number < 0 { i32::MIN } else { i32::MAX }))
}

pub(crate) fn items<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    let items = at(value, path).and_then(Value::as_array);
    items.map_or(&[], Vec::as_slice)
}

/// The texts of an object, by key. Other scalars are as they are written.
pub(crate) fn texts(value: &Value, path: &str) -> BTreeMap<String, String> {
    let fields = at(value, path).and_then(Value::as_object);
    let written = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    fields
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), written(value)))
        .collect()
}

/// An object without fields that are null or empty.
pub(crate) fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let says = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    };
    let fields = fields.into_iter().filter(|(_, value)| says(value));
    let fields: Map<_, _> = fields.map(|(key, value)| (key.to_owned(), value)).collect();
    Value::Object(fields)
}
