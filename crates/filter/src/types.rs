//! The types of the language, and which of them go together.

use std::fmt;

use super::syntax::Operator;

/// Variables that are groups of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// What a result says of its run.
    Summary,
    /// What is kept of a run beside its record.
    Run,
}

/// What is known about a value before any row is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Time,
    Duration,
    Name,
    List(Box<Type>),
    /// A map with keys of text; the type is that of its values.
    Map(Box<Type>),
    /// Anything: known only when the row is seen.
    Dyn,
    /// Anything inside a Kubernetes object that was named by its alias: its fields may be
    /// spelled in snake_case.
    Object,
    /// `summary` or `run`, which is only good for naming its fields.
    Group(Group),
}

impl Type {
    pub(super) fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Object)
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double)
    }

    /// Whether a value of the type may turn out to be a `wanted`.
    pub(super) fn may_be(&self, wanted: &Type) -> bool {
        self.is_dyn() || wanted.is_dyn() || self == wanted
    }

    /// What both are, as closely as can be said.
    pub(super) fn join(self, other: Type) -> Type {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::List(a), Self::List(b)) => Self::List(Box::new(a.join(*b))),
            (Self::Map(a), Self::Map(b)) => Self::Map(Box::new(a.join(*b))),
            _ => Self::Dyn,
        }
    }

    /// Whether two values can be equal. Null can be compared with everything.
    pub(super) fn equals(&self, other: &Type) -> bool {
        match (self, other) {
            (Self::Null, _) | (_, Self::Null) => true,
            (Self::Group(_), _) | (_, Self::Group(_)) => false,
            (a, b) if a.is_dyn() || b.is_dyn() => true,
            (a, b) if a.is_number() && b.is_number() => true,
            (Self::List(a), Self::List(b)) | (Self::Map(a), Self::Map(b)) => a.equals(b),
            (a, b) => a == b,
        }
    }

    /// Whether one value can be less than another.
    pub(super) fn orders(&self, other: &Type) -> bool {
        let ordered = |ty: &Type| {
            !matches!(
                ty,
                Self::Null | Self::Name | Self::List(_) | Self::Map(_) | Self::Group(_)
            )
        };
        ordered(self) && ordered(other) && self.equals(other)
    }

    /// The type of `self operator other`, if there is one.
    pub(super) fn combined(&self, operator: Operator, other: &Type) -> Option<Type> {
        use Operator::{Add, Divide, Multiply, Remainder, Subtract};
        Some(match (self, operator, other) {
            (Self::Null | Self::Bool | Self::Name | Self::Group(_) | Self::Map(_), _, _)
            | (_, _, Self::Null | Self::Bool | Self::Name | Self::Group(_) | Self::Map(_)) => {
                return None;
            }
            (a, _, b) if a.is_dyn() || b.is_dyn() => Self::Dyn,
            (a, Add | Subtract | Multiply | Divide, b) if a.is_number() && b.is_number() => {
                match (a, b) {
                    (Self::Double, _) | (_, Self::Double) => Self::Double,
                    (Self::Uint, Self::Uint) => Self::Uint,
                    _ => Self::Int,
                }
            }
            (Self::Uint, Remainder, Self::Uint) => Self::Uint,
            (Self::Int | Self::Uint, Remainder, Self::Int | Self::Uint) => Self::Int,
            (Self::Text, Add, Self::Text) => Self::Text,
            (Self::Bytes, Add, Self::Bytes) => Self::Bytes,
            (Self::List(a), Add, Self::List(b)) => {
                Self::List(Box::new(a.as_ref().clone().join(b.as_ref().clone())))
            }
            (Self::Time, Add | Subtract, Self::Duration) | (Self::Duration, Add, Self::Time) => {
                Self::Time
            }
            (Self::Time, Subtract, Self::Time)
            | (Self::Duration, Add | Subtract, Self::Duration) => Self::Duration,
            _ => return None,
        })
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Int => "an integer",
            Self::Uint => "an unsigned integer",
            Self::Double => "a decimal number",
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::Time => "a timestamp",
            Self::Duration => "a duration",
            Self::Name => "a type",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::Dyn | Self::Object => "any value",
            Self::Group(_) => "a group of fields",
        })
    }
}
