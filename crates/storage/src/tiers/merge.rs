//! One list of rows of the store and of files.

use std::collections::HashSet;

use async_trait::async_trait;
use hindsight_filter::{
    Position,
    condition::Condition,
    model::{ParentPattern, Record, RecordName, ResultName, Tier},
};

use super::{
    Tiers, candidates,
    search::{Candidate, Parts, Read, Search},
};
use crate::seam::{
    ArchiveFile, ArchiveState, EncodedRecord, Error, ListQuery, Listed, RecordColumns, Store,
};

/// How often a list is begun again because records left files while it was answered.
const RETRIES: usize = 16;

/// What lists of records give.
#[async_trait]
pub(super) trait Item: Sized + Send {
    /// What is read of rows of files.
    fn parts(query: &ListQuery) -> Parts;
    /// The rows of the store.
    async fn stored(store: &dyn Store, query: &ListQuery) -> Result<Vec<Listed<Self>>, Error>;
    /// A row of a file.
    fn archived(read: Read) -> Self;
    /// The name of the record.
    fn name(&self) -> &RecordName;
    /// Bytes that count for the `max_bytes` of a query.
    fn size(&self) -> u64;
    /// How many of these end what the store gives.
    fn most(query: &ListQuery) -> Option<u64> {
        let most = query.max_bytes.filter(|_| query.bodies);
        most.map(|most| most as u64)
    }
}

#[async_trait]
impl Item for Record {
    fn parts(query: &ListQuery) -> Parts {
        Parts {
            payloads: query.bodies,
            objects: false,
        }
    }

    async fn stored(store: &dyn Store, query: &ListQuery) -> Result<Vec<Listed<Self>>, Error> {
        store.list_records(query).await
    }

    fn archived(read: Read) -> Self {
        read.row.record
    }

    fn name(&self) -> &RecordName {
        &self.name
    }

    fn size(&self) -> u64 {
        self.data.as_ref().map_or(0, |data| data.value.len() as u64)
    }
}

#[async_trait]
impl Item for RecordColumns {
    fn parts(_: &ListQuery) -> Parts {
        Parts {
            payloads: false,
            objects: true,
        }
    }

    async fn stored(store: &dyn Store, query: &ListQuery) -> Result<Vec<Listed<Self>>, Error> {
        store.list_columns(query).await
    }

    fn archived(read: Read) -> Self {
        Self {
            record: read.row.record,
            object: read.object,
        }
    }

    fn name(&self) -> &RecordName {
        &self.record.name
    }

    fn size(&self) -> u64 {
        self.weight() as u64
    }

    fn most(query: &ListQuery) -> Option<u64> {
        query.max_bytes.map(|most| most as u64)
    }
}

#[async_trait]
impl Item for EncodedRecord {
    fn parts(query: &ListQuery) -> Parts {
        Record::parts(query)
    }

    async fn stored(store: &dyn Store, query: &ListQuery) -> Result<Vec<Listed<Self>>, Error> {
        store.list_encoded(query).await
    }

    fn archived(read: Read) -> Self {
        Self::plain(read.row.record)
    }

    fn name(&self) -> &RecordName {
        self.name()
    }

    fn size(&self) -> u64 {
        self.payload_bytes() as u64
    }
}

/// A row, wherever it is.
enum Either<T> {
    Stored(T),
    Archived(Candidate),
}

