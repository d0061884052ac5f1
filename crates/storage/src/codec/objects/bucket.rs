//! The directory or bucket of an archive.

use std::{fmt, ops::Range, sync::Arc};

use bytes::Bytes;
use object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, path::Path,
};

use super::{
    Error,
    client::{self, Settings},
    errors::failed,
};

/// A directory or bucket that has files by their paths. Files do not change.
pub struct Bucket {
    url: String,
    store: Arc<dyn ObjectStore>,
    root: Path,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bucket {}", self.url)
    }
}

impl Bucket {
    /// Makes ready to use a directory or bucket, of which nothing is asked yet. A directory is made if its
    /// parent is there. It fails with [`Error::Incompatible`] if the settings cannot be right.
    pub fn open(settings: &Settings) -> Result<Arc<Self>, Error> {
        let (url, store, root) = client::open(settings)?;
        Ok(Arc::new(Self { url, store, root }))
    }

    /// One in memory.
    #[cfg(any(test, feature = "testing"))]
    pub fn in_memory() -> Arc<Self> {
        Self::slow(std::time::Duration::ZERO)
    }

    /// One in memory that takes so long for each read.
    #[cfg(any(test, feature = "testing"))]
    pub fn slow(wait_get_per_call: std::time::Duration) -> Arc<Self> {
        let config = object_store::throttle::ThrottleConfig {
            wait_get_per_call,
            ..Default::default()
        };
        let store = object_store::memory::InMemory::new();
        Arc::new(Self {
            url: "memory:".to_owned(),
            store: Arc::new(object_store::throttle::ThrottledStore::new(store, config)),
            root: Path::default(),
        })
    }

    fn at(&self, path: &str) -> Result<Path, Error> {
        let parsed = Path::parse(format!("{}/{path}", self.root).trim_start_matches('/'));
        parsed.map_err(|error| Error::Corrupt(format!("the path `{path}`: {error}")))
    }

    fn failed(&self, what: &'static str, path: &str, error: StoreError) -> Error {
        let file = format!("{}/{path}", self.url);
        match error {
            StoreError::NotFound { .. } => Error::MissingObject(format!(
                "the archive file `{file}`, which has the records of results, is not there; put it back from a version \
                 or backup of the bucket"
            )),
            error => failed(what, file, error),
        }
    }

    /// Writes a file that is not there yet.
    pub(crate) async fn put_new(&self, path: &str, bytes: Bytes) -> Result<(), Error> {
        let options = PutOptions::from(PutMode::Create);
        let at = self.at(path)?;
        let put = self.store.put_opts(&at, bytes.into(), options).await;
        put.map(drop)
            .map_err(|error| self.failed("writing", path, error))
    }

    /// Reads a file.
    pub(crate) async fn get(&self, path: &str) -> Result<Bytes, Error> {
        let at = self.at(path)?;
        let read = async { self.store.get(&at).await?.bytes().await };
        read.await
            .map_err(|error| self.failed("reading", path, error))
    }

    /// Reads parts of a file at once.
    pub(crate) async fn get_ranges(
        &self,
        path: &str,
        ranges: &[Range<u64>],
    ) -> Result<Vec<Bytes>, Error> {
        let read = self.store.get_ranges(&self.at(path)?, ranges).await;
        read.map_err(|error| self.failed("reading", path, error))
    }

    /// Whether a file is there, by a HEAD request.
    pub(crate) async fn has(&self, path: &str) -> Result<bool, Error> {
        match self.store.head(&self.at(path)?).await {
            Ok(_) => Ok(true),
            Err(StoreError::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.failed("looking for", path, error)),
        }
    }

    /// Removes a file, which need not be there.
    pub(crate) async fn remove(&self, path: &str) -> Result<(), Error> {
        match self.store.delete(&self.at(path)?).await {
            Ok(()) | Err(StoreError::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed("removing", path, error)),
        }
    }
}
