//! An index of an archive that does something once in the middle of a request.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use futures::future::BoxFuture;
use hindsight_filter::model::ResultName;
use jiff::Timestamp;

use crate::seam::{
    AggregateQuery, ArchiveFile, ArchiveIndex, ArchiveState, Beside, Condemn, Error,
};

type Deed = BoxFuture<'static, ()>;

pub(super) struct Disturbed {
    index: Arc<dyn ArchiveIndex>,
    before_file: Mutex<Option<Deed>>,
    before_sum: Mutex<Option<Deed>>,
    after_begun: Mutex<Option<Deed>>,
}

impl fmt::Debug for Disturbed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Disturbed").finish_non_exhaustive()
    }
}

impl Disturbed {
    pub(super) fn new(index: &Arc<dyn ArchiveIndex>) -> Arc<Self> {
        Arc::new(Self {
            index: Arc::clone(index),
            before_file: Mutex::default(),
            before_sum: Mutex::default(),
            after_begun: Mutex::default(),
        })
    }

    /// Does this before `file_of` answers next.
    pub(super) fn before_file(&self, deed: impl Future<Output = ()> + Send + 'static) {
        *self.before_file.lock().unwrap() = Some(Box::pin(deed));
    }

    /// Does this before `aggregate_beside` answers next.
    pub(super) fn before_sum(&self, deed: impl Future<Output = ()> + Send + 'static) {
        *self.before_sum.lock().unwrap() = Some(Box::pin(deed));
    }

    /// Does this after `begin_file` next, when the file has no bytes yet.
    pub(super) fn after_begun(&self, deed: impl Future<Output = ()> + Send + 'static) {
        *self.after_begun.lock().unwrap() = Some(Box::pin(deed));
    }

    /// Whether nothing is left to be done.
    pub(super) fn is_done(&self) -> bool {
        [&self.before_file, &self.before_sum, &self.after_begun]
            .iter()
            .all(|deed| deed.lock().unwrap().is_none())
    }
}

async fn act(deed: &Mutex<Option<Deed>>) {
    let deed = deed.lock().unwrap().take();
    if let Some(deed) = deed {
        deed.await;
    }
}

#[async_trait]
impl ArchiveIndex for Disturbed {
    async fn archive_state(&self) -> Result<ArchiveState, Error> {
        self.index.archive_state().await
    }

    async fn archive_files(&self) -> Result<Vec<ArchiveFile>, Error> {
        self.index.archive_files().await
    }

    async fn begin_file(&self, file: &ArchiveFile, now: Timestamp) -> Result<i64, Error> {
        let begun = self.index.begin_file(file, now).await;
        act(&self.after_begun).await;
        begun
    }

    async fn file_of(&self, name: &ResultName) -> Result<Option<i64>, Error> {
        act(&self.before_file).await;
        self.index.file_of(name).await
    }

    async fn aggregate_beside(
        &self,
        query: &AggregateQuery,
        files: &[i64],
    ) -> Result<Beside, Error> {
        act(&self.before_sum).await;
        self.index.aggregate_beside(query, files).await
    }

    async fn results_in(&self, file: i64) -> Result<HashSet<String>, Error> {
        self.index.results_in(file).await
    }

    async fn results_of_files(&self) -> Result<Vec<(ArchiveFile, u64)>, Error> {
        self.index.results_of_files().await
    }

    async fn change_file(&self, from: i64, to: i64, ids: &[String]) -> Result<(), Error> {
        self.index.change_file(from, to, ids).await
    }

    async fn condemn_files(&self, which: Condemn, now: Timestamp) -> Result<(), Error> {
        self.index.condemn_files(which, now).await
    }

    async fn condemned_files(&self, before: Timestamp) -> Result<Vec<ArchiveFile>, Error> {
        self.index.condemned_files(before).await
    }

    async fn forget_file(&self, file: i64) -> Result<(), Error> {
        self.index.forget_file(file).await
    }
}
