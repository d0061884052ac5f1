//! What a store is asked to add up.

use super::query::Priority;
use hindsight_filter::condition::{Column, Condition, Value};
use hindsight_filter::measure::{Calendar, Depth, Key, Shape, Sums, Tally, TooManyGroups};
use hindsight_filter::model::ResultPattern;

/// Most keys of a group.
pub const MAX_KEYS: usize = 8;

/// Which records are measured, by groups, and what is added up of them.
#[derive(Debug, Clone)]
pub struct AggregateQuery {
    /// Of which parents and results.
    pub scope: ResultPattern,
    /// Which records. Every test of it is one that the store answers exactly.
    pub condition: Condition,
    /// What makes a group, at most [`MAX_KEYS`]; nothing makes one group, if there is any record.
    pub keys: Vec<GroupKey>,
    /// How many records pass each. Every test of them is one that the store answers exactly.
    pub counts: Vec<Condition>,
    /// Numbers to add up.
    pub amounts: Vec<Summed>,
    /// Which connections it uses.
    pub priority: Priority,
}

/// Something that the records of a group share.
#[derive(Debug, Clone, PartialEq)]
pub enum GroupKey {
    /// The value of a column.
    Column(Column),
    /// The bucket of the calendar that a column of times falls into.
    Bucket(Column, Calendar),
}

/// A number of each record that is added up.
#[derive(Debug, Clone, PartialEq)]
pub struct Summed {
    /// The number that is taken of each record.
    pub of: Quantity,
    /// How much of it is wanted.
    pub depth: Depth,
}

/// A number that a record has by its columns, in microseconds if it is of times.
#[derive(Debug, Clone, PartialEq)]
pub enum Quantity {
    /// The value of a column of times or numbers.
    Value(Column),
    /// How much later the second column of times is than the first.
    Between(Column, Column),
}

impl AggregateQuery {
    /// How many things are added up.
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape {
            counts: self.counts.len(),
            amounts: self.amounts.len(),
        }
    }

    /// Adds one record, given its columns, to the group of these keys. Every store must agree
    /// with this.
    ///
    /// # Errors
    /// If there are too many groups.
    pub fn add(
        &self,
        tally: &mut Tally,
        keys: Vec<Key>,
        column: &dyn Fn(&Column) -> Option<Value>,
    ) -> Result<(), TooManyGroups> {
        tally.change(keys, |sums: &mut Sums| {
            sums.rows += 1;
            for (count, test) in sums.counts.iter_mut().zip(&self.counts) {
                *count += u64::from(test.passes(column));
            }
            for (amount, summed) in sums.amounts.iter_mut().zip(&self.amounts) {
                if let Some(value) = summed.of.of(column) {
                    amount.add(value, summed.depth);
                }
            }
        })
    }
}

impl GroupKey {
    /// What a record has, given its columns.
    #[must_use]
    pub fn of(&self, column: &dyn Fn(&Column) -> Option<Value>) -> Key {
        match self {
            Self::Column(name) => match column(name) {
                None => Key::Missing,
                Some(Value::Text(text)) => Key::Text(text),
                Some(Value::Int(number)) => Key::Int(number),
                Some(Value::Time(time)) => Key::Time(time.as_microsecond()),
            },
            Self::Bucket(name, calendar) => match column(name) {
                Some(Value::Time(time)) => Key::Time(calendar.bucket(time.as_microsecond()).0),
                _ => Key::Missing,
            },
        }
    }
}

impl Quantity {
    fn of(&self, column: &dyn Fn(&Column) -> Option<Value>) -> Option<i64> {
        let number = |name: &Column| match column(name)? {
            Value::Int(number) => Some(number),
            Value::Time(time) => Some(time.as_microsecond()),
            Value::Text(_) => None,
        };
        let number = match self {
            Self::Value(name) => number(name),
            Self::Between(from, to) => number(to)?.checked_sub(number(from)?),
        };
        number.filter(|number| *number >= 0 || !self.is_duration())
    }

    /// Whether it says how long something took. What ended before it began has none: of one such
    /// row the sum of a group would tell nothing.
    pub(crate) fn is_duration(&self) -> bool {
        let column = |column: &Column| matches!(column, Column::Duration | Column::ObjectDuration);
        match self {
            Self::Value(name) => column(name),
            Self::Between(..) => true,
        }
    }
}
