//! The archive: which files there are, and readers of them.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use hindsight_archive::{Error as FileError, Footer, Reader};
use tokio::runtime::Handle;

use super::object::Object;
use crate::{
    codec::objects::Bucket,
    seam::{ArchiveFile, ArchiveIndex, ArchiveState, Error},
};

/// How many footers are kept, each of some 100 KB.
const FOOTERS: usize = 256;
/// Bytes of payloads after which a file is written.
const PAYLOADS: usize = 64 << 20;

/// Files in a bucket that have the records of results, as an index knows them.
#[derive(Debug, Clone)]
pub struct Archive {
    pub(super) bucket: Arc<Bucket>,
    pub(super) index: Arc<dyn ArchiveIndex>,
    /// Bytes of payloads after which a file is written.
    pub(super) file_bytes: usize,
    known: Arc<Mutex<Known>>,
    footers: Arc<Mutex<HashMap<i64, Footer>>>,
    /// Small files that are not worth to be joined with others.
    pub(super) full: Arc<Mutex<HashSet<i64>>>,
}

/// The files as of a state of the index.
#[derive(Debug, Default)]
struct Known {
    files: Option<i64>,
    all: Arc<Vec<ArchiveFile>>,
}

impl Archive {
    /// The files of `bucket` that `index` knows.
    pub fn new(bucket: Arc<Bucket>, index: Arc<dyn ArchiveIndex>) -> Self {
        Self {
            bucket,
            index,
            file_bytes: PAYLOADS,
            known: Arc::default(),
            footers: Arc::default(),
            full: Arc::default(),
        }
    }

    /// The same with files of so many bytes of payloads.
    #[cfg(test)]
    pub(crate) fn with_file_bytes(self, file_bytes: usize) -> Self {
        Self {
            file_bytes,
            full: Arc::default(),
            ..self
        }
    }

    /// The files that there are, at the least those as of `state`.
    pub(super) async fn files(&self, state: ArchiveState) -> Result<Arc<Vec<ArchiveFile>>, Error> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let known = known();
            if known.files == Some(state.files) {
                return Ok(Arc::clone(&known.all));
            }
        }
        let all = Arc::new(self.index.archive_files().await?);
        let mut known = known();
        // Others may have looked later.
        if known.files.is_none_or(|files| files < state.files) {
            *known = Known {
                files: Some(state.files),
                all: Arc::clone(&all),
            };
        }
        Ok(all)
    }

    /// A file of which nothing is read yet.
    pub(super) fn object(&self, file: &ArchiveFile) -> Object {
        Object::new(&self.bucket, &file.path, file.bytes, Handle::current())
    }

    /// Does `work` with the reader of a file, on a thread that may block.
    pub(super) async fn with_reader<T: Send + 'static>(
        &self,
        file: &ArchiveFile,
        work: impl FnOnce(&Reader<Object>) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, Error> {
        let object = Arc::new(self.object(file));
        self.with_object(file.id, object, work).await
    }

    /// The same with what is known of the file of this number already.
    pub(super) async fn with_object<T: Send + 'static>(
        &self,
        id: i64,
        object: Arc<Object>,
        work: impl FnOnce(&Reader<Object>) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, Error> {
        let footers = Arc::clone(&self.footers);
        let read = move || {
            let reader = open(id, object, &footers)?;
            work(&reader).map_err(|error| reader.source().explain(&error))
        };
        let done = tokio::task::spawn_blocking(read).await;
        done.unwrap_or_else(|broken| {
            Err(Error::Unavailable {
                what: "reading an archive file",
                source: Box::new(broken),
            })
        })
    }
}

fn open(
    id: i64,
    object: Arc<Object>,
    footers: &Mutex<HashMap<i64, Footer>>,
) -> Result<Reader<Object>, Error> {
    let footers = || footers.lock().unwrap_or_else(PoisonError::into_inner);
    let known = footers().get(&id).cloned();
    let reader = || {
        if known.is_none() || object.is_whole() {
            object.want_end().map_err(|_failed| FileError::Damaged)?;
        }
        match &known {
            Some(footer) => Ok(Reader::reopen(Arc::clone(&object), footer)),
            None => Reader::over(Arc::clone(&object)),
        }
    };
    let reader = reader().map_err(|error| object.explain(&error))?;
    if known.is_some() {
        return Ok(reader);
    }
    let mut footers = footers();
    if footers.len() >= FOOTERS {
        footers.clear();
    }
    footers.insert(id, reader.footer());
    Ok(reader)
}
