//! Messages as JSON, in the spelling of a dialect: fields by number, keys of maps in order,
//! zero values left out, whole numbers without a fraction.

use std::fmt::Display;

use base64::{display::Base64Display, engine::general_purpose::STANDARD};
use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MapKey, ReflectMessage as _, SerializeOptions, Value,
};
use serde::ser::{Serialize, SerializeMap as _, SerializeSeq as _, Serializer};

use super::dialect::{Dialect, Enums, Names};

/// The largest whole number that a double still tells apart from its neighbours.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A message that serializes as JSON.
#[derive(Debug, Clone, Copy)]
pub(super) struct Json<'a> {
    pub(super) message: &'a DynamicMessage,
    pub(super) dialect: &'a Dialect,
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let descriptor = self.message.descriptor();
        match descriptor.full_name() {
            "google.protobuf.Struct" => match self.only() {
                Some(fields) => fields.serialize(serializer),
                None => serializer.serialize_map(Some(0))?.end(),
            },
            "google.protobuf.ListValue" => match self.only() {
                Some(values) => values.serialize(serializer),
                None => serializer.serialize_seq(Some(0))?.end(),
            },
            "google.protobuf.Value" => match self.only() {
                Some(value) => value.serialize(serializer),
                None => serializer.serialize_none(),
            },
            name if name.starts_with("google.protobuf.") => {
                let options = SerializeOptions::new()
                    .use_proto_field_name(self.dialect.names == Names::Snake)
                    .use_enum_numbers(self.dialect.enums == Enums::Number);
                self.message.serialize_with_options(serializer, &options)
            }
            _ => {
                let mut map = serializer.serialize_map(None)?;
                let mut entry = |field: &FieldDescriptor, value: &Value| {
                    let kind = field.kind();
                    let item = self.item(value, &kind);
                    match self.dialect.names {
                        Names::Snake => map.serialize_entry(field.name(), &item),
                        Names::Camel => map.serialize_entry(field.json_name(), &item),
                    }
                };
                for (field, value) in self.message.fields() {
                    entry(&field, value)?;
                }
                let kept = |field: &FieldDescriptor| self.dialect.kept.contains(&field.name());
                for field in descriptor.fields().filter(kept) {
                    if !self.message.has_field(&field) {
                        entry(&field, &self.message.get_field(&field))?;
                    }
                }
                map.end()
            }
        }
    }
}

impl<'a> Json<'a> {
    /// The only field that is set.
    fn only(&self) -> Option<Owned<'a>> {
        let (field, value) = self.message.fields().next()?;
        Some(Owned {
            value,
            kind: field.kind(),
            dialect: self.dialect,
        })
    }

    fn item<'b>(&self, value: &'b Value, kind: &'b Kind) -> Item<'b>
    where
        'a: 'b,
    {
        Item {
            value,
            kind,
            dialect: self.dialect,
        }
    }
}

/// A value with its own kind.
struct Owned<'a> {
    value: &'a Value,
    kind: Kind,
    dialect: &'a Dialect,
}

impl Serialize for Owned<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let item = Item {
            value: self.value,
            kind: &self.kind,
            dialect: self.dialect,
        };
        item.serialize(serializer)
    }
}

#[derive(Clone, Copy)]
struct Item<'a> {
    value: &'a Value,
    kind: &'a Kind,
    dialect: &'a Dialect,
}

impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::I32(value) => serializer.serialize_i32(*value),
            Value::U32(value) => serializer.serialize_u32(*value),
            // JavaScript would round them.
            Value::I64(value) => serializer.collect_str(value),
            Value::U64(value) => serializer.collect_str(value),
            Value::F32(value) => number(f64::from(*value), value, serializer),
            Value::F64(value) => number(*value, value, serializer),
            Value::String(value) => serializer.serialize_str(value),
            Value::Bytes(value) => serializer.collect_str(&Base64Display::new(value, &STANDARD)),
            Value::EnumNumber(number) => self.enumerated(*number, serializer),
            Value::Message(message) => Json {
                message,
                dialect: self.dialect,
            }
            .serialize(serializer),
            Value::List(values) => {
                let mut list = serializer.serialize_seq(Some(values.len()))?;
                for value in values {
                    list.serialize_element(&Self { value, ..*self })?;
                }
                list.end()
            }
            Value::Map(entries) => {
                let kind = match self.kind {
                    Kind::Message(entry) => entry.map_entry_value_field().kind(),
                    other => other.clone(),
                };
                let mut entries: Vec<_> = entries.iter().map(|(k, v)| (key(k), v)).collect();
                entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    let item = Item {
                        value,
                        kind: &kind,
                        dialect: self.dialect,
                    };
                    map.serialize_entry(&key, &item)?;
                }
                map.end()
            }
        }
    }
}

impl Item<'_> {
    fn enumerated<S: Serializer>(&self, number: i32, serializer: S) -> Result<S::Ok, S::Error> {
        let Kind::Enum(of) = self.kind else {
            return serializer.serialize_i32(number);
        };
        if of.full_name() == "google.protobuf.NullValue" {
            return serializer.serialize_none();
        }
        match (self.dialect.enums, of.get_value(number)) {
            (Enums::Name, Some(value)) => serializer.serialize_str(value.name()),
            _ => serializer.serialize_i32(number),
        }
    }
}

