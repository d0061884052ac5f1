//! Which dictionaries this process knows, and which bodies refer to them.
//!
//! Which dictionary is current for a key (a type, and within it a task of a pipeline) is in the
//! database; what is here is a bounded copy. Any dictionary of a parent may be used for any of its
//! bodies, so replicas that make different ones do no harm.

mod cache;
mod plan;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Mutex as AsyncMutex;

use self::{cache::Cache, plan::Draft};
use super::{
    body::Help,
    dictionary::{DictionaryStore, Key, Keys, Loaded, NewDictionary, StoredDictionary},
    parallel::par_map_blocking,
    row::RecordRow,
};
use crate::seam::Error;

/// The dictionaries that this process knows.
#[derive(Debug, Default)]
pub(crate) struct DictionaryCache {
    cache: Mutex<Cache>,
    /// Held while dictionaries are made, so that batches that meet a kind of run at once make one.
    making: AsyncMutex<()>,
}

impl DictionaryCache {
    fn cache(&self) -> MutexGuard<'_, Cache> {
        // Every change of the cache leaves it whole.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets everything, because the database knows better.
    pub(crate) fn forget(&self) {
        *self.cache() = Cache::default();
    }

    /// Forgets the dictionaries in these rows, because the database has them no longer.
    pub(crate) fn forget_rows(&self, gone: &BTreeSet<i64>) {
        self.cache().forget(gone);
    }

    /// The dictionaries in these rows. A row that is not in the answer is not in the database.
    pub(crate) async fn load(
        &self,
        store: &impl DictionaryStore,
        ids: BTreeSet<i64>,
    ) -> Result<Loaded, Error> {
        let mut loaded = Loaded::new();
        let mut missing = Vec::new();
        {
            let mut cache = self.cache();
            for id in ids {
                match cache.dictionary(id) {
                    Some(dictionary) => drop(loaded.insert(id, dictionary)),
                    None => missing.push(id),
                }
            }
        }
        if !missing.is_empty() {
            for stored in store.dictionaries(&missing).await? {
                let dictionary = Arc::new(stored.open()?);
                self.cache().insert(Arc::clone(&dictionary));
                loaded.insert(dictionary.id(), dictionary);
            }
        }
        Ok(loaded)
    }

    /// Chooses the dictionary that each loose body is compressed with; the first bodies of their
    /// keys become dictionaries themselves.
    pub(crate) async fn choose(
        &self,
        store: &impl DictionaryStore,
        rows: &[&RecordRow],
    ) -> Result<(Vec<Option<i64>>, Loaded), Error> {
        let unknown = {
            let cache = self.cache();
            let keys = rows.iter().filter_map(|row| row.keys.as_ref());
            let keys: BTreeSet<Key> = keys.flat_map(Keys::all).collect();
            keys.into_iter()
                .filter(|key| !cache.knows(key))
                .collect::<Vec<_>>()
        };
        self.look(store, &unknown).await?;
        let drafts = Draft::all(rows, &mut self.cache());
        if !drafts.is_empty() {
            let made = par_map_blocking(drafts, Draft::weight, Draft::made).await?;
            self.make(store, made.into_iter().flatten().collect())
                .await?;
        }
        let chosen: Vec<Option<i64>> = {
            let mut cache = self.cache();
            let of = |row: &&RecordRow| row.keys.as_ref().and_then(|keys| cache.best(keys));
            rows.iter().map(of).collect()
        };
        let loaded = self
            .load(store, chosen.iter().flatten().copied().collect())
            .await?;
        Ok((chosen, loaded))
    }

    /// Stores dictionaries, but for those that another batch has made meanwhile.
    async fn make(
        &self,
        store: &impl DictionaryStore,
        mut new: Vec<NewDictionary>,
    ) -> Result<(), Error> {
        let _making = self.making.lock().await;
        {
            let cache = self.cache();
            let lacks = |key: &Key| !cache.has_dictionary(key) || cache.is_outdated(key);
            new.retain(|new| new.keys.iter().any(lacks));
        }
        let keys: Vec<Key> = new.iter().flat_map(|new| new.keys.clone()).collect();
        if !new.is_empty() {
            store.put(new).await?;
        }
        self.look(store, &keys).await
    }

    /// Asks the database which dictionaries are current.
    async fn look(&self, store: &impl DictionaryStore, keys: &[Key]) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let found: HashMap<Key, StoredDictionary> =
            store.current(keys).await?.into_iter().collect();
        for key in keys {
            self.cache()
                .settle(*key, found.get(key).map(|dictionary| dictionary.id));
        }
        let mut opened = BTreeSet::new();
        for stored in found.into_values() {
            if opened.insert(stored.id) && self.cache().dictionary(stored.id).is_none() {
                self.cache().insert(Arc::new(stored.open()?));
            }
        }
        Ok(())
    }

    /// Learns how much the chosen dictionary helped.
    pub(crate) fn learn(&self, keys: &Keys, help: Help) {
        self.cache().learn(keys, help);
    }
}
