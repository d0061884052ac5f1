//! From path, query and body to the request message.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, Method, header};
use percent_encoding::percent_decode_str;
use prost_reflect::{
    DeserializeOptions, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value,
};
use serde::de::IgnoredAny;
use serde_json::{Deserializer, json, value::RawValue};

use super::{
    answer::Refusal,
    dialect::{Conflict, Dialect, Unknown},
    mask,
    routes::{Body, Route, resolve},
    template::Capture,
    unique,
};

/// The decoded segments of a path. It is decoded before it is divided, so that an escaped `/`
/// divides too; no name contains one.
pub(super) fn segments(path: &str) -> Result<Vec<String>, Refusal> {
    let path = percent_decode_str(path)
        .decode_utf8()
        .map_err(|_not_text| Refusal::invalid("the path is not UTF-8"))?;
    Ok(path.split('/').skip(1).map(str::to_owned).collect())
}

/// The pairs of a query, in their order.
pub(super) fn query(text: &str) -> Result<Vec<(String, String)>, Refusal> {
    let decode = |part: &str| {
        let spaced = part.replace('+', " ");
        match percent_decode_str(&spaced).decode_utf8() {
            Ok(text) => Ok(text.into_owned()),
            Err(_not_text) => Err(Refusal::invalid("the query is not UTF-8")),
        }
    };
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(key)?, decode(value)?))
        })
        .collect()
}

/// Whether the body of a request is in a form that is read.
pub(super) fn media(headers: &HeaderMap, only_json: bool) -> Result<(), Refusal> {
    let said = |name| {
        headers
            .get(name)
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
    };
    if let Some(coding) = said(header::CONTENT_ENCODING)
        && !coding.eq_ignore_ascii_case("identity")
    {
        return Err(Refusal::unsupported_media(format!(
            "bodies in `content-encoding: {coding}` are not taken; send the JSON as it is"
        )));
    }
    let kind = said(header::CONTENT_TYPE).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if only_json && !essence.eq_ignore_ascii_case("application/json") {
        return Err(Refusal::unsupported_media(format!(
            "the content type is `{kind}`; while auth is off, send `content-type: application/json`"
        )));
    }
    Ok(())
}

/// Makes the message that a request for `route` stands for.
pub(super) fn message(
    route: &Route,
    captures: Vec<Capture>,
    query: Vec<(String, String)>,
    body: &[u8],
) -> Result<DynamicMessage, Refusal> {
    let input = route.method.input();
    let mut message = match &route.body {
        Body::Message => parse(&input, body, &route.dialect)?,
        Body::Ignored | Body::Field(_) => DynamicMessage::new(input.clone()),
    };
    if let Body::Field(field) = &route.body {
        let Kind::Message(of) = field.kind() else {
            return Err(Refusal::internal("the body of a route is a message"));
        };
        message.set_field(field, Value::Message(parse(&of, body, &route.dialect)?));
    }
    // Read even when a mask is given, since it also checks that every field is known.
    let derived = match (&route.mask, &route.body) {
        (Some(_), Body::Field(field)) => derived(field, body)?,
        _ => Vec::new(),
    };
    if route.body != Body::Message {
        fill(&mut message, route, &captures, query)?;
    }
    for (field, value) in captures {
        let path = resolve(&input, &field).unwrap_or_default();
        let said = get(&message, &path).unwrap_or_default();
        let differs = !said.is_empty() && said != value;
        if differs && route.dialect.conflict == Conflict::Refused {
            return Err(Refusal::invalid(format!(
                "{field}: the body says `{said}`, the path `{value}`; the path is enough"
            )));
        }
        set(&mut message, &path, Value::String(value));
    }
    if let Some(field) = &route.mask
        && !message.has_field(field)
        && !derived.is_empty()
    {
        message.set_field(field, field_mask(field, derived)?);
    }
    Ok(message)
}

/// The metadata that says which maps the body of an update names as empty.
pub(super) fn emptied(route: &Route, body: &[u8]) -> Vec<&'static str> {
    if route.verb != Method::PATCH || route.dialect.emptied.is_empty() {
        return Vec::new();
    }
    let Ok(fields) = serde_json::from_slice::<BTreeMap<String, &RawValue>>(body) else {
        return Vec::new();
    };
    let is_empty = |name: &str| {
        let map = fields.get(name).map(|map| map.get());
        let map = map.map(serde_json::from_str::<BTreeMap<String, IgnoredAny>>);
        map.is_some_and(|map| map.is_ok_and(|map| map.is_empty()))
    };
    let emptied = route.dialect.emptied.iter();
    let emptied = emptied.filter(|(field, _)| is_empty(field));
    emptied.map(|(_, metadata)| *metadata).collect()
}

/// A message from JSON; nothing at all is an empty message.
fn parse(
    message: &MessageDescriptor,
    json: &[u8],
    dialect: &Dialect,
) -> Result<DynamicMessage, Refusal> {
    if json.iter().all(u8::is_ascii_whitespace) {
        return Ok(DynamicMessage::new(message.clone()));
    }
    let wrong = |error: serde_json::Error| {
        let name = message.name();
        Refusal::invalid(format!("the body is not a {name} in JSON: {error}"))
    };
    unique::check(json).map_err(wrong)?;
    let options =
        DeserializeOptions::new().deny_unknown_fields(dialect.unknown == Unknown::Refused);
    let mut input = Deserializer::from_slice(json);
    let parsed = DynamicMessage::deserialize_with_options(message.clone(), &mut input, &options);
    parsed
        .and_then(|parsed| input.end().map(|()| parsed))
        .map_err(wrong)
}

