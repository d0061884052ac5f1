//! Names of which something is asked, other than to be one.

use super::{IndexCandidate, conjuncts};
use crate::seam::ListQuery;
use crate::sql::{condition::ability, trigrams};
use hindsight_filter::condition::{Ability, Column, Is, ObjectField, Test};

/// What is asked of names, other than to be one.
pub(in crate::sql) fn of_names(query: &ListQuery) -> Option<IndexCandidate<'_>> {
    searched(conjuncts(&query.condition))
}

pub(super) fn searched(tests: Vec<&Test>) -> Option<IndexCandidate<'_>> {
    let searched = tests.into_iter().find(|test| {
        ability(test) != Ability::None
            && test.column == Column::Object(ObjectField::Name)
            && matches!(
                test.is,
                Is::Contains(_) | Is::StartsWith(_) | Is::EndsWith(_)
            )
    });
    searched.map(|test| match trigrams::of_names(test) {
        Some(part) => IndexCandidate::NameParts(part),
        None => IndexCandidate::Names(test),
    })
}
