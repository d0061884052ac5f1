//! Digests of payloads.

use sha2::{Digest as _, Sha256};

/// The first bytes of a SHA-256. So many tell damage from what was stored as surely as all 32 do.
pub(crate) type Digest = [u8; 16];

/// The digest of a payload.
pub(crate) fn digest(value: &[u8]) -> Digest {
    cut(&Sha256::digest(value))
}

/// The digest that begins a SHA-256.
pub(crate) fn cut(sha256: &[u8]) -> Digest {
    let mut digest = Digest::default();
    let bytes = digest.len().min(sha256.len());
    digest[..bytes].copy_from_slice(&sha256[..bytes]);
    digest
}
