//! Bodies that lie outside the database, in an object store: a directory, or a bucket. Chunks of sealed logs
//! lie there likewise.
//!
//! Invariant: an object that a body refers to is there. It is uploaded, under a name that was
//! never used, before the row that refers to it is committed, and it is noted in the database
//! before it is uploaded. The commit of the row *holds* the object, by a trigger, in the same
//! transaction; deleting or replacing the row lets go of it likewise. Objects that nobody has held
//! for long enough are *condemned* in one transaction, from which on no row can come to hold them,
//! and removed only after it. So whatever dies at whatever moment, no row loses its object, and
//! every object that no row holds is known, and goes.

mod bucket;
mod client;
mod counts;
mod depot;
mod errors;
mod fetch;
mod foreign;
mod reference;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use object_store::path::Path;
use uuid::Uuid;

pub use self::{
    bucket::Bucket,
    client::Settings,
    counts::Counted,
    depot::ObjectBackend,
    foreign::{ForeignBytes, ForeignObject, ForeignObjects},
};
pub(crate) use self::{depot::OF_ONE, fetch::fetch_external, reference::Reference};
use crate::seam::Error;

/// Under which name a database keeps what its folder is called.
pub(crate) const FOLDER: &str = "objects";

/// What lies in a folder that is in use, so that another one is not taken for it.
const MARK: &str = "database";

/// The objects of one database.
#[derive(Debug, Clone)]
pub(crate) struct Objects {
    depot: Arc<ObjectBackend>,
    folder: Path,
}

/// A name for a folder that nobody else has.
pub(crate) fn new_folder() -> Vec<u8> {
    Uuid::new_v4().into_bytes().to_vec()
}

impl Objects {
    /// Those in the folder of this number.
    ///
    /// Fails with [`Error::Corrupt`] if it is no number of a folder.
    pub(crate) fn new(depot: &Arc<ObjectBackend>, folder: &[u8]) -> Result<Self, Error> {
        let folder = Uuid::from_slice(folder)
            .map_err(|e| Error::Corrupt(format!("the secret `{FOLDER}` is no UUID: {e}")))?;
        Ok(Self {
            folder: depot.root().clone().join(folder.simple().to_string()),
            depot: Arc::clone(depot),
        })
    }

    /// Where an object is.
    fn path(&self, object: Uuid) -> Path {
        let name = object.simple().to_string();
        self.folder.clone().join(&name[..2]).join(name)
    }

    /// Since when an object must have been nobody's to be removed `now`; none if never.
    pub(crate) fn old(&self, now: Timestamp) -> Option<Timestamp> {
        let keep = SignedDuration::try_from(self.depot.keep?).ok()?;
        now.checked_sub(keep).ok()
    }

    /// Where an object is, for people.
    pub(crate) fn shown(&self, object: Uuid) -> String {
        self.depot.shown(&self.path(object))
    }
}

/// What is said where objects are needed and nobody said where they are.
pub(crate) fn without_depot(totals: &Totals) -> Error {
    Error::Incompatible(format!(
        "the database keeps {} objects ({} bytes) in an object store, and no object store is \
         configured; set objects_url (or --objects-url, HINDSIGHT_OBJECTS_URL) to where they are",
        totals.held, totals.bytes
    ))
}

/// What a database says of its objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Objects that bodies refer to.
    pub held: u64,
    /// Bytes of those objects, as they lie in the object store.
    pub bytes: u64,
    /// Objects that nobody refers to and that are not removed yet.
    pub loose: u64,
}
