//! Messages as JSON, in the spelling of a dialect: fields by number, keys of maps in order,
//! zero values left out, whole numbers without a fraction. It is written while the encoded message is
//! read: nothing is built of it in between. Messages are what prost encodes: of a field that is no list, and of
//! a choice between fields, there is one value.

use std::{borrow::Cow, collections::BTreeMap, fmt::Display};

use base64::{display::Base64Display, engine::general_purpose::STANDARD};
use hindsight_proto::time::LAST_SECOND;
use prost_reflect::{DynamicMessage, EnumDescriptor, Kind, SerializeOptions, prost::Message as _};
use serde::ser::{Error as _, Serialize, SerializeMap as _, SerializeSeq as _, Serializer};

use super::{
    dialect::{Dialect, Enums, Names},
    shape::{self, Field, Form, Only, Repeats, Shape, Shapes},
    wire::{self, Malformed, Value},
};

/// The largest whole number that a double still tells apart from its neighbours.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// The first second of the year 1, which is the first of Protobuf, since 1970.
const FIRST_SECOND: i64 = -62_135_596_800;

/// An encoded message that serializes as JSON.
struct Json<'a> {
    bytes: &'a [u8],
    shape: &'a Shape,
    spelling: Spelling<'a>,
}

/// How messages are spelled.
#[derive(Clone, Copy)]
struct Spelling<'a> {
    shapes: &'a Shapes,
    dialect: &'a Dialect,
}

impl Shapes {
    /// The JSON of an encoded message of the type that was added as `at`.
    pub(super) fn json(
        &self,
        at: usize,
        bytes: &[u8],
        dialect: &Dialect,
    ) -> Result<Vec<u8>, serde_json::Error> {
        let json = Json {
            bytes,
            shape: self.shape(at),
            spelling: Spelling {
                shapes: self,
                dialect,
            },
        };
        let mut text = Vec::with_capacity(2 * bytes.len());
        serde_json::to_writer(&mut text, &json)?;
        Ok(text)
    }
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.shape.form {
            Form::Object => self.object(serializer),
            Form::Only(without) => {
                let all = wire::fields(self.bytes).map_err(S::Error::custom)?;
                let field = all
                    .first()
                    .and_then(|(number, _)| self.shape.field(*number));
                match (field, without) {
                    (Some(field), _) => self.spelling.values(field, &all).serialize(serializer),
                    (None, Only::Map) => serializer.serialize_map(Some(0))?.end(),
                    (None, Only::List) => serializer.serialize_seq(Some(0))?.end(),
                    (None, Only::Null) => serializer.serialize_none(),
                }
            }
            Form::Time => time(self.bytes, serializer),
            Form::Known(descriptor) => {
                let message = DynamicMessage::decode(descriptor.clone(), self.bytes);
                let options = SerializeOptions::new()
                    .use_proto_field_name(self.spelling.dialect.names == Names::Snake)
                    .use_enum_numbers(self.spelling.dialect.enums == Enums::Number);
                let message = message.map_err(S::Error::custom)?;
                message.serialize_with_options(serializer, &options)
            }
        }
    }
}

impl Json<'_> {
    fn object<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Spelling { dialect, .. } = self.spelling;
        let all = wire::fields(self.bytes).map_err(S::Error::custom)?;
        let mut map = serializer.serialize_map(None)?;
        let mut entry = |field: &Field, all: &[(u32, Value<'_>)]| {
            let values = self.spelling.values(field, all);
            match dialect.names {
                Names::Snake => map.serialize_entry(&field.name, &values),
                Names::Camel => map.serialize_entry(&field.json_name, &values),
            }
        };
        let is_set = |field: &Field, all: &[(u32, Value<'_>)]| {
            let is_scalar = field.repeats == Repeats::Once && !field.has_presence;
            all.last()
                .is_some_and(|(_, last)| !is_scalar || !last.is_zero())
        };
        for same in all.chunk_by(|one, next| one.0 == next.0) {
            let field = self.shape.field(same[0].0);
            if let Some(field) = field.filter(|field| is_set(field, same)) {
                entry(field, same)?;
            }
        }
        for field in self.shape.named(dialect.kept) {
            let mut same = all.chunk_by(|one, next| one.0 == next.0);
            if !same.any(|same| same[0].0 == field.number && is_set(field, same)) {
                entry(field, &[])?;
            }
        }
        map.end()
    }
}

