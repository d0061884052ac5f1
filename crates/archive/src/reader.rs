//! Reads Parquet files: which row groups can have rows that are sought, and those rows of them.

mod fields;
mod prune;
mod values;

use std::{
    collections::BTreeMap,
    io,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use hindsight_filter::condition::Condition;
use hindsight_filter::model::{Payload, Record, ResultName, RunResult, Summary};
use parquet::{
    errors::ParquetError,
    file::metadata::{
        ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader,
    },
};

use self::values::Column;
use crate::{
    Error, Found, Place, Row, Source, Stored, TALLY_KEY, Tally, VERSION, VERSION_KEY,
    columns::{digest, etag},
    source::Chunks,
};

/// Whether payloads are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payloads {
    /// With them; each is compared with its digest.
    Read,
    /// Without: records have their types, and no bytes.
    Skip,
}

/// The end of a file, which says where everything is.
#[derive(Debug, Clone)]
pub struct Footer(Arc<ParquetMetaData>);

/// Reads rows of a file.
pub struct Reader<S> {
    source: Chunks<S>,
    metadata: Arc<ParquetMetaData>,
}

impl<S> std::fmt::Debug for Reader<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

impl<S: Source> Reader<S> {
    /// Reads the end of a file, which says where everything is. It fails if it is no file that a
    /// [`Writer`](crate::Writer) of this or an earlier version made.
    pub fn open(source: S) -> Result<Self, Error> {
        Self::over(Arc::new(source))
    }

    /// The same of a source that others hold too.
    pub fn over(source: Arc<S>) -> Result<Self, Error> {
        let source = Chunks(source);
        let metadata = guarded(|| {
            ParquetMetaDataReader::new()
                .with_offset_index_policy(PageIndexPolicy::Optional)
                .parse_and_finish(&source)
        })?;
        let version = value(&metadata, VERSION_KEY).ok_or(Error::Foreign)?;
        match version.parse::<u32>() {
            Ok(1..=VERSION) => Ok(Self {
                source,
                metadata: Arc::new(metadata),
            }),
            _ => Err(Error::Version(version.to_owned())),
        }
    }

    /// The same file, opened again.
    pub fn reopen(source: Arc<S>, footer: &Footer) -> Self {
        Self {
            source: Chunks(source),
            metadata: Arc::clone(&footer.0),
        }
    }

    /// The end of the file, to open it again.
    pub fn footer(&self) -> Footer {
        Footer(Arc::clone(&self.metadata))
    }

    /// What it reads from.
    pub fn source(&self) -> &S {
        &self.source.0
    }

    /// Where everything of a row group is but payloads and their digests.
    pub fn parts(&self, group: usize) -> Vec<Range<u64>> {
        let mut parts: Vec<Range<u64>> = Vec::new();
        for column in self.metadata.row_group(group).columns() {
            if matches!(
                column.column_path().string().as_str(),
                "payload" | "payload_sha256"
            ) {
                continue;
            }
            let (start, length) = column.byte_range();
            parts.push(start..start + length);
            parts.extend(filter(column));
        }
        parts.sort_by_key(|part| part.start);
        let mut joined: Vec<Range<u64>> = Vec::new();
        for part in parts {
            match joined.last_mut() {
                Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
                _ => joined.push(part),
            }
        }
        joined
    }

    /// How many row groups there are.
    pub fn groups(&self) -> usize {
        self.metadata.num_row_groups()
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        u64::try_from(self.metadata.file_metadata().num_rows()).unwrap_or_default()
    }

    /// The rows that pass a condition. Of row groups that cannot have any, nothing is read; of others the columns
    /// that are tested, and of columns that are tested later only the rows that are left. A test of
    /// [`Column::Indexed`](hindsight_filter::condition::Column::Indexed) lets every row through. It fails if a column cannot be read.
    pub fn find(&self, condition: &Condition) -> Result<Found, Error> {
        let mut found = Found::default();
        for group in 0..self.groups() {
            if !self.may_have(group, condition)? {
                continue;
            }
            found.groups_read += 1;
            self.want(group)?;
            let rows = self.passing(group, self.all_rows(group), condition)?;
            let places = rows.into_iter().map(|row| Place { group, row });
            found.places.extend(places);
        }
        Ok(found)
    }

    /// The rows at these places, in the order of the file. It fails if a row is not as it was written, or cannot
    /// be read from the source.
    pub fn read(&self, places: &[Place], payloads: Payloads) -> Result<Vec<Row>, Error> {
        let mut found = Vec::with_capacity(places.len());
        for (group, rows) in of_groups(places) {
            found.extend(self.rows_of(group, &rows, payloads)?);
        }
        Ok(found)
    }

