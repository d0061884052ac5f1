//! What is stored of a run: as YAML or JSON to read, and byte for byte as a file.

use askama::Template;
use axum::http::StatusCode;
use bytes::Bytes;
use hindsight_proto::MAX_MESSAGE_BYTES;
use serde_json::Value;

use super::frame::{Frame, Place};
use super::shell::quoted;
use super::{Page, Shown};
use crate::api::{Kind, Refusal};
use crate::ask::Ask;
use crate::fault::Fault;
use crate::html::{Name, end_cut};
use crate::time::When;

/// Largest payload that is shown in a page, and most characters of its text.
const SHOWN: usize = 1 << 20;
const TEXT: usize = 1 << 20;

/// A payload as it was stored.
#[derive(Debug)]
pub(crate) struct Payload {
    /// A name that is safe in a header.
    pub(crate) file: String,
    pub(crate) bytes: Bytes,
}

#[derive(Debug, Template)]
#[template(path = "raw.html")]
struct Raw {
    frame: Frame,
    name: Name,
    run: String,
    media: String,
    bytes: usize,
    stored: Option<When>,
    updated: Option<When>,
    uid: String,
    etag: String,
    is_json: bool,
    yaml: String,
    json: String,
    download: String,
    text: String,
    /// Why there is no text.
    absent: &'static str,
    commands: Vec<String>,
}

/// A payload that no page holds.
#[derive(Debug, Template)]
#[template(path = "large.html")]
struct Large {
    frame: Frame,
    name: Name,
    run: String,
    /// What says how large it is.
    message: String,
    commands: Vec<String>,
}

fn large(ask: &Ask, record: &str, message: String) -> Page {
    let id = record.rsplit('/').next().unwrap_or_default();
    let view = Large {
        frame: Frame::new(ask, format!("Payload of {id}"), Place::Elsewhere),
        name: Name::new(record, 90),
        run: ask.links.run(record),
        message: sized(&message).unwrap_or(message),
        commands: commands(record),
    };
    Page::with(StatusCode::PAYLOAD_TOO_LARGE, &view)
}

/// What a client says of a message that is too large, as it is shown.
fn sized(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("length too large: found ")?;
    let bytes: f64 = rest.split(' ').next()?.parse().ok()?;
    let [bytes, most] = [bytes, MAX_MESSAGE_BYTES as f64].map(|bytes| bytes / 1_048_576.0);
    Some(format!(
        "The payload has {bytes:.1} MiB, and pages take {most:.0} MiB."
    ))
}

pub(crate) async fn raw(ask: &Ask, record: &str) -> Shown {
    let stored = match ask.api.record(record).await {
        Ok(stored) => stored,
        Err(Refusal {
            kind: Kind::Large,
            message,
        }) => return Ok(large(ask, record, message)),
        Err(refusal) => return Err(refusal.into()),
    };
    let data = stored.data.unwrap_or_default();
    let is_json = ask.query.get("as") == "json";
    let object = match data.value.len() {
        0..=SHOWN => hindsight_run::json::parse(&data.value).ok(),
        _ => None,
    };
    let text = object.map(|object| written(folded(object), is_json));
    let absent = match (&text, data.value.len()) {
        (Some(_), _) => "",
        (None, 0..=SHOWN) => "The payload is not JSON. The download has its bytes.",
        (None, _) => "The payload is larger than 1 MiB. The download has all of it.",
    };
    let id = record.rsplit('/').next().unwrap_or_default();
    let view = Raw {
        frame: Frame::new(ask, format!("Payload of {id}"), Place::Elsewhere),
        name: Name::new(record, 90),
        run: ask.links.run(record),
        media: data.r#type,
        bytes: data.value.len(),
        stored: ask.clock.when_of(stored.create_time),
        updated: ask.clock.when_of(stored.update_time),
        uid: stored.uid,
        etag: stored.etag,
        is_json,
        yaml: ask.links.raw(record, "yaml"),
        json: ask.links.raw(record, "json"),
        download: ask.links.payload(record),
        text: end_cut(&text.unwrap_or_default(), TEXT),
        absent,
        commands: commands(record),
    };
    Ok(Page::of(&view))
}

/// The payload of a record, byte for byte.
pub(crate) async fn payload(ask: &Ask, record: &str) -> Result<Payload, Fault> {
    let stored = ask.api.record(record).await?;
    let id = record.rsplit('/').next().unwrap_or_default();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
    let id: String = id.chars().filter(is_plain).take(120).collect();
    Ok(Payload {
        file: format!("{id}.json"),
        bytes: stored.data.unwrap_or_default().value,
    })
}

/// An object with the managed fields of its metadata in one word: they are long, and written by
/// machines for machines.
fn folded(mut object: Value) -> Value {
    let fields = object.pointer_mut("/metadata/managedFields");
    if let Some(fields) = fields {
        let count = fields.as_array().map_or(0, Vec::len);
        *fields = Value::from(format!("{count} entries, in the download"));
    }
    object
}

fn written(object: Value, is_json: bool) -> String {
    let text = match is_json {
        true => serde_json::to_string_pretty(&object).ok(),
        false => serde_saphyr::to_string(&object).ok(),
    };
    text.unwrap_or_default()
}

fn commands(record: &str) -> Vec<String> {
    let name = quoted(record);
    vec![
        format!("hindsight get {name} -o yaml"),
        format!(
            "curl -H \"authorization: Bearer $TOKEN\" \"$SERVER/apis/results.tekton.dev/v1alpha2/parents/\"{name}"
        ),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn managed_fields_are_folded_and_texts_stay() {
        let object = json!({"metadata": {"name": "a", "managedFields": [1, 2]}, "x": "1"});
        let text = written(folded(object), false);
        assert!(
            text.contains("2 entries") && text.contains("name: a"),
            "{text}"
        );
        assert!(
            text.contains("x: \"1\"") || text.contains("x: '1'"),
            "{text}"
        );
    }

    #[test]
    fn a_payload_that_is_too_large_has_its_size_said() {
        let said = sized(
            "Error, decoded message length too large: found 34603164 bytes, the limit is: 33554432 bytes",
        );
        let text = "The payload has 33.0 MiB, and pages take 32 MiB.";
        assert_eq!(said.as_deref(), Some(text));
        assert_eq!(sized("too large: `a` has 5 bytes"), None);
    }

    #[test]
    fn a_name_reaches_no_shell() {
        let all = commands("a/results/$(x)'y/records/z").join("\n");
        assert!(all.contains(r"'a/results/$(x)'\''y/records/z'"), "{all}");
        assert!(
            commands("a/results/b/records/c")[0].ends_with("get a/results/b/records/c -o yaml")
        );
    }
}
