//! Payload bytes as they are kept: compressed, by themselves or as what differs from a dictionary,
//! and given back byte for byte.

use bytes::Bytes;
use uuid::Uuid;

use super::{
    dictionary::Dictionary,
    digest::{Digest, digest},
    frame::{MOST_REFERRING, against, alone, framed, opened, says},
    short::Ids,
};
use crate::seam::Error;

/// What is added to the codec of a body whose bytes lie in an object. Triggers know the number.
pub(crate) const EXTERNAL: i64 = 16;

/// How the bytes of a body are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i64)]
pub(crate) enum Codec {
    /// As they are, because compressing made them no smaller.
    Raw = 0,
    Zstd = 1,
    /// One zstd frame without its magic number that needs a dictionary, of the payload in its short
    /// form.
    Referring = 2,
}

/// A body ready to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packed {
    /// How many bytes it has.
    pub(crate) size: i64,
    /// Of the bytes as they were sent.
    pub(crate) sha256: Digest,
    /// How `bytes` holds it.
    pub(crate) codec: Codec,
    /// The bytes to store.
    pub(crate) bytes: Bytes,
    /// The dictionary it refers to.
    pub(crate) dictionary: Option<i64>,
    /// The object that holds the bytes; `bytes` says where it is then.
    pub(crate) object: Option<Uuid>,
}

/// How much a dictionary helped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Help {
    /// As it should, or there was none.
    Well,
    /// The body took more than half of what it takes by itself.
    Little,
}

impl Packed {
    /// A body that is not compressed yet.
    pub(crate) fn loose(value: Bytes) -> Self {
        Self {
            size: i64::try_from(value.len()).expect("memory is smaller than an i64"),
            sha256: digest(&value),
            codec: Codec::Raw,
            bytes: value,
            dictionary: None,
            object: None,
        }
    }

    /// Compresses a loose body. Takes some 3 ms for each MiB: big ones belong off
    /// the async threads.
    pub(crate) fn compress(&mut self, ids: &Ids, dictionary: Option<&Dictionary>) -> Help {
        let value = self.bytes.clone();
        let differing = dictionary
            .filter(|_| value.len() <= MOST_REFERRING)
            .and_then(|dictionary| {
                let short = ids.shortened(&value);
                // A longer frame is opened without a dictionary.
                let frame = (short.len() <= MOST_REFERRING)
                    .then(|| against(&short, dictionary.dictionary()))?;
                Some((dictionary.id(), frame?))
            });
        let mut help = Help::Well;
        if let Some((id, frame)) = differing {
            if frame.len() * 6 <= value.len() {
                self.take(Codec::Referring, frame, Some(id));
                return help;
            }
            let plain = alone(&value).map_or(value.len(), |plain| plain.len());
            if frame.len() * 2 > plain {
                help = Help::Little;
            }
            if frame.len() < plain {
                self.take(Codec::Referring, frame, Some(id));
                return help;
            }
        }
        // zstd has only memory to run out of; then the bytes are kept as they are.
        if let Some(frame) = alone(&value).filter(|frame| frame.len() < value.len()) {
            self.take(Codec::Zstd, frame, None);
        }
        help
    }

    /// The number of its codec in a row.
    pub(crate) fn code(&self) -> i64 {
        let outside = if self.object.is_some() { EXTERNAL } else { 0 };
        self.codec as i64 + outside
    }

    /// Keeps, instead of the bytes, where they lie in an object store.
    pub(crate) fn externalize(&mut self, object: Uuid, reference: Bytes) {
        self.object = Some(object);
        self.bytes = reference;
    }

    fn take(&mut self, codec: Codec, frame: Vec<u8>, dictionary: Option<i64>) {
        self.codec = codec;
        self.bytes = frame.into();
        self.dictionary = dictionary;
    }
}

/// A body as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    /// How `bytes` holds it.
    pub(crate) codec: i64,
    pub(crate) bytes: Vec<u8>,
    /// How many bytes the body has.
    pub(crate) size: i64,
    pub(crate) sha256: Vec<u8>,
    /// The dictionary it refers to.
    pub(crate) dictionary: Option<i64>,
    /// The ids of whose payload it is.
    pub(crate) ids: Ids,
}

impl Stored {
    /// Whether `bytes` says where the bytes lie outside.
    pub(crate) fn is_external(&self) -> bool {
        self.codec >= EXTERNAL
    }

    /// Takes the bytes that lay outside.
    pub(crate) fn internalize(&mut self, bytes: Vec<u8>) {
        self.codec -= EXTERNAL;
        self.bytes = bytes;
    }
}

/// The body that was packed, or what is wrong with what was stored. `dictionary` is the content of
/// the dictionary it refers to.
///
/// Fails with [`Error::Corrupt`] if it is not, to the byte, what was packed.
pub(crate) fn unpack(stored: &Stored, dictionary: Option<&[u8]>) -> Result<Bytes, Error> {
    let value = unpack_unchecked(stored, dictionary)?;
    check(stored, &value)?;
    Ok(value)
}

/// The body as [`unpack`] gives it, but for its digest, which takes a fifth of the time that
/// looking at a body takes. Whoever gives it out, or draws more than a no from it, calls [`check`].
///
/// Fails with [`Error::Corrupt`] if it does not open, or has not as many bytes as were packed.
pub(crate) fn unpack_unchecked(stored: &Stored, dictionary: Option<&[u8]>) -> Result<Bytes, Error> {
    let corrupt = |why: String| Err(Error::Corrupt(why));
    let size = stored.size;
    let Ok(wanted) = usize::try_from(size) else {
        return corrupt(format!("a body of {size} bytes"));
    };
    let codec = stored.codec;
    let value: Bytes = if codec == Codec::Raw as i64 {
        Bytes::copy_from_slice(&stored.bytes)
    } else if codec == Codec::Zstd as i64 {
        opened(&stored.bytes, wanted, &[])?
    } else if codec == Codec::Referring as i64 {
        let Some(dictionary) = dictionary else {
            return corrupt("a body refers to no dictionary".to_owned());
        };
        let frame = framed(&stored.bytes);
        let short = says(&frame).filter(|short| *short / 2 <= wanted);
        let Some(short) = short else {
            return corrupt("a compressed body does not open: its size differs".to_owned());
        };
        let short = opened(&frame, short, dictionary)?;
        match stored.ids.whole(&short, wanted) {
            Some(value) => value.into(),
            None => return corrupt("a body has more bytes than were stored".to_owned()),
        }
    } else {
        return corrupt(format!("a body in the unknown codec {codec}"));
    };
    if value.len() != wanted {
        let has = value.len();
        return corrupt(format!("a body has {has} bytes where {size} were stored"));
    }
    Ok(value)
}

/// Whether a body is the one that was packed.
///
/// Fails with [`Error::Corrupt`] if it is not, to the byte.
pub(crate) fn check(stored: &Stored, value: &[u8]) -> Result<(), Error> {
    if digest(value).as_slice() == stored.sha256 {
        return Ok(());
    }
    let why = "a body is not the one that was stored: its SHA-256 differs";
    Err(Error::Corrupt(why.to_owned()))
}

#[cfg(test)]
mod tests;
