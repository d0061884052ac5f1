//! Values while a row is judged. They borrow from the row and from the filter where they can.

use std::{collections::BTreeMap, ops::Deref, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value as Json;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Shared<'a, str>),
    Bytes(Shared<'a, [u8]>),
    Time(Timestamp),
    Duration(SignedDuration),
    Type(TypeName),
    List(Arc<[Value<'a>]>),
    Map(Arc<[(Value<'a>, Value<'a>)]>),
    Texts(&'a BTreeMap<String, String>),
    /// An array of the payload.
    Array(&'a [Json]),
    /// An object of the payload.
    Object(&'a serde_json::Map<String, Json>),
}

/// Text or bytes of the row or the filter, or made by the filter. Never copied.
#[derive(Debug)]
pub(super) enum Shared<'a, T: ?Sized> {
    Lent(&'a T),
    Own(Arc<T>),
}

impl<T: ?Sized> Shared<'_, T> {
    pub(super) fn own(made: impl Into<Arc<T>>) -> Self {
        Self::Own(made.into())
    }
}

impl<T: ?Sized> Clone for Shared<'_, T> {
    fn clone(&self) -> Self {
        match self {
            Self::Lent(lent) => Self::Lent(lent),
            Self::Own(own) => Self::Own(Arc::clone(own)),
        }
    }
}

impl<T: ?Sized> Deref for Shared<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Lent(lent) => lent,
            Self::Own(own) => own,
        }
    }
}

impl<T: ?Sized + PartialEq> PartialEq for Shared<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

/// The type of a value, as `type(x)` gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TypeName {
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Time,
    Duration,
    Type,
    List,
    Map,
}

impl TypeName {
    /// The type that is written so.
    pub(super) fn of_text(name: &str) -> Option<Self> {
        Some(match name {
            "null_type" => Self::Null,
            "bool" => Self::Bool,
            "int" => Self::Int,
            "uint" => Self::Uint,
            "double" => Self::Double,
            "string" => Self::Text,
            "bytes" => Self::Bytes,
            "google.protobuf.Timestamp" => Self::Time,
            "google.protobuf.Duration" => Self::Duration,
            "type" => Self::Type,
            "list" => Self::List,
            "map" => Self::Map,
            _ => return None,
        })
    }
}

impl<'a> Value<'a> {
    /// A value of the payload; its scalars are ordinary values.
    pub(super) fn of_json(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Self::Int(value),
                (None, Some(value)) => Self::Uint(value),
                (None, None) => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::text(text),
            Json::Array(items) => Self::Array(items),
            Json::Object(members) => Self::Object(members),
        }
    }

    pub(super) fn text(text: &'a str) -> Self {
        Self::Text(Shared::Lent(text))
    }

    /// The same value, borrowing from nothing; none if it is a part of a row.
    pub(super) fn owned(&self) -> Option<Value<'static>> {
        Some(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Uint(value) => Value::Uint(*value),
            Self::Double(value) => Value::Double(*value),
            Self::Text(text) => Value::Text(Shared::own(&**text)),
            Self::Bytes(bytes) => Value::Bytes(Shared::own(&**bytes)),
            Self::Time(time) => Value::Time(*time),
            Self::Duration(duration) => Value::Duration(*duration),
            Self::Type(name) => Value::Type(*name),
            Self::List(items) => {
                Value::List(items.iter().map(Value::owned).collect::<Option<_>>()?)
            }
            Self::Map(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, value)| Some((key.owned()?, value.owned()?)));
                Value::Map(entries.collect::<Option<_>>()?)
            }
            Self::Texts(_) | Self::Array(_) | Self::Object(_) => return None,
        })
    }

    /// The same value, borrowing from this one.
    pub(super) fn lend(&'a self) -> Value<'a> {
        match self {
            Self::Text(text) => Value::Text(Shared::Lent(text)),
            Self::Bytes(bytes) => Value::Bytes(Shared::Lent(bytes)),
            other => other.clone(),
        }
    }

    pub(super) fn type_name(&self) -> TypeName {
        match self {
            Self::Null => TypeName::Null,
            Self::Bool(_) => TypeName::Bool,
            Self::Int(_) => TypeName::Int,
            Self::Uint(_) => TypeName::Uint,
            Self::Double(_) => TypeName::Double,
            Self::Text(_) => TypeName::Text,
            Self::Bytes(_) => TypeName::Bytes,
            Self::Time(_) => TypeName::Time,
            Self::Duration(_) => TypeName::Duration,
            Self::Type(_) => TypeName::Type,
            Self::List(_) | Self::Array(_) => TypeName::List,
            Self::Map(_) | Self::Texts(_) | Self::Object(_) => TypeName::Map,
        }
    }

    /// The elements of a list.
    pub(super) fn elements(&self) -> Option<Elements<'_, 'a>> {
        match self {
            Self::List(items) => Some(Elements::List(items)),
            Self::Array(items) => Some(Elements::Array(items)),
            _ => None,
        }
    }

    /// The entries of a map.
    pub(super) fn entries(&self) -> Option<Entries<'_, 'a>> {
        Some(match self {
            Self::Map(entries) => Box::new(entries.iter().cloned()),
            Self::Texts(texts) => Box::new(
                texts
                    .iter()
                    .map(|(key, text)| (Value::text(key), Value::text(text))),
            ),
            Self::Object(members) => Box::new(
                members
                    .iter()
                    .map(|(key, json)| (Value::text(key), Value::of_json(json))),
            ),
            _ => return None,
        })
    }
}

/// The entries of a map, one after the other.
pub(super) type Entries<'v, 'a> = Box<dyn ExactSizeIterator<Item = (Value<'a>, Value<'a>)> + 'v>;

/// The elements of a list, wherever it lives.
#[derive(Debug, Clone, Copy)]
pub(super) enum Elements<'v, 'a> {
    List(&'v [Value<'a>]),
    Array(&'a [Json]),
}

impl<'v, 'a> Elements<'v, 'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::List(items) => items.len(),
            Self::Array(items) => items.len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<Value<'a>> {
        match self {
            Self::List(items) => items.get(index).cloned(),
            Self::Array(items) => items.get(index).map(Value::of_json),
        }
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Value<'a>> + use<'v, 'a> {
        (0..self.len()).filter_map(move |index| self.get(index))
    }
}
