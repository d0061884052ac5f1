//! Records of a list whose payloads are still encoded, for callers that look at many and keep few.

use std::fmt::Debug;

use bytes::Bytes;

use super::Error;
use hindsight_filter::model::{Record, RecordName};

/// The bytes of a payload as a store keeps them.
pub trait EncodedBody: Debug + Send + Sync {
    /// How many bytes the payload has.
    fn size(&self) -> usize;

    /// The payload, compared with the digest of what was stored.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is not, to the byte, what was stored.
    fn decode(&self) -> Result<Bytes, Error>;

    /// The payload, not compared with its digest.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it cannot be decoded.
    fn decode_unverified(&self) -> Result<Bytes, Error>;

    /// Whether `value`, which was decoded unverified, is what was stored.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is not, to the byte.
    fn verify(&self, value: &[u8]) -> Result<(), Error>;
}

/// A record as it was read. Decoding it costs some 20 µs for 10 KB, so it belongs on threads that
/// may be kept busy.
#[derive(Debug)]
pub struct EncodedRecord {
    record: Record,
    body: Option<Box<dyn EncodedBody>>,
}

impl EncodedRecord {
    /// A record without the bytes of its payload, and the body that has them, if it was read.
    pub fn new(record: Record, body: Option<Box<dyn EncodedBody>>) -> Self {
        Self { record, body }
    }

    /// How many bytes it takes in a message once it is decoded, about; never fewer.
    pub fn weight(&self) -> usize {
        self.record.weight() + self.payload_bytes()
    }

    /// A record whose payload is not encoded, and was compared with its digest.
    pub(crate) fn plain(mut record: Record) -> Self {
        let data = record.data.as_mut();
        let body = data.map(|data| std::mem::take(&mut data.value));
        Self::new(record, body.map(|body| Box::new(Plain(body)) as Box<_>))
    }

    /// The name of the record.
    pub fn name(&self) -> &RecordName {
        &self.record.name
    }

    /// How many bytes the payload has, if it was read.
    pub fn payload_bytes(&self) -> usize {
        self.body.as_ref().map_or(0, |body| body.size())
    }

    /// The record with its payload.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the payload is not, to the byte, what was stored.
    pub fn decode(self) -> Result<Record, Error> {
        let value = self.value(|body| body.decode())?;
        Ok(with(self.record, value))
    }

    /// The record with a payload whose digest was not compared, which takes a fifth of the time.
    /// It is enough to see that a record is not wanted; before anything else [`Self::verify`] it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the payload cannot be decoded.
    pub fn decode_unverified(&self) -> Result<Record, Error> {
        let value = self.value(|body| body.decode_unverified())?;
        Ok(with(self.record.clone(), value))
    }

    /// Whether the payload of `record`, which [`Self::decode_unverified`] gave, is what was stored.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is not, to the byte.
    pub fn verify(&self, record: &Record) -> Result<(), Error> {
        match (&record.data, &self.body) {
            (Some(data), Some(body)) => body.verify(&data.value).map_err(|e| self.named(e)),
            _ => Ok(()),
        }
    }

    fn value(
        &self,
        decode: impl Fn(&dyn EncodedBody) -> Result<Bytes, Error>,
    ) -> Result<Bytes, Error> {
        match &self.body {
            Some(body) => decode(&**body).map_err(|e| self.named(e)),
            None => Ok(Bytes::new()),
        }
    }

    fn named(&self, error: Error) -> Error {
        match error {
            Error::Corrupt(why) => Error::Corrupt(format!("`{}`: {why}", self.record.name)),
            other => other,
        }
    }
}

fn with(mut record: Record, value: Bytes) -> Record {
    if let Some(data) = &mut record.data {
        data.value = value;
    }
    record
}

/// A payload as it is.
#[derive(Debug)]
struct Plain(Bytes);

impl EncodedBody for Plain {
    fn size(&self) -> usize {
        self.0.len()
    }

    fn decode(&self) -> Result<Bytes, Error> {
        Ok(self.0.clone())
    }

    fn decode_unverified(&self) -> Result<Bytes, Error> {
        self.decode()
    }

    fn verify(&self, value: &[u8]) -> Result<(), Error> {
        match self.0 == value {
            true => Ok(()),
            false => Err(Error::Corrupt("it is another payload".to_owned())),
        }
    }
}
