//! Sealed logs, once more: chunks that stay as they are, compressed as small as they become, in the object
//! store if they are large.
//!
//! A source notes up to which line this is done, in the transaction that replaces the chunks. So it goes on
//! wherever it was stopped, and of two that pack the same lines one does so in vain. That is rare: each step
//! says when it was, and others leave alone what changed just now.

use std::{num::NonZeroU32, time::Instant};

use bytes::Bytes;
use hindsight_logs::{Effort, Head, Lines, MAX_PACKED, MAX_PACKED_LINES, Window, decode};
use jiff::{SignedDuration, Timestamp};

use super::{
    append::{NewChunk, chunked},
    is_outside, new_version,
};
use crate::{
    codec::{objects::Reference, parallel::par_map_blocking},
    driver::Database,
    seam::{Error, LogStore as _},
    sql::{
        logs::{
            self as sql, Unpacked,
            chunks::{self, Of},
        },
        objects,
        statement::Statement,
    },
    store::SqlStore,
};

/// A source that changed so shortly before is left alone: another server may be packing it.
const QUIET: SignedDuration = SignedDuration::from_secs(10);
/// Most chunks that become one.
const CHUNKS: i64 = 64;

/// Packs sealed logs until `most` bytes of text or more are done, and says how many. A log that is damaged does
/// not stop the others: it fails with the first such one where no other is left.
pub(in crate::store) async fn pack<D: Database>(
    store: &SqlStore<D>,
    now: Timestamp,
    most: NonZeroU32,
) -> Result<u64, Error> {
    let before = now.saturating_sub(QUIET).unwrap_or(Timestamp::MIN);
    let began = Instant::now();
    let (mut done, mut failure, mut after) = (0, None, i64::MIN);
    while done < u64::from(most.get()) {
        let rows = store.ask(&sql::unpacked(after, before)).await?;
        let Some(row) = rows.first() else { break };
        let mut source = sql::unpacked_source(row)?;
        after = source.row;
        while source.packed < source.lines {
            // A large log takes longer than others leave it alone.
            let now = now.saturating_add(began.elapsed()).unwrap_or(now);
            match step(store, &source, now).await {
                Ok(Some((bytes, next))) => {
                    done += bytes;
                    source = next;
                }
                // Another one packs it.
                Ok(None) => break,
                Err(error @ (Error::Corrupt(_) | Error::MissingObject(_))) => {
                    failure = failure.or(Some(error));
                    break;
                }
                Err(error) => return Err(error),
            }
        }
    }
    match failure {
        Some(error) if done == 0 => Err(error),
        _ => Ok(done),
    }
}

/// Packs the next lines of a source; says how many bytes they have, and what is stored now. None if
/// another one changed the source meanwhile.
async fn step<D: Database>(
    store: &SqlStore<D>,
    source: &Unpacked,
    now: Timestamp,
) -> Result<Option<(u64, Unpacked)>, Error> {
    let heads = chunks::heads_from(source.row, source.packed, CHUNKS);
    let heads = store.rows(&heads, "reading a log").await?;
    let heads = heads.iter().map(chunks::head_and_size);
    let heads = together(heads.collect::<Result<_, _>>()?);
    let (Some((first, _)), Some((last, _))) = (heads.first(), heads.last()) else {
        return missing(store, source).await;
    };
    let (lines, first_byte) = (first.first_line..last.end(), first.first_byte);
    if lines.start != source.packed {
        return missing(store, source).await;
    }
    let mut texts = Vec::new();
    for (head, _) in &heads {
        let chunk = store
            .next_chunk(source.row, head.first_line, Window::default())
            .await?;
        match chunk.filter(|chunk| chunk.head == *head) {
            Some(chunk) => texts.push(decode(&chunk)?),
            None => return Ok(None),
        }
    }
    let bytes = texts.iter().map(|lines| lines.text.len() as u64).sum();
    let texts = vec![Lines::joined(&texts)];
    let mut made = chunked(texts, first_byte, Effort::Thorough).await?;
    let size = |new: &NewChunk| i64::try_from(new.row.chunk.body.len()).unwrap_or(i64::MAX);
    let to = Unpacked {
        packed: lines.end,
        stored_bytes: source.stored_bytes - heads.iter().map(|(_, size)| size).sum::<i64>()
            + made.iter().map(size).sum::<i64>(),
        version: new_version(),
        ..*source
    };
    place(store, &mut made).await?;
    let of = Of::from(&to);
    let mut statements: Vec<Statement> = vec![
        sql::note_packed(&to, source.version, now),
        chunks::remove(lines, of),
    ];
    statements.extend(made.iter().map(|new| chunks::add(&new.row, of)));
    let is_done = store.tell(statements).await? > 0;
    Ok(is_done.then_some((bytes, to)))
}