    /// All rows of a row group, with their payloads. It fails if a row is not as it was written, or cannot be read.
    pub fn group(&self, group: usize) -> Result<Vec<Row>, Error> {
        self.rows_of(group, &self.all_rows(group), Payloads::Read)
    }

    /// Reads everything, and compares it with the tally that the writer left in the file. It fails if a row is not
    /// as it was written, or cannot be read.
    pub fn verify(&self) -> Result<Tally, Error> {
        let mut tally = Tally::default();
        for group in 0..self.groups() {
            self.group(group)?.iter().for_each(|row| tally.add(row));
        }
        match self.metadata_value(TALLY_KEY) {
            Some(written) if written == tally.to_string() => Ok(tally),
            written => Err(Error::Tally {
                found: tally.to_string(),
                written: written.unwrap_or("nothing").to_owned(),
            }),
        }
    }

    fn metadata_value(&self, key: &str) -> Option<&str> {
        value(&self.metadata, key)
    }

    fn all_rows(&self, group: usize) -> Vec<usize> {
        let rows = self.metadata.row_group(group).num_rows();
        (0..usize::try_from(rows).unwrap_or_default()).collect()
    }

    fn column<'r>(&'r self, path: &'r str) -> Column<'r, S> {
        Column { reader: self, path }
    }

    /// Says that a row group will be read.
    fn want(&self, group: usize) -> Result<(), Error> {
        self.source.0.want(&self.parts(group)).map_err(failed)
    }

    fn rows_of(&self, group: usize, rows: &[usize], payloads: Payloads) -> Result<Vec<Row>, Error> {
        self.want(group)?;
        let mut results = self.results(group, rows)?.into_iter();
        let mut ids = self.column("record_id").texts(group, rows)?.into_iter();
        let mut uids = self.column("uid").texts(group, rows)?.into_iter();
        let mut etags = self.column("etag").texts(group, rows)?.into_iter();
        let mut created = self.column("create_time").times(group, rows)?.into_iter();
        let mut updated = self.column("update_time").times(group, rows)?.into_iter();
        let mut types = self.column("type").texts(group, rows)?.into_iter();
        let mut bodies = match payloads {
            Payloads::Read => self.bodies(group, rows)?,
            Payloads::Skip => vec![None; rows.len()],
        }
        .into_iter();
        let mut stored = self.stored(group, rows)?.into_iter();
        let mut found = Vec::with_capacity(rows.len());
        for _ in rows {
            let result = needed("result_uid", results.next())?;
            let id = needed("record_id", ids.next().flatten())?;
            let name = result.name.record(&id);
            let uid = needed("uid", uids.next().flatten())?;
            let update_time = needed("update_time", updated.next().flatten())?;
            let body = bodies.next().flatten();
            let data = types
                .next()
                .flatten()
                .map(|data_type| match (body, payloads) {
                    (Some(value), _) => Ok(Payload::new(data_type, value)),
                    (None, Payloads::Skip) => Ok(Payload::new(data_type, bytes::Bytes::new())),
                    (None, Payloads::Read) => Err(absent("payload")),
                });
            let record = Record {
                name: name.map_err(|error| corrupt(&id, &error.to_string()))?,
                etag: etag(etags.next().flatten(), &uid, update_time),
                uid,
                create_time: needed("create_time", created.next().flatten())?,
                update_time,
                data: data.transpose()?,
            };
            found.push(Row {
                record,
                result,
                stored: stored.next().flatten(),
            });
        }
        Ok(found)
    }

    /// What the store knew of rows, where it said so.
    fn stored(&self, group: usize, rows: &[usize]) -> Result<Vec<Option<Stored>>, Error> {
        let numbers = self.column("row_number").ints(group, rows)?;
        if numbers.iter().all(Option::is_none) {
            return Ok(vec![None; rows.len()]);
        }
        let mut signatures = self.column("signature").texts(group, rows)?.into_iter();
        let mut messages = self.column("message").texts(group, rows)?.into_iter();
        let stored = numbers.into_iter().map(|number| {
            let (signature, message) = (signatures.next().flatten(), messages.next().flatten());
            Some(Stored {
                number: number?,
                signature,
                message,
            })
        });
        Ok(stored.collect())
    }

    /// Payloads, compared with their digests.
    fn bodies(&self, group: usize, rows: &[usize]) -> Result<Vec<Option<bytes::Bytes>>, Error> {
        let bodies = self.column("payload").bodies(group, rows)?;
        let digests = self.column("payload_sha256").digests(group, rows)?;
        for ((body, expected), row) in bodies.iter().zip(digests).zip(rows) {
            if body.as_ref().map(digest).as_ref().map(<[u8; 32]>::as_slice) != expected.as_deref() {
                let place = format!("row {row} of row group {group}");
                return Err(corrupt(
                    &place,
                    "the payload does not have the SHA-256 that was stored with it",
                ));
            }
        }
        Ok(bodies)
    }

