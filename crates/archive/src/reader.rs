//! Reads Parquet files: which row groups can have rows that are sought, and those rows of them.

mod prune;
mod values;

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use hindsight_filter::model::{Payload, Record, ResultName, RunResult, Summary};
use jiff::Timestamp;
use parquet::{
    errors::ParquetError,
    file::{
        metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader},
        reader::ChunkReader,
    },
};

use self::values::Column;
use crate::{
    Error, Found, Place, Row, TALLY_KEY, Tally, Test, VERSION, VERSION_KEY,
    columns::{digest, etag, pair},
};

/// Whether payloads are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payloads {
    /// With them; each is compared with its digest.
    Read,
    /// Without: records have their types, and no bytes.
    Skip,
}

/// Reads rows of a file.
#[derive(Debug)]
pub struct Reader<R> {
    source: Arc<R>,
    metadata: Arc<ParquetMetaData>,
}

impl<R: ChunkReader + 'static> Reader<R> {
    /// Reads the end of a file, which says where everything is. It fails if it is no file that a
    /// [`Writer`](crate::Writer) of this or an earlier version made.
    pub fn open(source: R) -> Result<Self, Error> {
        let metadata = guarded(|| {
            ParquetMetaDataReader::new()
                .with_offset_index_policy(PageIndexPolicy::Optional)
                .parse_and_finish(&source)
        })?;
        let version = value(&metadata, VERSION_KEY).ok_or(Error::Foreign)?;
        match version.parse::<u32>() {
            Ok(1..=VERSION) => Ok(Self {
                source: Arc::new(source),
                metadata: Arc::new(metadata),
            }),
            _ => Err(Error::Version(version.to_owned())),
        }
    }

    /// How many row groups there are.
    pub fn groups(&self) -> usize {
        self.metadata.num_row_groups()
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        u64::try_from(self.metadata.file_metadata().num_rows()).unwrap_or_default()
    }

    /// The rows that pass all tests. Of row groups that cannot have any, nothing is read; of others the columns
    /// that are tested, and of columns that are tested later only the rows that are left. It fails if a column that
    /// is tested is not in the file, or it cannot be read.
    pub fn find(&self, tests: &[Test]) -> Result<Found, Error> {
        let mut found = Found::default();
        for group in 0..self.groups() {
            if !self.may_have(group, tests)? {
                continue;
            }
            found.groups_read += 1;
            let mut rows = self.all_rows(group);
            for test in tests {
                if !rows.is_empty() {
                    rows = self.pass(group, rows, test)?;
                }
            }
            if !rows.is_empty() {
                let times = self.column("create_time").times(group, &rows)?;
                let places = rows.iter().zip(times).map(|(row, create_time)| {
                    let create_time = create_time.ok_or_else(|| absent("create_time"))?;
                    Ok(Place {
                        create_time,
                        group,
                        row: *row,
                    })
                });
                found
                    .places
                    .extend(places.collect::<Result<Vec<_>, Error>>()?);
            }
        }
        Ok(found)
    }

    /// The rows of these that pass a test.
    fn pass(&self, group: usize, rows: Vec<usize>, test: &Test) -> Result<Vec<usize>, Error> {
        let passes: Vec<bool> = match test {
            Test::Is(column, wanted) => {
                let texts = self.column(column).texts(group, &rows)?;
                texts
                    .iter()
                    .map(|text| text.as_ref() == Some(wanted))
                    .collect()
            }
            Test::Label(key, value) => {
                let pair = pair(key, value);
                let pairs = self
                    .column("label_pairs.list.element")
                    .lists(group, &rows)?;
                pairs.iter().map(|pairs| pairs.contains(&pair)).collect()
            }
            Test::Within(column, range) => {
                let times = self.column(column).times(group, &rows)?;
                let is_within =
                    |time: &Option<Timestamp>| time.is_some_and(|time| range.contains(&time));
                times.iter().map(is_within).collect()
            }
        };
        let left = rows.into_iter().zip(passes).filter(|(_, passes)| *passes);
        Ok(left.map(|(row, _)| row).collect())
    }

    /// The rows at these places, in the order of the file. It fails if a row is not as it was written, or cannot
    /// be read from the source.
    pub fn read(&self, places: &[Place], payloads: Payloads) -> Result<Vec<Row>, Error> {
        let mut of_groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for place in places {
            of_groups.entry(place.group).or_default().push(place.row);
        }
        let mut found = Vec::with_capacity(places.len());
        for (group, mut rows) in of_groups {
            rows.sort_unstable();
            rows.dedup();
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

    fn column<'r>(&'r self, path: &'r str) -> Column<'r, R> {
        Column { reader: self, path }
    }

    fn rows_of(&self, group: usize, rows: &[usize], payloads: Payloads) -> Result<Vec<Row>, Error> {
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
                    (Some(value), _) => Ok(Payload { data_type, value }),
                    (None, Payloads::Skip) => Ok(Payload {
                        data_type,
                        value: bytes::Bytes::new(),
                    }),
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
            found.push(Row { record, result });
        }
        Ok(found)
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

    /// The result of each row; rows after each other of one result share it.
    fn results(&self, group: usize, rows: &[usize]) -> Result<Vec<Arc<RunResult>>, Error> {
        let texts = |path: &str| self.column(path).texts(group, rows);
        let times = |path: &str| self.column(path).times(group, rows);
        let maps = |name: &str| {
            let leaf = |part: &str| {
                let path = format!("{name}.key_value.{part}");
                self.column(&path).lists(group, rows)
            };
            let pairs = leaf("key")?.into_iter().zip(leaf("value")?);
            let map =
                |(keys, values): (Vec<String>, Vec<String>)| keys.into_iter().zip(values).collect();
            Ok::<Vec<BTreeMap<String, String>>, Error>(pairs.map(map).collect())
        };
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
