//! The end of a log: its digest, its last chunks merged, and an upload in the place of the one before.

use hindsight_logs::{Effort, Head, Lines, Window, decode, first_merged};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::{
    RACES,
    append::{chunked, last_heads, make, read},
    lost, new_version,
};
use crate::{
    driver::Database,
    seam::{Error, LogKey, LogKind, LogSource, LogStore as _, StoredLog},
    sql::{
        logs::{
            self as sql,
            chunks::{self, Of},
        },
        statement::Statement,
    },
    store::SqlStore,
};

/// A log of at most so many bytes is packed as it is sealed, a larger one later.
const SMALL: i64 = 256 << 10;

/// Seals a source. One that had no line becomes a sealed empty one.
pub(super) async fn seal<D: Database>(
    store: &SqlStore<D>,
    key: &LogKey,
    now: Timestamp,
) -> Result<StoredLog, Error> {
    for _ in 0..RACES {
        let stored = match store.log(key).await? {
            Some(stored) if stored.sha256.is_some() => return Ok(stored),
            Some(stored) => stored,
            None => make(store, key, now).await?,
        };
        let Some(ended) = ended(store, &stored, key, now).await? else {
            continue;
        };
        if store.tell(ended.statements).await? > 0 {
            return Ok(ended.to);
        }
    }
    Err(lost())
}

/// Makes a finished upload the one of its run.
pub(super) async fn replace_upload<D: Database>(
    store: &SqlStore<D>,
    key: &LogKey,
    now: Timestamp,
) -> Result<StoredLog, Error> {
    let finished = LogKey {
        kind: LogKind::Uploaded,
        source: LogSource::default(),
        run: key.run.clone(),
    };
    let mut failure = lost();
    for _ in 0..RACES {
        let stored = match store.log(key).await? {
            Some(stored) => stored,
            None => make(store, key, now).await?,
        };
        let Some(ended) = ended(store, &stored, &finished, now).await? else {
            continue;
        };
        let mut statements = vec![sql::delete(&finished)];
        statements.extend(ended.statements);
        match store.tell(statements).await {
            Ok(_) => {
                let is_there = store.log(&finished).await?;
                if is_there.is_some_and(|found| found.version == ended.to.version) {
                    return Ok(ended.to);
                }
            }
            // Another upload was finished in the same moment.
            Err(error @ Error::Database { .. }) => failure = error,
            Err(error) => return Err(error),
        }
    }
    Err(failure)
}

struct Ended {
    statements: Vec<Statement>,
    to: StoredLog,
}

/// What seals a source under a key; none if another writer changes it right now.
async fn ended<D: Database>(
    store: &SqlStore<D>,
    stored: &StoredLog,
    key: &LogKey,
    now: Timestamp,
) -> Result<Option<Ended>, Error> {
    let Some(sha256) = digest(store, stored).await? else {
        return Ok(None);
    };
    let last = last_heads(store, stored.row).await?;
    let heads: Vec<Head> = last.iter().map(|(head, _)| *head).collect();
    let from = first_merged(&heads, 0, true);
    let Some(merged) = read(store, stored.row, &last, from).await? else {
        return Ok(None);
    };
    let mut to = StoredLog {
        key: key.clone(),
        version: new_version(),
        sha256: Some(sha256),
        ..stored.clone()
    };
    let mut made = Vec::new();
    let is_whole = from == Some(0) && stored.bytes <= SMALL;
    // One chunk alone stays as it is, unless that is all.
    if merged.lines.len() > 1 || is_whole {
        let texts = vec![Lines::joined(&merged.lines)];
        let effort = match is_whole {
            true => Effort::Thorough,
            false => Effort::Quick,
        };
        made = chunked(texts, stored.bytes - merged.bytes, effort).await?;
        to.stored_bytes -= merged.stored_bytes;
    }
    let sizes = made.iter().map(|new| new.row.chunk.body.len());
    if is_whole && sizes.clone().all(|size| !super::is_outside(store, size)) {
        to.packed = to.lines;
    }
    let sizes = sizes.map(|size| i64::try_from(size).unwrap_or(i64::MAX));
    to.stored_bytes += sizes.sum::<i64>();
    let mut statements = vec![sql::update(&to, stored.version, now)];
    let of = Of::from(&to);
    if let Some(from) = from.filter(|_| !made.is_empty()) {
        statements.push(chunks::remove(from..i64::MAX, of));
    }
    statements.extend(made.iter().map(|new| chunks::add(&new.row, of)));
    Ok(Some(Ended { statements, to }))
}

/// The SHA-256 of a source, read chunk by chunk; none if its chunks are others than its row says.
async fn digest<D: Database>(
    store: &SqlStore<D>,
    stored: &StoredLog,
) -> Result<Option<Vec<u8>>, Error> {
    let (mut sha256, mut line, mut bytes) = (Sha256::new(), 0, 0);
    while line < stored.lines {
        let chunk = store
            .next_chunk(stored.row, line, Window::default())
            .await?;
        let Some(chunk) = chunk.filter(|chunk| chunk.head.first_line == line) else {
            return Ok(None);
        };
        (line, bytes) = (chunk.head.end(), bytes + chunk.head.bytes);
        let lines = decode(&chunk)?;
        sha256.update(&lines.text);
    }
    let is_same = line == stored.lines && bytes == stored.bytes;
    Ok(is_same.then(|| sha256.finalize().to_vec()))
}
