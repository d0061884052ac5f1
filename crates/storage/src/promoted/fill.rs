//! Reading keys from payloads that were stored before their field was promoted, or by somebody
//! who did not know of it. In batches, each of them one transaction, while others read and write.

use std::{collections::BTreeSet, num::NonZeroU32, sync::Arc};

use super::{Desk, Filled, look};
use crate::{
    Error,
    fsck::cut,
    objects::bring_all,
    row::in_parts,
    snapshot::Row,
    sql::{
        promote::{self, Seen, SeenKey},
        read::{Cells, RawRecord},
        statement::Statement,
        walk::{self, CODEC, PIECE, SIZE, Table},
    },
};
use hindsight_filter::promoted::Fields;

/// Bytes of payloads after which a batch ends.
const MOST_BYTES: i64 = 8 << 20;

/// Where, in a row, the SHA-256 of the payload stands.
const SHA256: usize = 10;

/// What payloads say.
#[derive(Default)]
struct Read {
    seen: Vec<Seen>,
    keys: Vec<SeenKey>,
    /// Rows whose payload cannot be read.
    damaged: Vec<i64>,
}

/// Looks at the next records for one field, at most `most`. It goes on where it stopped.
///
/// # Errors
/// [`Error::Missing`] if the field is gone.
pub(crate) async fn fill(desk: &impl Desk, field: i64, most: NonZeroU32) -> Result<Filled, Error> {
    let known = look(desk).await?;
    let Some(of) = known.all().iter().find(|one| one.id == field) else {
        return Err(Error::Missing(format!("promoted field {field}")));
    };
    if of.ready {
        return Ok(Filled {
            records: 0,
            rows: 0,
            ready: true,
        });
    }
    let sizes = walk::sizes(Table::Records, of.done_row, most.get().into());
    let last = cut(&desk.ask(&sizes).await?, MOST_BYTES)?;
    let Some(last) = last.filter(|_| of.done_row < of.until_row) else {
        desk.tell(promote::note_ready(desk.dialect(), field))
            .await?;
        look(desk).await?;
        return Ok(Filled {
            records: 0,
            rows: 0,
            ready: true,
        });
    };
    let last = last.min(of.until_row);
    let page = walk::records(desk.dialect(), of.done_row, last, true, &[]);
    let alone = Fields::new(vec![(of.id, of.path.clone(), of.kind)]);
    let rows = desk.ask(&page).await?;
    let records = rows.len() as u64;
    let read = read(desk, rows, alone).await?;
    let dialect = desk.dialect();
    let mut statements: Vec<Statement> = promote::hold(dialect, &read.seen).into_iter().collect();
    if !read.keys.is_empty() {
        statements.push(promote::store(dialect, &read.keys));
    }
    if !read.damaged.is_empty() {
        statements.push(promote::note_unknown(dialect, field, read.damaged));
    }
    statements.push(promote::note_done(field, last));
    desk.tell(statements).await?;
    Ok(Filled {
        records,
        rows: u64::try_from(last.saturating_sub(of.done_row)).unwrap_or(0),
        ready: false,
    })
}

/// Settles at most `most` records after a row of which keys may be missing; says which was the
/// last, and how many they were.
pub(crate) async fn settle(
    desk: &impl Desk,
    after: i64,
    most: NonZeroU32,
) -> Result<Option<(i64, u64)>, Error> {
    let unsettled = desk
        .ask(&promote::unsettled(after, most.get().into()))
        .await?;
    let rows: Result<Vec<i64>, Error> = unsettled
        .iter()
        .filter_map(|row| row.int(0).transpose())
        .collect();
    let rows = rows?;
    let Some(last) = rows.last().copied() else {
        return Ok(None);
    };
    let count = rows.len() as u64;
    let known = look(desk).await?;
    let page = walk::these_records(desk.dialect(), rows);
    let rows = desk.ask(&page).await?;
    let read = read(desk, rows, known.fields().clone()).await?;
    let dialect = desk.dialect();
    let fields: Vec<i64> = known.fields().numbers().collect();
    let mut statements: Vec<Statement> = promote::hold(dialect, &read.seen).into_iter().collect();
    // A writer that did not know the field left the keys of the payload before.
    statements.push(promote::forget(dialect, fields.clone(), &read.seen));
    if !read.keys.is_empty() {
        statements.push(promote::store(dialect, &read.keys));
    }
    statements.push(promote::note_known(dialect, fields, &read.seen));
    desk.tell(statements).await?;
    Ok(Some((last, count)))
}

/// Fetches bodies that lie outside. What is lost is as what is damaged.
async fn fetch<'r>(
    desk: &impl Desk,
    records: impl Iterator<Item = &'r mut Result<RawRecord, Error>>,
) -> Result<(), Error> {
    let mut outside: Vec<_> = records
        .filter_map(|record| {
            let raw = record.as_mut().ok()?;
            raw.outside().is_some().then_some(record)
        })
        .collect();
    let raws = outside.iter_mut().filter_map(|record| record.as_mut().ok());
    let brought = bring_all(desk.objects(), raws).await;
    for (record, brought) in outside.into_iter().zip(brought) {
        match brought {
            Ok(()) => {}
            Err(error @ (Error::Lost(_) | Error::Corrupt(_))) => *record = Err(error),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads the keys of records.
async fn read(desk: &impl Desk, rows: Vec<Row>, fields: Fields) -> Result<Read, Error> {
    let mut wanted = BTreeSet::new();
    let mut raw = Vec::with_capacity(rows.len());
    for row in &rows {
        let has_body = row.int(CODEC)?.is_some();
        let id = row.int(0)?.unwrap_or(0);
        let size = row.int(SIZE)?.unwrap_or(0);
        let sha256 = row.bytes(SHA256)?.unwrap_or_default();
        let seen = Seen {
            r: id,
            s: sha256.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        let record = RawRecord::read(row, has_body.then_some(CODEC));
        wanted.extend(row.int(PIECE)?);
        raw.push((seen, usize::try_from(size).unwrap_or(0), record));
    }
    let read = raw.iter_mut().map(|(_, _, record)| record);
    fetch(desk, read).await?;
    let loaded = Arc::new(desk.packed().load(desk, wanted).await?);
    let fields = Arc::new(fields);
    let open = move |(seen, _, record): (Seen, usize, Result<RawRecord, Error>)| {
        let record = record.and_then(|raw| raw.unpack(&loaded));
        match record {
            Ok(record) => {
                let payload = record.data.as_ref();
                let keys = payload.map_or_else(Vec::new, |data| fields.keys(&data.value));
                Ok((seen, keys))
            }
            // Damaged or lost: nothing else comes of memory alone.
            Err(_) => Err(seen.r),
        }
    };
    let mut read = Read::default();
    for outcome in in_parts(raw, |(_, size, _)| *size, open).await? {
        match outcome {
            Ok((seen, keys)) => {
                let keys = keys.iter().map(|(f, key)| SeenKey::new(*f, key, &seen));
                read.keys.extend(keys);
                read.seen.push(seen);
            }
            Err(row) => read.damaged.push(row),
        }
    }
    Ok(read)
}
