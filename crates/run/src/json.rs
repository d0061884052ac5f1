//! JSON of strangers as values, in which no key has a meaning of its own.
//!
//! `serde_json::Value` gives one a meaning: with the feature `raw_value`, an object whose first
//! key is `$serde_json::private::RawValue` becomes what the text below that key says, read by a
//! new parser whose limit of depth begins anew. Such texts inside each other overflow the stack,
//! and one payload reads differently here and where its bytes are looked at.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};

/// How keys begin that `serde_json` gives a meaning.
const PRIVATE: &str = "$serde_json::private::";

/// Deepest nesting of arrays and objects that [`parse`] reads.
pub const MAX_DEPTH: usize = 127;

/// A value as it is written, for places where a type is deserialized rather than bytes parsed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plain(pub Value);

/// The value that `bytes` are, its members in their order; of members of one name the last.
///
/// # Errors
/// If they are not JSON, or nested more than [`MAX_DEPTH`] deep.
pub fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    AsWritten::ALL.parse(bytes)
}

/// As [`parse`], with no more than the first `most` items of each list. What is left out may be nested deeper.
pub fn with_short_lists(bytes: &[u8], most: usize) -> Result<Value, serde_json::Error> {
    let part = AsWritten {
        items: most,
        ..AsWritten::ALL
    };
    part.parse(bytes)
}

/// The value at a path of keys and positions, each after a `/`. Unlike [`Value::pointer`] it knows no escapes, and copies no key.
#[must_use]
pub fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('/')
        .skip(1)
        .try_fold(value, |value, key| match value {
            Value::Object(members) => members.get(key),
            Value::Array(items) => items.get(key.parse::<usize>().ok()?),
            _ => None,
        })
}

/// As [`parse`], with null instead of what is nested more than [`MAX_DEPTH`] deep, which is no error.
pub fn outline(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let part = AsWritten {
        depth: MAX_DEPTH,
        ..AsWritten::ALL
    };
    part.parse(bytes)
}

/// Whether an error of [`parse`] is that the text is nested too deep, which is no error of JSON.
pub fn is_too_deep(error: &serde_json::Error) -> bool {
    // It has no kind of its own.
    error.is_syntax() && error.to_string().starts_with("recursion limit exceeded")
}

/// Whether a text of JSON may have a key that `serde_json` gives a meaning, however it is spelt;
/// for what a library is going to read into `serde_json::Value`.
pub fn names_private_keys(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    // Escapes of the characters that such a key is made of, which no encoder escapes.
    let mut escapes = text
        .match_indices("\\u00")
        .map(|(at, _)| text.as_bytes().get(at + 4));
    text.contains(PRIVATE) || escapes.any(|digit| matches!(digit, Some(b'2'..=b'7')))
}

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        AsWritten::ALL.deserialize(input).map(Self)
    }
}

/// A value of which so many levels, and items of each list, are read.
#[derive(Clone, Copy)]
struct AsWritten {
    depth: usize,
    items: usize,
}

impl AsWritten {
    const ALL: Self = Self {
        depth: usize::MAX,
        items: usize::MAX,
    };

    fn parse(self, bytes: &[u8]) -> Result<Value, serde_json::Error> {
        let mut input = serde_json::Deserializer::from_slice(bytes);
        let value = self.deserialize(&mut input)?;
        input.end()?;
        Ok(value)
    }

    /// The same of what is a level below.
    fn below(self) -> Self {
        Self {
            depth: self.depth - 1,
            ..self
        }
    }
}

