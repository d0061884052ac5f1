//! Dictionaries: bodies stored whole, once, which later bodies of the same parent refer to.
//!
//! Runs of one task of one pipeline differ in ids, times and digests alone; compressed with one
//! of them as dictionary, the others take a tenth. A dictionary goes with the record whose
//! payload it is.

mod key;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock},
};

use async_trait::async_trait;
use bytes::Bytes;
use zstd::zstd_safe::CDict;

pub(crate) use self::{key::Key, key::Keys};
use super::{
    digest::{Digest, digest},
    frame::{dense, opened},
    short::Ids,
};
use crate::seam::Error;

/// A dictionary of fewer bytes saves nothing; one of more would fill the memory of readers.
pub(crate) const SIZES: std::ops::RangeInclusive<usize> = 256..=(256 << 10);

/// How hard zstd tries against a dictionary: 5 bytes in 50 less than at 3, for 12 µs a body more.
const LEVEL: i32 = 6;

/// A dictionary in memory.
pub(crate) struct Dictionary {
    id: i64,
    content: Bytes,
    dictionary: OnceLock<CDict<'static>>,
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dictionary {} of {} bytes", self.id, self.content.len())
    }
}

impl Dictionary {
    /// The dictionary in row `id`.
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

/// A dictionary as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredDictionary {
    pub(crate) id: i64,
    pub(crate) sha256: Vec<u8>,
    /// How many bytes its content has.
    pub(crate) size: i64,
    /// Its content as one zstd frame.
    pub(crate) bytes: Vec<u8>,
}

impl StoredDictionary {
    /// The dictionary, opened.
    ///
    /// Fails with [`Error::Corrupt`] if it is not what was stored.
    pub(crate) fn open(self) -> Result<Dictionary, Error> {
        let id = self.id;
        let corrupt = |why: String| Error::Corrupt(format!("dictionary {id}: {why}"));
        let size = usize::try_from(self.size).map_err(|e| corrupt(e.to_string()))?;
        let content = opened(&self.bytes, size, &[]).map_err(|e| corrupt(e.to_string()))?;
        if digest(&content).as_slice() != self.sha256 {
            return Err(corrupt("its SHA-256 differs".to_owned()));
        }
        Ok(Dictionary::new(id, content))
    }
}

/// A dictionary to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewDictionary {
    /// Whose bodies may refer to it.
    pub(crate) parent: String,
    /// What it becomes the current dictionary of, in ascending order.
    pub(crate) keys: Vec<Key>,
    /// Whether it takes the place of a current dictionary.
    pub(crate) replaces: bool,
    /// The digest of the payload, by which it is known whose it is.
    pub(crate) payload_sha256: Digest,
    /// The digest of its content, the payload in its short form.
    pub(crate) sha256: Digest,
    /// How many bytes its content has.
    pub(crate) size: i64,
    /// Its content as one zstd frame.
    pub(crate) bytes: Bytes,
}

impl NewDictionary {
    /// A dictionary of this payload, unless it cannot be compressed, and its content.
    pub(crate) fn of(
        parent: String,
        (value, ids): (&[u8], &Ids),
        keys: Vec<Key>,
        replaces: bool,
    ) -> Option<(Self, Bytes)> {
        let content = Bytes::from(ids.shortened(value));
        let new = Self {
            parent,
            keys,
            replaces,
            payload_sha256: digest(value),
            sha256: digest(&content),
            size: i64::try_from(content.len()).ok()?,
            bytes: dense(&content)?.into(),
        };
        Some((new, content))
    }
}

/// Where dictionaries are stored.
#[async_trait]
pub(crate) trait DictionaryStore: Sync {
    /// The current dictionaries of these keys, where there are any.
    async fn current(&self, keys: &[Key]) -> Result<Vec<(Key, StoredDictionary)>, Error>;

    /// The dictionaries in these rows, those that are there.
    async fn dictionaries(&self, ids: &[i64]) -> Result<Vec<StoredDictionary>, Error>;

    /// Stores dictionaries, durably, unless their content is there already, and makes them current.
    async fn put(&self, new: Vec<NewDictionary>) -> Result<(), Error>;
}

pub(crate) type Loaded = HashMap<i64, Arc<Dictionary>>;
