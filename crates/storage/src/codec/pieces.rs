//! Which pieces this process knows, and which bodies refer to them.
//!
//! Which piece is current for a key (a type, and
//! within it a task of a pipeline) is in the database; what is here is a bounded copy. Any piece
//! of a parent may be used for any of its bodies, so replicas that make different ones do no harm.

mod cache;
mod plan;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use self::{cache::Cache, plan::Plan};
use super::{
    body::Help,
    dictionary::{Key, Keys, Loaded, Shelf, StoredPiece},
    row::RecordRow,
};
use crate::seam::Error;

/// The pieces that this process knows.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    cache: Mutex<Cache>,
}

impl Pieces {
    fn cache(&self) -> MutexGuard<'_, Cache> {
        // Every change of the cache leaves it whole.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets everything, because the database knows better.
    pub(crate) fn forget(&self) {
        *self.cache() = Cache::default();
    }

    /// The pieces in these rows. A row that is not in the answer is not in the database.
    pub(crate) async fn load(
        &self,
        shelf: &impl Shelf,
        ids: BTreeSet<i64>,
    ) -> Result<Loaded, Error> {
        let mut loaded = Loaded::new();
        let mut missing = Vec::new();
        {
            let mut cache = self.cache();
            for id in ids {
                match cache.piece(id) {
                    Some(piece) => drop(loaded.insert(id, piece)),
                    None => missing.push(id),
                }
            }
        }
        if !missing.is_empty() {
            for stored in shelf.pieces(&missing).await? {
                let piece = Arc::new(stored.open()?);
                self.cache().insert(Arc::clone(&piece));
                loaded.insert(piece.id(), piece);
            }
        }
        Ok(loaded)
    }

    /// Chooses the piece that each loose body is compressed with; the first bodies of their
    /// keys become pieces themselves.
    pub(crate) async fn choose(
        &self,
        shelf: &impl Shelf,
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
        self.look(shelf, &unknown).await?;
        let plan = Plan::of(rows, &mut self.cache());
        if !plan.new.is_empty() {
            let keys: Vec<Key> = plan.new.iter().flat_map(|new| new.keys.clone()).collect();
            shelf.put(plan.new).await?;
            self.look(shelf, &keys).await?;
        }
        let chosen: Vec<Option<i64>> = {
            let mut cache = self.cache();
            let of = |row: &&RecordRow| row.keys.as_ref().and_then(|keys| cache.best(keys));
            rows.iter().map(of).collect()
        };
        let loaded = self
            .load(shelf, chosen.iter().flatten().copied().collect())
            .await?;
        Ok((chosen, loaded))
    }

    /// Asks the database which pieces are current.
    async fn look(&self, shelf: &impl Shelf, keys: &[Key]) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let found: HashMap<Key, StoredPiece> = shelf.current(keys).await?.into_iter().collect();
        for key in keys {
            self.cache()
                .settle(*key, found.get(key).map(|piece| piece.id));
        }
        let mut opened = BTreeSet::new();
        for stored in found.into_values() {
            if opened.insert(stored.id) && self.cache().piece(stored.id).is_none() {
                self.cache().insert(Arc::new(stored.open()?));
            }
        }
        Ok(())
    }

    /// Learns how much the chosen piece helped.
    pub(crate) fn learn(&self, keys: &Keys, help: Help) {
        self.cache().learn(keys, help);
    }
}
