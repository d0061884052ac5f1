//! A statement: text that this program wrote, and the values bound to it.

use bytes::Bytes;
use jiff::Timestamp;
use sqlx::AssertSqlSafe;

use super::text;

/// A value that is bound, never spliced.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::storage) enum Bind {
    /// Text as the tables hold it, see [`text::stored`].
    Text(Option<String>),
    /// A number, or a time in microseconds.
    Int(Option<i64>),
    /// Bytes.
    Bytes(Option<Bytes>),
    /// A list of texts to compare with.
    Texts(Vec<String>),
    /// A list of numbers to compare with.
    Ints(Vec<i64>),
    /// A column of many rows, each value of the same kind: [`Self::Text`], [`Self::Int`] or
    /// [`Self::Bytes`]. PostgreSQL alone.
    Column(Vec<Bind>),
}

impl From<&str> for Bind {
    fn from(text: &str) -> Self {
        Self::Text(Some(text::stored(text).into_owned()))
    }
}

impl From<Option<&str>> for Bind {
    fn from(text: Option<&str>) -> Self {
        Self::Text(text.map(|text| text::stored(text).into_owned()))
    }
}

impl From<i64> for Bind {
    fn from(number: i64) -> Self {
        Self::Int(Some(number))
    }
}

impl From<Option<i64>> for Bind {
    fn from(number: Option<i64>) -> Self {
        Self::Int(number)
    }
}

impl From<Timestamp> for Bind {
    fn from(time: Timestamp) -> Self {
        Self::Int(Some(time.as_microsecond()))
    }
}

impl From<Option<Timestamp>> for Bind {
    fn from(time: Option<Timestamp>) -> Self {
        Self::Int(time.map(Timestamp::as_microsecond))
    }
}

impl From<Option<Bytes>> for Bind {
    fn from(bytes: Option<Bytes>) -> Self {
        Self::Bytes(bytes)
    }
}

impl Bind {
    /// What follows the placeholder of a column of such values.
    pub(super) fn column_cast(&self) -> &'static str {
        match self {
            Self::Int(_) => "::bigint[]",
            Self::Bytes(_) => "::bytea[]",
            _ => "::text[]",
        }
    }
}

/// A statement under construction. Text comes from constants only; values become `$1`, `$2`...
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::storage) struct Statement {
    text: String,
    binds: Vec<Bind>,
}

impl Statement {
    /// Begins with `text`.
    pub(in crate::storage) fn new(text: &'static str) -> Self {
        Self {
            text: text.to_owned(),
            binds: Vec::new(),
        }
    }

    /// Appends text of our own.
    pub(in crate::storage) fn push(&mut self, text: &'static str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// Appends a value.
    pub(in crate::storage) fn bind(&mut self, value: impl Into<Bind>) -> &mut Self {
        self.binds.push(value.into());
        self.text.push('$');
        self.text.push_str(&self.binds.len().to_string());
        self
    }

    /// The text, for the driver. Safe because only `'static` text and placeholders went in.
    pub(in crate::storage) fn sql(&self) -> AssertSqlSafe<String> {
        AssertSqlSafe(self.text.clone())
    }

    /// The values.
    pub(in crate::storage) fn binds(&self) -> &[Bind] {
        &self.binds
    }

    /// All of them, one after the other, for drivers whose placeholders count through.
    pub(in crate::storage) fn joined<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut out = Self::default();
        for one in all {
            let before = out.binds.len();
            let mut pieces = one.text.split('$');
            out.text.push_str(pieces.next().unwrap_or_default());
            for piece in pieces {
                let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
                let (number, rest) = piece.split_at(digits);
                let number: usize = number.parse().expect("only placeholders have a `$`");
                out.text.push('$');
                out.text.push_str(&(before + number).to_string());
                out.text.push_str(rest);
            }
            out.text.push_str("; ");
            out.binds.extend(one.binds.iter().cloned());
        }
        out
    }

    /// Whether two are the same but for their values.
    pub(in crate::storage) fn is_like(&self, other: &Self) -> bool {
        self.text == other.text
    }

    /// The same with text before it, to have it explained.
    pub(in crate::storage) fn prefixed(&self, text: &'static str) -> Self {
        Self {
            text: format!("{text}{}", self.text),
            binds: self.binds.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_statements_keep_their_values() {
        let mut one = Statement::new("A ");
        one.bind(1).push(", ").bind(2);
        let mut other = Statement::new("B ");
        other.bind(3);
        let joined = Statement::joined([&one, &other, &one]);
        assert_eq!(joined.text, "A $1, $2; B $3; A $4, $5; ");
        assert_eq!(joined.binds, [1, 2, 3, 1, 2].map(Bind::from));
        assert!(one.is_like(&one.clone()) && !one.is_like(&other));
    }
}
