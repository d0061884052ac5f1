//! A statement: text that this program wrote, and the values bound to it.

use bytes::Bytes;
use jiff::Timestamp;

use crate::codec::text::{self, words};

/// A value that is bound, never spliced.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Bind {
    /// Text as the tables hold it, see [`text::stored`].
    Text(Option<String>),
    /// An identifier, as text; see [`id`](crate::codec::id).
    Id(Option<String>),
    /// A number, or a time in microseconds.
    Int(Option<i64>),
    Bytes(Option<Bytes>),
    /// A list of texts to compare with.
    Texts(Vec<String>),
    /// A list of identifiers to compare with.
    Ids(Vec<String>),
    /// A list of numbers to compare with.
    Ints(Vec<i64>),
    /// A column of many rows, each value of the same kind: [`Self::Text`], [`Self::Id`],
    /// [`Self::Int`] or [`Self::Bytes`]. PostgreSQL alone.
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
    /// An identifier, of which a UUID is kept as bytes.
    pub(crate) fn id(text: &str) -> Self {
        Self::Id(Some(text::stored(text).into_owned()))
    }

    /// What a list of values that comes from a subquery is called, so that it is not taken for rows.
    fn list_cast(&self) -> &'static str {
        match self {
            Self::Texts(_) => "::text[]",
            Self::Ids(_) => "::bytea[]",
            Self::Ints(_) => "::bigint[]",
            _ => "",
        }
    }

    /// What follows the placeholder of a column of such values.
    pub(super) fn column_cast(&self) -> &'static str {
        match self {
            Self::Int(_) => "::bigint[]",
            Self::Bytes(_) | Self::Id(_) => "::bytea[]",
            _ => "::text[]",
        }
    }
}

/// A statement under construction. Text comes from constants only; values become `$1`, `$2`...
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Statement {
    text: String,
    binds: Vec<Bind>,
    planned_anew: bool,
}

impl Statement {
    pub(crate) fn new(text: &'static str) -> Self {
        Self {
            text: text.to_owned(),
            binds: Vec::new(),
            planned_anew: false,
        }
    }

    /// The same, to be planned for its values each time: how many rows have them decides between
    /// plans, and one that was made for others may take a thousand times as long.
    pub(crate) fn planned_anew(self) -> Self {
        Self {
            planned_anew: true,
            ..self
        }
    }

    /// The same, to be planned once, whatever its values are. PostgreSQL plans a prepared statement at each call while that
    /// promises fewer costs than a plan for any values does, as it does of most statements with a limit; what comes from a
    /// subquery it does not know, so that both are the same.
    pub(crate) fn planned_once(self) -> Self {
        let mut text = String::with_capacity(self.text.len() + 12 * self.binds.len());
        let mut parts = self.text.split('$');
        text.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let (number, rest) = split_where(part, |c| c.is_ascii_digit());
            let bind = number
                .parse()
                .ok()
                .and_then(|n: usize| self.binds.get(n - 1));
            let is_cast = |c: char| c.is_ascii_lowercase() || matches!(c, ':' | '[' | ']');
            let (cast, rest) = match rest.starts_with("::") {
                true => split_where(rest, is_cast),
                false => ("", rest),
            };
            for piece in [
                "(SELECT $",
                number,
                cast,
                ")",
                bind.map_or("", Bind::list_cast),
                rest,
            ] {
                text.push_str(piece);
            }
        }
        Self { text, ..self }
    }

    pub(crate) fn is_planned_anew(&self) -> bool {
        self.planned_anew
    }

    /// Appends text of our own.
    pub(crate) fn push(&mut self, text: &'static str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// Appends a number that the plan depends on, of which there are few.
    pub(crate) fn number(&mut self, number: i64) -> &mut Self {
        self.text.push_str(&number.to_string());
        self
    }

    pub(crate) fn bind(&mut self, value: impl Into<Bind>) -> &mut Self {
        self.binds.push(value.into());
        self.text.push('$');
        self.text.push_str(&self.binds.len().to_string());
        self
    }

    /// Appends the placeholder of a word; see [`words`].
    pub(crate) fn bind_word(&mut self, word: &str) -> &mut Self {
        self.bind(Bind::Text(Some(words::stored(word).into_owned())))
    }

    /// Appends the placeholder of an identifier.
    pub(crate) fn bind_id(&mut self, text: &str) -> &mut Self {
        self.bind(Bind::id(text))
    }

    /// The text, for a driver. It is safe because only `'static` text and placeholders went in.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn binds(&self) -> &[Bind] {
        &self.binds
    }

    /// The same with text before it, to have it explained.
    pub(crate) fn prefixed(&self, text: &'static str) -> Self {
        Self {
            text: format!("{text}{}", self.text),
            binds: self.binds.clone(),
            planned_anew: self.planned_anew,
        }
    }
}

/// The characters at the beginning of a text that are so, and what follows them.
fn split_where(text: &str, is_so: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !is_so(c)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::{Bind, Statement};

    #[test]
    fn what_is_planned_once_knows_no_value() {
        let mut out = Statement::new("SELECT 1 WHERE a = ");
        out.bind(1).push(" AND labels @> ").bind("{}");
        out.push("::jsonb AND c = ANY(")
            .bind(Bind::Texts(vec!["x".to_owned()]));
        out.push(") LIMIT ").number(64);
        let once = out.clone().planned_once();
        assert_eq!(
            once.text(),
            "SELECT 1 WHERE a = (SELECT $1) AND labels @> (SELECT $2::jsonb) AND c = ANY((SELECT $3)::text[]) LIMIT 64"
        );
        assert_eq!(once.binds(), out.binds());
    }
}
