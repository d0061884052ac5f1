//! The order of a list, and a place in it.

mod parse;

use std::{cmp::Ordering, fmt};

pub use parse::{MAX_KEYS, OrderError, parse_order};

use super::condition::{Column, Value};

/// Text keys are compared by so many characters at most, so that page tokens stay short.
pub const KEY_CHARS: usize = 512;

/// One key of an order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OrderKey {
    /// What to order by.
    pub column: Column,
    /// Largest value first, instead of smallest first.
    pub descending: bool,
}

/// The order of a list: by the first key, rows that are equal there by the second, and so on.
/// Rows without a value come last in either direction. Rows that are equal in all keys are
/// ordered by their id, in the direction of the last key. Text is compared by its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Order {
    keys: Vec<OrderKey>,
}

impl Order {
    /// The order by one column; equal rows go by their id.
    pub fn by(column: Column, descending: bool) -> Self {
        Self {
            keys: vec![OrderKey { column, descending }],
        }
    }

    /// What a list gives unless asked otherwise.
    pub fn newest_first() -> Self {
        Self::by(Column::CreateTime, true)
    }

    /// By several keys; newest first if there are none. Those after [`MAX_KEYS`] do not count.
    pub fn of(mut keys: Vec<OrderKey>) -> Self {
        keys.truncate(MAX_KEYS);
        if keys.is_empty() {
            Self::newest_first()
        } else {
            Self { keys }
        }
    }

    /// The keys, at least one.
    pub fn keys(&self) -> &[OrderKey] {
        &self.keys
    }

    /// The direction of rows that are equal in all keys.
    pub fn ties_descend(&self) -> bool {
        self.keys.last().is_none_or(|key| key.descending)
    }

    /// The place of the row that has this id and these values.
    pub fn position(&self, id: i64, value: &dyn Fn(&Column) -> Option<Value>) -> Position {
        let key = |value: Option<Value>| {
            Some(match value? {
                Value::Text(text) => KeyValue::Text(text.chars().take(KEY_CHARS).collect()),
                Value::Int(number) => KeyValue::Int(number),
                Value::Time(time) => KeyValue::Int(time.as_microsecond()),
            })
        };
        let keys = self.keys.iter();
        Position {
            keys: keys.map(|one| key(value(&one.column))).collect(),
            id,
        }
    }

    /// Which of two places comes first.
    pub fn compare(&self, a: &Position, b: &Position) -> Ordering {
        let keys = self.keys.iter().zip(a.keys.iter().zip(&b.keys));
        let by_key = keys.map(|(key, (a, b))| match (a, b) {
            (Some(a), Some(b)) if key.descending => b.cmp(a),
            (Some(a), Some(b)) => a.cmp(b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
        let by_id = match self.ties_descend() {
            true => b.id.cmp(&a.id),
            false => a.id.cmp(&b.id),
        };
        by_key.fold(Ordering::Equal, Ordering::then).then(by_id)
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, key) in self.keys.iter().enumerate() {
            let direction = if key.descending { "desc" } else { "asc" };
            let comma = if number > 0 { ", " } else { "" };
            write!(f, "{comma}{} {direction}", key.column)?;
        }
        Ok(())
    }
}

/// A row's value of a key, as its store compares it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyValue {
    /// A number, or a time or duration in microseconds.
    Int(i64),
    /// Text in the store's own spelling.
    Text(String),
}

/// A place in an ordered list: the last row that was given out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Position {
    /// The row's value of each key, if it has one.
    pub keys: Vec<Option<KeyValue>>,
    /// The row's id in its store.
    pub id: i64,
}