impl<'de> DeserializeSeed<'de> for AsWritten {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Value, D::Error> {
        match self.depth {
            0 => IgnoredAny::deserialize(input).map(|_| Value::Null),
            _ => input.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for AsWritten {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, input: D) -> Result<Value, D::Error> {
        input.deserialize_any(self)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while items.len() < self.items {
            let Some(item) = list.next_element_seed(self.below())? else {
                return Ok(Value::Array(items));
            };
            items.push(item);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key()? {
            let value = members.next_value_seed(self.below())?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_the_library_gives_a_meaning_is_a_key() {
        let text = r#"{"$serde_json::private::RawValue":"[1]","b":{"$serde_json::private::Number":"7"},"a":1}"#;
        let value = parse(text.as_bytes()).unwrap();
        assert_eq!(value.to_string(), text);
        for (text, names) in [
            (text, true),
            (r#"{"\u0024serde_json::private::RawValue":"1"}"#, true),
            (r#"{"$s\u0065rde_json::private::RawValue":"1"}"#, true),
            (
                r#"{"alg":"RS256","kid":"caf\u00e9\n","x5c":["a\/b"]}"#,
                false,
            ),
        ] {
            assert_eq!(names_private_keys(text.as_bytes()), names, "{text}");
        }
    }

    #[test]
    fn texts_of_json_inside_each_other_are_texts() {
        let mut text = "0".to_owned();
        for _ in 0..150 {
            let quoted = text.replace('\\', "\\u005c").replace('"', "\\u0022");
            text = format!(
                r#"{}{{"$serde_json::private::RawValue":"{quoted}"}}{}"#,
                "[".repeat(120),
                "]".repeat(120)
            );
        }
        let mut value = &parse(text.as_bytes()).unwrap();
        for _ in 0..120 {
            value = &value[0];
        }
        assert!(value["$serde_json::private::RawValue"].is_string());
    }

    #[test]
    fn an_outline_has_null_for_what_is_nested_too_deep() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let text = |depth: usize| format!(r#"{{"a":1,"b":{},"c":[{{"d":2}}]}}"#, nested(depth));
        let whole = text(MAX_DEPTH - 1);
        assert_eq!(outline(whole.as_bytes()).unwrap().to_string(), whole);
        assert!(is_too_deep(&parse(text(MAX_DEPTH).as_bytes()).unwrap_err()));
        let cut = text(MAX_DEPTH - 1).replace("[]", "[null]");
        for depth in [MAX_DEPTH, 100_000] {
            let read = outline(text(depth).as_bytes()).unwrap();
            assert_eq!(read.to_string(), cut, "{depth}");
        }
        assert!(outline(b"[1] 2").is_err() && outline(b"[").is_err());
    }

    #[test]
    fn short_lists_have_their_first_items() {
        let read = |most| with_short_lists(br#"{"a":[1,[2,3],{"b":[4,5]}],"c":[]}"#, most);
        let text = |most| read(most).unwrap().to_string();
        assert_eq!(text(0), r#"{"a":[],"c":[]}"#);
        assert_eq!(text(2), r#"{"a":[1,[2,3]],"c":[]}"#);
        assert_eq!(text(3), r#"{"a":[1,[2,3],{"b":[4,5]}],"c":[]}"#);
        assert!(with_short_lists(b"[1,2", 1).is_err() && with_short_lists(b"[1] 2", 1).is_err());
    }

    #[test]
    fn other_json_is_what_the_library_reads() {
        for text in [
            "null",
            "-1",
            "18446744073709551615",
            "1.5e3",
            "123456789012345678901234567890",
            r#""a\u00e9\ud83d\ude00""#,
            r#"{"b":[],"a":{"c":null},"b":true}"#,
            r"[1,",
            r#"{"a":1e999}"#,
            r#""\ud800""#,
            "1 2",
            "",
        ] {
            let library: Option<Value> = serde_json::from_str(text).ok();
            let library = library.map(|value| value.to_string());
            let ours = parse(text.as_bytes()).ok().map(|value| value.to_string());
            assert_eq!(ours, library, "{text}");
        }
        assert!(parse(b"\"\xff\"").is_err());
    }

    #[test]
    fn nesting_is_read_to_its_limit() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(nested(MAX_DEPTH).as_bytes()).is_ok());
        let error = parse(nested(MAX_DEPTH + 1).as_bytes()).unwrap_err();
        assert!(is_too_deep(&error), "{error}");
        assert!(!is_too_deep(&parse(b"[").unwrap_err()));
    }
}
