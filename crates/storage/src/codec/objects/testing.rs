//! Object stores for tests: one that fails, stalls and forgets as it is told, and which store
//! belongs to which database.

use std::{
    collections::BTreeMap,
    fmt,
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream::BoxStream};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result, memory::InMemory, path::Path,
};

use super::ObjectBackend;

static DEPOTS: Mutex<BTreeMap<String, Arc<ObjectBackend>>> = Mutex::new(BTreeMap::new());

/// From now on, worlds that are opened at `url` keep big bodies in `depot`.
pub(crate) fn give(url: &str, depot: &Arc<ObjectBackend>) {
    DEPOTS
        .lock()
        .unwrap()
        .insert(url.to_owned(), Arc::clone(depot));
}

/// Where worlds at `url` keep big bodies.
pub(crate) fn given(url: &str) -> Option<Arc<ObjectBackend>> {
    DEPOTS.lock().unwrap().get(url).cloned()
}

/// A store in memory that can be told to fail.
#[derive(Debug, Default)]
pub(crate) struct Faulty {
    inner: InMemory,
    pub(crate) no_puts: AtomicBool,
    /// Uploads happen, and nobody is told.
    pub(crate) mute_puts: AtomicBool,
    pub(crate) no_gets: AtomicBool,
    pub(crate) no_deletes: AtomicBool,
    /// Objects that may not be removed.
    pub(crate) kept: Mutex<Vec<Path>>,
    /// Reads under way, and the most there were.
    reading: AtomicUsize,
    most: AtomicUsize,
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

fn refused() -> Error {
    Error::Generic {
        store: "Faulty",
        source: "told to fail".into(),
    }
}

impl Faulty {
    /// Names of all objects but marks, in order.
    pub(crate) async fn names(&self) -> Vec<Path> {
        let all: Vec<ObjectMeta> = self.inner.list(None).try_collect().await.unwrap();
        let all = all.into_iter().map(|meta| meta.location);
        let mut names: Vec<_> = all
            .filter(|path| path.filename() != Some(super::MARK))
            .collect();
        names.sort();
        names
    }

    /// Puts other bytes, or none, in the place of an object.
    pub(crate) async fn spoil(&self, path: &Path, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => drop(
                self.inner
                    .put(path, Bytes::copy_from_slice(bytes).into())
                    .await
                    .unwrap(),
            ),
            None => self.inner.delete(path).await.unwrap(),
        }
    }

    /// The bytes of an object.
    pub(crate) async fn bytes(&self, path: &Path) -> Bytes {
        self.inner.get(path).await.unwrap().bytes().await.unwrap()
    }

    /// The most reads that were under way at once.
    pub(crate) fn most_reads(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        to: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        if self.no_puts.load(Ordering::SeqCst) && to.filename() != Some(super::MARK) {
            return Err(refused());
        }
        let done = self.inner.put_opts(to, payload, opts).await;
        if self.mute_puts.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        done
    }

    async fn put_multipart_opts(
        &self,
        to: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(to, opts).await
    }

    async fn get_opts(&self, of: &Path, options: GetOptions) -> Result<GetResult> {
        if self.no_gets.load(Ordering::SeqCst) {
            return Err(refused());
        }
        let now = self.reading.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(1)).await;
        let got = self.inner.get_opts(of, options).await;
        self.reading.fetch_sub(1, Ordering::SeqCst);
        got
    }

    async fn get_ranges(&self, of: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(of, ranges).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        if self.no_deletes.load(Ordering::SeqCst) {
            return paths.map(|_| Err(refused())).boxed();
        }
        let kept = self.kept.lock().unwrap().clone();
        let allowed = paths.map(move |path| match path {
            Ok(path) if kept.contains(&path) => Err(Error::PermissionDenied {
                path: path.to_string(),
                source: "403".into(),
            }),
            other => other,
        });
        self.inner.delete_stream(allowed.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
