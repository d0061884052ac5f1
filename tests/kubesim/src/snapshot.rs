//! A kind as it was: what lists and pages read.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use crate::objects::{Key, Stored};

/// The objects of a kind at some version: the live ones with later changes undone.
#[derive(Debug)]
pub(crate) struct Snapshot<'a> {
    live: &'a BTreeMap<Key, Arc<Stored>>,
    undone: BTreeMap<Key, Option<Arc<Stored>>>,
}

impl<'a> Snapshot<'a> {
    pub(crate) fn new(
        live: &'a BTreeMap<Key, Arc<Stored>>,
        undone: BTreeMap<Key, Option<Arc<Stored>>>,
    ) -> Self {
        Self { live, undone }
    }

    /// The object of this key, as it was when the snapshot was taken.
    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Stored>> {
        match self.undone.get(key) {
            Some(before) => before.as_ref(),
            None => self.live.get(key),
        }
    }

    /// The objects in order, of one namespace or of all, after the key `after`.
    pub(crate) fn walk(
        &self,
        namespace: Option<&str>,
        after: Option<&Key>,
    ) -> impl Iterator<Item = &Arc<Stored>> {
        let from = match (after, namespace) {
            (Some(key), _) => Bound::Excluded(key.clone()),
            (None, Some(namespace)) => Bound::Included(Key::new(namespace, "")),
            (None, None) => Bound::Unbounded,
        };
        let inside = move |key: &Key| namespace.is_none_or(|wanted| key.namespace == wanted);
        let mut live = self
            .live
            .range((from.clone(), Bound::Unbounded))
            .take_while(move |(key, _)| inside(key))
            .filter(|(key, _)| !self.undone.contains_key(key))
            .peekable();
        let mut undone = self
            .undone
            .range((from, Bound::Unbounded))
            .take_while(move |(key, _)| inside(key))
            .filter_map(|(key, stored)| Some((key, stored.as_ref()?)))
            .peekable();
        std::iter::from_fn(move || {
            let undone_first = match (live.peek(), undone.peek()) {
                (Some((live, _)), Some((undone, _))) => undone < live,
                (None, Some(_)) => true,
                _ => false,
            };
            let next = if undone_first {
                undone.next()
            } else {
                live.next()
            };
            next.map(|(_, stored)| stored)
        })
    }
}
