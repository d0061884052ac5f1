//! Letting go of dictionaries whose payload is gone.
//!
//! Invariant, as of the last sweep: the content of every dictionary is the payload of a record of
//! its parent. A trigger notes when a record that has it is deleted or changed; a sweep then packs
//! again what refers to the dictionary, against the newest payload of these, and deletes it. So
//! what was deleted is in no other record's bytes, and each body is packed again once for the
//! dictionary that it began with, because records go in about the order in which they came.

use std::{collections::BTreeSet, num::NonZeroU32, sync::Arc, time::Instant};

use bytes::Bytes;

use super::SqlStore;
use crate::{
    codec::{
        body::{Packed, Stored, unpack},
        dictionary::{Dictionary, NewDictionary, SIZES},
        parallel::par_map_blocking,
        short::Ids,
    },
    driver::Database,
    seam::Error,
    sql::{
        dictionaries as sql,
        row::{Row, SqlRow as _},
    },
};

/// Dictionaries that are looked at in one statement.
const PAGE: i64 = 20;

/// Bodies that are packed again in one transaction; writers of the same records wait for it, and on SQLite all.
const BODIES: i64 = 50;

/// How often a dictionary is tried to be deleted while others write bodies that refer to it: those
/// that remember it, until they are told that it is gone.
const TRIES: usize = 20;

/// Notes which records have the payloads of dictionaries, and lets go of dictionaries whose payload
/// is gone, until `most` or more are gone; says how many. After each step it rests for `rest` times as
/// long as the step took. Several may sweep at once.
pub(crate) async fn sweep(
    store: &SqlStore<impl Database>,
    most: NonZeroU32,
    rest: u32,
) -> Result<u64, Error> {
    let (mut gone, mut after) = (0, i64::MIN);
    while gone < u64::from(most.get()) {
        let page = sql::unowned(after, PAGE);
        let rows = paced(rest, store.ask(&page)).await?;
        let mut unused = Vec::new();
        for row in &rows {
            let Some(dictionary) = row.int(0)? else {
                continue;
            };
            after = dictionary;
            match row.int(2)? {
                Some(2) => {
                    let own = vec![sql::own(store.dialect(), dictionary)];
                    paced(rest, store.tell(own)).await?;
                }
                Some(1) => gone += retire(store, dictionary, row.text(1)?, rest).await?,
                _ => unused.push(dictionary),
            }
        }
        if !unused.is_empty() {
            gone += paced(rest, delete(store, &unused)).await?;
        }
        if rows.is_empty() {
            break;
        }
    }
    Ok(gone)
}

/// Works, and rests for `rest` times as long as that took.
async fn paced<T>(rest: u32, work: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let done = work.await;
    tokio::time::sleep(began.elapsed() * rest).await;
    done
}

/// Deletes those of these dictionaries that no body refers to.
async fn delete(store: &SqlStore<impl Database>, dictionaries: &[i64]) -> Result<u64, Error> {
    store
        .tell(sql::delete(store.dialect(), dictionaries))
        .await?;
    let left = store
        .ask(&sql::there(store.dialect(), dictionaries))
        .await?;
    let mut gone: BTreeSet<i64> = dictionaries.iter().copied().collect();
    for row in &left {
        if let Some(dictionary) = row.int(0)? {
            gone.remove(&dictionary);
        }
    }
    store.packed().forget_rows(&gone);
    Ok(gone.len() as u64)
}

/// Packs again what refers to a dictionary, and deletes it; says how many are gone.
async fn retire(
    store: &SqlStore<impl Database>,
    dictionary: i64,
    parent: Option<String>,
    rest: u32,
) -> Result<u64, Error> {
    let loaded = match store
        .packed()
        .load(store, BTreeSet::from([dictionary]))
        .await
    {
        Err(Error::Corrupt(why)) => {
            // As are all bodies that refer to it. `fsck` says so, too.
            tracing::warn!("{why}; what refers to it cannot be packed again");
            return Ok(0);
        }
        loaded => loaded?,
    };
    let Some(old) = loaded.get(&dictionary) else {
        return Ok(0);
    };
    let with = successor(store, old, parent.unwrap_or_default()).await?;
    if let Some(with) = with
        .as_ref()
        .filter(|with| with.dictionary.content() == old.content())
    {
        // Its payload came back meanwhile, or another differs in the ids of its record alone.
        let adopted = sql::adopt(dictionary, &with.new);
        store.tell(vec![adopted]).await?;
        let owned = sql::own(store.dialect(), dictionary);
        store.tell(vec![owned]).await?;
        return Ok(0);
    }
    let mut damaged = Vec::new();
    for _ in 0..TRIES {
        let mut began = Instant::now();
        while repack(store, old, with.as_ref(), &mut damaged).await? {
            tokio::time::sleep(began.elapsed() * rest).await;
            began = Instant::now();
        }
        // At once, before a writer refers to it again.
        if delete(store, &[dictionary]).await? > 0 {
            return Ok(1);
        }
        if !damaged.is_empty() {
            break;
        }
    }
    tracing::warn!(
        "dictionary {dictionary} stays for now: {} bodies that refer to it are damaged",
        damaged.len()
    );
    Ok(0)
}

