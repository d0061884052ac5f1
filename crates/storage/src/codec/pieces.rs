//! Pieces: bodies stored whole, once, which later bodies of the same parent refer to.
//!
//! Runs of one task of one pipeline differ in ids, times and digests alone; compressed with one
//! of them as dictionary, the others take a tenth. Which piece is current for a key (a type, and
//! within it a task of a pipeline) is in the database; what is here is a bounded copy. Any piece
//! of a parent may be used for any of its bodies, so replicas that make different ones do no harm.
//! A piece goes with the record whose payload it is, see [`sweep`].

mod cache;
mod key;
mod plan;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use async_trait::async_trait;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use zstd::zstd_safe::CDict;

use self::{cache::Cache, plan::Plan};
pub(crate) use self::{key::Key, key::Keys};
use super::{
    body::{Help, alone, opened},
    row::RecordRow,
};
use crate::seam::Error;

/// A piece of fewer bytes saves nothing; one of more would fill the memory of readers.
pub(crate) const SIZES: std::ops::RangeInclusive<usize> = 256..=(256 << 10);

/// How hard zstd tries against a piece: 5 bytes in 50 less than at 3, for 12 µs a body more.
const LEVEL: i32 = 6;

/// A piece in memory.
pub(crate) struct Piece {
    id: i64,
    content: Bytes,
    dictionary: OnceLock<CDict<'static>>,
}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Piece {} of {} bytes", self.id, self.content.len())
    }
}

impl Piece {
    /// The piece in row `id`.
    pub(crate) fn new(id: i64, content: Bytes) -> Self {
        Self {
            id,
            content,
            dictionary: OnceLock::new(),
        }
    }

    /// The row it is in.
    pub(crate) fn id(&self) -> i64 {
        self.id
    }

    /// Its bytes.
    pub(crate) fn content(&self) -> &[u8] {
        &self.content
    }

    /// Prepared for compressing; made when it is first asked for.
    pub(crate) fn dictionary(&self) -> &CDict<'static> {
        self.dictionary
            .get_or_init(|| CDict::create(&self.content, LEVEL))
    }

    /// Bytes of memory, once it is used for compressing.
    fn weight(&self) -> usize {
        self.content.len() * 2 + (192 << 10)
    }
}

/// A piece as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredPiece {
    /// Its row.
    pub(crate) id: i64,
    /// Of its content.
    pub(crate) sha256: Vec<u8>,
    /// How many bytes its content has.
    pub(crate) size: i64,
    /// Its content as one zstd frame.
    pub(crate) bytes: Vec<u8>,
}

impl StoredPiece {
    /// The piece, opened.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is not what was stored.
    pub(crate) fn open(self) -> Result<Piece, Error> {
        let id = self.id;
        let corrupt = |why: String| Error::Corrupt(format!("piece {id}: {why}"));
        let size = usize::try_from(self.size).map_err(|e| corrupt(e.to_string()))?;
        let content = opened(&self.bytes, size, &[]).map_err(|e| corrupt(e.to_string()))?;
        if Sha256::digest(&content).as_slice() != self.sha256 {
            return Err(corrupt("its SHA-256 differs".to_owned()));
        }
        Ok(Piece::new(id, content))
    }
}

/// A piece to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewPiece {
    /// Whose bodies may refer to it.
    pub(crate) parent: String,
    /// What it becomes the current piece of, in ascending order.
    pub(crate) keys: Vec<Key>,
    /// Whether it takes the place of a current piece.
    pub(crate) replaces: bool,
    /// Of its content.
    pub(crate) sha256: [u8; 32],
    /// How many bytes its content has.
    pub(crate) size: i64,
    /// Its content as one zstd frame.
    pub(crate) bytes: Bytes,
}

impl NewPiece {
    /// A piece with this content, unless it cannot be compressed.
    pub(crate) fn of(parent: String, value: &[u8], keys: Vec<Key>, replaces: bool) -> Option<Self> {
        Some(Self {
            parent,
            keys,
            replaces,
            sha256: Sha256::digest(value).into(),
            size: i64::try_from(value.len()).ok()?,
            bytes: alone(value)?.into(),
        })
    }
}

/// Where pieces are stored.
#[async_trait]
pub(crate) trait Shelf: Sync {
    /// The current pieces of these keys, where there are any.
    async fn current(&self, keys: &[Key]) -> Result<Vec<(Key, StoredPiece)>, Error>;

    /// The pieces in these rows, those that are there.
    async fn pieces(&self, ids: &[i64]) -> Result<Vec<StoredPiece>, Error>;

    /// Stores pieces, durably, unless their content is there already, and makes them current.
    async fn put(&self, new: Vec<NewPiece>) -> Result<(), Error>;
}

/// What a change refers to was deleted, or other fields were promoted, while it was on its way.
#[derive(Debug, thiserror::Error)]
#[error("what it was prepared from has changed meanwhile")]
struct Outdated;

/// The error of a batch that is to be prepared again.
pub(crate) fn outdated() -> Error {
    Error::Unavailable {
        what: "storing a record",
        source: Box::new(Outdated),
    }
}

/// Whether it is that error.
pub(crate) fn is_outdated(error: &Error) -> bool {
    matches!(error, Error::Unavailable { source, .. } if source.is::<Outdated>())
}

/// How often a batch is prepared again.
pub(crate) const REPACKS: usize = 4;

/// The pieces that this process knows.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    cache: Mutex<Cache>,
}

/// Pieces by row.
pub(crate) type Loaded = HashMap<i64, Arc<Piece>>;

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
