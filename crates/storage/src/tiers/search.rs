//! Rows of files that a list asks for.

use std::{collections::BTreeMap, sync::Arc};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use hindsight_archive::{Error as FileError, Payloads, Place, Reader, Row};
use hindsight_filter::{
    Order, Position,
    columns::ObjectColumns,
    condition::{Column, Condition, Is, Test, Value},
};

use super::{candidates, files::Archive, object::Object};
use crate::{
    codec::text::stored,
    seam::{ArchiveFile, Error, ListQuery},
};

/// Files that are read at once for one list.
pub(super) const AT_ONCE: usize = 8;

/// A row of a file that a list may give.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) position: Position,
    /// Which of the files it is in.
    file: usize,
    place: Place,
    /// The name of the record.
    pub(super) name: String,
    /// Bytes of its payload.
    pub(super) size: u64,
}

/// A row that was read.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) row: Row,
    pub(super) object: ObjectColumns,
}

/// What is read of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) payloads: bool,
    pub(super) objects: bool,
}

/// A search in files of an archive.
pub(super) struct Search<'s> {
    archive: &'s Archive,
    query: &'s ListQuery,
    /// Nothing after this row is wanted.
    until: Option<Position>,
    files: Vec<ArchiveFile>,
    /// The one file of a list of one result, which is read once for its rows and their payloads.
    only: Option<Arc<Object>>,
}

impl<'s> Search<'s> {
    /// A search for rows of `query` in these files, up to a row.
    pub(super) fn new(
        archive: &'s Archive,
        query: &'s ListQuery,
        until: Option<&Position>,
        mut files: Vec<ArchiveFile>,
    ) -> Self {
        let first = |file: &ArchiveFile| candidates::first(file, &query.order);
        files.sort_by_key(first);
        if query.order.keys().first().is_some_and(|key| key.descending) {
            files.reverse();
        }
        let only = match (&query.scope.id, &files[..]) {
            (Some(_), [file]) => Some(Arc::new(archive.object(file).whole())),
            _ => None,
        };
        Self {
            archive,
            query,
            until: until.cloned(),
            files,
            only,
        }
    }

    fn object(&self, file: &ArchiveFile) -> Arc<Object> {
        let only = self.only.clone();
        only.unwrap_or_else(|| Arc::new(self.archive.object(file)))
    }

    /// The first rows, in order: as many as the query asks for, with those of other files that come before them.
    pub(super) async fn find(&self) -> Result<Vec<Candidate>, Error> {
        let most = usize::try_from(self.query.limit.get()).unwrap_or(usize::MAX);
        let order = &self.query.order;
        let mut found: Vec<Candidate> = Vec::new();
        for (number, files) in self.files.chunks(AT_ONCE).enumerate() {
            let is_full = found.len() >= most;
            let last = found
                .last()
                .and_then(|row| candidates::created(&row.position));
            let beyond = |file: &ArchiveFile| {
                is_full && last.is_some_and(|us| candidates::is_beyond(file, order, us))
            };
            let searches = files.iter().enumerate();
            let searches = searches.filter(|(_, file)| !beyond(file));
            let searches: Vec<_> = searches
                .map(|(at, file)| self.find_in(number * AT_ONCE + at, file))
                .collect();
            let parts: Vec<Vec<Candidate>> = stream::iter(searches)
                .buffered(AT_ONCE)
                .try_collect()
                .await?;
            found.extend(parts.into_iter().flatten());
            found.sort_by(|a, b| order.compare(&a.position, &b.position));
            found.truncate(most);
        }
        Ok(found)
    }

    /// The first rows of one file that pass, of results that are in it: as many as the query asks for.
    async fn find_in(&self, number: usize, file: &ArchiveFile) -> Result<Vec<Candidate>, Error> {
        // One that is being written has none yet.
        let live = self.archive.index.results_in(file.id).await?;
        if live.is_empty() {
            return Ok(Vec::new());
        }
        let condition = scoped(self.query.scope.id.as_deref(), &self.query.condition);
        let most = usize::try_from(self.query.limit.get()).unwrap_or(usize::MAX);
        let (order, after, until) = (
            self.query.order.clone(),
            self.query.after.clone(),
            self.until.clone(),
        );
        let found = self
            .archive
            .with_object(file.id, self.object(file), move |reader| {
                let mut found = candidates_of(reader, number, &condition, &order)?;
                found.retain(|row| {
                    let is = |bound: &Option<Position>, wanted: std::cmp::Ordering| {
                        bound
                            .as_ref()
                            .is_none_or(|at| order.compare(&row.position, at) == wanted)
                    };
                    is(&after, std::cmp::Ordering::Greater) && is(&until, std::cmp::Ordering::Less)
                });
                let mut results = reader.result_ids(&places(&found))?.into_iter();
                found.retain(|_| results.next().is_some_and(|id| live.contains(&id)));
                if found.len() > most {
                    found.select_nth_unstable_by(most, |a, b| {
                        order.compare(&a.position, &b.position)
                    });
                    found.truncate(most);
                    found.sort_unstable_by_key(|row| row.place);
                }
                let places = places(&found);
                let mut sizes = reader.sizes(&places)?.into_iter();
                let mut names = reader.values(&places, &Column::RecordName)?.into_iter();
                for row in &mut found {
                    row.size = sizes.next().unwrap_or_default();
                    if let Some(Some(Value::Text(name))) = names.next() {
                        row.name = name;
                    }
                }
                Ok(found)
            })
            .await?;
        Ok(found)
    }

