//! The object store as it is configured, and what is asked of it.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use object_store::{Error as StoreError, ObjectStore, ObjectStoreExt as _, path::Path};
use tokio::sync::{Semaphore, SemaphorePermit};
use uuid::Uuid;

use super::{
    Error, MARK, Objects, Reference, Totals,
    client::{self, Settings},
    counts::{Counted, Counts, add},
    errors::{damaged, failed, may_pass, missing, unfit},
};
use crate::codec::parallel::par_map_blocking;

/// How many objects are on their way at once, of all callers.
const AT_ONCE: usize = 32;

/// How many of them for one caller.
pub(crate) const OF_ONE: usize = 8;

/// What became of objects that were to be removed.
#[derive(Debug, Default)]
pub(crate) struct Removal {
    /// Those that are not there any more.
    pub(crate) gone: Vec<Uuid>,
    pub(crate) refused: Option<Error>,
    /// Whether nothing was removed, and trying again later may help.
    pub(crate) is_away: bool,
}

/// An object store that bodies and chunks of logs may lie in.
pub struct ObjectBackend {
    url: String,
    store: Arc<dyn ObjectStore>,
    root: Path,
    above: usize,
    log_above: usize,
    pub(super) keep: Option<Duration>,
    turns: Semaphore,
    pub(super) counts: Counts,
}

impl fmt::Debug for ObjectBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectBackend {}", self.url)
    }
}

impl ObjectBackend {
    /// Makes ready to use an object store; a directory is made if its parent is there. Nothing is
    /// asked of a bucket yet.
    ///
    /// # Errors
    /// [`Error::Incompatible`] if the settings cannot be right.
    pub fn open(settings: &Settings) -> Result<Arc<Self>, Error> {
        let (shown, store, root) = client::open(settings)?;
        Ok(Self::made(
            &shown,
            store,
            root,
            (settings.above, settings.log_above),
            settings.keep,
        ))
    }

    /// Over a store that is made already.
    #[cfg(test)]
    pub(crate) fn over(
        store: Arc<dyn ObjectStore>,
        above: usize,
        keep: Option<Duration>,
    ) -> Arc<Self> {
        Self::made("memory:", store, Path::default(), (above, above), keep)
    }

    fn made(
        url: &str,
        store: Arc<dyn ObjectStore>,
        root: Path,
        (above, log_above): (usize, usize),
        keep: Option<Duration>,
    ) -> Arc<Self> {
        Arc::new(Self {
            url: url.to_owned(),
            store,
            root,
            above,
            log_above,
            keep,
            turns: Semaphore::new(AT_ONCE),
            counts: Counts::default(),
        })
    }

    /// Remembers what a database says of its objects.
    pub(crate) fn note(&self, totals: &Totals) {
        self.counts.note(totals);
    }

    /// What was counted so far.
    #[must_use]
    pub fn counted(&self) -> Counted {
        self.counts.now()
    }

    /// Above how many bytes a body lies outside.
    pub(crate) fn above(&self) -> usize {
        self.above
    }

    /// Where folders of databases are.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// A place, for people.
    pub(super) fn shown(&self, path: &Path) -> String {
        let below = path.as_ref().strip_prefix(self.root.as_ref());
        let below = below.unwrap_or(path.as_ref()).trim_start_matches('/');
        format!("{}/{below}", self.url)
    }

    async fn turn(&self) -> SemaphorePermit<'_> {
        let turn = self.turns.acquire().await;
        turn.expect("the semaphore is never closed")
    }
}

/// An object that was found in the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) object: Uuid,
    /// How many bytes it has.
    pub(crate) size: u64,
    /// When it was written, in microseconds since 1970.
    pub(crate) written_us: i64,
}

impl Objects {
    /// Above how many bytes a body lies outside.
    pub(crate) fn above(&self) -> usize {
        self.depot.above()
    }

    /// Above how many bytes a chunk of a sealed log lies outside.
    pub(crate) fn log_above(&self) -> usize {
        self.depot.log_above
    }

    pub(crate) fn depot(&self) -> &Arc<ObjectBackend> {
        &self.depot
    }

    /// Uploads an object, durably.
    pub(crate) async fn put(&self, object: Uuid, bytes: Bytes) -> Result<(), Error> {
        let path = self.path(object);
        let size = bytes.len() as u64;
        let counts = &self.depot.counts;
        let _turn = self.depot.turn().await;
        match self.depot.store.put(&path, bytes.into()).await {
            Ok(_) => {
                add(&counts.written, 1);
                add(&counts.bytes_written, size);
                Ok(())
            }
            Err(error) => {
                add(&counts.failed_writes, 1);
                Err(failed("writing", self.depot.shown(&path), error))
            }
        }
    }

    /// The bytes of an object, which are those that were stored.
    ///
    /// # Errors [`Error::MissingObject`] if it is not there or another,
    /// [`Error::ObjectStoreUnavailable`] if the store does not answer.
    pub(crate) async fn get(&self, reference: &Reference) -> Result<Bytes, Error> {
        let counts = &self.depot.counts;
        let got = self.fetch(reference).await;
        match &got {
            Ok(bytes) => {
                add(&counts.read, 1);
                add(&counts.bytes_read, bytes.len() as u64);
            }
            Err(_) => add(&counts.failed_reads, 1),
        }
        got
    }

