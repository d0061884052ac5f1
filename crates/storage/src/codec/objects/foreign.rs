//! Objects that other programs wrote, such as logs: they are listed and read, and nothing is written.

use std::{collections::BTreeMap, fmt, sync::Arc};

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream::BoxStream};
use jiff::Timestamp;
use object_store::{Error as StoreError, ObjectStore, ObjectStoreExt as _, path::Path};

use super::{client, errors::failed};
use crate::seam::Error;

const LISTING: &str = "listing logs in";
const READING: &str = "reading a log in";

/// A directory or a bucket that is only read.
#[derive(Clone)]
pub struct ForeignObjects {
    url: String,
    store: Arc<dyn ObjectStore>,
    root: Path,
}

impl fmt::Debug for ForeignObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ForeignObjects {}", self.url)
    }
}

/// An object that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignObject {
    /// Its place below the URL.
    pub path: String,
    /// How many bytes it has.
    pub size: u64,
    /// When it was written.
    pub modified: Timestamp,
}

/// The bytes of an object, as they come.
pub type ForeignBytes = BoxStream<'static, Result<Bytes, Error>>;

impl ForeignObjects {
    /// Makes ready to read what lies at a URL. `options` say how a bucket is reached, by the names that
    /// [`object_store`] knows, in lower case. It fails if the URL or the options cannot be right.
    pub fn open(url: &str, options: &BTreeMap<String, String>) -> Result<Self, Error> {
        let (url, store, root) = client::open_to_read(url, options)?;
        Ok(Self { url, store, root })
    }

    /// The URL, which has no credentials.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The place below the root; none if it is no place, as one with `..` is not.
    fn path(&self, below: &str) -> Option<Path> {
        let below = Path::parse(below.trim_matches('/')).ok()?;
        let mut path = self.root.clone();
        path.extend(below.parts());
        Some(path)
    }

    /// The objects below a folder, `most` at most, in no order.
    pub async fn list(&self, folder: &str, most: usize) -> Result<Vec<ForeignObject>, Error> {
        let Some(path) = self.path(folder) else {
            return Ok(Vec::new());
        };
        let listed = self.store.list(Some(&path)).take(most);
        let found: Result<Vec<_>, StoreError> = listed.try_collect().await;
        let found = match found {
            Err(StoreError::NotFound { .. }) => return Ok(Vec::new()),
            other => other.map_err(|error| failed(LISTING, self.url.clone(), error))?,
        };
        let objects = found.into_iter().filter_map(|meta| {
            let below = meta.location.as_ref().strip_prefix(self.root.as_ref())?;
            Some(ForeignObject {
                path: below.trim_start_matches('/').to_owned(),
                size: meta.size,
                modified: Timestamp::from_microsecond(meta.last_modified.timestamp_micros())
                    .unwrap_or_default(),
            })
        });
        Ok(objects.collect())
    }

    /// An object and its bytes; none if it is not there.
    pub async fn read(&self, path: &str) -> Result<Option<(ForeignObject, ForeignBytes)>, Error> {
        let Some(place) = self.path(path) else {
            return Ok(None);
        };
        let got = match self.store.get(&place).await {
            Err(StoreError::NotFound { .. }) => return Ok(None),
            other => other.map_err(|error| failed(READING, self.url.clone(), error))?,
        };
        let object = ForeignObject {
            path: path.trim_matches('/').to_owned(),
            size: got.meta.size,
            modified: Timestamp::from_microsecond(got.meta.last_modified.timestamp_micros())
                .unwrap_or_default(),
        };
        let url = self.url.clone();
        let bytes = got.into_stream();
        let bytes = bytes.map_err(move |error| failed(READING, url.clone(), error));
        Ok(Some((object, bytes.boxed())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn text(objects: &ForeignObjects, path: &str) -> Option<String> {
        let (_, bytes) = objects.read(path).await.unwrap()?;
        let parts: Vec<Bytes> = bytes.try_collect().await.unwrap();
        Some(String::from_utf8(parts.concat()).unwrap())
    }

    #[tokio::test]
    async fn files_are_listed_and_read_below_the_directory_alone() {
        let folder = tempfile::TempDir::new().unwrap();
        let logs = folder.path().join("logs");
        std::fs::create_dir_all(logs.join("ci/r/run")).unwrap();
        std::fs::create_dir_all(logs.join("ci/r/run-2")).unwrap();
        std::fs::write(logs.join("ci/r/run/step-a.log"), "text\n").unwrap();
        std::fs::write(logs.join("ci/r/run-2/step-b.log"), "other\n").unwrap();
        std::fs::write(folder.path().join("secret"), "secret").unwrap();
        let url = format!("file://{}", logs.display());
        let objects = ForeignObjects::open(&url, &BTreeMap::new()).unwrap();
        let found = objects.list("ci/r/run/", 9).await.unwrap();
        let paths: Vec<_> = found.iter().map(|it| (it.path.as_str(), it.size)).collect();
        assert_eq!(paths, [("ci/r/run/step-a.log", 5)]);
        assert_eq!(objects.list("ci", 1).await.unwrap().len(), 1);
        assert_eq!(objects.list("nowhere", 1).await.unwrap(), []);
        assert_eq!(
            text(&objects, "ci/r/run/step-a.log").await.unwrap(),
            "text\n"
        );
        assert_eq!(text(&objects, "ci/r/absent").await, None);
        for outside in ["../secret", "ci/../../secret", "ci/./../../secret"] {
            assert_eq!(text(&objects, outside).await, None, "{outside}");
            assert_eq!(objects.list(outside, 9).await.unwrap(), []);
        }
    }

    #[test]
    fn a_directory_to_read_is_not_made() {
        let folder = tempfile::TempDir::new().unwrap();
        let url = format!("file://{}/absent", folder.path().display());
        assert!(ForeignObjects::open(&url, &BTreeMap::new()).is_err());
        assert!(!folder.path().join("absent").exists());
    }
}
