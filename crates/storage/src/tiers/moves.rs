//! Moving the records of results to files, and back.

use std::{collections::HashSet, num::NonZeroU32, sync::Arc};

use bytes::Bytes;
use futures::future::try_join_all;
use hindsight_archive::{Error as FileError, Limits, Partition, Reader, Row, Stored, Writer};
use hindsight_filter::{
    Order,
    condition::Condition,
    model::{Record, ResultName, RunResult},
};
use hindsight_runtime::error::report;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{
    files::Archive,
    merge::Item as _,
    search::{Parts, Search},
};
use crate::{
    codec::parallel::par_map_blocking,
    seam::{ArchiveFile, Batch, Change, Condemn, Error, ListQuery, Priority, Store, WholeVersion},
};

/// Records that are read at once.
const PAGE: NonZeroU32 = NonZeroU32::new(500).expect("500 is not 0");
/// Bytes of payloads that are read at once.
const BYTES: usize = 4 << 20;
/// Most bytes of payloads of a result that is moved: all of them are in memory when it is moved, and when it comes back.
const LARGEST: usize = 128 << 20;

/// Why a result is not moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmovable {
    /// It is not as it was any more.
    Changed,
    /// Its payloads have more bytes than can be moved at once.
    TooLarge {
        /// Most bytes of payloads of a result that is moved.
        most: usize,
    },
}

/// A result whose records are about to be moved to a file, as it was read.
#[derive(Debug, Clone)]
pub struct Moving {
    name: ResultName,
    version: WholeVersion,
    rows: Vec<Row>,
}

impl Moving {
    /// A result with its records as they are now, if it has this version and is not too large.
    pub async fn of(
        store: &dyn Store,
        result: RunResult,
        version: WholeVersion,
    ) -> Result<Result<Self, Unmovable>, Error> {
        Self::within(store, result, version, LARGEST).await
    }

    pub(crate) async fn within(
        store: &dyn Store,
        result: RunResult,
        version: WholeVersion,
        most: usize,
    ) -> Result<Result<Self, Unmovable>, Error> {
        let name = result.name.clone();
        let result = Arc::new(result);
        let mut query = all_of(&name);
        let (mut rows, mut updates) = (Vec::new(), Vec::new());
        loop {
            let columns = store.list_columns(&query).await?;
            let Some(last) = columns.last() else { break };
            query.after = Some(last.position.clone());
            for row in columns {
                let object = row.item.object;
                updates.push(row.item.record.update_time);
                rows.push(Row {
                    record: row.item.record,
                    result: Arc::clone(&result),
                    stored: Some(Stored {
                        number: row.position.id,
                        signature: object.signature,
                        message: object.message,
                    }),
                });
            }
        }
        let (mut bodies, mut bytes) = (rows.iter_mut(), 0);
        query.after = None;
        query.max_bytes = Some(BYTES);
        loop {
            let page = store.list_records(&query).await?;
            let Some(last) = page.last() else { break };
            query.after = Some(last.position.clone());
            for read in page {
                let data = read.item.data.as_ref();
                bytes += data.map_or(0, |data| data.value.len());
                match bodies.next() {
                    Some(row) if row.record.uid == read.item.uid => row.record = read.item,
                    _ => return Ok(Err(Unmovable::Changed)),
                }
            }
            if bytes > most {
                return Ok(Err(Unmovable::TooLarge { most }));
            }
        }
        let is_same = bodies.next().is_none() && WholeVersion::of(&result, updates) == version;
        Ok(is_same
            .then_some(Self {
                name,
                version,
                rows,
            })
            .ok_or(Unmovable::Changed))
    }

    /// Bytes of its payloads.
    pub fn payload_bytes(&self) -> usize {
        self.rows.iter().map(Row::payload_bytes).sum()
    }

    /// The directory that its file is in.
    pub fn partition(&self) -> Option<String> {
        let row = self.rows.first()?;
        Some(Partition::of(&row.result).to_string())
    }

    /// The result.
    pub fn name(&self) -> &ResultName {
        &self.name
    }
}

