//! Labels that every record of a list must have, where a path knows them without reading the record. SQLite alone.

use super::{IndexCandidate, candidate_of, conjuncts};
use crate::sql::{dialect::Dialect, statement::Statement};
use hindsight_filter::condition::Condition;
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
