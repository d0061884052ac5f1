//! Copying rows as they are, with names, uids, etags, times and bytes, from one database into
//! another.
//!
//! What the target has already is compared first, so that a second copy changes nothing, and one
//! that was cut off goes on where it stopped. A row of the target gives way only to a later version
//! of the same row; anything else is left alone, and said. Memory is bounded by a page and the
//! names of rows that are refused.

mod held;
mod logs;
mod ours;
mod page;
mod pipelines;
#[cfg(test)]
mod tests;
mod verify;

use std::{collections::HashSet, num::NonZeroU32, sync::Arc};

use async_trait::async_trait;
use jiff::Timestamp;

use self::{held::Held, ours::Ours};
use super::{fsck::Finding, snapshot::Snapshot};
use crate::{
    codec::objects::{ObjectBackend, without_depot},
    driver::options::{Options, Schema},
    seam::{
        Error, Hold, IndexedPath, LogStore, Maintenance, PipelineRow, PipelineTables, Store,
        StoredLog, VersionRow,
    },
    sql,
    store::resolve::open,
};
use hindsight_filter::model::{Etag, Record, RecordName, RunResult};
use hindsight_logs::Chunk;

/// What happens while copying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A stage of so many rows begins.
    Stage {
        /// What is copied or looked at.
        what: &'static str,
        /// How many rows there are.
        total: u64,
    },
    /// So many more rows of the stage are done.
    Seen(u64),
    /// Something was copied otherwise than it was.
    Note(Said),
    /// A row was not copied.
    Refused(Said),
    /// The target is not as it should be after the copy.
    Found(Finding),
}

/// What is said of a row.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Said {
    /// The full name, as far as it has one.
    pub of: String,
    /// Why the row was refused, or copied otherwise than it was.
    pub why: String,
}

/// How many rows became what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Count {
    /// New in the target.
    pub created: u64,
    /// Brought up to date.
    pub updated: u64,
    /// Left alone, because the target has the same state already.
    pub unchanged: u64,
    /// Left out; an event says why of each.
    pub refused: u64,
}

/// What a copy did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Outcome {
    /// What became of the results.
    pub results: Count,
    /// What became of the records.
    pub records: Count,
    /// What became of the logs of single starts of containers, and of those that were uploaded.
    pub logs: Count,
    /// What became of pipelines of Kubeflow and of their versions.
    pub pipelines: Count,
    /// Bytes of payloads that were copied.
    pub bytes: u64,
    /// Bytes of lines that were copied.
    pub log_bytes: u64,
    /// Rows of which it was verified afterwards that the target has them, by content.
    pub verified: u64,
}

/// Somebody who is told what happens.
pub type Tell<'a> = &'a mut (dyn FnMut(Event) + Send);

/// Where big payloads of the two databases lie, if not in them.
#[derive(Debug, Clone, Default)]
pub struct Depots {
    /// Those of the source.
    pub from: Option<Arc<ObjectBackend>>,
    /// Those of the target.
    pub to: Option<Arc<ObjectBackend>>,
}

/// Whether the target is compared with the source once all is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    /// Every row is, and every payload of the target is rebuilt and hashed.
    Yes,
    /// The target is not read again after the copy.
    No,
}

/// Whether logs are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logs {
    /// Every log is, but unfinished uploads.
    Yes,
    /// Records come without theirs.
    No,
}

/// Copies the database at `from` into the one at `to`, which is made if it is not there.
///
/// # Errors
/// If one of them cannot be opened, read or written; rows that cannot be copied are told.
pub async fn copy(
    from: &str,
    to: &str,
    depots: &Depots,
    (logs, verify): (Logs, Verify),
    tell: Tell<'_>,
) -> Result<Outcome, Error> {
    let mut snapshot = Snapshot::open_with(from, depots.from.as_ref()).await?;
    let totals = snapshot.object_totals().await?;
    if totals.held > 0 && depots.from.is_none() {
        return Err(without_depot(&totals));
    }
    let indexed = indexed(&mut snapshot).await?;
    let mut source = Ours::new(snapshot);
    let target = (to, depots.to.as_ref());
    let outcome = into(&mut source, target, &indexed, (logs, verify), tell).await;
    source.close().await;
    outcome
}

/// Who a record is, without its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outline {
    /// Its place in the page of the source.
    pub(crate) place: i64,
    pub(crate) name: RecordName,
    pub(crate) result_uid: String,
    pub(crate) uid: String,
    pub(crate) etag: Etag,
    pub(crate) create_time: Timestamp,
    pub(crate) update_time: Timestamp,
    pub(crate) data_type: Option<String>,
    pub(crate) sha256: Option<Vec<u8>>,
}

/// A page of rows, those that cannot be taken included, and how many rows it has.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) rows: Vec<T>,
    pub(crate) count: u64,
    pub(crate) refused: Vec<Said>,
    pub(crate) notes: Vec<Said>,
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            count: 0,
            refused: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// Where rows come from: one moment of a database, page by page.
#[async_trait]
pub(crate) trait Source: Send {
    /// How many results and records there are.
    async fn totals(&mut self) -> Result<(u64, u64), Error>;

    fn rewind(&mut self);

    /// The next results; none at the end.
    async fn results(&mut self) -> Result<Option<Page<RunResult>>, Error>;

    /// The next records; none at the end.
    async fn outlines(&mut self) -> Result<Option<Page<Outline>>, Error>;