impl<'a> Spelling<'a> {
    /// All that a message has of a field.
    fn values<'b>(self, field: &'b Field, all: &'b [(u32, Value<'b>)]) -> Values<'b>
    where
        'a: 'b,
    {
        Values {
            field,
            all,
            spelling: self,
        }
    }
}

/// The values of a field, of which there may be none.
struct Values<'a> {
    field: &'a Field,
    all: &'a [(u32, Value<'a>)],
    spelling: Spelling<'a>,
}

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.field.repeats {
            Repeats::Once => {
                let last = self.all.last();
                let value = last.map_or_else(|| zero(&self.field.kind), |(_, value)| *value);
                self.one(value).serialize(serializer)
            }
            Repeats::List => self.list(serializer),
            Repeats::Map => self.map(serializer),
        }
    }
}

impl<'a> Values<'a> {
    fn one<'b>(&'b self, value: Value<'b>) -> Item<'b>
    where
        'a: 'b,
    {
        Item {
            value,
            field: self.field,
            spelling: self.spelling,
        }
    }

    fn list<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let packed = shape::packed(&self.field.kind);
        let mut list = serializer.serialize_seq(None)?;
        for (_, value) in self.all {
            match (packed, *value) {
                (Some(kind), Value::Bytes(mut rest)) => {
                    while !rest.is_empty() {
                        let value = Value::take(kind, &mut rest).map_err(S::Error::custom)?;
                        list.serialize_element(&self.one(value))?;
                    }
                }
                (_, value) => list.serialize_element(&self.one(value))?,
            }
        }
        list.end()
    }

    fn map<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entry = self.spelling.shapes.below(self.field);
        let (Some(key), Some(value)) = (entry.field(1), entry.field(2)) else {
            return Err(S::Error::custom("an entry of a map has no key or no value"));
        };
        let mut entries = BTreeMap::new();
        for (_, bytes) in self.all {
            let all = bytes.bytes().and_then(wire::fields);
            let all = all.map_err(S::Error::custom)?;
            let split = all.partition_point(|(number, _)| *number < value.number);
            let name = all[..split].last().map(|(_, name)| *name);
            let name = name.unwrap_or_else(|| zero(&key.kind));
            let name = text_of(&key.kind, name).map_err(S::Error::custom)?;
            entries.insert(name, all[split..].to_vec());
        }
        let mut map = serializer.serialize_map(Some(entries.len()))?;
        for (name, all) in &entries {
            map.serialize_entry(name, &self.spelling.values(value, all))?;
        }
        map.end()
    }
}

/// One value of a field.
struct Item<'a> {
    value: Value<'a>,
    field: &'a Field,
    spelling: Spelling<'a>,
}

impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (value, wrong) = (self.value, S::Error::custom::<Malformed>);
        match &self.field.kind {
            Kind::Bool => serializer.serialize_bool(value.varint().map_err(wrong)? != 0),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
                let number = signed(&self.field.kind, value).map_err(wrong)?;
                serializer.serialize_i64(number)
            }
            Kind::Uint32 | Kind::Fixed32 => {
                let number = unsigned(&self.field.kind, value).map_err(wrong)?;
                serializer.serialize_u64(number)
            }
            // JavaScript would round them.
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
                serializer.collect_str(&signed(&self.field.kind, value).map_err(wrong)?)
            }
            Kind::Uint64 | Kind::Fixed64 => {
                serializer.collect_str(&unsigned(&self.field.kind, value).map_err(wrong)?)
            }
            Kind::Float => {
                let value = f32::from_bits(value.fixed32().map_err(wrong)?);
                number(f64::from(value), &value, serializer)
            }
            Kind::Double => {
                let value = f64::from_bits(value.fixed64().map_err(wrong)?);
                number(value, &value, serializer)
            }
            Kind::String => serializer.serialize_str(value.text().map_err(wrong)?),
            Kind::Bytes => {
                let bytes = value.bytes().map_err(wrong)?;
                serializer.collect_str(&Base64Display::new(bytes, &STANDARD))
            }
            Kind::Enum(of) => {
                let number = low(value.varint().map_err(wrong)?);
                self.enumerated(of, number, serializer)
            }
            Kind::Message(_) => Json {
                bytes: value.bytes().map_err(wrong)?,
                shape: self.spelling.shapes.below(self.field),
                spelling: self.spelling,
            }
            .serialize(serializer),
        }
    }
}