    async fn fetch(&self, reference: &Reference) -> Result<Bytes, Error> {
        let path = self.path(reference.object);
        let shown = || self.depot.shown(&path);
        let away = |error| match error {
            StoreError::NotFound { .. } => missing(&shown()),
            error => failed("reading", shown(), error),
        };
        let _turn = self.depot.turn().await;
        let found = self.depot.store.get(&path).await.map_err(away)?;
        // Looked at first, so that no other object decides how much memory is taken.
        self.is_whole(reference, found.meta.size)?;
        let bytes = found.bytes().await.map_err(away)?;
        let wanted = *reference;
        let check = move |bytes: Bytes| wanted.is_of(&bytes).then_some(bytes);
        let checked = par_map_blocking(vec![bytes], Bytes::len, check).await?;
        let whole = checked.into_iter().next().flatten();
        whole.ok_or_else(|| damaged(&shown(), "its SHA-256 differs"))
    }

    fn is_whole(&self, reference: &Reference, size: u64) -> Result<(), Error> {
        if size == reference.size {
            return Ok(());
        }
        let why = format!("it has {size} bytes where {} were stored", reference.size);
        Err(damaged(&self.shown(reference.object), &why))
    }

    /// Whether an object is there and has its bytes, without reading them.
    pub(crate) async fn stat(&self, reference: &Reference) -> Result<(), Error> {
        let path = self.path(reference.object);
        let _turn = self.depot.turn().await;
        match self.depot.store.head(&path).await {
            Ok(found) => self.is_whole(reference, found.size),
            Err(StoreError::NotFound { .. }) => Err(missing(&self.depot.shown(&path))),
            Err(error) => Err(failed("looking at", self.depot.shown(&path), error)),
        }
    }

    /// Removes these objects from the object store, several at once; one that is missing
    /// counts as gone.
    pub(crate) async fn remove(&self, objects: Vec<Uuid>) -> Removal {
        let remove = |object: Uuid| async move {
            let path = self.path(object);
            let _turn = self.depot.turn().await;
            match self.depot.store.delete(&path).await {
                Ok(()) | Err(StoreError::NotFound { .. }) => Ok(object),
                Err(error) => Err((
                    may_pass(&error),
                    failed("removing", self.depot.shown(&path), error),
                )),
            }
        };
        let mut removal = Removal::default();
        let mut failures = 0;
        let mut removing = stream::iter(objects).map(remove).buffer_unordered(OF_ONE);
        while let Some(outcome) = removing.next().await {
            match outcome {
                Ok(object) => removal.gone.push(object),
                Err((may_pass, error)) => {
                    failures += 1;
                    removal.is_away |= may_pass;
                    removal.refused = Some(error);
                }
            }
        }
        // One that succeeded shows that the object store answers.
        removal.is_away &= removal.gone.is_empty();
        add(&self.depot.counts.removed, removal.gone.len() as u64);
        add(&self.depot.counts.failed_removals, failures);
        removal
    }

    /// All objects in the folder, whoever refers to them.
    pub(crate) async fn list(&self) -> Result<Vec<Listed>, Error> {
        let found = self.depot.store.list(Some(&self.folder));
        let listed = found.try_filter_map(|meta| async move {
            let name = meta.location.filename().unwrap_or_default();
            let object = Uuid::try_parse(name).ok();
            let ours = object.filter(|object| self.path(*object) == meta.location);
            Ok(ours.map(|object| Listed {
                object,
                size: meta.size,
                written_us: meta.last_modified.timestamp_micros(),
            }))
        });
        let listed: Result<_, _> = listed.try_collect().await;
        listed.map_err(|e| failed("listing", self.depot.shown(&self.folder), e))
    }

    /// Leaves the mark of a folder that is in use, or refuses one that lacks it although it should
    /// hold objects.
    pub(crate) async fn know(&self, holds: bool) -> Result<(), Error> {
        let depot = &self.depot;
        let mark = self.folder.clone().join(MARK);
        let found = match depot.store.head(&mark).await {
            Ok(_) => return Ok(()),
            Err(StoreError::NotFound { .. }) if holds => {
                return Err(Error::Incompatible(format!(
                    "the object store `{}` does not hold the objects of this database: there is no \
                     `{}`; set objects_url to where they are",
                    depot.url,
                    depot.shown(&mark)
                )));
            }
            Err(StoreError::NotFound { .. }) => {
                let made = depot
                    .store
                    .put(&mark, Bytes::from_static(b"hindsight\n").into());
                made.await.map(drop)
            }
            Err(error) => Err(error),
        };
        match found {
            Ok(()) => Ok(()),
            Err(error) if may_pass(&error) => {
                let why = hindsight_runtime::error::report(&error);
                tracing::warn!(url = depot.url, error = why, "object store unavailable");
                Ok(())
            }
            Err(error) => Err(unfit(&depot.url, &error)),
        }
    }
}
