//! Which bodies of a batch become dictionaries.

use std::collections::HashSet;

use bytes::Bytes;

use super::cache::Cache;
use crate::codec::{
    dictionary::{Key, NewDictionary, SIZES},
    row::RecordRow,
    short::Ids,
};

/// A body that becomes a dictionary before its batch is stored.
#[derive(Debug)]
pub(super) struct Draft {
    parent: String,
    value: Bytes,
    ids: Ids,
    keys: Vec<Key>,
    replaces: bool,
}

impl Draft {
    /// Those of loose bodies whose keys `cache` knows. The cache is locked, so nothing is compressed here.
    pub(super) fn all(rows: &[&RecordRow], cache: &mut Cache) -> Vec<Self> {
        let mut drafts = Vec::new();
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
            wanted.sort_unstable();
            taken.extend(&wanted);
            let (id, result) = (row.record.name.id(), row.record.name.result());
            drafts.push(Self {
                parent: result.parent().as_str().to_owned(),
                value: body.bytes.clone(),
                ids: Ids::new(id, result.id()),
                keys: wanted,
                replaces,
            });
        }
        drafts
    }

    /// How long it takes to make, as bytes of bodies that take as long to compress.
    pub(super) fn weight(&self) -> usize {
        self.value.len() * 8
    }

    /// The dictionary, unless it cannot be compressed.
    pub(super) fn made(self) -> Option<NewDictionary> {
        let payload = (&self.value[..], &self.ids);
        let made = NewDictionary::of(self.parent, payload, self.keys, self.replaces);
        made.map(|(new, _)| new)
    }
}
