//! The cookie of a caller who signed in: the token, sealed, with the time at which it ends.
//!
//! AES-256-GCM under a key that is derived from a secret that all replicas share. The token is
//! opened on each request and sent on as the bearer token of every call, so that a right that is
//! revoked ends as fast as for any other client.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};

/// How long a session lasts.
const LIFE: SignedDuration = SignedDuration::from_hours(8);
/// Longest token that fits in a cookie.
pub(crate) const MAX_TOKEN: usize = 2_560;
/// Bytes of the time at which a session ends.
const END: usize = 8;
/// What the key and the seal are for.
const PURPOSE: &[u8] = b"hindsight web session 1";

/// A session that goes on.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) token: String,
    pub(crate) ends: Timestamp,
}

/// Seals tokens into cookies.
pub(crate) struct Sessions {
    key: RandomizedNonceKey,
    /// Whether browsers reach the server over TLS.
    secure: bool,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("ends", &self.ends)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl Sessions {
    pub(crate) fn new(secret: &[u8], secure: bool) -> Self {
        let key = Sha256::new()
            .chain_update(PURPOSE)
            .chain_update(secret)
            .finalize();
        let key = RandomizedNonceKey::new(&AES_256_GCM, &key);
        Self {
            key: key.expect("a digest has the length of a key"),
            secure,
        }
    }

    /// The name of the cookie. Browsers take the first one only over TLS and for the whole host.
    fn name(&self) -> &'static str {
        match self.secure {
            true => "__Host-hs",
            false => "hs",
        }
    }

    fn attributes(&self) -> &'static str {
        match self.secure {
            true => "Path=/; HttpOnly; SameSite=Lax; Secure",
            false => "Path=/; HttpOnly; SameSite=Lax",
        }
    }

    /// The value of `Set-Cookie` that begins a session; none if the token cannot be one.
    pub(crate) fn begin(&self, token: &str, now: Timestamp) -> Option<String> {
        let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
        if token.is_empty() || token.len() > MAX_TOKEN || !is_plain {
            return None;
        }
        let end = now.checked_add(LIFE).ok()?.as_second();
        let mut sealed = end.to_be_bytes().to_vec();
        sealed.extend_from_slice(token.as_bytes());
        let nonce = self
            .key
            .seal_in_place_append_tag(Aad::from(PURPOSE), &mut sealed)
            .ok()?;
        let mut value = nonce.as_ref().to_vec();
        value.extend_from_slice(&sealed);
        let value = URL_SAFE_NO_PAD.encode(value);
        let (name, attributes) = (self.name(), self.attributes());
        let age = LIFE.as_secs();
        Some(format!("{name}={value}; {attributes}; Max-Age={age}"))
    }

    /// The value of `Set-Cookie` that ends a session.
    pub(crate) fn end(&self) -> String {
        format!("{}=; {}; Max-Age=0", self.name(), self.attributes())
    }

    /// The session of a caller, if it goes on.
    pub(crate) fn open(&self, cookies: &[(String, String)], now: Timestamp) -> Option<Session> {
        let name = self.name();
        let (_, value) = cookies.iter().find(|(key, _)| key == name)?;
        let mut value = URL_SAFE_NO_PAD.decode(value).ok()?;
        let sealed = value.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(sealed.0).ok()?;
        let opened = self.key.open_in_place(nonce, Aad::from(PURPOSE), sealed.1);
        let (end, token) = opened.ok()?.split_at_checked(END)?;
        let end = i64::from_be_bytes(end.try_into().ok()?);
        if now.as_second() >= end {
            return None;
        }
        Some(Session {
            token: String::from_utf8(token.to_vec()).ok()?,
            ends: Timestamp::from_second(end).ok()?,
        })
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
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-03-02T17:00:00Z".parse().unwrap()
    }

    fn sent(set: &str) -> Vec<(String, String)> {
        let pair = set.split(';').next().unwrap();
        cookies(std::iter::once(pair.as_bytes()))
    }

    #[test]
    fn a_token_is_sealed_for_eight_hours_and_shown_to_no_one() {
        let sessions = Sessions::new(b"shared", true);
        let set = sessions.begin("S3CRET-TOKEN", now()).unwrap();
        assert!(set.starts_with("__Host-hs=") && !set.contains("S3CRET"));
        assert!(set.ends_with("; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=28800"));
        let open = |sessions: &Sessions, hours| {
            let at = now() + SignedDuration::from_hours(hours);
            sessions.open(&sent(&set), at).map(|session| session.token)
        };
        let same = Sessions::new(b"shared", true);
        assert_eq!(open(&same, 7).as_deref(), Some("S3CRET-TOKEN"));
        assert_eq!(open(&same, 8), None);
        assert_eq!(open(&Sessions::new(b"other", true), 1), None);
        assert_eq!(open(&Sessions::new(b"shared", false), 1), None);
    }

    #[test]
    fn a_cookie_that_was_changed_is_no_session() {
        let sessions = Sessions::new(b"shared", false);
        let set = sessions.begin("token", now()).unwrap();
        assert!(set.starts_with("hs=") && !set.contains("Secure"));
        let (_, value) = sent(&set).remove(0);
        for at in 0..value.len() {
            let mut changed = value.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            let cookies = [("hs".to_owned(), changed)];
            assert_eq!(sessions.open(&cookies, now()), None, "{at}");
        }
        for value in ["", "AAAA", "not base64!"] {
            let cookies = [("hs".to_owned(), value.to_owned())];
            assert_eq!(sessions.open(&cookies, now()), None);
        }
    }

    #[test]
    fn what_no_header_or_cookie_can_carry_is_no_token() {
        let sessions = Sessions::new(b"shared", true);
        for bad in ["", "a b", "a\nb", "é", &"a".repeat(MAX_TOKEN + 1)] {
            assert_eq!(sessions.begin(bad, now()), None);
        }
        let longest = sessions.begin(&"a".repeat(MAX_TOKEN), now()).unwrap();
        assert!(longest.len() < 3_584, "{}", longest.len());
    }
}
