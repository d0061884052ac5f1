//! Signatures of runs that were stored under older rules, or before their logs were sealed.
//!
//! A row says by which rules its signature was made, and a log whether its end was looked at, so that
//! nothing else notes how far this is: what is left to do is what three indexes find, and it goes on
//! wherever it was stopped.

use std::{collections::BTreeSet, num::NonZeroU32};

use bytes::Bytes;

use super::SqlStore;
use crate::{
    codec::{objects::fetch_external, parallel::par_map_blocking, record::StoredRecord},
    driver::Database,
    seam::{Error, LogStore as _, log_tail, signing_log},
    sql::{
        read,
        row::SqlRow as _,
        signatures as sql,
        walk::{self, CODEC, DICTIONARY, SIZE},
    },
};
use hindsight_filter::columns::{
    LOG_BYTES, ObjectColumns, VagueFailure, object_columns, unreadable,
};
use hindsight_filter::model::RecordName;

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

/// What a run says of its end.
struct Said {
    row: i64,
    sha256: Option<Bytes>,
    columns: ObjectColumns,
    /// The run and its failure, if that says so little that its log counts.
    vague: Option<(RecordName, VagueFailure)>,
}

/// Writes the signatures of at most `most` runs again, or looks at the ends of so many logs. A run whose
/// payload is damaged has the signature of a failure that says nothing; one whose dictionary goes
/// meanwhile is left for the next time.
///
/// It fails if the database or the object store does not answer.
pub(super) async fn sign(store: &SqlStore<impl Database>, most: NonZeroU32) -> Result<u64, Error> {
    let rows = outdated(store, most).await?;
    if rows.is_empty() {
        return sign_late(store, most).await;
    }
    let mut statements = Vec::new();
    for said in said(store, rows).await? {
        let signature = signature(store, &said).await?;
        statements.push(sql::rewrite(
            (said.row, said.sha256),
            &said.columns,
            &signature,
        ));
    }
    let signed = statements.len() as u64;
    if signed > 0 {
        store.tell(statements).await?;
    }
    Ok(signed)
}

/// Writes the signatures of runs whose failures say little and whose logs were sealed since.
async fn sign_late(store: &SqlStore<impl Database>, most: NonZeroU32) -> Result<u64, Error> {
    let (mut logs, mut rows, mut bytes) = (Vec::new(), BTreeSet::new(), 0_i64);
    for row in store
        .ask(&sql::unsigned_logs(i64::from(most.get())))
        .await?
    {
        let run = row.int(2)?;
        if let Some(run) = run.filter(|run| !rows.contains(run)) {
            bytes = bytes.saturating_add(row.int(3)?.unwrap_or(0));
            if bytes > MOST_BYTES && !rows.is_empty() {
                break;
            }
            rows.insert(run);
        }
        logs.push((row.int(0)?.unwrap_or(0), row.int(1)?.unwrap_or(0), run));
    }
    let (mut statements, mut read) = (Vec::new(), BTreeSet::new());
    if !rows.is_empty() {
        for said in said(store, rows.into_iter().collect()).await? {
            read.insert(said.row);
            if said.vague.is_some() {
                let signature = signature(store, &said).await?;
                let row = (said.row, said.sha256);
                statements.push(sql::rewrite(row, &said.columns, &signature));
            }
        }
    }
    logs.retain(|(_, _, run)| run.is_none_or(|run| read.contains(&run)));
    // After the rows of runs, whose writers lock them in this order.
    statements.extend(
        logs.iter()
            .map(|(log, mark, _)| sql::signed_log(*log, *mark)),
    );
    if !statements.is_empty() {
        store.tell(statements).await?;
    }
    Ok(logs.len() as u64)
}

/// The signature of a run, with the end of its log if that counts.
async fn signature(store: &SqlStore<impl Database>, said: &Said) -> Result<String, Error> {
    if let Some((run, failure)) = &said.vague {
        let sources = store.logs(run).await?;
        if let Some(log) = signing_log(&sources, failure.step(), failure.has_steps()) {
            let tail = match log_tail(store, log, LOG_BYTES).await {
                Ok(tail) => tail,
                Err(Error::Corrupt(_)) => String::new(),
                Err(error) => return Err(error),
            };
            return Ok(failure.signature(&tail));
        }
    }
    let signature = said.columns.signature.clone();
    Ok(signature.unwrap_or_else(unreadable))
}

/// Reads the runs in these rows, without those whose dictionary goes meanwhile.
async fn said(store: &SqlStore<impl Database>, rows: Vec<i64>) -> Result<Vec<Said>, Error> {
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
        let (columns, vague) = match record.and_then(|record| Some((record.name, record.data?))) {
            Some((name, data)) => {
                let vague = VagueFailure::of(&data);
                (object_columns(&data), vague.map(|vague| (name, vague)))
            }
            None => (ObjectColumns::default(), None),
        };
        Said {
            row: run.row,
            sha256: run.sha256,
            columns,
            vague,
        }
    };
    par_map_blocking(runs, |run| run.size, said).await
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
