//! Appending lines: which of them are new, which chunks they become, and one transaction for all sources.

use hindsight_logs::{
    Chunk, Effort, Head, Lines, MAX_CHUNK, MAX_PACKED, Window, chunks_of, decode, encode,
    first_merged,
};
use jiff::Timestamp;

use super::{RACES, lost, new_version};
use crate::{
    driver::Database,
    seam::{Error, LogAppend, LogKey, LogStore as _, StoredLog},
    sql::{
        logs::{
            self as sql,
            chunks::{self, ChunkRow, Of},
        },
        statement::Statement,
    },
    store::SqlStore,
};

/// More chunks at the end than these are never merged; sizes that double reach the greatest before.
const HEADS: i64 = 32;
/// Lines above so many bytes are compressed beside the event loop.
const HEAVY: usize = 32 << 10;

/// Appends lines of different sources in one transaction. What another writer was faster with is read again.
pub(super) async fn append<D: Database>(
    store: &SqlStore<D>,
    appends: &[LogAppend],
    now: Timestamp,
) -> Vec<Result<StoredLog, Error>> {
    let mut outcomes: Vec<Option<Result<StoredLog, Error>>> = Vec::new();
    outcomes.resize_with(appends.len(), || None);
    for _ in 0..RACES {
        if outcomes.iter().all(Option::is_some) {
            break;
        }
        let mut steps = Vec::new();
        for (append, outcome) in appends.iter().zip(&mut outcomes) {
            if outcome.is_some() {
                continue;
            }
            match Step::of(store, append, now).await {
                Ok(Step::Stored(stored)) => *outcome = Some(Ok(stored)),
                Ok(Step::Change(change)) => steps.push((change, outcome)),
                Ok(Step::Again) => {}
                Err(error) => *outcome = Some(Err(error)),
            }
        }
        // In one order, so that two writers never wait for each other.
        steps.sort_by_key(|(change, _)| change.to.row);
        let expected: usize = steps.iter().map(|(change, _)| change.rows).sum();
        let (mut statements, mut changes) = (Vec::new(), Vec::new());
        for (change, outcome) in steps {
            statements.extend(change.statements);
            changes.push((change.to, outcome));
        }
        match store.tell(statements).await {
            Err(error) => {
                for (_, outcome) in changes {
                    *outcome = Some(Err(error.repeated()));
                }
            }
            Ok(changed) if changed == expected as u64 => {
                for (stored, outcome) in changes {
                    *outcome = Some(Ok(stored));
                }
            }
            Ok(_) => {
                for (stored, outcome) in changes {
                    match store.log(&stored.key).await {
                        Ok(Some(now)) if now.version == stored.version => {
                            *outcome = Some(Ok(stored));
                        }
                        Ok(_) => {}
                        Err(error) => *outcome = Some(Err(error)),
                    }
                }
            }
        }
    }
    let outcomes = outcomes.into_iter();
    outcomes
        .map(|outcome| outcome.unwrap_or_else(|| Err(lost())))
        .collect()
}

/// What is done about one source.
enum Step {
    /// All of it is stored.
    Stored(StoredLog),
    Change(Change),
    /// Another writer changes it right now.
    Again,
}

struct Change {
    statements: Vec<Statement>,
    /// How many rows those change.
    rows: usize,
    to: StoredLog,
}

impl Step {
    async fn of<D: Database>(
        store: &SqlStore<D>,
        append: &LogAppend,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let stored = match store.log(&append.key).await? {
            Some(stored) => stored,
            None => made(store, append, now).await?,
        };
        check_overlap(store, &stored, &append.parts).await?;
        let (mut parts, mut next) = (Vec::new(), stored.lines);
        for part in &append.parts {
            if part.end() <= next {
                continue;
            }
            if part.first > next {
                return Err(Error::OutOfSequence {
                    next,
                    given: part.first,
                });
            }
            parts.push(part.from(next));
            next = part.end();
        }
        if parts.is_empty() {
            return Ok(Self::Stored(stored));
        }
        if stored.sha256.is_some() {
            return Err(Error::Sealed(stored.lines));
        }
        let change = change(store, stored, parts, now).await?;
        Ok(change.map_or(Self::Again, Self::Change))
    }
}

