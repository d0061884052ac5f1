//! Records as they are read, their bodies still packed.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    body::{self, Stored},
    dictionary::{Dictionary, Loaded},
};
use crate::seam::{EncodedBody, EncodedRecord, Error};
use hindsight_filter::model::Record;

/// A record whose body is still packed.
#[derive(Debug)]
pub(crate) struct StoredRecord {
    record: Record,
    stored: Option<Stored>,
}

impl StoredRecord {
    /// A record without its payload, and the body that has that.
    pub(crate) fn new(record: Record, stored: Option<Stored>) -> Self {
        Self { record, stored }
    }

    /// Its body, if the bytes of that lie outside the database.
    pub(crate) fn outside(&mut self) -> Option<&mut Stored> {
        self.stored.as_mut().filter(|stored| stored.is_external())
    }

    /// The dictionary that its body refers to.
    pub(crate) fn dictionary(&self) -> Option<i64> {
        self.stored.as_ref()?.dictionary
    }

    /// How many bytes its body has.
    pub(crate) fn size(&self) -> usize {
        let size = self.stored.as_ref().map_or(0, |stored| stored.size);
        usize::try_from(size).unwrap_or(0)
    }

    /// The record as a store gives it out, its body referring to one of `dictionaries` if to any.
    pub(crate) fn encoded(self, dictionaries: &Loaded) -> EncodedRecord {
        let Self { record, stored } = self;
        let body = stored.map(|stored| {
            let dictionary = stored
                .dictionary
                .and_then(|id| dictionaries.get(&id))
                .cloned();
            Box::new(Body { stored, dictionary }) as Box<dyn EncodedBody>
        });
        EncodedRecord::new(record, body)
    }

    /// The record with its payload.
    ///
    /// Fails with [`Error::Corrupt`] if the payload is not, to the byte, what was stored.
    pub(crate) fn unpack(self, dictionaries: &Loaded) -> Result<Record, Error> {
        self.encoded(dictionaries).decode()
    }
}

/// A body and the dictionary that it refers to, if that is there.
#[derive(Debug)]
struct Body {
    stored: Stored,
    dictionary: Option<Arc<Dictionary>>,
}

impl EncodedBody for Body {
    fn size(&self) -> usize {
        usize::try_from(self.stored.size).unwrap_or(0)
    }

    fn decode(&self) -> Result<Bytes, Error> {
        body::unpack(
            &self.stored,
            self.dictionary
                .as_ref()
                .map(|dictionary| dictionary.content()),
        )
    }

    fn decode_unverified(&self) -> Result<Bytes, Error> {
        body::unpack_unchecked(
            &self.stored,
            self.dictionary
                .as_ref()
                .map(|dictionary| dictionary.content()),
        )
    }

    fn verify(&self, value: &[u8]) -> Result<(), Error> {
        body::check(&self.stored, value)
    }
}
