//! Signatures of runs that were stored under older rules.
//!
//! A row says by which rules its signature was made, so that nothing else notes how far this is: what
//! is left to do is what two indexes find, and it goes on wherever it was stopped.

use std::{collections::BTreeSet, num::NonZeroU32};

use bytes::Bytes;

use super::SqlStore;
use crate::{
    codec::{objects::fetch_external, parallel::par_map_blocking, record::StoredRecord},
    driver::Database,
    seam::Error,
    sql::{
        read,
        row::SqlRow as _,
        signatures as sql,
        walk::{self, CODEC, DICTIONARY, SIZE},
    },
};
use hindsight_filter::columns::{ObjectColumns, object_columns, unreadable};

/// Bytes of payloads after which a batch ends.
const MOST_BYTES: i64 = 8 << 20;

/// Where, in a row, the SHA-256 of the payload stands.
const SHA256: usize = 10;

/// A run that is to be read again.
struct Run {
    row: i64,
    sha256: Option<Bytes>,
    size: usize,
    /// The record; none if its body lies outside and is lost.
    record: Option<StoredRecord>,
}

/// Writes the signatures of at most `most` runs again. A run whose payload is damaged has that of a
/// failure that says nothing; one whose dictionary goes meanwhile is left for the next time.
///
/// It fails if the database or the object store does not answer.
pub(super) async fn sign(store: &SqlStore<impl Database>, most: NonZeroU32) -> Result<u64, Error> {
    let rows = outdated(store, most).await?;
    if rows.is_empty() {
        return Ok(0);
    }
    let mut wanted = BTreeSet::new();
    let mut runs = Vec::new();
    for row in store.ask(&walk::records_of(store.dialect(), rows)).await? {
        let has_body = row.int(CODEC)?.is_some();
        wanted.extend(row.int(DICTIONARY)?);
        runs.push(Run {
            row: row.int(0)?.unwrap_or(0),
            sha256: row.bytes(SHA256)?.map(Bytes::from),
            size: usize::try_from(row.int(SIZE)?.unwrap_or(0)).unwrap_or(0),
            record: readable(read::raw_record(&row, has_body.then_some(CODEC)))?,
        });
    }
    let outside = runs.iter_mut().filter_map(|run| run.record.as_mut());
    let brought = fetch_external(store.objects(), outside).await;
    let there = runs.iter_mut().filter(|run| run.record.is_some());
    for (run, brought) in there.zip(brought) {
        if readable(brought)?.is_none() {
            run.record = None;
        }
    }
    let loaded = store.packed().load(store, wanted).await?;
    let is_whole = |run: &Run| {
        let dictionary = run.record.as_ref().and_then(StoredRecord::dictionary);
        dictionary.is_none_or(|dictionary| loaded.contains_key(&dictionary))
    };
    runs.retain(is_whole);
    let said = move |run: Run| {
        let record = run.record.map(|record| record.unpack(&loaded));
        let record = record.transpose().ok().flatten();
        let data = record.and_then(|record| record.data);
        let said = data.map_or_else(ObjectColumns::default, |data| object_columns(&data));
        let signature = said.signature.clone().unwrap_or_else(unreadable);
        sql::rewrite((run.row, run.sha256), &said, &signature)
    };
    let statements = par_map_blocking(runs, |run| run.size, said).await?;
    let signed = statements.len() as u64;
    if signed > 0 {
        store.tell(statements).await?;
    }
    Ok(signed)
}

/// The rows that are to be read again, so many that their payloads have a bounded size.
async fn outdated(store: &SqlStore<impl Database>, most: NonZeroU32) -> Result<Vec<i64>, Error> {
    let limit = i64::from(most.get());
    let (mut rows, mut bytes) = (Vec::new(), 0_i64);
    for statement in sql::outdated(limit) {
        for row in store.ask(&statement).await? {
            bytes = bytes.saturating_add(row.int(1)?.unwrap_or(0));
            let is_full = rows.len() >= most.get() as usize || bytes > MOST_BYTES;
            if is_full && !rows.is_empty() {
                return Ok(rows);
            }
            rows.extend(row.int(0)?);
        }
    }
    Ok(rows)
}

/// Nothing where a payload is damaged or lost for good.
fn readable<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(Error::Corrupt(_) | Error::MissingObject(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
