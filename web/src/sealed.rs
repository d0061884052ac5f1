//! Cookies that only this server reads: AES-256-GCM, under a key derived from a secret of all replicas.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};

/// Bytes of the time at which a cookie ends.
const END: usize = 8;

/// What a cookie is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Purpose {
    /// What its key and its seal are bound to.
    pub(crate) seal: &'static [u8],
    /// Its name over TLS, by which browsers take it for the whole host alone, and its name elsewhere.
    pub(crate) names: (&'static str, &'static str),
    /// How long browsers keep it.
    pub(crate) life: SignedDuration,
}

/// One cookie, by its name: how it is sealed, and for how long.
pub(crate) struct Sealed {
    key: RandomizedNonceKey,
    purpose: Purpose,
    /// Whether browsers reach the server over TLS.
    secure: bool,
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealed")
            .field("purpose", &self.purpose)
            .finish_non_exhaustive()
    }
}

impl Sealed {
    pub(crate) fn new(purpose: Purpose, secret: &[u8], secure: bool) -> Self {
        let key = Sha256::new()
            .chain_update(purpose.seal)
            .chain_update(secret)
            .finalize();
        let key = RandomizedNonceKey::new(&AES_256_GCM, &key);
        Self {
            key: key.expect("a digest has the length of a key"),
            purpose,
            secure,
        }
    }

    fn name(&self) -> &'static str {
        let (over_tls, elsewhere) = self.purpose.names;
        if self.secure { over_tls } else { elsewhere }
    }

    fn attributes(&self) -> &'static str {
        match self.secure {
            true => "Path=/; HttpOnly; SameSite=Lax; Secure",
            false => "Path=/; HttpOnly; SameSite=Lax",
        }
    }

    /// The value of `Set-Cookie` with a text that counts until `ends`.
    pub(crate) fn set(&self, text: &str, ends: Timestamp) -> Option<String> {
        let mut sealed = ends.as_second().to_be_bytes().to_vec();
        sealed.extend_from_slice(text.as_bytes());
        let nonce = self
            .key
            .seal_in_place_append_tag(Aad::from(self.purpose.seal), &mut sealed)
            .ok()?;
        let mut value = nonce.as_ref().to_vec();
        value.extend_from_slice(&sealed);
        let value = URL_SAFE_NO_PAD.encode(value);
        let (name, attributes) = (self.name(), self.attributes());
        let age = self.purpose.life.as_secs();
        Some(format!("{name}={value}; {attributes}; Max-Age={age}"))
    }

    /// The value of `Set-Cookie` that takes it away.
    pub(crate) fn clear(&self) -> String {
        format!("{}=; {}; Max-Age=0", self.name(), self.attributes())
    }

    /// The text among the cookies of a request, and until when it counts, which may be over.
    pub(crate) fn open(&self, cookies: &[(String, String)]) -> Option<(String, Timestamp)> {
        let name = self.name();
        let (_, value) = cookies.iter().find(|(key, _)| key == name)?;
        let mut value = URL_SAFE_NO_PAD.decode(value).ok()?;
        let sealed = value.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(sealed.0).ok()?;
        let bound = Aad::from(self.purpose.seal);
        let opened = self.key.open_in_place(nonce, bound, sealed.1).ok()?;
        let (end, text) = opened.split_at_checked(END)?;
        let ends = i64::from_be_bytes(end.try_into().ok()?);
        Some((
            String::from_utf8(text.to_vec()).ok()?,
            Timestamp::from_second(ends).ok()?,
        ))
    }
}

/// The cookies of a request, by name and value.
pub(crate) fn cookies<'a>(headers: impl Iterator<Item = &'a [u8]>) -> Vec<(String, String)> {
    let texts = headers.filter_map(|header| std::str::from_utf8(header).ok());
    let pairs = texts.flat_map(|text| text.split(';'));
    let pairs = pairs.filter_map(|pair| pair.trim().split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    pub(crate) fn now() -> Timestamp {
        "2026-03-02T17:00:00Z".parse().unwrap()
    }

    /// The cookies that a browser sends after an answer with this `Set-Cookie`.
    pub(crate) fn sent(set: &str) -> Vec<(String, String)> {
        let pair = set.split(';').next().unwrap();
        cookies(std::iter::once(pair.as_bytes()))
    }
}
