//! Which events were sent lately, so that a run whose state is stored again is not told of again.

use std::{
    collections::{HashSet, VecDeque},
    hash::{BuildHasher as _, RandomState},
};

/// How many are remembered.
const MOST: usize = 16_384;

/// Numbers of ids; the oldest is forgotten first.
#[derive(Debug, Default)]
pub(super) struct Told {
    numbers: HashSet<u64>,
    order: VecDeque<u64>,
    hasher: RandomState,
}

impl Told {
    /// Remembers an id; true if it was not known.
    pub(super) fn insert(&mut self, id: &str) -> bool {
        let number = self.hasher.hash_one(id);
        if !self.numbers.insert(number) {
            return false;
        }
        self.order.push_back(number);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.numbers.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first() {
        let mut told = Told::default();
        assert!(told.insert("first"));
        assert!(!told.insert("first"));
        for number in 0..MOST {
            assert!(told.insert(&number.to_string()), "{number}");
        }
        assert!(!told.insert("1"));
        assert!(told.insert("first"), "it was forgotten");
        assert_eq!((told.numbers.len(), told.order.len()), (MOST, MOST));
    }
}
