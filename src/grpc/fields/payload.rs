//! A part of a JSON text, taken without building the whole of it in memory. Numbers and strings
//! stay as they were written.

use std::{borrow::Cow, collections::HashMap};

use serde_json::value::RawValue;

use super::mask::Mask;

/// The name that stands for every element of an array.
const EACH: &str = "#";

/// Why a JSON text has no parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unwritten {
    NotJson,
    /// They take more bytes than there is room for: a path may lead to what another one leads to.
    TooLarge,
}

/// The named parts of a JSON text, compact, of at most `room` bytes.
///
/// What is not there is an explicit `null`; elements of arrays are named by their position,
/// which is then a key. Below `#` are the values of all elements that have one, and `#` at the end of
/// a path is the number of elements.
pub(super) fn part(json: &[u8], mask: &Mask, room: usize) -> Result<Vec<u8>, Unwritten> {
    let raw: &RawValue = serde_json::from_slice(json).map_err(|_other| Unwritten::NotJson)?;
    let mut out = Vec::new();
    write(&Found::One(raw.get()), mask, room, &mut out)?;
    Ok(out)
}

/// What a path leads to.
enum Found<'a> {
    Nothing,
    One(&'a str),
    Each(Vec<Found<'a>>),
}

fn write(found: &Found<'_>, mask: &Mask, room: usize, out: &mut Vec<u8>) -> Result<(), Unwritten> {
    if out.len() > room {
        return Err(Unwritten::TooLarge);
    }
    if mask.is_whole() {
        found.write(out);
        return Ok(());
    }
    let children = Children::of(found).ok_or(Unwritten::NotJson)?;
    for (position, (name, below)) in mask.below().enumerate() {
        out.push(if position == 0 { b'{' } else { b',' });
        serde_json::to_writer(&mut *out, name).map_err(|_other| Unwritten::NotJson)?;
        out.push(b':');
        match children.get(name) {
            Found::Each(items) if name == EACH && below.is_whole() => {
                out.extend_from_slice(items.len().to_string().as_bytes());
            }
            child => write(&child, below, room, out)?,
        }
    }
    out.push(b'}');
    match out.len() > room {
        true => Err(Unwritten::TooLarge),
        false => Ok(()),
    }
}

impl Found<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Nothing => out.extend_from_slice(b"null"),
            Self::One(raw) => compact(raw, out),
            Self::Each(items) => {
                out.push(b'[');
                let there = items.iter().filter(|item| !matches!(item, Self::Nothing));
                for (position, item) in there.enumerate() {
                    if position > 0 {
                        out.push(b',');
                    }
                    item.write(out);
                }
                out.push(b']');
            }
        }
    }
}

/// What is below what a path leads to.
enum Children<'a> {
    Keys(HashMap<Cow<'a, str>, &'a RawValue>),
    Items(Vec<&'a RawValue>),
    Each(Vec<Children<'a>>),
}

impl<'a> Children<'a> {
    fn of(found: &Found<'a>) -> Option<Self> {
        let raw = match found {
            Found::Nothing => return Some(Self::Keys(HashMap::new())),
            Found::One(raw) => *raw,
            Found::Each(items) => {
                return items
                    .iter()
                    .map(Self::of)
                    .collect::<Option<_>>()
                    .map(Self::Each);
            }
        };
        Some(match raw.trim_start().as_bytes().first()? {
            b'{' => {
                let entries: HashMap<Key<'_>, &RawValue> = serde_json::from_str(raw).ok()?;
                Self::Keys(entries.into_iter().map(|(Key(k), v)| (k, v)).collect())
            }
            b'[' => Self::Items(serde_json::from_str(raw).ok()?),
            _ => Self::Keys(HashMap::new()),
        })
    }

    fn get(&self, name: &str) -> Found<'a> {
        let one = |raw: &&'a RawValue| Found::One(raw.get());
        match self {
            Self::Keys(keys) => keys.get(name).map_or(Found::Nothing, one),
            Self::Items(items) if name == EACH => Found::Each(items.iter().map(one).collect()),
            Self::Items(items) => name
                .parse()
                .ok()
                .filter(|at: &usize| at.to_string() == name)
                .and_then(|at| items.get(at))
                .map_or(Found::Nothing, one),
            Self::Each(each) => Found::Each(each.iter().map(|one| one.get(name)).collect()),
        }
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
        let part = part(json.as_bytes(), &mask, 1 << 10);
        let part = part.map(|part| String::from_utf8(part).unwrap());
        assert_eq!(part.as_deref().ok(), expected, "{fields} of {json}");
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
    fn a_hash_stands_for_every_element_and_alone_for_their_number() {
        let json = r##"{"a":[{"r":"x"},{"q":2},{"r":"y","q":[{"z":3}]}],"o":{"#":1},"n":7}"##;
        gives(json, "a.#.r", Some(r##"{"a":{"#":{"r":["x","y"]}}}"##));
        gives(json, "a.#", Some(r##"{"a":{"#":3}}"##));
        gives(
            json,
            "a.#.q.#.z",
            Some(r##"{"a":{"#":{"q":{"#":{"z":[[3]]}}}}}"##),
        );
        gives(json, "o.#,n.#", Some(r##"{"n":{"#":null},"o":{"#":1}}"##));
        gives(
            json,
            "a.#.r,a.0.r",
            Some(r##"{"a":{"#":{"r":["x","y"]},"0":{"r":"x"}}}"##),
        );
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
        gives(
            r#"{"a":{"$serde_json::private::RawValue":"[1]"}}"#,
            "a.$serde_json::private::RawValue",
            Some(r#"{"a":{"$serde_json::private::RawValue":"[1]"}}"#),
        );
    }

    #[test]
    fn what_many_paths_lead_to_is_not_copied_for_each_without_end() {
        let text = format!(
            "{}\"{}\"{}",
            "[".repeat(9),
            "x".repeat(1 << 10),
            "]".repeat(9)
        );
        let paths = (0..256).map(|number: usize| {
            let name = |bit: usize| if number >> bit & 1 == 0 { "#." } else { "0." };
            (0..8).map(name).collect::<String>() + "0"
        });
        let mask = Mask::parse(&paths.collect::<Vec<_>>().join(","))
            .unwrap()
            .unwrap();
        let room = text.len() + 10_000;
        assert_eq!(part(text.as_bytes(), &mask, room), Err(Unwritten::TooLarge));
        let all = part(text.as_bytes(), &mask, 1 << 20).unwrap();
        assert!(all.len() > 256 << 10, "{}", all.len());
    }

    #[test]
    fn what_is_not_json_has_no_parts() {
        for text in ["", "{", "hunter2", "{\"a\":1}x", "{\"b\":{,},\"a\":1}"] {
            gives(text, "a", None);
        }
    }
}
