//! What a store knows of records that were moved to files.

use std::{
    collections::{HashMap, HashSet},
    fmt::Debug,
};

use async_trait::async_trait;
use bytes::Bytes;
use hindsight_filter::measure::Group;
use hindsight_filter::model::{Parent, ResultName};
use jiff::Timestamp;

use super::{AggregateQuery, Error};

/// A file that has the records of results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveFile {
    /// Its number, which no other file gets.
    pub id: i64,
    /// Its path below the URL of the archive.
    pub path: String,
    /// The parent of all its results.
    pub parent: Parent,
    /// When the first of its records was stored first.
    pub begin: Timestamp,
    /// When the last of its records was stored first.
    pub end: Timestamp,
    /// How many results it was written with.
    pub results: u64,
    /// How many records it has, also of results that are no longer in it.
    pub records: u64,
    /// How many bytes it has.
    pub bytes: u64,
    /// The SHA-256 of all of them.
    pub sha256: Bytes,
}

/// How often something of the archive changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArchiveState {
    /// Files that came or went.
    pub files: i64,
    /// Results whose records left a file, for another or for the store.
    pub left: i64,
}

/// What the store adds up, and what is in files at that moment.
#[derive(Debug)]
pub struct Beside {
    /// The groups of the store.
    pub groups: Vec<Group>,
    /// The ids of the results that are in each file.
    pub results: HashMap<i64, HashSet<String>>,
    /// How often something had changed.
    pub state: ArchiveState,
}

/// Which files are condemned if no result is in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condemn {
    /// Those that were noted before a time.
    Before(Timestamp),
    /// The one of this number.
    File(i64),
}

/// Which results have their records in files, and in which. A result is in one file at most.
#[async_trait]
pub trait ArchiveIndex: Debug + Send + Sync + 'static {
    /// How often something changed until now.
    async fn archive_state(&self) -> Result<ArchiveState, Error>;

    /// The files that are not condemned.
    async fn archive_files(&self) -> Result<Vec<ArchiveFile>, Error>;

    /// Notes a file that is about to be written, and gives its number. No result is in it yet.
    async fn begin_file(&self, file: &ArchiveFile, now: Timestamp) -> Result<i64, Error>;

    /// The number of the file that has the records of a result; none if they are in the store, or
    /// there is no such result.
    async fn file_of(&self, name: &ResultName) -> Result<Option<i64>, Error>;

    /// Adds up records of the store, and says which results are in which of these files at the same moment.
    async fn aggregate_beside(
        &self,
        query: &AggregateQuery,
        files: &[i64],
    ) -> Result<Beside, Error>;

    /// The ids of the results that are in a file, all of one parent.
    async fn results_in(&self, file: i64) -> Result<HashSet<String>, Error>;

    /// The files that are not condemned, each with how many results are in it.
    async fn results_of_files(&self) -> Result<Vec<(ArchiveFile, u64)>, Error>;

    /// Names another file in those of these results that are in a file, in one transaction. The other one has their
    /// records too. It does nothing if that is condemned.
    async fn change_file(&self, from: i64, to: i64, ids: &[String]) -> Result<(), Error>;

    /// Condemns those of these files that have no results. None gets into one that is condemned.
    async fn condemn_files(&self, which: Condemn, now: Timestamp) -> Result<(), Error>;

    /// Files that were condemned before a time.
    async fn condemned_files(&self, before: Timestamp) -> Result<Vec<ArchiveFile>, Error>;

    /// Forgets a file that is removed.
    async fn forget_file(&self, file: i64) -> Result<(), Error>;
}