/// What bodies refer to instead: a new dictionary, of the newest of them, with its content.
#[derive(Debug)]
struct Successor {
    new: NewDictionary,
    dictionary: Arc<Dictionary>,
}

async fn successor(
    store: &SqlStore<impl Database>,
    old: &Dictionary,
    parent: String,
) -> Result<Option<Successor>, Error> {
    let newest = store.ask(&sql::newest(old.id())).await?;
    let newest = newest.first().map(|row| row.int(0)).transpose()?.flatten();
    let Some(newest) = newest else {
        return Ok(None);
    };
    let rows = store.ask(&sql::body_of(newest)).await?;
    let Some(body) = rows.first().map(Referring::read).transpose()? else {
        return Ok(None);
    };
    let Ok(content) = unpack(&body.stored, Some(old.content())) else {
        return Ok(None);
    };
    if body.stored.codec != REFERRING || !SIZES.contains(&content.len()) {
        return Ok(None);
    }
    let keys = store.ask(&sql::keys_of(old.id())).await?;
    let keys = keys.iter().map(|row| row.bytes(0).map(sql::key));
    let keys: Result<Vec<_>, Error> = keys.filter_map(Result::transpose).collect();
    let payload = (&content[..], &body.stored.ids);
    let new = NewDictionary::of(parent, payload, keys?, true);
    Ok(new.map(|(new, content)| Successor {
        // Its row is found by its content.
        dictionary: Arc::new(Dictionary::new(0, content)),
        new,
    }))
}

const REFERRING: i64 = crate::codec::body::Codec::Referring as i64;

/// A body as it was read.
#[derive(Debug)]
struct Referring {
    record: i64,
    stored: Stored,
}

impl Referring {
    fn read(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            record: row.int(0)?.unwrap_or_default(),
            stored: Stored {
                codec: row.int(1)?.unwrap_or_default(),
                bytes: row.bytes(2)?.unwrap_or_default(),
                size: row.int(3)?.unwrap_or_default(),
                sha256: row.bytes(4)?.unwrap_or_default(),
                dictionary: None,
                ids: Ids::new(
                    &row.text(5)?.unwrap_or_default(),
                    &row.text(6)?.unwrap_or_default(),
                ),
            },
        })
    }
}

/// Packs the next bodies again; says whether there were any. Those that are `damaged` are left.
async fn repack(
    store: &SqlStore<impl Database>,
    old: &Arc<Dictionary>,
    with: Option<&Successor>,
    damaged: &mut Vec<i64>,
) -> Result<bool, Error> {
    let next = sql::referring(store.dialect(), old.id(), damaged.clone(), BODIES);
    let rows = store.ask(&next).await?;
    let read: Result<Vec<Referring>, Error> = rows.iter().map(Referring::read).collect();
    let read = read?;
    if read.is_empty() {
        return Ok(false);
    }
    let (content, dictionary) = (
        Arc::clone(old),
        with.map(|with| Arc::clone(&with.dictionary)),
    );
    let pack = move |body: Referring| {
        let value = unpack(&body.stored, Some(content.content())).ok();
        let packed = value.map(|value| {
            let mut packed = Packed::loose(value);
            packed.compress(&body.stored.ids, dictionary.as_deref());
            packed
        });
        (body, packed)
    };
    let size = |body: &Referring| usize::try_from(body.stored.size).unwrap_or(0);
    let mut statements: Vec<_> = with.iter().flat_map(|with| sql::put(&with.new)).collect();
    for (body, packed) in par_map_blocking(read, size, pack).await? {
        let Some(packed) = packed else {
            damaged.push(body.record);
            continue;
        };
        let with = with.filter(|_| packed.dictionary.is_some());
        let was = (body.record, old.id(), Bytes::from(body.stored.bytes));
        statements.push(sql::repack(was, &packed, with.map(|with| &with.new)));
    }
    store.tell(statements).await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_rests_for_several_times_as_long_as_it_worked() {
        const WORK: Duration = Duration::from_millis(5);
        let began = tokio::time::Instant::now();
        paced(4, async { std::thread::sleep(WORK) }).await;
        assert!(began.elapsed() >= WORK * 4);
        let began = tokio::time::Instant::now();
        paced(0, async { std::thread::sleep(WORK) }).await;
        assert!(began.elapsed() < WORK);
    }
}