fn key(key: &MapKey) -> String {
    match key {
        MapKey::String(text) => text.clone(),
        MapKey::Bool(value) => value.to_string(),
        MapKey::I32(value) => value.to_string(),
        MapKey::I64(value) => value.to_string(),
        MapKey::U32(value) => value.to_string(),
        MapKey::U64(value) => value.to_string(),
    }
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
mod tests {
    use hindsight_proto::{FILE_DESCRIPTOR_SET, v1alpha2 as pb};
    use prost_reflect::DescriptorPool;

    use super::*;
    use crate::dialect::TEKTON;

    fn json(message: &DynamicMessage, dialect: &Dialect) -> String {
        serde_json::to_string(&Json { message, dialect }).unwrap()
    }

    fn dynamic(name: &str, message: &impl prost_reflect::prost::Message) -> DynamicMessage {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
        let mut dynamic = DynamicMessage::new(pool.get_message_by_name(name).unwrap());
        dynamic.transcode_from(message).unwrap();
        dynamic
    }

    fn time(nanos: i32) -> Option<prost_types::Timestamp> {
        Some(prost_types::Timestamp {
            seconds: 1_772_359_200,
            nanos,
        })
    }

    #[test]
    fn a_message_is_spelled_as_its_dialect_says() {
        let summary = pb::RecordSummary {
            record: "ci/results/a/records/b".into(),
            start_time: time(0),
            end_time: time(123_456_000),
            status: 3,
            annotations: [("b", "2"), ("a", "")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            ..Default::default()
        };
        let message = dynamic("tekton.results.v1alpha2.RecordSummary", &summary);
        assert_eq!(
            json(&message, &TEKTON),
            r#"{"record":"ci/results/a/records/b","start_time":"2026-03-01T10:00:00Z","end_time":"2026-03-01T10:00:00.123456Z","status":"TIMEOUT","annotations":{"a":"","b":"2"}}"#
        );
        let other = Dialect {
            names: Names::Camel,
            enums: Enums::Number,
            ..TEKTON
        };
        assert_eq!(
            json(&message, &other),
            r#"{"record":"ci/results/a/records/b","startTime":"2026-03-01T10:00:00Z","endTime":"2026-03-01T10:00:00.123456Z","status":3,"annotations":{"a":"","b":"2"}}"#
        );
        let unknown = pb::RecordSummary {
            status: 77,
            ..Default::default()
        };
        let message = dynamic("tekton.results.v1alpha2.RecordSummary", &unknown);
        assert_eq!(json(&message, &TEKTON), r#"{"status":77}"#);
    }

    #[test]
    fn times_have_no_more_digits_than_they_need() {
        for (nanos, digits) in [
            (0, ""),
            (5_000_000, ".005"),
            (5_000, ".000005"),
            (5, ".000000005"),
        ] {
            let record = pb::Record {
                create_time: time(nanos),
                ..Default::default()
            };
            let message = dynamic("tekton.results.v1alpha2.Record", &record);
            assert_eq!(
                json(&message, &TEKTON),
                format!(r#"{{"create_time":"2026-03-01T10:00:00{digits}Z"}}"#)
            );
        }
    }

    #[test]
    fn whole_numbers_of_a_struct_have_no_fraction_and_its_nulls_stay() {
        use prost_types::value::Kind as K;
        let kinds = [
            ("whole", Some(K::NumberValue(5.0))),
            ("half", Some(K::NumberValue(-2.5))),
            ("huge", Some(K::NumberValue(1e300))),
            ("zero", Some(K::NumberValue(0.0))),
            ("nan", Some(K::NumberValue(f64::NAN))),
            ("none", Some(K::NullValue(0))),
            ("unset", None),
            ("no", Some(K::BoolValue(false))),
            (
                "list",
                Some(K::ListValue(prost_types::ListValue::default())),
            ),
            ("map", Some(K::StructValue(prost_types::Struct::default()))),
        ];
        let fields = kinds
            .into_iter()
            .map(|(name, kind)| (name.to_owned(), prost_types::Value { kind }))
            .collect();
        let message = dynamic(
            "tekton.results.v1alpha2.RecordListSummary",
            &pb::RecordListSummary {
                summary: vec![
                    prost_types::Struct { fields },
                    prost_types::Struct::default(),
                ],
            },
        );
        assert_eq!(
            json(&message, &TEKTON),
            r#"{"summary":[{"half":-2.5,"huge":1e+300,"list":[],"map":{},"nan":"NaN","no":false,"none":null,"unset":null,"whole":5,"zero":0},{}]}"#
        );
    }

    #[test]
    fn bytes_are_base64_and_what_is_zero_is_left_out() {
        let record = pb::Record {
            data: Some(pb::Any {
                r#type: String::new(),
                value: vec![0xfb, 0xff, 0xfe, 0x01].into(),
            }),
            ..Default::default()
        };
        let message = dynamic("tekton.results.v1alpha2.Record", &record);
        assert_eq!(json(&message, &TEKTON), r#"{"data":{"value":"+//+AQ=="}}"#);
        let empty = dynamic("tekton.results.v1alpha2.Record", &pb::Record::default());
        assert_eq!(json(&empty, &TEKTON), "{}");
    }
}