    /// Those at these places of the last page, with payloads; or why not.
    async fn records(&mut self, places: &[i64]) -> Result<Vec<Result<Record, Said>>, Error>;

    /// The next holds of results after a row; none at the end, or where nothing is held.
    async fn holds(&mut self, _after: i64) -> Result<Vec<(i64, Hold)>, Error> {
        Ok(Vec::new())
    }

    /// How many logs there are; none where logs are kept elsewhere.
    async fn log_total(&mut self) -> Result<u64, Error> {
        Ok(0)
    }

    /// The next logs, each with when it changed; none at the end.
    async fn logs(&mut self) -> Result<Option<Page<(StoredLog, Timestamp)>>, Error> {
        Ok(None)
    }

    /// The chunk of a log that has this line.
    async fn log_chunk(&mut self, _row: i64, _line: i64) -> Result<Option<Chunk>, Error> {
        Ok(None)
    }

    /// How many pipelines and versions there are; none where they are kept elsewhere.
    async fn pipeline_total(&mut self) -> Result<u64, Error> {
        Ok(0)
    }

    /// The next pipelines; none at the end.
    async fn pipelines(&mut self) -> Result<Option<Vec<PipelineRow>>, Error> {
        Ok(None)
    }

    /// The ids of the versions of a pipeline.
    async fn version_ids(&mut self, _pipeline_id: &str) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    /// A version of a pipeline.
    async fn version(
        &mut self,
        _pipeline_id: &str,
        _id: &str,
    ) -> Result<Option<VersionRow>, Error> {
        Ok(None)
    }
}

/// A copy under way.
struct Copy<'a> {
    store: &'a dyn Store,
    logs: &'a dyn LogStore,
    pipelines: &'a dyn PipelineTables,
    held: Held,
    outcome: Outcome,
    /// Names of rows that were refused, which differ for a reason that was told.
    refused: HashSet<String>,
    tell: Tell<'a>,
}

/// Records that are indexed by one transaction.
const BATCH: NonZeroU32 = NonZeroU32::new(500).expect("500 is not 0");

/// What is indexed in a database of ours.
async fn indexed(snapshot: &mut Snapshot) -> Result<Vec<IndexedPath>, Error> {
    let rows = snapshot.rows(&sql::indexed::known()).await?;
    Ok(sql::indexed::read_known(&rows)?.all().to_vec())
}

/// Indexes in the target what is indexed in the source, before rows come: they are indexed as
/// they are written then. What the target indexes already stays as it is.
async fn create_index(target: &dyn Maintenance, fields: &[IndexedPath]) -> Result<(), Error> {
    for field in fields {
        let made = target
            .create_index(&field.path, field.kind, field.added)
            .await;
        let made = match made {
            Err(Error::Exists(_)) => continue,
            made => made?,
        };
        while !target.build_index(made.id, BATCH).await?.ready {}
    }
    Ok(())
}

/// Copies everything that `source` has, and indexes these fields.
pub(crate) async fn into(
    source: &mut dyn Source,
    (to, depot): (&str, Option<&Arc<ObjectBackend>>),
    indexed: &[IndexedPath],
    (logs, verify): (Logs, Verify),
    tell: Tell<'_>,
) -> Result<Outcome, Error> {
    let options = Options {
        schema: Schema::Migrate,
        depot: depot.cloned(),
        ..Options::default()
    };
    let target = open(to, &options).await?;
    create_index(&*target.maintenance, indexed).await?;
    let mut copy = Copy {
        store: &*target.store,
        logs: &*target.logs,
        pipelines: &*target.pipelines,
        held: Held::new(Snapshot::open_with(to, depot).await?),
        outcome: Outcome::default(),
        refused: HashSet::new(),
        tell,
    };
    let mut done = copy.all(source).await;
    if done.is_ok() && logs == Logs::Yes {
        done = copy.logs(source).await;
    }
    if done.is_ok() {
        done = copy.pipelines(source).await;
    }
    if done.is_ok() && verify == Verify::Yes {
        done = copy.verify(source).await;
    }
    let outcome = copy.outcome;
    copy.held.close().await;
    target.maintenance.close().await;
    done.map(|()| outcome)
}

impl Copy<'_> {
    /// Copies results, then their holds, so that retention keeps them, then records.
    async fn all(&mut self, source: &mut dyn Source) -> Result<(), Error> {
        let (results, records) = source.totals().await?;
        self.stage("results", results);
        while let Some(page) = source.results().await? {
            let count = page.count;
            self.results(page).await?;
            (self.tell)(Event::Seen(count));
        }
        self.holds(source).await?;
        self.stage("records", records);
        while let Some(page) = source.outlines().await? {
            let count = page.count;
            self.records(source, page).await?;
            (self.tell)(Event::Seen(count));
        }
        Ok(())
    }

    fn stage(&mut self, what: &'static str, total: u64) {
        (self.tell)(Event::Stage { what, total });
    }

    /// Says what a page says of its rows; gives how many were refused.
    fn say(&mut self, notes: Vec<Said>, refused: Vec<Said>) -> u64 {
        let count = refused.len() as u64;
        notes
            .into_iter()
            .for_each(|said| (self.tell)(Event::Note(said)));
        for said in refused {
            self.refused.insert(said.of.clone());
            (self.tell)(Event::Refused(said));
        }
        count
    }
}
