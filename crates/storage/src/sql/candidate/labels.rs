//! Labels that every record of a list must have, where a path knows them without reading the record. SQLite alone.

use super::{IndexCandidate, candidate_of, conjuncts};
use crate::sql::{cost, dialect::Dialect, statement::Statement};
use hindsight_filter::condition::{Column, Condition, Is, Test, Value};
use hindsight_filter::model::Resource;

/// Appends, to a list that is led by what knows the time of rows, which labels they must have
/// besides the one that leads, so that those that lack one are passed over before they are read. Of
/// an EXISTS SQLite would make a join, and read the row first.
pub(in crate::sql) fn other_labels(
    out: &mut Statement,
    condition: &Condition,
    led: Option<(&str, &str)>,
) {
    let candidates = conjuncts(condition)
        .into_iter()
        .filter_map(|test| candidate_of(Resource::Records, None, test));
    for other in candidates {
        let IndexCandidate::Label(key, value) = other else {
            continue;
        };
        if Some((key, value)) == led {
            continue;
        }
        out.push(" AND (SELECT 1 FROM record_labels AS other WHERE other.label = ");
        Dialect::Sqlite.label(out, key, value);
        out.push(" AND other.at_us = driving.at_us AND other.record_row = driving.record_row) = 1");
    }
}

/// The condition without the labels that every record must have, of which [`other_labels`] asks the path.
pub(in crate::sql) fn beside_labels(condition: &Condition) -> Condition {
    match condition {
        Condition::And(all) => Condition::And(all.iter().map(beside_labels).collect()),
        Condition::Test(test)
            if matches!(
                candidate_of(Resource::Records, None, test),
                Some(IndexCandidate::Label(..))
            ) =>
        {
            Condition::All
        }
        other => other.clone(),
    }
}

/// The keys of which every row of a list must have some label.
pub(crate) fn keys_asked(condition: &Condition) -> Vec<&str> {
    let keys = conjuncts(condition).into_iter().filter_map(key_asked);
    keys.collect()
}

fn key_asked(test: &Test) -> Option<&str> {
    match (&test.column, &test.is, test.negated) {
        (Column::Label(key), Is::Present, false) => Some(key),
        _ => None,
    }
}

/// The statement that gives the values of a key, up to one more than lists look for one by one.
pub(crate) fn values_of(key: &str) -> Statement {
    let mut out = Statement::new("SELECT value FROM labels WHERE key = ");
    out.bind_word(key)
        .push(" LIMIT ")
        .bind(i64::try_from(cost::MOST_VALUES).unwrap_or(i64::MAX) + 1);
    out
}

/// The condition with these values where some label of the key was asked for: each has its rows in the order of time. As it is
/// if they are too many.
pub(crate) fn with_values(condition: Condition, key: &str, values: &[String]) -> Condition {
    match condition {
        _ if values.is_empty() => Condition::Nothing,
        Condition::And(all) if values.len() <= cost::MOST_VALUES => {
            let all = all.into_iter().map(|one| with_values(one, key, values));
            Condition::And(all.collect())
        }
        Condition::Test(test)
            if values.len() <= cost::MOST_VALUES && key_asked(&test) == Some(key) =>
        {
            let values = values.iter().cloned().map(Value::Text).collect();
            Condition::Test(Test {
                is: Is::OneOf(values),
                ..test
            })
        }
        other => other,
    }
}