impl Item<'_> {
    fn enumerated<S: Serializer>(
        &self,
        of: &EnumDescriptor,
        number: i32,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        if of.full_name() == "google.protobuf.NullValue" {
            return serializer.serialize_none();
        }
        match (self.spelling.dialect.enums, of.get_value(number)) {
            (Enums::Name, Some(value)) => serializer.serialize_str(value.name()),
            _ => serializer.serialize_i32(number),
        }
    }
}

/// What a field of this kind has when a message does not say.
fn zero(kind: &Kind) -> Value<'static> {
    match kind {
        Kind::Message(_) | Kind::String | Kind::Bytes => Value::Bytes(&[]),
        Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => Value::Fixed32(0),
        Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => Value::Fixed64(0),
        _ => Value::Varint(0),
    }
}

/// A whole number that may be negative.
fn signed(kind: &Kind, value: Value<'_>) -> Result<i64, Malformed> {
    Ok(match kind {
        Kind::Int32 => i64::from(low(value.varint()?)),
        Kind::Int64 => value.varint()?.cast_signed(),
        Kind::Sint32 | Kind::Sint64 => {
            let value = value.varint()?;
            (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
        }
        Kind::Sfixed32 => i64::from(value.fixed32()?.cast_signed()),
        Kind::Sfixed64 => value.fixed64()?.cast_signed(),
        _ => return Err(Malformed::Type),
    })
}

fn unsigned(kind: &Kind, value: Value<'_>) -> Result<u64, Malformed> {
    match kind {
        Kind::Uint32 | Kind::Uint64 => value.varint(),
        Kind::Fixed32 => value.fixed32().map(u64::from),
        Kind::Fixed64 => value.fixed64(),
        _ => Err(Malformed::Type),
    }
}

/// A number of 32 bits, of which negative ones are encoded with 64.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the encoding repeats the sign in the upper half"
)]
fn low(value: u64) -> i32 {
    value as i32
}

/// A key of a map.
fn text_of<'a>(kind: &Kind, value: Value<'a>) -> Result<Cow<'a, str>, Malformed> {
    Ok(match kind {
        Kind::String => value.text()?.into(),
        Kind::Bool => (value.varint()? != 0).to_string().into(),
        Kind::Uint32 | Kind::Uint64 | Kind::Fixed32 | Kind::Fixed64 => {
            unsigned(kind, value)?.to_string().into()
        }
        _ => signed(kind, value)?.to_string().into(),
    })
}

/// `2026-03-01T10:00:00Z`, with three, six or nine digits after the seconds if these are not zero.
fn time<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    let time = prost_types::Timestamp::decode(bytes).map_err(S::Error::custom)?;
    if !(FIRST_SECOND..=LAST_SECOND).contains(&time.seconds) {
        return Err(S::Error::custom("a time is not of the years 1 to 9999"));
    }
    serializer.serialize_str(&time.to_string())
}

/// `5`, `2.5`, `"NaN"`. `written` is the number in its own precision.
fn number<S: Serializer>(
    value: f64,
    written: &(impl Display + Serialize),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if value.is_nan() {
        serializer.serialize_str("NaN")
    } else if value.is_infinite() {
        serializer.serialize_str(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the value is whole and in range"
        )]
        serializer.serialize_i64(value as i64)
    } else {
        written.serialize(serializer)
    }
}

#[cfg(test)]
mod tests;