/// Checks that what is stored under the numbers of some lines are those lines, by the time of the last one: two
/// writers may number different lines alike.
async fn check_overlap<D: Database>(
    store: &SqlStore<D>,
    stored: &StoredLog,
    parts: &[Lines],
) -> Result<(), Error> {
    let last = parts.iter().rfind(|part| part.first < stored.lines);
    let Some(part) = last else { return Ok(()) };
    let line = part.end().min(stored.lines) - 1;
    let chunk = match store.next_chunk(stored.row, line, Window::default()).await {
        // Not checked: a call that waits for the object store holds up the lines of all logs.
        Err(Error::ObjectStoreUnavailable { .. }) => return Ok(()),
        chunk => chunk?,
    };
    let Some(chunk) = chunk.filter(|chunk| chunk.head.first_line <= line) else {
        // The log was deleted meanwhile, or is damaged, which its readers are told.
        return Ok(());
    };
    let is_same = time_of(&decode(&chunk)?, line) == time_of(part, line);
    is_same.then_some(()).ok_or(Error::OtherLine(line))
}

fn time_of(lines: &Lines, line: i64) -> Option<i64> {
    let at = usize::try_from(line.checked_sub(lines.first)?).ok()?;
    lines.times.get(at).copied()
}

/// The source that lines are the first of.
async fn made<D: Database>(
    store: &SqlStore<D>,
    append: &LogAppend,
    now: Timestamp,
) -> Result<StoredLog, Error> {
    if let Some(first) = append.parts.first()
        && first.first > 0
    {
        return Err(Error::OutOfSequence {
            next: 0,
            given: first.first,
        });
    }
    make(store, &append.key, now).await
}

/// Makes an empty source, unless it is there.
pub(super) async fn make<D: Database>(
    store: &SqlStore<D>,
    key: &LogKey,
    now: Timestamp,
) -> Result<StoredLog, Error> {
    store
        .tell(vec![sql::insert(key, new_version(), now)])
        .await?;
    let made = store.log(key).await?;
    made.ok_or_else(|| Error::Missing(key.run.result().to_string()))
}

async fn change<D: Database>(
    store: &SqlStore<D>,
    stored: StoredLog,
    parts: Vec<Lines>,
    now: Timestamp,
) -> Result<Option<Change>, Error> {
    let last = last_heads(store, stored.row).await?;
    let mut texts = closed_runs(parts);
    let bytes = texts.first().map_or(0, |lines| lines.text.len());
    let heads: Vec<Head> = last.iter().map(|(head, _)| *head).collect();
    let from = first_merged(&heads, bytes, false);
    let Some(merged) = read(store, stored.row, &last, from).await? else {
        return Ok(None);
    };
    if let Some(first) = texts.first_mut() {
        let all: Vec<Lines> = merged.lines.iter().chain([&*first]).cloned().collect();
        *first = Lines::joined(&all);
    }
    let first_byte = stored.bytes - merged.bytes;
    let made = chunked(texts, first_byte, Effort::Quick).await?;
    let mut to = StoredLog {
        version: new_version(),
        ..stored.clone()
    };
    for new in &made {
        let Chunk { head, body } = &new.row.chunk;
        to.lines = head.end();
        to.bytes = head.first_byte + head.bytes;
        to.stored_bytes += i64::try_from(body.len()).unwrap_or(i64::MAX);
        to.first_us = Some(to.first_us.unwrap_or(i64::MAX).min(head.min_us));
        to.last_us = Some(to.last_us.unwrap_or(i64::MIN).max(head.max_us));
        to.holes += new.holes;
    }
    to.stored_bytes -= merged.stored_bytes;
    to.holes -= merged.holes;
    let mut statements = vec![sql::update(&to, stored.version, now)];
    if let Some(from) = from {
        statements.push(chunks::remove(from..i64::MAX, Of::from(&to)));
    }
    let rows = 1 + merged.lines.len() + made.len();
    let of = Of::from(&to);
    statements.extend(made.iter().map(|new| chunks::add(&new.row, of)));
    Ok(Some(Change {
        statements,
        rows,
        to,
    }))
}