/// What is asked for to read all records of a result.
fn all_of(name: &ResultName) -> ListQuery {
    let (scope, order) = (name.into(), Order::newest_first());
    ListQuery {
        limit: PAGE,
        ..ListQuery::whole_rows(scope, Condition::All, order, Priority::Low)
    }
}

/// A file that is made ready to be written.
struct Made {
    bytes: Bytes,
    written: String,
}

impl Archive {
    /// Writes the records of results of one parent into a file, reads it again, and gives the change for each
    /// result by which its records are in the file and no longer in the store; none if the file was erased meanwhile. A file of
    /// which none happens is removed by [`Self::sweep`].
    pub async fn write(&self, moving: Vec<Moving>, now: Timestamp) -> Result<Vec<Change>, Error> {
        let (mut changes, mut rows) = (Vec::new(), Vec::new());
        for one in moving {
            rows.extend(one.rows);
            changes.push((one.name, one.version));
        }
        let Some(file) = self.write_rows(rows, now).await? else {
            return Ok(Vec::new());
        };
        let change = |(name, version)| Change::ArchiveResult {
            name,
            version,
            now,
            file,
        };
        Ok(changes.into_iter().map(change).collect())
    }

    /// Writes rows of one directory into a file, and reads it again. It gives the number of the file, which no result
    /// names yet; none if there are no rows, or the file was erased meanwhile.
    pub(super) async fn write_rows(
        &self,
        rows: Vec<Row>,
        now: Timestamp,
    ) -> Result<Option<i64>, Error> {
        let times = || rows.iter().map(|row| row.record.create_time);
        let (Some(begin), Some(end), Some(first)) = (times().min(), times().max(), rows.first())
        else {
            return Ok(None);
        };
        let results: HashSet<_> = rows.iter().map(|row| row.result.name.id()).collect();
        let mut file = ArchiveFile {
            id: 0,
            path: format!(
                "{}/{}.parquet",
                Partition::of(&first.result),
                Uuid::new_v4().simple()
            ),
            parent: first.result.name.parent().clone(),
            begin,
            end,
            results: results.len() as u64,
            records: rows.len() as u64,
            bytes: 0,
            sha256: Bytes::new(),
        };
        let made = made(rows).await?;
        file.bytes = made.bytes.len() as u64;
        file.sha256 = sha256(&made.bytes);
        file.id = self.index.begin_file(&file, now).await?;
        self.bucket.put_new(&file.path, made.bytes).await?;
        let verified = self.verify(&file, Some(&made.written)).await;
        // What was purged meanwhile is erased from files that no result is in yet, too, maybe before their bytes came.
        let files = self.index.archive_files().await?;
        if files.iter().all(|known| known.id != file.id) {
            self.bucket.remove(&file.path).await?;
            return Ok(None);
        }
        verified?;
        Ok(Some(file.id))
    }

    /// Reads a file from end to end, and compares it with the sum of its rows that is in it, and with `written`.
    pub async fn verify(&self, file: &ArchiveFile, written: Option<&str>) -> Result<(), Error> {
        let bytes = self.bucket.get(&file.path).await?;
        let wanted = file.sha256.clone();
        let verify = move |bytes: Bytes| match sha256(&bytes) == wanted {
            true => Reader::open(bytes)?.verify(),
            false => Err(FileError::Damaged),
        };
        let found = par_map_blocking(vec![bytes], Bytes::len, verify).await?;
        let found = found.into_iter().next();
        let damaged =
            |why: String| Error::Corrupt(format!("the archive file `{}`: {why}", file.path));
        match found {
            Some(Ok(tally)) if written.is_none_or(|written| tally.to_string() == written) => Ok(()),
            Some(Ok(tally)) => Err(damaged(format!("its rows add up to `{tally}`"))),
            Some(Err(error)) => Err(damaged(report(&error))),
            None => Err(damaged("it was not read".to_owned())),
        }
    }

