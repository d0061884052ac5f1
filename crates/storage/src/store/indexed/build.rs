//! Reading keys from payloads that were stored before their field was indexed. In batches, each
//! of them one transaction, while others read and write.

use std::{collections::BTreeSet, num::NonZeroU32, sync::Arc};

use super::look;
use crate::{
    codec::{objects::fetch_external, parallel::par_map_blocking, record::StoredRecord},
    driver::Database,
    seam::{Error, Filled},
    sql::{
        index_build::{self, Seen, SeenKey},
        read,
        row::{Row, SqlRow as _},
        statement::Statement,
        walk::{self, CODEC, DICTIONARY, SIZE, Table},
    },
    store::SqlStore,
};
use hindsight_filter::indexed::Fields;

/// Bytes of payloads after which a batch ends.
const MOST_BYTES: i64 = 8 << 20;

/// Where, in a row, the SHA-256 of the payload stands.
const SHA256: usize = 10;

#[derive(Default)]
struct Read {
    seen: Vec<Seen>,
    keys: Vec<SeenKey>,
}

/// Looks at the next records for one field, at most `most`. It goes on where it stopped.
///
/// # Errors [`Error::Missing`] if the field is gone; [`Error::Corrupt`] or [`Error::MissingObject`]
/// if a payload cannot be read, of which no key can be known.
pub(crate) async fn build_index(
    store: &SqlStore<impl Database>,
    field: i64,
    most: NonZeroU32,
) -> Result<Filled, Error> {
    let known = look(store).await?;
    let Some(of) = known.all().iter().find(|one| one.id == field) else {
        return Err(Error::Missing(format!("indexed path {field}")));
    };
    if of.ready {
        return Ok(Filled {
            records: 0,
            rows: 0,
            ready: true,
        });
    }
    let sizes = walk::sizes(Table::Records, of.done_row, most.get().into());
    let last = walk::cut(&store.ask(&sizes).await?, MOST_BYTES)?;
    let Some(last) = last.filter(|_| of.done_row < of.until_row) else {
        store
            .tell(index_build::note_ready(store.dialect(), field))
            .await?;
        look(store).await?;
        return Ok(Filled {
            records: 0,
            rows: 0,
            ready: true,
        });
    };
    let last = last.min(of.until_row);
    let page = walk::records(store.dialect(), of.done_row, last, true, &[]);
    let alone = Fields::new(vec![(of.id, of.path.clone(), of.kind)]);
    let rows = store.ask(&page).await?;
    let records = rows.len() as u64;
    let read = read(store, rows, alone).await?;
    let dialect = store.dialect();
    let mut statements: Vec<Statement> =
        index_build::hold(dialect, &read.seen).into_iter().collect();
    if !read.keys.is_empty() {
        statements.push(index_build::store(dialect, &read.keys));
    }
    statements.push(index_build::note_done(field, last));
    store.tell(statements).await?;
    Ok(Filled {
        records,
        rows: u64::try_from(last.saturating_sub(of.done_row)).unwrap_or(0),
        ready: false,
    })
}

/// Reads the keys of records.
async fn read(
    store: &SqlStore<impl Database>,
    rows: Vec<Row>,
    fields: Fields,
) -> Result<Read, Error> {
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
        let record = read::raw_record(row, has_body.then_some(CODEC))?;
        wanted.extend(row.int(DICTIONARY)?);
        raw.push((seen, usize::try_from(size).unwrap_or(0), record));
    }
    let outside = raw.iter_mut().map(|(_, _, record)| record);
    for brought in fetch_external(store.objects(), outside).await {
        brought?;
    }
    let loaded = Arc::new(store.packed().load(store, wanted).await?);
    let fields = Arc::new(fields);
    let open = move |(seen, _, record): (Seen, usize, StoredRecord)| {
        let record = record.unpack(&loaded)?;
        let payload = record.data.as_ref();
        let keys = payload.map_or_else(Vec::new, |data| fields.keys(&data.value));
        Ok::<_, Error>((seen, keys))
    };
    let mut read = Read::default();
    for outcome in par_map_blocking(raw, |(_, size, _)| *size, open).await? {
        let (seen, keys) = outcome?;
        let keys = keys.iter().map(|(f, key)| SeenKey::new(*f, key, &seen));
        read.keys.extend(keys);
        read.seen.push(seen);
    }
    Ok(read)
}