/// The lines of parts, joined where a line may follow the one before in the same text.
fn closed_runs(parts: Vec<Lines>) -> Vec<Lines> {
    let mut runs: Vec<Vec<Lines>> = Vec::new();
    for part in parts {
        match runs.last_mut() {
            Some(run) if run.last().is_none_or(Lines::is_closed) => run.push(part),
            _ => runs.push(vec![part]),
        }
    }
    runs.iter().map(|run| Lines::joined(run)).collect()
}

/// The heads of the last chunks of a source, in order, each with the bytes that its body takes.
pub(super) async fn last_heads<D: Database>(
    store: &SqlStore<D>,
    row: i64,
) -> Result<Vec<(Head, i64)>, Error> {
    let rows = store
        .rows(&chunks::last_heads(row, HEADS), "reading a log")
        .await?;
    rows.iter().rev().map(chunks::head_and_size).collect()
}

/// Chunks that are written anew.
#[derive(Default)]
pub(super) struct Merged {
    pub(super) lines: Vec<Lines>,
    pub(super) bytes: i64,
    pub(super) stored_bytes: i64,
    pub(super) holes: i64,
}

/// Reads the chunks from a line on, which are small; none if another writer has merged them meanwhile.
pub(super) async fn read<D: Database>(
    store: &SqlStore<D>,
    row: i64,
    last: &[(Head, i64)],
    from: Option<i64>,
) -> Result<Option<Merged>, Error> {
    let mut merged = Merged::default();
    let Some(from) = from else {
        return Ok(Some(merged));
    };
    for (head, stored_bytes) in last.iter().filter(|(head, _)| head.first_line >= from) {
        let line = head.first_line;
        let chunk = store.next_chunk(row, line, Window::default()).await?;
        let Some(chunk) = chunk.filter(|chunk| chunk.head == *head) else {
            return Ok(None);
        };
        let lines = decode(&chunk)?;
        merged.bytes += head.bytes;
        merged.stored_bytes += stored_bytes;
        merged.holes += i64::try_from(lines.holes.len()).unwrap_or(i64::MAX);
        merged.lines.push(lines);
    }
    Ok(Some(merged))
}

/// A chunk to be written.
pub(super) struct NewChunk {
    pub(super) row: ChunkRow,
    /// How many holes it has.
    holes: i64,
}

/// The chunks that texts become, of which the first begins at a byte of its source.
pub(super) async fn chunked(
    texts: Vec<Lines>,
    first_byte: i64,
    effort: Effort,
) -> Result<Vec<NewChunk>, Error> {
    let bytes: usize = texts.iter().map(|lines| lines.text.len()).sum();
    let is_small = effort == Effort::Quick && bytes < HEAVY;
    let most = match effort {
        Effort::Quick => MAX_CHUNK,
        Effort::Thorough => MAX_PACKED,
    };
    let make = move || {
        let mut byte = first_byte;
        let mut chunks = Vec::new();
        for lines in texts.iter().flat_map(|lines| chunks_of(lines, most)) {
            let head = Head::of(&lines, byte);
            byte += head.bytes;
            chunks.push(NewChunk {
                holes: i64::try_from(lines.holes.len()).unwrap_or(i64::MAX),
                row: ChunkRow {
                    chunk: Chunk {
                        head,
                        body: encode(&lines, effort)?.into(),
                    },
                    is_outside: false,
                },
            });
        }
        Ok(chunks)
    };
    if is_small {
        return make();
    }
    let made = tokio::task::spawn_blocking(make).await;
    made.map_err(|broken| Error::Unavailable {
        what: "compressing a log",
        source: broken.into(),
    })?
}
