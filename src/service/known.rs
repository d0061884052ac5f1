//! Results that are thought to exist, because this server has seen them. A hint: one that was
//! deleted meanwhile costs a statement more, and nothing else.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use hindsight_filter::model::ResultName;

/// How many are remembered; some 100 bytes each.
const MOST: usize = 10_000;

/// The names. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownResults(Arc<Mutex<HashSet<ResultName>>>);

impl KnownResults {
    /// Whether this one was seen lately.
    pub(super) fn has(&self, name: &ResultName) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.contains(name)
    }

    /// Remembers that the result exists; a full set is emptied first.
    pub(super) fn add(&self, name: &ResultName) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // To begin anew costs less than to know which of them was not used for long.
        if known.len() >= MOST && !known.contains(name) {
            known.clear();
        }
        if !known.contains(name) {
            known.insert(name.clone());
        }
    }

    /// It turned out not to be there.
    pub(super) fn forget(&self, name: &ResultName) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded() {
        let known = KnownResults::default();
        let name = |n: usize| format!("a/results/{n}").parse::<ResultName>().unwrap();
        for n in 0..=MOST {
            known.add(&name(n));
            assert!(known.has(&name(n)));
        }
        assert!(!known.has(&name(0)));
        known.forget(&name(MOST));
        assert!(!known.has(&name(MOST)));
    }
}