impl Tiers {
    /// The rows of a list, in order. A record that is moved meanwhile is in it once: rows of the store are read
    /// first, so that what left it is in a file by then, and what comes back from a file meanwhile is noticed.
    pub(super) async fn list<T: Item>(&self, query: &ListQuery) -> Result<Vec<Listed<T>>, Error> {
        for _ in 0..RETRIES {
            let before = self.archive.index.archive_state().await?;
            let stored = T::stored(&*self.store, query).await?;
            // A list that ends early because of its bytes says nothing of later rows.
            let bytes: u64 = stored.iter().map(|row| row.item.size()).sum();
            let is_cut = T::most(query).is_some_and(|most| bytes >= most);
            let is_full = stored.len() >= usize::try_from(query.limit.get()).unwrap_or(usize::MAX);
            let until = stored.last().filter(|_| is_full || is_cut);
            let until = until.map(|last| last.position.clone());
            let between = candidates::between(&query.order, query.after.as_ref(), until.as_ref());
            let bounded = ListQuery {
                condition: Condition::And(vec![between, query.condition.clone()]),
                ..query.clone()
            };
            let files = self.candidates(&bounded, before).await?;
            let rows = async {
                if files.is_empty() {
                    return Ok(stored);
                }
                let search = Search::new(&self.archive, &bounded, until.as_ref(), files);
                let found = search.find().await?;
                read(&search, merged(query, stored, found), T::parts(query)).await
            };
            let rows = rows.await;
            let after = self.archive.index.archive_state().await?;
            match rows {
                // It was removed at once, for the sake of what was purged.
                Err(Error::MissingObject(_)) if after.files != before.files => {}
                // What is missing may have left for another file, or for the store.
                rows if after.left == before.left => return rows,
                _ => {}
            }
        }
        Err(Error::Unavailable {
            what: "listing records",
            source: "records leave archive files all the time; try again".into(),
        })
    }

    /// The files that can have rows of a list. What left the store before this is called is in one of them.
    pub(super) async fn candidates(
        &self,
        query: &ListQuery,
        before: ArchiveState,
    ) -> Result<Vec<ArchiveFile>, Error> {
        let only = match (&query.scope.parent, &query.scope.id) {
            (ParentPattern::Exact(parent), Some(id)) => {
                let Ok(name) = format!("{parent}/results/{id}").parse::<ResultName>() else {
                    return Ok(Vec::new());
                };
                let Some(file) = self.archive.index.file_of(&name).await? else {
                    return Ok(Vec::new());
                };
                Some(file)
            }
            _ => None,
        };
        let mut state = self.archive.index.archive_state().await?;
        state.files = state.files.max(before.files);
        let files = self.archive.files(state).await?;
        let files = files.iter().filter(|file| {
            only.is_none_or(|only| file.id == only)
                && candidates::may_have(file, &query.scope, &query.condition)
        });
        Ok(files.cloned().collect())
    }
}

/// Rows of both in order, as many as are asked for. One that is in both was moved meanwhile.
fn merged<T: Item>(
    query: &ListQuery,
    stored: Vec<Listed<T>>,
    found: Vec<Candidate>,
) -> Vec<(Position, Either<T>)> {
    let names: HashSet<String> = stored
        .iter()
        .map(|row| row.item.name().to_string())
        .collect();
    let stored = stored
        .into_iter()
        .map(|row| (row.position, Either::Stored(row.item)));
    let found = found.into_iter().filter(|row| !names.contains(&row.name));
    let found = found.map(|row| (row.position.clone(), Either::Archived(row)));
    let mut all: Vec<_> = stored.chain(found).collect();
    all.sort_by(|(a, _), (b, _)| query.order.compare(a, b));
    all.truncate(usize::try_from(query.limit.get()).unwrap_or(usize::MAX));
    // Of columns those of the store end the list, which bounds the others.
    let Some(most) = query.max_bytes.filter(|_| query.bodies) else {
        return all;
    };
    let (most, mut before) = (most.max(1) as u64, 0);
    let end = all.iter().position(|(_, row)| {
        let is_beyond = before >= most;
        before += match row {
            Either::Stored(item) => item.size(),
            Either::Archived(row) => row.size,
        };
        is_beyond
    });
    all.truncate(end.unwrap_or(all.len()));
    all
}

/// Reads those rows that are in files.
async fn read<T: Item>(
    search: &Search<'_>,
    rows: Vec<(Position, Either<T>)>,
    parts: Parts,
) -> Result<Vec<Listed<T>>, Error> {
    let archived = rows.iter().filter_map(|(_, row)| match row {
        Either::Archived(row) => Some(row.clone()),
        Either::Stored(_) => None,
    });
    let archived: Vec<Candidate> = archived.collect();
    let mut read = search.read(&archived, parts).await?.into_iter();
    let rows = rows.into_iter().filter_map(|(position, row)| {
        let (item, tier) = match row {
            Either::Stored(item) => (item, Tier::Hot),
            Either::Archived(_) => (T::archived(read.next()?), Tier::Cold),
        };
        Some(Listed {
            item,
            position,
            tier,
        })
    });
    Ok(rows.collect())
}
