//! Bodies that lie outside the database, in an object store: a directory, or a bucket.
//!
//! Invariant: an object that a body refers to is there. It is uploaded, under a name that was
//! never used, before the row that refers to it is committed, and it is noted in the database
//! before it is uploaded. The commit of the row *holds* the object, by a trigger, in the same
//! transaction; deleting or replacing the row lets go of it likewise. Objects that nobody has held
//! for long enough are *doomed* in one transaction, from which on no row can come to hold them,
//! and removed only after it. So whatever dies at whatever moment, no row loses its object, and
//! every object that no row holds is known, and goes.

mod bring;
mod client;
mod counts;
mod depot;
mod errors;
mod place;
mod reference;
mod sweep;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use object_store::path::Path;
use uuid::Uuid;

pub(super) use self::{
    bring::bring_all,
    place::place,
    reference::{OUTSIDE, Reference},
    sweep::sweep,
};
pub use self::{
    counts::Counted,
    depot::{Depot, Settings},
};
use super::{
    Error,
    driver::Database,
    snapshot::Snapshot,
    sql::{cells::Cells as _, objects as sql},
    store::SqlStore,
};

/// Under which name a database keeps what its folder is called.
pub(super) const FOLDER: &str = "objects";

/// What lies in a folder that is in use, so that another one is not taken for it.
const MARK: &str = "database";

/// The objects of one database.
#[derive(Debug, Clone)]
pub(super) struct Objects {
    depot: Arc<Depot>,
    folder: Path,
}

/// A name for a folder that nobody else has.
pub(super) fn new_folder() -> Vec<u8> {
    Uuid::new_v4().into_bytes().to_vec()
}

impl Objects {
    /// Those in the folder of this number.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is no number of a folder.
    pub(super) fn new(depot: &Arc<Depot>, folder: &[u8]) -> Result<Self, Error> {
        let folder = Uuid::from_slice(folder)
            .map_err(|e| Error::Corrupt(format!("the secret `{FOLDER}` is no UUID: {e}")))?;
        Ok(Self {
            folder: depot.root().clone().join(folder.simple().to_string()),
            depot: Arc::clone(depot),
        })
    }

    /// Those of the database that a snapshot reads; none if it never had any.
    pub(super) async fn of(
        snapshot: &mut Snapshot,
        depot: Option<&Arc<Depot>>,
    ) -> Result<Option<Self>, Error> {
        let Some(depot) = depot else { return Ok(None) };
        let rows = snapshot.rows(&sql::folder()).await?;
        let folder = rows.first().map(|row| row.bytes(0)).transpose()?.flatten();
        folder.map(|folder| Self::new(depot, &folder)).transpose()
    }

    /// Where an object is.
    fn path(&self, object: Uuid) -> Path {
        let name = object.simple().to_string();
        self.folder.clone().join(&name[..2]).join(name)
    }

    /// Since when an object must have been nobody's to be removed `now`; none if never.
    pub(super) fn old(&self, now: Timestamp) -> Option<Timestamp> {
        let keep = SignedDuration::try_from(self.depot.keep?).ok()?;
        now.checked_sub(keep).ok()
    }

    /// Where an object is, for people.
    pub(super) fn shown(&self, object: Uuid) -> String {
        self.depot.shown(&self.path(object))
    }
}

/// Refuses a database whose objects cannot be reached: one that refers to some while no object
/// store is configured, or to those of another one than is configured. A store that does not
/// answer is no reason, because bodies in the database can be served meanwhile.
pub(super) async fn fits(store: &SqlStore<impl Database>) -> Result<(), Error> {
    let held = store.ask(&sql::any_held()).await?;
    let holds = !held.is_empty();
    match store.objects() {
        None if holds => Err(without_depot(&count(store).await?)),
        None => Ok(()),
        Some(objects) => objects.know(holds).await,
    }
}

/// Above how many packed bytes a body lies outside, if any does.
pub(super) fn above(store: &SqlStore<impl Database>) -> Option<usize> {
    store.objects().map(|objects| objects.depot.above())
}

async fn count(store: &SqlStore<impl Database>) -> Result<Totals, Error> {
    let rows = store.ask(&sql::totals()).await?;
    rows.first()
        .map(Totals::read)
        .transpose()
        .map(Option::unwrap_or_default)
}

/// What is said where objects are needed and nobody said where they are.
pub(super) fn without_depot(totals: &Totals) -> Error {
    Error::Unfit(format!(
        "the database keeps {} bodies ({} bytes) in an object store, and no object store is \
         configured; set objects_url (or --objects-url, HINDSIGHT_OBJECTS_URL) to where they are",
        totals.held, totals.bytes
    ))
}

/// What a database says of its objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Objects that bodies refer to.
    pub held: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that nobody refers to and that are not removed yet.
    pub loose: u64,
}

impl Totals {
    /// The row of [`sql::totals`].
    pub(super) fn read(row: &crate::sql::cells::Row) -> Result<Self, Error> {
        let number = |at| Ok::<_, Error>(u64::try_from(row.int(at)?.unwrap_or(0)).unwrap_or(0));
        Ok(Self {
            held: number(0)?,
            bytes: number(1)?,
            loose: number(2)?,
        })
    }

    /// Those of the database that a snapshot reads.
    pub(super) async fn of(snapshot: &mut Snapshot) -> Result<Self, Error> {
        let rows = snapshot.rows(&sql::totals()).await?;
        rows.first()
            .map(Self::read)
            .transpose()
            .map(Option::unwrap_or_default)
    }
}

/// The number of an object in a row.
pub(super) fn object(row: &crate::sql::cells::Row, at: usize) -> Result<Uuid, Error> {
    let bytes = row.bytes(at)?.unwrap_or_default();
    Uuid::from_slice(&bytes).map_err(|e| Error::Corrupt(format!("an object without a UUID: {e}")))
}
