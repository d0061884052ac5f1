//! Reading what `kubectl get -o json|yaml` prints: single objects, Lists of them, and streams
//! of either, as the bytes that are stored.
//!
//! The bytes of an object from JSON are its own text without the white space that kubectl adds:
//! order of keys, spelling of numbers and escapes stay as they were. Objects from YAML have no
//! bytes of their own and are written as compact JSON. Records that `hindsight export` wrote are
//! read too; their payloads stay byte for byte.

mod minify;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hindsight_run::json;
use serde_json::{Value, value::RawValue};

pub use minify::minify;

/// How many Lists may be inside each other. kubectl prints one.
const MOST_LISTS: usize = 8;

/// One object of an input.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// The JSON value of the object.
    pub value: Value,
    /// The bytes to store: minified JSON, or exactly what was given.
    pub bytes: Vec<u8>,
}

impl Object {
    /// The object in this JSON, whose bytes stay as they are.
    ///
    /// # Errors
    /// If it is not JSON.
    pub fn exact(bytes: Vec<u8>) -> Result<Self, serde_json::Error> {
        let value = serde_json::from_slice(&bytes)?;
        Ok(Self { value, bytes })
    }
}

/// Why an input is not understood.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input holds no document.
    #[error("the input is empty; want what `kubectl get ... -o json` or `-o yaml` prints")]
    Empty,
    /// It is not text.
    #[error("the input is not UTF-8 text, at byte {0}")]
    NotText(usize),
    /// It is not JSON.
    #[error("the input is not JSON")]
    Json(#[source] serde_json::Error),
    /// It is not YAML.
    #[error("the input is not YAML")]
    Yaml(#[source] Box<serde_saphyr::Error>),
    /// Lists in Lists in Lists.
    #[error("document {at} has more than {MOST_LISTS} Lists inside each other; want one")]
    Nested {
        /// Which document of the input, from 1.
        at: usize,
    },
    /// It is something else than objects.
    #[error("document {at} is {what}; want a Kubernetes object or a List of them")]
    NotAnObject {
        /// Which document of the input, from 1.
        at: usize,
        /// What the document is instead, such as `a number`.
        what: &'static str,
    },
}

/// Reads all objects of an input. JSON is known by its first character; anything else is YAML.
///
/// # Errors
/// If the input is not made of objects and Lists. Nothing is returned then, so that half a
/// broken file is not taken for a whole one.
pub fn read(input: &[u8]) -> Result<Vec<Object>, Error> {
    let text = std::str::from_utf8(input).map_err(|error| Error::NotText(error.valid_up_to()))?;
    let text = text.trim_start_matches('\u{feff}').trim();
    let mut objects = Vec::new();
    match text.chars().next() {
        None => return Err(Error::Empty),
        Some('{' | '[') => {
            let documents = serde_json::Deserializer::from_str(text).into_iter::<Box<RawValue>>();
            for (index, document) in documents.enumerate() {
                from_json(&document.map_err(Error::Json)?, index + 1, 0, &mut objects)?;
            }
        }
        Some(_) => {
            let documents: Vec<json::Plain> =
                serde_saphyr::from_multiple_with_options(text, options())
                    .map_err(|error| Error::Yaml(Box::new(error)))?;
            for (index, json::Plain(document)) in documents.into_iter().enumerate() {
                from_yaml(document, index + 1, &mut objects)?;
            }
        }
    }
    Ok(objects)
}

/// YAML as kubectl reads it: only `true` and `false` are booleans, so that a run may be called
/// `y` or `no`; and a file may be as large as a cluster is, but its objects no deeper than JSON.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_depth: json::MAX_DEPTH,
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_documents: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
            max_total_comment_bytes: usize::MAX,
        },
    }
}

/// The parts of a document that tell a List from an object, and both from a record.
#[derive(serde::Deserialize)]
struct Envelope<'a> {
    #[serde(default)]
    kind: Option<String>,
    #[serde(default, borrow)]
    items: Option<&'a RawValue>,
    #[serde(default, borrow)]
    data: Option<&'a RawValue>,
}

/// The payload of a record that `hindsight export records` wrote.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload<'a> {
    r#type: String,
    #[serde(default, borrow)]
    value: Option<&'a RawValue>,
    #[serde(default)]
    value_base64: Option<String>,
}

/// The bytes of the payload of a record, as they were.
fn payload(data: &RawValue) -> Option<Vec<u8>> {
    let payload: Payload<'_> = serde_json::from_str(data.get()).ok()?;
    if payload.r#type.is_empty() {
        return None;
    }
    match (payload.value, payload.value_base64) {
        (Some(value), _) => Some(value.get().as_bytes().to_vec()),
        (None, base64) => STANDARD.decode(base64?).ok(),
    }
}

fn from_json(
    document: &RawValue,
    at: usize,
    lists: usize,
    objects: &mut Vec<Object>,
) -> Result<(), Error> {
    if lists > MOST_LISTS {
        return Err(Error::Nested { at });
    }
    let text = document.get();
    if text.starts_with('[') {
        return items_from_json(text, at, lists + 1, objects);
    }
    if !text.starts_with('{') {
        let value = json::parse(text.as_bytes()).map_err(Error::Json)?;
        return Err(Error::NotAnObject {
            at,
            what: kind_of(&value),
        });
    }
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(Error::Json)?;
    match envelope {
        Envelope {
            kind,
            items: Some(items),
            ..
        } if is_list(kind.as_deref()) => items_from_json(items.get(), at, lists + 1, objects),
        Envelope {
            kind: None,
            data: Some(data),
            ..
        } if let Some(bytes) = payload(data) => {
            let value = json::parse(&bytes).map_err(Error::Json)?;
            objects.push(Object { value, bytes });
            Ok(())
        }
        _ => {
            let value = json::parse(text.as_bytes()).map_err(Error::Json)?;
            objects.push(Object {
                value,
                bytes: minify(text).into_bytes(),
            });
            Ok(())
        }
    }
}

fn items_from_json(
    items: &str,
    at: usize,
    lists: usize,
    objects: &mut Vec<Object>,
) -> Result<(), Error> {
    let items: Vec<Box<RawValue>> = serde_json::from_str(items).map_err(Error::Json)?;
    items
        .iter()
        .try_for_each(|item| from_json(item, at, lists, objects))
}

fn from_yaml(document: Value, at: usize, objects: &mut Vec<Object>) -> Result<(), Error> {
    match document {
        // `---` at the end of a stream begins an empty document.
        Value::Null => Ok(()),
        Value::Array(items) => items
            .into_iter()
            .try_for_each(|i| from_yaml(i, at, objects)),
        Value::Object(mut map) => {
            let list = is_list(map.get("kind").and_then(Value::as_str));
            if list && map.get("items").is_some_and(Value::is_array) {
                let items = map.remove("items").unwrap_or_default();
                return from_yaml(items, at, objects);
            }
            let value = Value::Object(map);
            let bytes = serde_json::to_vec(&value).map_err(Error::Json)?;
            objects.push(Object { value, bytes });
            Ok(())
        }
        other => Err(Error::NotAnObject {
            at,
            what: kind_of(&other),
        }),
    }
}

/// `List`, or a typed one such as `TaskRunList`.
fn is_list(kind: Option<&str>) -> bool {
    kind.is_none_or(|kind| kind.ends_with("List"))
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
