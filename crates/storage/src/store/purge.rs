//! Removing for good: not only from lists, but from the bytes that are kept.
//!
//! A delete ends what it deletes within minutes: objects are kept as long as backups need
//! them, dictionaries until the next sweep, and pages until they are written again. What is
//! purged is waited for.

use std::num::NonZeroU32;

use jiff::Timestamp;

use super::SqlStore;
use crate::{
    driver::Database,
    seam::{Change, Error, Purge, Purged, Store},
    sql::{dictionaries as sql_dictionaries, objects as sql_objects, purge as sql},
};
use hindsight_filter::model::Parent;

/// Results that are found at once.
const PAGE: i64 = 100;

/// How much there is to remove.
pub(crate) async fn count(store: &SqlStore<impl Database>, what: &Purge) -> Result<Purged, Error> {
    let rows = store.ask(&sql::count(what)).await?;
    let number = |at| -> Result<u64, Error> {
        let number = rows.first().map(|row| row.int(at)).transpose()?.flatten();
        Ok(number.and_then(|n| u64::try_from(n).ok()).unwrap_or(0))
    };
    Ok(Purged {
        results: number(0)?,
        records: number(1)?,
        objects: number(2)?,
        bytes: number(3)?,
        left: Vec::new(),
    })
}

/// Removes everything that there is, and what comes meanwhile, from tables,
/// dictionaries and objects.
pub(crate) async fn purge(
    store: &SqlStore<impl Database>,
    what: &Purge,
    now: Timestamp,
) -> Result<Purged, Error> {
    let mut all = Purged::default();
    loop {
        let next = match what {
            Purge::Parent(parent) => results_of(store, parent).await?,
            one => vec![one.clone()],
        };
        let mut removed = 0;
        for one in &next {
            let gone = remove(store, one, now).await?;
            removed += gone.results + gone.records;
            all.results += gone.results;
            all.records += gone.records;
            all.objects += gone.objects;
            all.bytes += gone.bytes;
            all.left.extend(gone.left);
        }
        if removed == 0 {
            break;
        }
    }
    while super::sweep::sweep(store, NonZeroU32::MAX, 0).await? > 0 {}
    for row in store.ask(&sql_dictionaries::unowned(i64::MIN, 1)).await? {
        let dictionary = row.int(0)?.unwrap_or_default();
        all.left.push(format!(
            "dictionary {dictionary} stays, because bodies that refer to it are damaged, or written right \
             now; run `hindsight fsck`, and purge again"
        ));
    }
    Ok(all)
}

async fn results_of(store: &SqlStore<impl Database>, parent: &Parent) -> Result<Vec<Purge>, Error> {
    let rows = store.ask(&sql::next_results(parent, PAGE)).await?;
    let name = |row: &crate::sql::row::Row| {
        let (parent, id) = (row.text(0)?, row.text(1)?);
        let name = format!(
            "{}/results/{}",
            parent.unwrap_or_default(),
            id.unwrap_or_default()
        );
        let name = name.parse().map(Purge::Result);
        name.map_err(|error| Error::Corrupt(format!("the name of a result: {error}")))
    };
    rows.iter().map(name).collect()
}

/// Removes one result or record, and its objects without waiting for backups.
async fn remove(
    store: &SqlStore<impl Database>,
    one: &Purge,
    now: Timestamp,
) -> Result<Purged, Error> {
    let mut gone = count(store, one).await?;
    let objects = store.ask(&sql::objects_of(one)).await?;
    let objects = objects.iter().map(|row| sql_objects::object(row, 0));
    let objects = objects.collect::<Result<Vec<_>, _>>()?;
    let (name, change) = match one.clone() {
        Purge::Result(name) => (
            name.to_string(),
            Change::DeleteResult { name, expect: None },
        ),
        Purge::Record(name) => (
            name.to_string(),
            Change::DeleteRecord { name, expect: None },
        ),
        Purge::Parent(_) => return Ok(Purged::default()),
    };
    match store.commit(&change.into()).await {
        Err(Error::Missing(_)) => return Ok(Purged::default()),
        outcome => outcome?,
    }
    let Some(depot) = store.objects().filter(|_| !objects.is_empty()) else {
        if !objects.is_empty() {
            gone.left.push(format!(
                "`{name}`: objects_url is not set, so its objects stay"
            ));
        }
        return Ok(gone);
    };
    store
        .tell(vec![sql_objects::condemn_these(now, &objects)])
        .await?;
    let removal = depot.remove(objects).await;
    if !removal.gone.is_empty() {
        store.tell(vec![sql_objects::forget(&removal.gone)]).await?;
    }
    gone.objects = removal.gone.len() as u64;
    if let Some(error) = removal.refused {
        let why = hindsight_runtime::error::report(&error);
        gone.left.push(format!(
            "`{name}`: objects stay until a server sweeps: {why}"
        ));
    }
    Ok(gone)
}
