//! Which bodies of a batch become pieces.

use std::collections::HashSet;

use super::{Key, NewPiece, cache::Cache};
use crate::storage::row::RecordRow;

/// A piece of fewer bytes saves nothing; one of more would fill the memory of readers.
const SIZES: std::ops::RangeInclusive<usize> = 256..=(256 << 10);

/// What to store before a batch.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The pieces.
    pub(super) new: Vec<NewPiece>,
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
                if renew || is_frequent && !cache.has_piece(&own) {
                    wanted.push(own);
                    replaces = renew;
                }
            }
            let first = !taken.contains(&keys.of_type) && !cache.has_piece(&keys.of_type);
            if first && !replaces {
                wanted.push(keys.of_type);
            }
            if wanted.is_empty() {
                continue;
            }
            wanted.sort_unstable();
            if let Some(new) = NewPiece::of(&body.bytes, wanted.clone(), replaces) {
                taken.extend(wanted);
                plan.new.push(new);
            }
        }
        plan
    }
}
