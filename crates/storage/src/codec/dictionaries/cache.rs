//! The bounded memory of dictionaries and keys. What was used longest ago is forgotten first.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use crate::codec::{
    body::Help,
    dictionary::{Dictionary, Key, Keys},
};

/// Bytes of memory for dictionaries.
const ROOM: usize = 32 << 20;

/// How many keys are remembered.
const KEYS: usize = 16_384;

/// A dictionary may be replaced once it was used so often since it became current.
const PATIENCE: u32 = 32;

/// What is remembered of a key.
#[derive(Debug, Default)]
struct Entry {
    used: u64,
    /// The current dictionary; none if the database has none.
    dictionary: Option<i64>,
    /// How many bodies had the key.
    met: u32,
    /// How many referred to the dictionary.
    referred: u32,
    /// Whether the dictionary has come to help little.
    is_outdated: bool,
}

#[derive(Debug, Default)]
pub(super) struct Cache {
    clock: u64,
    keys: HashMap<Key, Entry>,
    dictionaries: HashMap<i64, (u64, Arc<Dictionary>)>,
    weight: usize,
}

impl Cache {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The dictionary in a row, if it is in memory.
    pub(super) fn dictionary(&mut self, id: i64) -> Option<Arc<Dictionary>> {
        let now = self.tick();
        let (used, dictionary) = self.dictionaries.get_mut(&id)?;
        *used = now;
        Some(Arc::clone(dictionary))
    }

    /// Bytes of memory for dictionaries.
    #[cfg(test)]
    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    pub(super) fn insert(&mut self, dictionary: Arc<Dictionary>) {
        let now = self.tick();
        self.weight += dictionary.weight();
        if let Some((_, before)) = self.dictionaries.insert(dictionary.id(), (now, dictionary)) {
            self.weight -= before.weight();
        }
        if self.weight > ROOM {
            self.thin_dictionaries();
        }
    }

    /// Forgets the older dictionaries, a quarter at once, so that looking for them is rare.
    fn thin_dictionaries(&mut self) {
        let mut ages: Vec<(u64, i64)> = self
            .dictionaries
            .iter()
            .map(|(id, (used, _))| (*used, *id))
            .collect();
        ages.sort_unstable();
        for (_, id) in ages {
            if self.weight <= ROOM / 4 * 3 || self.dictionaries.len() == 1 {
                return;
            }
            if let Some((_, dictionary)) = self.dictionaries.remove(&id) {
                self.weight -= dictionary.weight();
            }
        }
    }

    /// Forgets the dictionaries in these rows, and that they are current for a key.
    pub(super) fn forget(&mut self, gone: &BTreeSet<i64>) {
        for id in gone {
            if let Some((_, dictionary)) = self.dictionaries.remove(id) {
                self.weight -= dictionary.weight();
            }
        }
        let is_gone = |entry: &Entry| entry.dictionary.is_some_and(|id| gone.contains(&id));
        self.keys.retain(|_, entry| !is_gone(entry));
    }

    /// Whether it is known which dictionary is current.
    pub(super) fn knows(&self, key: &Key) -> bool {
        self.keys.contains_key(key)
    }

    /// Remembers what the database says.
    pub(super) fn settle(&mut self, key: Key, dictionary: Option<i64>) {
        let now = self.tick();
        let entry = self.keys.entry(key).or_default();
        entry.used = now;
        if entry.dictionary != dictionary {
            entry.dictionary = dictionary;
            entry.referred = 0;
        }
        entry.is_outdated = false;
        if self.keys.len() > KEYS {
            let mut ages: Vec<u64> = self.keys.values().map(|entry| entry.used).collect();
            ages.sort_unstable();
            let oldest = ages[KEYS / 4];
            self.keys.retain(|_, entry| entry.used > oldest);
        }
    }

    /// Counts a body with this key, and says whether it was not the first: a key that is never
    /// met again is worth no dictionary.
    pub(super) fn meet(&mut self, key: &Key) -> bool {
        let Some(entry) = self.keys.get_mut(key) else {
            return false;
        };
        entry.met = entry.met.saturating_add(1);
        entry.met > 1
    }

    pub(super) fn has_dictionary(&self, key: &Key) -> bool {
        self.keys
            .get(key)
            .is_some_and(|entry| entry.dictionary.is_some())
    }

    pub(super) fn is_outdated(&self, key: &Key) -> bool {
        self.keys.get(key).is_some_and(|entry| entry.is_outdated)
    }

    /// The row of the dictionary that is likely to help most.
    pub(super) fn best(&mut self, keys: &Keys) -> Option<i64> {
        let now = self.tick();
        for key in keys.all() {
            let Some(entry) = self.keys.get_mut(&key) else {
                continue;
            };
            entry.used = now;
            if entry.dictionary.is_some() {
                return entry.dictionary;
            }
        }
        None
    }

    /// Remembers how much the dictionary of a key of its own helped a body. Dictionaries of types
    /// are for all kinds of bodies, so they are not replaced.
    pub(super) fn learn(&mut self, keys: &Keys, help: Help) {
        let entry = keys.own.and_then(|own| self.keys.get_mut(&own));
        let Some(entry) = entry.filter(|entry| entry.dictionary.is_some()) else {
            return;
        };
        entry.referred = entry.referred.saturating_add(1);
        if help == Help::Little && entry.referred >= PATIENCE {
            entry.is_outdated = true;
        }
    }
}
