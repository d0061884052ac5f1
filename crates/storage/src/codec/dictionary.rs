//! Pieces: bodies stored whole, once, which later bodies of the same parent refer to.
//!
//! Runs of one task of one pipeline differ in ids, times and digests alone; compressed with one
//! of them as dictionary, the others take a tenth. A piece goes with the record whose payload it
//! is.

mod key;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock},
};

use async_trait::async_trait;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use zstd::zstd_safe::CDict;

pub(crate) use self::{key::Key, key::Keys};
use super::frame::{alone, opened};
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
    pub(crate) fn weight(&self) -> usize {
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

/// Pieces by row.
pub(crate) type Loaded = HashMap<i64, Arc<Piece>>;
