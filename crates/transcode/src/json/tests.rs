//! How messages are spelled, and that nothing is lost beside what the library writes.

use std::collections::HashMap;

use hindsight_proto::{FILE_DESCRIPTOR_SET, v1alpha2 as pb};
use proptest::{prelude::*, test_runner::TestRng};
use prost_reflect::{
    Cardinality, DescriptorPool, FieldDescriptor, MapKey, MessageDescriptor, Value as Any,
    prost::Message,
};
use serde_json::Value as Read;

use super::*;
use crate::dialect::{HINDSIGHT, TEKTON};

fn json(name: &str, message: &impl Message, dialect: &Dialect) -> String {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
    let mut shapes = Shapes::default();
    let name = format!("tekton.results.v1alpha2.{name}");
    let at = shapes.add(&pool.get_message_by_name(&name).unwrap());
    let json = shapes.json(at, &message.encode_to_vec(), dialect);
    String::from_utf8(json.unwrap()).unwrap()
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
    assert_eq!(
        json("RecordSummary", &summary, &TEKTON),
        r#"{"record":"ci/results/a/records/b","start_time":"2026-03-01T10:00:00Z","end_time":"2026-03-01T10:00:00.123456Z","status":"TIMEOUT","annotations":{"a":"","b":"2"}}"#
    );
    let other = Dialect {
        names: Names::Camel,
        enums: Enums::Number,
        ..TEKTON
    };
    assert_eq!(
        json("RecordSummary", &summary, &other),
        r#"{"record":"ci/results/a/records/b","startTime":"2026-03-01T10:00:00Z","endTime":"2026-03-01T10:00:00.123456Z","status":3,"annotations":{"a":"","b":"2"}}"#
    );
    let unknown = pb::RecordSummary {
        status: 77,
        ..Default::default()
    };
    assert_eq!(json("RecordSummary", &unknown, &TEKTON), r#"{"status":77}"#);
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
        assert_eq!(
            json("Record", &record, &TEKTON),
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
    let list = pb::RecordListSummary {
        summary: vec![
            prost_types::Struct { fields },
            prost_types::Struct::default(),
        ],
    };
    assert_eq!(
        json("RecordListSummary", &list, &TEKTON),
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
    assert_eq!(
        json("Record", &record, &TEKTON),
        r#"{"data":{"value":"+//+AQ=="}}"#
    );
    assert_eq!(json("Record", &pb::Record::default(), &TEKTON), "{}");
}

#[test]
fn fields_are_in_the_order_of_their_numbers_however_they_are_encoded() {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
    let of = pool.get_message_by_name("tekton.results.v1alpha2.Record");
    let mut shapes = Shapes::default();
    let at = shapes.add(&of.unwrap());
    let later = pb::Record {
        etag: "e".to_owned(),
        create_time: time(0),
        ..Default::default()
    };
    let name = pb::Record {
        name: "n".to_owned(),
        ..Default::default()
    };
    let both = [later.encode_to_vec(), name.encode_to_vec()].concat();
    let json = shapes.json(at, &both, &TEKTON).unwrap();
    let (name, rest) = (br#"{"name":"n","#, later);
    assert!(json.starts_with(name), "{}", String::from_utf8_lossy(&json));
    let whole = pb::Record {
        name: "n".to_owned(),
        ..rest
    };
    assert_eq!(
        json,
        shapes.json(at, &whole.encode_to_vec(), &TEKTON).unwrap()
    );
}

/// A message with any of its fields.
fn any(of: &MessageDescriptor, rng: &mut TestRng, depth: usize) -> DynamicMessage {
    let mut message = DynamicMessage::new(of.clone());
    match of.full_name() {
        // The library has no JSON of names that do not exist.
        "google.protobuf.FieldMask" => return message,
        "google.protobuf.Any" => {
            let name = "type.googleapis.com/google.protobuf.Timestamp".to_owned();
            message.set_field_by_name("type_url", Any::String(name));
            return message;
        }
        "google.protobuf.Timestamp" | "google.protobuf.Duration" => {
            let seconds = rng.random_range(0..LAST_SECOND);
            let nanos = [0, 5_000_000, 120_000, 7][rng.random_range(0..4)];
            message.set_field_by_name("seconds", Any::I64(seconds));
            message.set_field_by_name("nanos", Any::I32(nanos));
            return message;
        }
        _ => {}
    }
    for field in of.fields() {
        let is_deep = matches!(field.kind(), Kind::Message(_)) && depth > 4;
        if is_deep || rng.random_bool(0.4) {
            continue;
        }
        let mut many = rng.random_range(0..3);
        let value = if field.is_map() {
            let Kind::Message(entry) = field.kind() else {
                unreachable!("entries are messages")
            };
            let value = entry.map_entry_value_field();
            let mut entries = HashMap::new();
            while many > 0 {
                many -= 1;
                let name = MapKey::String(format!("k{}\n", rng.random_range(0..9)));
                entries.insert(name, one(&value, rng, depth));
            }
            Any::Map(entries)
        } else if field.cardinality() == Cardinality::Repeated {
            Any::List((0..many).map(|_| one(&field, rng, depth)).collect())
        } else {
            one(&field, rng, depth)
        };
        message.set_field(&field, value);
    }
    message
}

/// A value of a field, often a zero.
fn one(field: &FieldDescriptor, rng: &mut TestRng, depth: usize) -> Any {
    let bits = match rng.random_range(0..4) {
        0 => 0,
        1 => rng.random_range(0..200),
        _ => rng.random::<u64>(),
    };
    let half = bits.cast_signed();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "any number does"
    )]
    match field.kind() {
        Kind::Message(below) => Any::Message(any(&below, rng, depth + 1)),
        Kind::Enum(of) => {
            let known: Vec<_> = of.values().map(|value| value.number()).collect();
            let at = rng.random_range(0..=known.len());
            Any::EnumNumber(known.get(at).copied().unwrap_or(7_777))
        }
        Kind::Bool => Any::Bool(bits % 2 == 1),
        Kind::String => {
            Any::String(format!("\u{1}\"é{bits}")[..(bits % 7) as usize / 4 * 4].into())
        }
        Kind::Bytes => Any::Bytes(bits.to_be_bytes()[..(bits % 8) as usize].to_vec().into()),
        Kind::Float => Any::F32((half % 999) as f32 / 4.0),
        Kind::Double => Any::F64((half % 9_999_999) as f64 / 4.0),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Any::I32(half as i32),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Any::I64(half),
        Kind::Uint32 | Kind::Fixed32 => Any::U32(bits as u32),
        Kind::Uint64 | Kind::Fixed64 => Any::U64(bits),
    }
}

/// The same with all numbers as floats, because the library writes `5.0` where answers have `5`.
fn floats(value: Read) -> Read {
    match value {
        Read::Number(number) => number.as_f64().into(),
        Read::Array(items) => items.into_iter().map(floats).collect(),
        Read::Object(members) => {
            let members = members.into_iter();
            members.map(|(name, value)| (name, floats(value))).collect()
        }
        other => other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn any_message_is_what_the_library_writes(seed: [u8; 32]) {
        let mut rng = TestRng::from_seed(proptest::test_runner::RngAlgorithm::ChaCha, &seed);
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
        let mut shapes = Shapes::default();
        for of in pool.all_messages().filter(|of| !of.is_map_entry()) {
            let message = any(&of, &mut rng, 0);
            for dialect in [&TEKTON, &HINDSIGHT] {
                let options = SerializeOptions::new().use_proto_field_name(dialect.names == Names::Snake);
                let mut expected = Vec::new();
                message.serialize_with_options(&mut serde_json::Serializer::new(&mut expected), &options).unwrap();
                let at = shapes.add(&of);
                let json = shapes.json(at, &message.encode_to_vec(), dialect).unwrap();
                let read = |json: &[u8]| floats(serde_json::from_slice::<Read>(json).unwrap());
                prop_assert_eq!(read(&json), read(&expected), "{}", of.full_name());
            }
        }
    }
}
