//! Payload bytes as they are kept: compressed, and given back byte for byte.

use bytes::Bytes;
use sha2::{Digest, Sha256};
use zstd::bulk::{Compressor, Decompressor};

use super::Error;

/// How hard zstd tries. Higher levels win a few per cent on runs and cost several times more.
const LEVEL: i32 = 3;

/// How the bytes of a body are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i64)]
pub(super) enum Codec {
    /// As they are, because compressing made them no smaller.
    Raw = 0,
    /// One zstd frame with a checksum.
    Zstd = 1,
}

/// A body ready to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packed {
    /// How many bytes it has.
    pub(super) size: i64,
    /// Of the bytes as they were sent.
    pub(super) sha256: [u8; 32],
    /// How `bytes` holds it.
    pub(super) codec: Codec,
    /// The bytes to store.
    pub(super) bytes: Bytes,
}

/// Packs a body. Takes some 3 ms for each MiB: big ones belong off the async threads.
pub(super) fn pack(value: &Bytes) -> Packed {
    let sha256 = Sha256::digest(value).into();
    let size = i64::try_from(value.len()).expect("memory is smaller than an i64");
    match compress(value) {
        Ok(frame) if frame.len() < value.len() => Packed {
            size,
            sha256,
            codec: Codec::Zstd,
            bytes: frame.into(),
        },
        // zstd has only memory to run out of; then the bytes are kept as they are.
        Ok(_) | Err(_) => Packed {
            size,
            sha256,
            codec: Codec::Raw,
            bytes: value.clone(),
        },
    }
}

fn compress(value: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut compressor = Compressor::new(LEVEL)?;
    compressor.include_checksum(true)?;
    compressor.compress(value)
}

/// The body that was packed, or what is wrong with what was stored.
pub(super) fn unpack(codec: i64, bytes: Vec<u8>, size: i64) -> Result<Bytes, Error> {
    let wanted = usize::try_from(size)
        .map_err(|_out_of_range| Error::Corrupt(format!("a body of {size} bytes")))?;
    let value: Bytes = if codec == Codec::Raw as i64 {
        bytes.into()
    } else if codec == Codec::Zstd as i64 {
        Decompressor::new()
            .and_then(|mut zstd| zstd.decompress(&bytes, wanted))
            .map_err(|e| Error::Corrupt(format!("a compressed body does not open: {e}")))?
            .into()
    } else {
        return Err(Error::Corrupt(format!(
            "a body in the unknown codec {codec}"
        )));
    };
    if value.len() != wanted {
        let has = value.len();
        return Err(Error::Corrupt(format!(
            "a body has {has} bytes where {size} were stored"
        )));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_come_back_byte_for_byte() {
        let noise: Vec<u8> = (0..5000_u32)
            .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        for value in [Vec::new(), b"{}".to_vec(), vec![b'a'; 100_000], noise] {
            let packed = pack(&value.clone().into());
            assert!(packed.bytes.len() <= value.len());
            let back = unpack(packed.codec as i64, packed.bytes.to_vec(), packed.size).unwrap();
            assert_eq!(back, value);
        }
    }

    #[test]
    fn a_damaged_body_is_an_error() {
        let packed = pack(&vec![b'a'; 1000].into());
        assert_eq!(packed.codec, Codec::Zstd);
        for at in 0..packed.bytes.len() {
            let mut bytes = packed.bytes.to_vec();
            bytes[at] ^= 0x11;
            let opened = unpack(packed.codec as i64, bytes, packed.size);
            assert!(opened.is_err(), "byte {at}");
        }
        assert!(unpack(0, vec![1, 2], 3).is_err());
        assert!(unpack(7, vec![1, 2], 2).is_err());
    }
}