    /// Reads rows that were found, in the order of `rows`.
    pub(super) async fn read(&self, rows: &[Candidate], parts: Parts) -> Result<Vec<Read>, Error> {
        let mut of_files: BTreeMap<usize, Vec<(Place, usize)>> = BTreeMap::new();
        for (at, row) in rows.iter().enumerate() {
            of_files.entry(row.file).or_default().push((row.place, at));
        }
        let reads = of_files
            .into_iter()
            .map(|(number, mut of_file)| async move {
                of_file.sort_unstable();
                let places: Vec<Place> = of_file.iter().map(|(place, _)| *place).collect();
                let file = &self.files[number];
                let (archive, object) = (self.archive, self.object(file));
                let read = move |reader: &Reader<Object>| read(reader, &places, parts);
                let read = archive.with_object(file.id, object, read);
                Ok::<_, Error>((of_file, read.await?))
            });
        let reads: Vec<_> = reads.collect();
        let mut reads = stream::iter(reads).buffer_unordered(AT_ONCE);
        let mut all: Vec<Option<Read>> = rows.iter().map(|_| None).collect();
        while let Some((of_file, read)) = reads.try_next().await? {
            for ((_, at), row) in of_file.into_iter().zip(read) {
                all[at] = Some(row);
            }
        }
        let all: Option<Vec<Read>> = all.into_iter().collect();
        all.ok_or_else(|| {
            Error::Corrupt("an archive file has fewer rows than were found".to_owned())
        })
    }
}

/// The condition of a list with its scope, of which the file has several results.
pub(super) fn scoped(result: Option<&str>, condition: &Condition) -> Condition {
    match result {
        None => condition.clone(),
        Some(id) => {
            let of_result = Condition::Test(Test {
                column: Column::ResultId,
                is: Is::Equal(Value::Text(id.to_owned())),
                negated: false,
            });
            Condition::And(vec![of_result, condition.clone()])
        }
    }
}

fn places(rows: &[Candidate]) -> Vec<Place> {
    rows.iter().map(|row| row.place).collect()
}

fn candidates_of(
    reader: &Reader<Object>,
    file: usize,
    condition: &Condition,
    order: &Order,
) -> Result<Vec<Candidate>, FileError> {
    let places = reader.find(condition)?.places;
    let numbers = reader.numbers(&places)?;
    let mut keys = Vec::new();
    for key in order.keys() {
        keys.push((&key.column, reader.values(&places, &key.column)?));
    }
    let rows = places.into_iter().zip(numbers).enumerate();
    let candidate = |(at, (place, number)): (usize, (Place, i64))| {
        let value = |column: &Column| {
            let (_, values) = keys.iter().find(|(known, _)| *known == column)?;
            // As the store spells it.
            Some(match values[at].clone()? {
                Value::Text(text) => Value::Text(stored(&text).into_owned()),
                other => other,
            })
        };
        Candidate {
            position: order.position(number, &value),
            file,
            place,
            name: String::new(),
            size: 0,
        }
    };
    Ok(rows.map(candidate).collect())
}

fn read(reader: &Reader<Object>, places: &[Place], parts: Parts) -> Result<Vec<Read>, FileError> {
    let payloads = match parts.payloads {
        true => Payloads::Read,
        false => Payloads::Skip,
    };
    let rows = reader.read(places, payloads)?;
    let objects = match parts.objects {
        true => reader.objects(places)?,
        false => vec![ObjectColumns::default(); rows.len()],
    };
    let read = rows.into_iter().zip(objects);
    Ok(read.map(|(row, object)| Read { row, object }).collect())
}