    /// The same, and that the file has all results that name it; says how many do. One that no result names may be
    /// on its way, or left by a crash.
    pub async fn verify_with_index(&self, file: &ArchiveFile) -> Result<u64, Error> {
        match self.verify(file, None).await {
            Err(Error::MissingObject(_)) if self.index.results_in(file.id).await?.is_empty() => {
                return Ok(0);
            }
            verified => verified?,
        }
        let ids = self.with_reader(file, |reader| {
            let places = reader.find(&Condition::All)?.places;
            reader.result_ids(&places)
        });
        let there: HashSet<String> = ids.await?.into_iter().collect();
        let wanted = self.index.results_in(file.id).await?;
        match wanted.iter().find(|id| !there.contains(*id)) {
            None => Ok(wanted.len() as u64),
            Some(id) => Err(Error::Corrupt(format!(
                "the archive file `{}` has no records of the result `{id}` of `{}`, which names it",
                file.path, file.parent
            ))),
        }
    }

    /// Removes files that were noted before a time and have no results any more: first they are condemned, and once
    /// they have been for as long, so that no list reads them, they go. Says how many went.
    pub async fn sweep(&self, before: Timestamp, now: Timestamp) -> Result<u64, Error> {
        self.index
            .condemn_files(Condemn::Before(before), now)
            .await?;
        let files = self.index.condemned_files(before).await?;
        let removals = files.iter().map(|file| self.remove(file));
        Ok(try_join_all(removals).await?.len() as u64)
    }

    /// Removes a file that is condemned.
    pub(super) async fn remove(&self, file: &ArchiveFile) -> Result<(), Error> {
        self.bucket.remove(&file.path).await?;
        self.index.forget_file(file.id).await
    }
}

fn sha256(bytes: &Bytes) -> Bytes {
    Bytes::copy_from_slice(&Sha256::digest(bytes))
}

/// The bytes of a file of these rows.
async fn made(rows: Vec<Row>) -> Result<Made, Error> {
    let make = |rows: Vec<Row>| {
        let mut writer = Writer::new(Vec::new(), Limits::default())?;
        rows.into_iter().try_for_each(|row| writer.push(row))?;
        let (bytes, tally) = writer.finish()?;
        Ok(Made {
            bytes: bytes.into(),
            written: tally.to_string(),
        })
    };
    let weigh = |rows: &Vec<Row>| rows.iter().map(Row::payload_bytes).sum();
    let made = par_map_blocking(vec![rows], weigh, make).await?;
    let made = made.into_iter().next().unwrap_or(Err(FileError::Damaged));
    made.map_err(|error: FileError| Error::Unavailable {
        what: "writing an archive file",
        source: Box::new(error),
    })
}

impl Archive {
    /// Puts the records of a result that is in a file back into `store`; false if it is in none.
    pub async fn restore(&self, store: &dyn Store, name: &ResultName) -> Result<bool, Error> {
        let index = &self.index;
        let Some(number) = index.file_of(name).await? else {
            return Ok(false);
        };
        let state = index.archive_state().await?;
        let files = self.files(state).await?;
        let Some(file) = files.iter().find(|file| file.id == number) else {
            return Err(Error::Corrupt(format!(
                "`{name}` is in archive file {number}, which is not known"
            )));
        };
        let query = ListQuery {
            limit: NonZeroU32::MAX,
            ..all_of(name)
        };
        let search = Search::new(self, &query, None, vec![file.clone()]);
        let found = search.find().await?;
        let parts = Parts {
            payloads: true,
            objects: false,
        };
        let numbers = found.iter().map(|row| row.position.id);
        let read = search.read(&found, parts).await?;
        let mut batch = Batch::from(Change::ReturnResult {
            name: name.clone(),
            file: number,
        });
        let records = numbers
            .zip(read)
            .map(|(number, read)| Change::ReturnRecord {
                number,
                value: Record::archived(read),
            });
        batch.changes.extend(records);
        match store.commit(&batch).await {
            // Another was faster.
            Err(Error::Missing(_)) => Ok(true),
            outcome => outcome.map(|()| true),
        }
    }
}