fn derived(field: &FieldDescriptor, body: &[u8]) -> Result<Vec<String>, Refusal> {
    let Kind::Message(of) = field.kind() else {
        return Ok(Vec::new());
    };
    let text =
        std::str::from_utf8(body).map_err(|_not_text| Refusal::invalid("the body is not UTF-8"))?;
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    mask::leaves(text, &of).map_err(Refusal::invalid)
}

/// Fills in what the query says. Names of no field are passed over, and so is what the path or
/// the body says already, unless the query contradicts the path about which resource is meant.
fn fill(
    message: &mut DynamicMessage,
    route: &Route,
    captures: &[Capture],
    query: Vec<(String, String)>,
) -> Result<(), Refusal> {
    let mut given: BTreeMap<String, (Vec<FieldDescriptor>, Vec<String>)> = BTreeMap::new();
    for (key, value) in query {
        let Some(path) = resolve(&route.method.input(), &key) else {
            continue;
        };
        let names: Vec<_> = path.iter().map(FieldDescriptor::name).collect();
        let name = names.join(".");
        if captures.iter().any(|(field, _)| *field == name)
            || matches!(&route.body, Body::Field(body) if path.first() == Some(body))
        {
            continue;
        }
        if let Some((_, of_path)) = captures
            .iter()
            .find(|(field, _)| field.rsplit_once('.').is_some_and(|(_, last)| last == name))
        {
            if !value.is_empty() && value != *of_path {
                return Err(Refusal::invalid(format!(
                    "{name}: the query says `{value}`, the path `{of_path}`; the path is enough"
                )));
            }
            continue;
        }
        given
            .entry(name)
            .or_insert_with(|| (path, Vec::new()))
            .1
            .push(value);
    }
    for (name, (path, values)) in given {
        let Some(last) = path.last() else { continue };
        if let Some(value) = scalar(last, &name, values)? {
            set(message, &path, value);
        }
    }
    Ok(())
}

/// The value of a query parameter; an empty one of a message says nothing.
fn scalar(
    field: &FieldDescriptor,
    name: &str,
    mut values: Vec<String>,
) -> Result<Option<Value>, Refusal> {
    let wrong = |why: String| Refusal::invalid(format!("parsing field \"{name}\": {why}"));
    values.dedup();
    if !field.is_list() && values.len() > 1 {
        return Err(Refusal::invalid(format!(
            "too many values for field \"{name}\": {}",
            values.join(", ")
        )));
    }
    if let Kind::Message(of) = field.kind() {
        if of.full_name() == "google.protobuf.FieldMask" {
            let paths = values.iter().flat_map(|text| text.split(','));
            let paths: Vec<_> = paths.map(str::trim).filter(|p| !p.is_empty()).collect();
            let paths = paths.into_iter().map(str::to_owned).collect::<Vec<_>>();
            return (!paths.is_empty())
                .then(|| field_mask(field, paths))
                .transpose();
        }
        values.retain(|value| !value.is_empty());
        if values.is_empty() {
            return Ok(None);
        }
    }
    let mut spelled = values.into_iter().map(|text| match field.kind() {
        Kind::Bool => boolean(&text).map_or(json!(text), |value| json!(value)),
        Kind::Enum(_) => text
            .parse()
            .map_or(json!(text), |number: i32| json!(number)),
        _ => json!(text),
    });
    let spelled = if field.is_list() {
        spelled.collect()
    } else {
        spelled.next_back().unwrap_or_default()
    };
    let holder = DynamicMessage::deserialize(field.parent_message().clone(), {
        json!({ field.name(): spelled })
    });
    let holder = holder.map_err(|error| wrong(error.to_string()))?;
    Ok(Some(holder.get_field(field).into_owned()))
}

/// A boolean in any form that gateways in Go take; Python's `True` is one.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

fn field_mask(field: &FieldDescriptor, paths: Vec<String>) -> Result<Value, Refusal> {
    let Kind::Message(of) = field.kind() else {
        return Err(Refusal::internal("a field mask is a message"));
    };
    let mut mask = DynamicMessage::new(of);
    let paths = paths.into_iter().map(Value::String).collect();
    mask.try_set_field_by_name("paths", Value::List(paths))
        .map_err(|error| Refusal::internal(format!("a field mask has paths: {error}")))?;
    Ok(Value::Message(mask))
}

/// The text that `path` leads to.
fn get(message: &DynamicMessage, path: &[FieldDescriptor]) -> Option<String> {
    let (first, rest) = path.split_first()?;
    match &*message.get_field(first) {
        Value::Message(below) => get(below, rest),
        value => value.as_str().map(str::to_owned),
    }
}

/// Sets the field that `path` leads to, making the messages on the way.
fn set(message: &mut DynamicMessage, path: &[FieldDescriptor], value: Value) {
    match path {
        [] => {}
        [last] => message.set_field(last, value),
        [first, rest @ ..] => {
            if let Value::Message(below) = message.get_field_mut(first) {
                set(below, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
