//! Which bodies of a batch become dictionaries.

use std::collections::HashSet;

use super::cache::Cache;
use crate::codec::{
    dictionary::{Key, NewDictionary, SIZES},
    row::RecordRow,
    short::Ids,
};

/// What to store before a batch.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) new: Vec<NewDictionary>,
}

impl Plan {
    /// The plan for loose bodies whose keys `cache` knows.
    pub(super) fn of(rows: &[&RecordRow], cache: &mut Cache) -> Self {
        let mut plan = Self::default();
        let mut taken: HashSet<Key> = HashSet::new();
        for row in rows {
            let (Some(keys), Some(body)) = (&row.keys, &row.body) else {
                continue;
            };
            let is_frequent = keys.own.is_some_and(|own| cache.meet(&own));
            if !keys.is_settled || !SIZES.contains(&body.bytes.len()) {
                continue;
            }
            let mut wanted = Vec::new();
            let mut replaces = false;
            if let Some(own) = keys.own.filter(|own| !taken.contains(own)) {
                let renew = cache.is_outdated(&own);
                if renew || is_frequent && !cache.has_dictionary(&own) {
                    wanted.push(own);
                    replaces = renew;
                }
            }
            let first = !taken.contains(&keys.of_type) && !cache.has_dictionary(&keys.of_type);
            // A body refers to the dictionary of its own key, if there is one; and what becomes a
            // dictionary refers to it.
            let is_elsewhere = keys
                .own
                .is_some_and(|own| cache.has_dictionary(&own) || taken.contains(&own));
            if first && !is_elsewhere {
                wanted.push(keys.of_type);
            }
            if wanted.is_empty() {
                continue;
            }
            let (id, result) = (row.record.name.id(), row.record.name.result());
            let payload = (&body.bytes[..], &Ids::new(id, result.id()));
            let parent = result.parent().as_str().to_owned();
            wanted.sort_unstable();
            if let Some((new, _)) = NewDictionary::of(parent, payload, wanted.clone(), replaces) {
                taken.extend(wanted);
                plan.new.push(new);
            }
        }
        plan
    }
}
