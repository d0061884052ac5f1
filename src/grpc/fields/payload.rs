//! A part of a JSON text, taken without building the whole of it in memory. Numbers and strings
//! stay as they were written.

use std::{borrow::Cow, collections::HashMap};

use serde_json::value::RawValue;

use super::mask::Mask;

/// The named parts of a JSON text, compact; nothing if it is not JSON.
///
/// What is not there is an explicit `null`; elements of arrays are named by their position,
/// which is then a key.
pub(super) fn part(json: &[u8], mask: &Mask) -> Option<Vec<u8>> {
    let raw: &RawValue = serde_json::from_slice(json).ok()?;
    let mut out = Vec::new();
    write(Some(raw.get()), mask, &mut out)?;
    Some(out)
}

fn write(raw: Option<&str>, mask: &Mask, out: &mut Vec<u8>) -> Option<()> {
    if mask.is_whole() {
        match raw {
            Some(raw) => compact(raw, out),
            None => out.extend_from_slice(b"null"),
        }
        return Some(());
    }
    let children = children(raw)?;
    for (position, (name, below)) in mask.below().enumerate() {
        out.push(if position == 0 { b'{' } else { b',' });
        serde_json::to_writer(&mut *out, name).ok()?;
        out.push(b':');
        write(children.get(name).map(|raw| raw.get()), below, out)?;
    }
    out.push(b'}');
    Some(())
}

fn children(raw: Option<&str>) -> Option<HashMap<Cow<'_, str>, &RawValue>> {
    let Some(raw) = raw else {
        return Some(HashMap::new());
    };
    match raw.trim_start().as_bytes().first()? {
        b'{' => {
            let entries: HashMap<Key<'_>, &RawValue> = serde_json::from_str(raw).ok()?;
            Some(entries.into_iter().map(|(Key(k), v)| (k, v)).collect())
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
            let named = |(at, raw): (usize, _)| (Cow::Owned(at.to_string()), raw);
            Some(items.into_iter().enumerate().map(named).collect())
        }
        _ => Some(HashMap::new()),
    }
}

#[derive(Debug, PartialEq, Eq, Hash, serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// Copies JSON without the white space between its tokens.
fn compact(raw: &str, out: &mut Vec<u8>) {
    let (mut inside, mut escaped) = (false, false);
    for byte in raw.bytes() {
        if inside {
            (inside, escaped) = match byte {
                _ if escaped => (true, false),
                b'\\' => (true, true),
                b'"' => (false, false),
                _ => (true, false),
            };
        } else if byte.is_ascii_whitespace() {
            continue;
        } else {
            inside = byte == b'"';
        }
        out.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn gives(json: &str, fields: &str, expected: Option<&str>) {
        let mask = Mask::parse(fields).unwrap().unwrap();
        let part = part(json.as_bytes(), &mask).map(|part| String::from_utf8(part).unwrap());
        assert_eq!(part.as_deref(), expected, "{fields} of {json}");
    }

    #[test]
    fn parts_keep_their_place_their_spelling_and_lose_their_white_space() {
        let json = r#" { "metadata" : {"name":"a \" b", "n" : 1.50 , "x": 12345678901234567890123},
            "list": [ {"r": 1}, {"r": [ 2 , 3 ]} ], "nö\u0020te": "é" } "#;
        gives(
            json,
            "metadata.name",
            Some(r#"{"metadata":{"name":"a \" b"}}"#),
        );
        gives(
            json,
            "metadata.n,metadata.x",
            Some(r#"{"metadata":{"n":1.50,"x":12345678901234567890123}}"#),
        );
        gives(json, "list.1.r", Some(r#"{"list":{"1":{"r":[2,3]}}}"#));
        gives(json, "list", Some(r#"{"list":[{"r":1},{"r":[2,3]}]}"#));
        gives(json, "nö te", Some(r#"{"nö te":"é"}"#));
    }

    #[test]
    fn what_is_missing_is_null_in_its_place() {
        let json = r#"{"metadata":{"name":"a"}}"#;
        gives(
            json,
            "metadata.uid,status.a.b",
            Some(r#"{"metadata":{"uid":null},"status":{"a":{"b":null}}}"#),
        );
        gives(
            json,
            "metadata.name.x",
            Some(r#"{"metadata":{"name":{"x":null}}}"#),
        );
        gives("7", "a", Some(r#"{"a":null}"#));
    }

    #[test]
    fn what_is_not_json_has_no_parts() {
        for text in ["", "{", "hunter2", "{\"a\":1}x", "{\"b\":{,},\"a\":1}"] {
            gives(text, "a", None);
        }
    }
}