/// What is said of a source whose next chunk is not there: it is damaged, unless it was deleted meanwhile.
async fn missing<D: Database, T>(
    store: &SqlStore<D>,
    source: &Unpacked,
) -> Result<Option<T>, Error> {
    let rows = store
        .ask(&sql::unpacked(source.row - 1, Timestamp::MAX))
        .await?;
    let found = rows.first().map(sql::unpacked_source).transpose()?;
    if found.is_none_or(|found| found.row != source.row || found.version != source.version) {
        return Ok(None);
    }
    let why = format!("log {} has no line {}", source.row, source.packed);
    Err(Error::Corrupt(why))
}

/// Of consecutive chunks the first ones that fit in one.
fn together(mut heads: Vec<(Head, i64)>) -> Vec<(Head, i64)> {
    let (mut bytes, mut lines, mut count) = (0, 0, 0);
    let mut may_follow = true;
    for (head, _) in &heads {
        bytes += usize::try_from(head.bytes).unwrap_or(usize::MAX / 2);
        lines += head.lines;
        if count > 0 && (!may_follow || bytes > MAX_PACKED || lines > MAX_PACKED_LINES) {
            break;
        }
        may_follow = head.is_closed;
        count += 1;
    }
    heads.truncate(count);
    heads
}

/// Uploads the chunks that are large enough; they keep references then. What is uploaded and never referred to
/// is noted in the database already, and goes in the end.
async fn place<D: Database>(store: &SqlStore<D>, made: &mut [NewChunk]) -> Result<(), Error> {
    let Some(depot) = store.objects() else {
        return Ok(());
    };
    for new in made {
        let row = &mut new.row;
        if !is_outside(store, row.chunk.body.len()) {
            continue;
        }
        let refer = |bytes: Bytes| (Reference::new(&bytes), bytes);
        let referred = par_map_blocking(vec![row.chunk.body.clone()], Bytes::len, refer).await?;
        for (reference, bytes) in referred {
            store.tell(vec![objects::expect(&[reference])]).await?;
            depot.put(reference.object, bytes).await?;
            row.chunk.body = reference.write();
            row.is_outside = true;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_go_together_up_to_a_size_and_a_number_of_lines() {
        let head = |lines, bytes, is_closed| {
            let head = Head {
                first_line: 0,
                lines,
                first_byte: 0,
                bytes,
                min_us: 0,
                max_us: 0,
                is_closed,
            };
            (head, 1)
        };
        let mib = 1 << 20;
        let count = |heads: Vec<(Head, i64)>| together(heads).len();
        assert_eq!(count(vec![head(9, mib, true); 6]), 4);
        assert_eq!(count(vec![head(MAX_PACKED_LINES / 2, 100, true); 6]), 2);
        assert_eq!(count(vec![head(MAX_PACKED_LINES * 2, mib, true); 2]), 1);
        assert_eq!(count(vec![head(1, 9 * mib, true); 2]), 1);
        assert_eq!(count(vec![head(9, 100, false); 2]), 1);
    }
}
