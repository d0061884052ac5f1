//! What the row of a body keeps instead of its bytes: which object has them, how many, and their
//! digest.

use bytes::Bytes;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::seam::Error;

const LENGTH: usize = 16 + 8 + 32;

/// Which object, how many bytes, and their digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) object: Uuid,
    /// How many bytes it has.
    pub(crate) size: u64,
    sha256: [u8; 32],
}

impl Reference {
    /// To a new object that will have these bytes.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self {
            object: Uuid::new_v4(),
            size: bytes.len() as u64,
            sha256: Sha256::digest(bytes).into(),
        }
    }

    /// As the row keeps it. Triggers know that the object comes first.
    pub(crate) fn write(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(LENGTH);
        bytes.extend(self.object.as_bytes());
        bytes.extend(self.size.to_be_bytes());
        bytes.extend(self.sha256);
        bytes.into()
    }

    /// What a row keeps.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if that is no reference.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Error> {
        let parts = bytes
            .split_first_chunk::<16>()
            .and_then(|(object, rest)| Some((object, rest.split_first_chunk::<8>()?)));
        match parts {
            Some((object, (size, rest))) if rest.len() == 32 => {
                let mut sha256 = [0; 32];
                sha256.copy_from_slice(rest);
                Ok(Self {
                    object: Uuid::from_bytes(*object),
                    size: u64::from_be_bytes(*size),
                    sha256,
                })
            }
            _ => Err(Error::Corrupt(format!(
                "a body refers to an object in {} bytes, which are no reference",
                bytes.len()
            ))),
        }
    }

    /// Whether these are the bytes.
    pub(crate) fn is_of(&self, bytes: &[u8]) -> bool {
        Sha256::digest(bytes).as_slice() == self.sha256
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_comes_back_as_it_was_written_and_nothing_else_is_one() {
        let reference = Reference::new(b"bytes");
        let written = reference.write();
        assert_eq!(Reference::read(&written).unwrap(), reference);
        assert!(reference.is_of(b"bytes") && !reference.is_of(b"bytez"));
        assert_ne!(Reference::new(b"bytes").object, reference.object);
        for bad in [&[][..], &written[..55], &[&written[..], &[0]].concat()] {
            assert!(Reference::read(bad).is_err(), "{} bytes", bad.len());
        }
    }
}
