//! A record of a list whose payload is still packed, for those who look at many and keep few.

use std::sync::Arc;

use super::{Error, pieces::Loaded, sql::read::RawRecord};
use hindsight_filter::model::Record;

/// A record as it was read. Opening it costs some 20 µs for 10 KB, so it belongs on threads that
/// may be kept busy.
#[derive(Debug)]
pub struct Sealed {
    raw: RawRecord,
    /// What bodies of the same page refer to.
    pieces: Arc<Loaded>,
}

impl Sealed {
    /// A record that refers to one of `pieces`, if to any.
    pub(super) fn new(raw: RawRecord, pieces: Arc<Loaded>) -> Self {
        Self { raw, pieces }
    }

    /// How many bytes it takes in a message once it is open, about; never fewer.
    pub fn weight(&self) -> usize {
        self.raw.weight()
    }

    /// The record with its payload.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the payload is not, to the byte, what was stored.
    pub fn open(self) -> Result<Record, Error> {
        self.raw.unpack(&self.pieces)
    }

    /// The record with a payload whose digest was not compared, which takes a fifth of the time.
    /// It is enough to see that a record is not wanted; before anything else [`Sealed::check`] it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the payload does not open.
    pub fn look(&self) -> Result<Record, Error> {
        self.raw.look(&self.pieces)
    }

    /// Whether the payload of `record`, which [`Sealed::look`] gave, is what was stored.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is not, to the byte.
    pub fn check(&self, record: &Record) -> Result<(), Error> {
        self.raw.check(record)
    }
}
