//! Texts of strangers as JSON values: a stream of YAML documents, or JSON. No key has a meaning of its own, and what
//! a text becomes is charged before it is kept: aliases make much of little text.

use std::{cell::Cell, fmt, io::Cursor};

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};

/// Deepest nesting of lists and mappings.
const MAX_DEPTH: usize = 50;

/// Most values of a document, those of aliases counted as often as they are named.
const MAX_NODES: usize = 250_000;

/// Most bytes of the strings of a document, counted likewise.
const MAX_BYTES: usize = 48 << 20;

/// How much a text may become.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Documents that are not empty.
    pub(crate) documents: usize,
    /// Values of all documents.
    pub(crate) nodes: usize,
    /// Bytes of the strings of all documents.
    pub(crate) bytes: usize,
}

impl Limits {
    /// Those of a package of a stranger.
    pub(crate) const PACKAGE: Self = Self {
        documents: 8,
        nodes: MAX_NODES,
        bytes: MAX_BYTES,
    };

    /// Those of a file of the operator, which may have any number of documents.
    pub(crate) const FILE: Self = Self {
        documents: usize::MAX,
        nodes: usize::MAX,
        bytes: usize::MAX,
    };
}

/// Longest part of an error of the parser that is told.
const LONGEST_ERROR: usize = 300;

/// The documents of a text that are not empty.
pub(crate) fn documents(text: &[u8], limits: Limits) -> Result<Vec<Value>, String> {
    let text = std::str::from_utf8(text)
        .map_err(|error| format!("not UTF-8 text, at byte {}", error.valid_up_to()))?;
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('{') {
        match serde_json::from_str(text) {
            Ok(Charged { value, .. }) => return Ok(vec![value]),
            Err(error) if error.is_data() => return Err(one_line(&error.to_string())),
            // Mappings of YAML begin so too, and documents may follow.
            Err(_) => {}
        }
    }
    let mut bytes = limits.bytes;
    let mut read = Vec::new();
    for document in serde_saphyr::read_with_options(&mut Cursor::new(text), options(limits)) {
        let document: Charged = document.map_err(|error| one_line(&error.to_string()))?;
        if read.len() == limits.documents {
            return Err(format!("more than {} documents", limits.documents));
        }
        bytes = bytes
            .checked_sub(document.bytes)
            .ok_or_else(|| format!("more than {} bytes, aliases expanded", limits.bytes))?;
        read.push(document.value);
    }
    Ok(read)
}

/// YAML as `kubectl` reads it, in which only `true` and `false` are booleans.
fn options(limits: Limits) -> serde_saphyr::Options {
    serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
        merge_keys: serde_saphyr::options::MergeKeyPolicy::Error,
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::Reject,
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_nodes: limits.nodes,
            max_events: limits.nodes.saturating_mul(3),
            max_total_scalar_bytes: limits.bytes,
            max_documents: limits.documents.saturating_mul(128),
            max_reader_input_bytes: None,
            max_aliases: 10_000,
            max_anchors: 10_000,
            max_recorded_anchor_events: MAX_NODES,
            max_recorded_anchor_bytes: 8 << 20,
        },
    }
}

/// An error of the parser in one line.
fn one_line(error: &str) -> String {
    let error = error.split_whitespace().collect::<Vec<_>>().join(" ");
    match error.char_indices().nth(LONGEST_ERROR) {
        Some((end, _)) => format!("{}…", error.get(..end).unwrap_or_default()),
        None => error,
    }
}

/// A document, and how many bytes its strings have.
struct Charged {
    value: Value,
    bytes: usize,
}

impl<'de> Deserialize<'de> for Charged {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let left = Budget {
            nodes: Cell::new(MAX_NODES),
            bytes: Cell::new(MAX_BYTES),
        };
        let reader = AsWritten {
            levels: MAX_DEPTH,
            left: &left,
        };
        let value = input.deserialize_any(reader)?;
        Ok(Self {
            value,
            bytes: MAX_BYTES - left.bytes.get(),
        })
    }
}

/// What is left of what a document may become.
struct Budget {
    nodes: Cell<usize>,
    bytes: Cell<usize>,
}

impl Budget {
    fn charge<E: serde::de::Error>(&self, bytes: usize) -> Result<(), E> {
        let nodes = self.nodes.get().checked_sub(1);
        let bytes = self.bytes.get().checked_sub(bytes);
        let (Some(nodes), Some(bytes)) = (nodes, bytes) else {
            return Err(E::custom(format_args!(
                "a document has more than {MAX_NODES} values or {MAX_BYTES} bytes, aliases expanded"
            )));
        };
        self.nodes.set(nodes);
        self.bytes.set(bytes);
        Ok(())
    }
}

/// Reads a value of so many levels.
#[derive(Clone, Copy)]
struct AsWritten<'a> {
    levels: usize,
    left: &'a Budget,
}

impl AsWritten<'_> {
    fn below<E: serde::de::Error>(self) -> Result<Self, E> {
        match self.levels.checked_sub(1) {
            Some(levels) => Ok(Self { levels, ..self }),
            None => Err(E::custom(format_args!("nested more than {MAX_DEPTH} deep"))),
        }
    }

    fn scalar<E: serde::de::Error>(self, value: impl Into<Value>) -> Result<Value, E> {
        self.left.charge(0)?;
        Ok(value.into())
    }
}

impl<'de> DeserializeSeed<'de> for AsWritten<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Value, D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AsWritten<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        self.scalar(Value::Null)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Value, E> {
        self.scalar(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, input: D) -> Result<Value, D::Error> {
        input.deserialize_any(self)
    }

    fn visit_bool<E: serde::de::Error>(self, truth: bool) -> Result<Value, E> {
        self.scalar(truth)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Value, E> {
        self.scalar(number)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Value, E> {
        self.scalar(number)
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Value, E> {
        self.scalar(number)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        self.left.charge(text.len())?;
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        self.left.charge(0)?;
        let below = self.below()?;
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(below)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        self.left.charge(0)?;
        let below = self.below()?;
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            self.left.charge(name.len())?;
            let value = members.next_value_seed(below)?;
            if object.contains_key(&name) {
                let name = super::check::quoted(&name);
                return Err(A::Error::custom(format_args!("{name} is there twice")));
            }
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}
