//! Which types of records a condition leaves, as indexes know types.

use super::conjuncts;
use crate::{
    codec::text::words,
    sql::{
        dialect::Dialect,
        statement::{Bind, Statement},
    },
};
use hindsight_filter::condition::{Column, Condition, Is, Value};

/// The types of the records that a condition leaves, if it says so.
fn types(condition: &Condition) -> Option<Vec<&str>> {
    let tests = conjuncts(condition)
        .into_iter()
        .filter(|test| !test.negated);
    let mut typed = tests.filter(|test| test.column == Column::DataType);
    typed.find_map(|test| match &test.is {
        Is::Equal(value) => Some(vec![text_of(value)?]),
        Is::OneOf(values) => values.iter().map(text_of).collect(),
        _ => None,
    })
}

pub(super) fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text),
        Value::Int(_) | Value::Time(_) => None,
    }
}

/// The same as `data_type` keeps them.
pub(in crate::sql) fn kept_types(condition: &Condition) -> Option<Vec<String>> {
    let kept = |word| words::stored(word).into_owned();
    Some(types(condition)?.into_iter().map(kept).collect())
}

/// The numbers of the types of the records that a condition leaves, if it says so and each is a word.
pub(in crate::sql) fn type_numbers(condition: &Condition) -> Option<Vec<i64>> {
    let types = types(condition)?.into_iter();
    types.map(words::number).collect()
}

/// Appends, to a list that is led by what knows the type of records, that they have one of those
/// that a condition says, if each is a word.
pub(in crate::sql) fn of_types(out: &mut Statement, condition: &Condition, column: &'static str) {
    if let Some(numbers) = type_numbers(condition) {
        out.push(" AND ").push(column);
        Dialect::Sqlite.one_of(out, false, Bind::Ints(numbers));
    }
}
