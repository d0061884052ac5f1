//! What the JSON of messages depends on, read from their descriptors once: descriptors are asked by
//! name and number, which takes longer than to write a field.

use std::collections::HashMap;

use prost::encoding::WireType;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

/// A type of messages.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) form: Form,
    /// In the order of their numbers.
    fields: Vec<Field>,
}

/// How messages of a type are written.
#[derive(Debug)]
pub(super) enum Form {
    /// An object with a member for each field.
    Object,
    /// `google.protobuf.Struct`, `ListValue` and `Value`: as their only field is.
    Only(Only),
    /// `google.protobuf.Timestamp`.
    Time,
    /// Another type of that package, as the library writes it.
    Known(MessageDescriptor),
}

/// What a message with one field is when it has none.
#[derive(Debug, Clone, Copy)]
pub(super) enum Only {
    Map,
    List,
    Null,
}

/// A field of a type.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    /// As the .proto file spells it.
    pub(super) name: String,
    pub(super) json_name: String,
    pub(super) kind: Kind,
    /// The type of its messages, if it has such.
    below: usize,
    pub(super) repeats: Repeats,
    /// Whether a zero is not the same as no value.
    pub(super) has_presence: bool,
}

/// How many values a field has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeats {
    Once,
    List,
    /// Entries, which are messages with a key and a value.
    Map,
}

/// Types of messages and the types of their fields.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    all: Vec<Shape>,
    by_name: HashMap<String, usize>,
}

impl Shapes {
    /// Adds a type, and those of its fields.
    pub(super) fn add(&mut self, message: &MessageDescriptor) -> usize {
        if let Some(known) = self.by_name.get(message.full_name()) {
            return *known;
        }
        let at = self.all.len();
        self.by_name.insert(message.full_name().to_owned(), at);
        // Its fields may have the type itself.
        self.all.push(Shape {
            form: form(message),
            fields: Vec::new(),
        });
        if !matches!(self.all[at].form, Form::Known(_)) {
            let mut fields: Vec<_> = message.fields().map(|field| self.field(&field)).collect();
            fields.sort_by_key(|field| field.number);
            self.all[at].fields = fields;
        }
        at
    }

    fn field(&mut self, field: &FieldDescriptor) -> Field {
        let kind = field.kind();
        let below = match &kind {
            Kind::Message(message) => self.add(message),
            _ => 0,
        };
        Field {
            number: field.number(),
            name: field.name().to_owned(),
            json_name: field.json_name().to_owned(),
            below,
            repeats: match (field.is_map(), field.is_list()) {
                (true, _) => Repeats::Map,
                (_, true) => Repeats::List,
                _ => Repeats::Once,
            },
            has_presence: field.supports_presence(),
            kind,
        }
    }

    /// A type that was added.
    pub(super) fn shape(&self, at: usize) -> &Shape {
        &self.all[at]
    }

    /// The type of the messages of a field.
    pub(super) fn below(&self, field: &Field) -> &Shape {
        self.shape(field.below)
    }
}

impl Shape {
    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        let at = self.fields.binary_search_by_key(&number, |f| f.number);
        Some(&self.fields[at.ok()?])
    }

    /// The fields of these names.
    pub(super) fn named<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a Field> {
        let fields = self.fields.iter();
        fields.filter(|field| names.contains(&field.name.as_str()))
    }
}

fn form(message: &MessageDescriptor) -> Form {
    match message.full_name() {
        "google.protobuf.Struct" => Form::Only(Only::Map),
        "google.protobuf.ListValue" => Form::Only(Only::List),
        "google.protobuf.Value" => Form::Only(Only::Null),
        "google.protobuf.Timestamp" => Form::Time,
        name if name.starts_with("google.protobuf.") && !message.is_map_entry() => {
            Form::Known(message.clone())
        }
        _ => Form::Object,
    }
}

/// How one value of this kind is encoded in a packed list; none if no list of them is packed.
pub(super) fn packed(kind: &Kind) -> Option<WireType> {
    match kind {
        Kind::Message(_) | Kind::String | Kind::Bytes => None,
        Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => Some(WireType::ThirtyTwoBit),
        Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => Some(WireType::SixtyFourBit),
        _ => Some(WireType::Varint),
    }
}