    /// The maps in a column of them.
    fn maps(
        &self,
        name: &str,
        group: usize,
        rows: &[usize],
    ) -> Result<Vec<BTreeMap<String, String>>, Error> {
        let leaf = |part: &str| {
            let path = format!("{name}.key_value.{part}");
            self.column(&path).lists(group, rows)
        };
        let pairs = leaf("key")?.into_iter().zip(leaf("value")?);
        let map =
            |(keys, values): (Vec<String>, Vec<String>)| keys.into_iter().zip(values).collect();
        Ok(pairs.map(map).collect())
    }

    /// The result of each row; rows after each other of one result share it.
    fn results(&self, group: usize, rows: &[usize]) -> Result<Vec<Arc<RunResult>>, Error> {
        let texts = |path: &str| self.column(path).texts(group, rows);
        let times = |path: &str| self.column(path).times(group, rows);
        let maps = |name: &str| self.maps(name, group, rows);
        let (parents, ids) = (texts("parent")?, texts("result_id")?);
        let (uids, etags) = (texts("result_uid")?, texts("result_etag")?);
        let (created, updated) = (times("result_create_time")?, times("result_update_time")?);
        let annotations = maps("result_annotations")?;
        let (records, types) = (texts("summary_record")?, texts("summary_type")?);
        let (starts, ends) = (times("summary_start_time")?, times("summary_end_time")?);
        let statuses = self.column("summary_status").ints(group, rows)?;
        let notes = maps("summary_annotations")?;
        let mut found: Vec<Arc<RunResult>> = Vec::with_capacity(rows.len());
        for at in 0..rows.len() {
            let parent = needed("parent", parents[at].as_deref())?;
            let id = needed("result_id", ids[at].as_deref())?;
            let name = format!("{parent}/results/{id}");
            let uid = needed("result_uid", uids[at].clone())?;
            let update_time = needed("result_update_time", updated[at])?;
            let summary = match &records[at] {
                None => None,
                Some(record) => Some(Summary {
                    record: record
                        .parse()
                        .map_err(|_invalid| corrupt(record, "it is no name of a record"))?,
                    data_type: needed("summary_type", types[at].clone())?,
                    start_time: starts[at],
                    end_time: ends[at],
                    status: i32::try_from(statuses[at].unwrap_or_default())
                        .map_err(|_large| corrupt(record, "its status is out of range"))?,
                    annotations: notes[at].clone(),
                }),
            };
            let result = RunResult {
                name: name
                    .parse::<ResultName>()
                    .map_err(|error| corrupt(&name, &error.to_string()))?,
                etag: etag(etags[at].clone(), &uid, update_time),
                uid,
                create_time: needed("result_create_time", created[at])?,
                update_time,
                annotations: annotations[at].clone(),
                summary,
            };
            match found.last() {
                Some(last) if **last == result => found.push(Arc::clone(last)),
                _ => found.push(Arc::new(result)),
            }
        }
        Ok(found)
    }
}

/// Where the Bloom filter of a column chunk is, if it has one.
fn filter(column: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let start = u64::try_from(column.bloom_filter_offset()?).ok()?;
    let length = u64::try_from(column.bloom_filter_length()?).ok()?;
    Some(start..start + length)
}

fn failed(error: io::Error) -> Error {
    ParquetError::External(Box::new(error)).into()
}

/// The rows of each row group that has any, in order and each once.
fn of_groups(places: &[Place]) -> BTreeMap<usize, Vec<usize>> {
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for place in places {
        groups.entry(place.group).or_default().push(place.row);
    }
    for rows in groups.values_mut() {
        rows.sort_unstable();
        rows.dedup();
    }
    groups
}

fn value<'m>(metadata: &'m ParquetMetaData, key: &str) -> Option<&'m str> {
    let pairs = metadata.file_metadata().key_value_metadata();
    let pair = pairs.into_iter().flatten().find(|pair| pair.key == key);
    pair?.value.as_deref()
}

/// What the parquet crate reads. Where a file is damaged, it may index past the end of a page.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, Error> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(read) => Ok(read?),
        Err(_panic) => Err(Error::Damaged),
    }
}

fn needed<T>(column: &str, value: Option<T>) -> Result<T, Error> {
    value.ok_or_else(|| absent(column))
}

fn absent(column: &str) -> Error {
    Error::Column {
        column: column.to_owned(),
        why: "has no value where every row has one".to_owned(),
    }
}

fn corrupt(record: &str, why: &str) -> Error {
    Error::Corrupt {
        record: record.to_owned(),
        why: why.to_owned(),
    }
}
