//! Filters: tests of fields, as JSON.

mod parse;

use serde::{Deserialize, Serialize};

use super::{Field, Item, Listable};

pub(super) use self::parse::parse;

/// Longest filter, in bytes.
pub const MAX_FILTER: usize = 64 << 10;
/// Most tests of a filter.
const MAX_PREDICATES: usize = 100;

/// One test of a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predicate {
    field: Field,
    test: Test,
}

/// What is asked about the value of a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Test {
    /// It compares so with a value.
    Compare(Comparison, Operand),
    /// It is one of these.
    In(Vec<Operand>),
    /// It has this text in it, whichever the case of ASCII letters. Of texts only.
    Substring(String),
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparison {
    /// `=`
    Equals,
    /// `<>`
    NotEquals,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEquals,
    /// `<`
    Less,
    /// `<=`
    LessOrEquals,
}

/// A value that a field is compared with: of [`Field::CreatedAt`] seconds since 1970, of all others a text. Texts are
/// compared by their code points.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Operand {
    /// Of a time.
    Seconds(i64),
    /// Of a text.
    Text(String),
}

impl Predicate {
    /// Whether it tests this field.
    #[must_use]
    pub fn is_about(&self, field: &Field) -> bool {
        self.field == *field
    }

    /// The test of a field; `None` if the field has values of another type, or is a tag that is not only tested for
    /// being equal.
    #[must_use]
    pub fn new(field: Field, test: Test) -> Option<Self> {
        let fits = |operand: &Operand| {
            matches!(operand, Operand::Seconds(_)) == (field == Field::CreatedAt)
        };
        let is_tag = matches!(field, Field::Tag(_));
        let makes_sense = match &test {
            Test::Compare(how, operand) => fits(operand) && (!is_tag || *how == Comparison::Equals),
            Test::In(operands) => !is_tag && operands.iter().all(fits),
            Test::Substring(_) => !is_tag && field != Field::CreatedAt,
        };
        makes_sense.then_some(Self { field, test })
    }

    /// What is tested.
    #[must_use]
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// What is asked of it.
    #[must_use]
    pub fn test(&self) -> &Test {
        &self.test
    }

    /// Whether it could have come from a filter of such a list.
    pub(super) fn is_of(&self, of: Listable) -> bool {
        self.field.is_of(of) && Self::new(self.field.clone(), self.test.clone()).is_some()
    }

    /// Whether an item passes. What it does not have passes nothing.
    pub fn accepts(&self, item: &impl Item) -> bool {
        let value = match &self.field {
            Field::CreatedAt => Operand::Seconds(item.created_at()),
            field => match item.text(field) {
                Some(text) => Operand::Text(text.into_owned()),
                None => return false,
            },
        };
        self.test.holds(&value)
    }

    /// Whether it holds of an item whose field is this text.
    #[must_use]
    pub fn holds_of(&self, text: &str) -> bool {
        self.test.holds(&Operand::Text(text.to_owned()))
    }
}

impl Test {
    fn holds(&self, value: &Operand) -> bool {
        match self {
            Self::Compare(how, operand) => how.holds(value, operand),
            Self::In(operands) => operands.contains(value),
            Self::Substring(part) => match value {
                Operand::Text(text) => text
                    .to_ascii_lowercase()
                    .contains(&part.to_ascii_lowercase()),
                Operand::Seconds(_) => false,
            },
        }
    }
}

impl Comparison {
    fn holds(self, left: &Operand, right: &Operand) -> bool {
        match self {
            Self::Equals => left == right,
            Self::NotEquals => left != right,
            Self::Greater => left > right,
            Self::GreaterOrEquals => left >= right,
            Self::Less => left < right,
            Self::LessOrEquals => left <= right,
        }
    }
}
