//! The cookie of a caller who signed in: the token, sealed, with the time at which it ends.
//!
//! The token is opened on each request and sent on as the bearer token of every call, so that a
//! right that is revoked ends as fast as for any other client.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use crate::sealed::{Purpose, Sealed};

/// How long a session lasts.
const LIFE: SignedDuration = SignedDuration::from_hours(8);
/// Longest token that fits in a cookie.
pub(crate) const MAX_TOKEN: usize = 2_560;
const PURPOSE: Purpose = Purpose {
    seal: b"hindsight web session 1",
    names: ("__Host-hs", "hs"),
    // Longer than some sessions at a provider: one that is over leads there again.
    life: LIFE,
};
/// What a token begins with in a cookie that was pasted, or that a provider gave.
const PASTED: char = 'p';
const PROVIDED: char = 'o';

/// How a caller came by a token.
#[derive(Debug, Clone, Copy)]
pub(crate) enum By {
    Paste,
    /// From a provider, which says when it ends.
    Provider {
        until: Timestamp,
    },
}

/// A session, which may be over.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) token: String,
    pub(crate) ends: Timestamp,
    /// Whether it began at a provider.
    pub(crate) is_provided: bool,
}

/// Seals tokens into cookies.
#[derive(Debug)]
pub(crate) struct Sessions(Sealed);

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("ends", &self.ends)
            .finish_non_exhaustive()
    }
}

impl Sessions {
    pub(crate) fn new(secret: &[u8], secure: bool) -> Self {
        Self(Sealed::new(PURPOSE, secret, secure))
    }

    /// The value of `Set-Cookie` that begins a session; none if the token cannot be one.
    pub(crate) fn begin(&self, token: &str, by: By, now: Timestamp) -> Option<String> {
        let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
        if token.is_empty() || token.len() > MAX_TOKEN || !is_plain {
            return None;
        }
        let end = now.checked_add(LIFE).ok()?;
        let (kind, ends) = match by {
            By::Paste => (PASTED, end),
            By::Provider { until } => (PROVIDED, until.min(end)),
        };
        self.0.set(&format!("{kind}{token}"), ends)
    }

    /// The value of `Set-Cookie` that ends a session.
    pub(crate) fn end(&self) -> String {
        self.0.clear()
    }

    /// The session among the cookies of a request.
    pub(crate) fn open(&self, cookies: &[(String, String)]) -> Option<Session> {
        let (text, ends) = self.0.open(cookies)?;
        let is_provided = text.starts_with(PROVIDED);
        let token = text.strip_prefix([PASTED, PROVIDED])?.to_owned();
        Some(Session {
            token,
            ends,
            is_provided,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sealed::testing::{now, sent};

    #[test]
    fn a_token_is_sealed_for_eight_hours_and_shown_to_no_one() {
        let sessions = Sessions::new(b"shared", true);
        let set = sessions.begin("S3CRET-TOKEN", By::Paste, now()).unwrap();
        assert!(set.starts_with("__Host-hs=") && !set.contains("S3CRET"));
        assert!(set.ends_with("; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=28800"));
        let open = |sessions: &Sessions, hours| {
            let at = now() + SignedDuration::from_hours(hours);
            let session = sessions.open(&sent(&set))?;
            (at < session.ends).then_some(session.token)
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
        let set = sessions.begin("token", By::Paste, now()).unwrap();
        assert!(set.starts_with("hs=") && !set.contains("Secure"));
        let (_, value) = sent(&set).remove(0);
        for at in 0..value.len() {
            let mut changed = value.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            let cookies = [("hs".to_owned(), changed)];
            assert_eq!(sessions.open(&cookies), None, "{at}");
        }
        for value in ["", "AAAA", "not base64!"] {
            let cookies = [("hs".to_owned(), value.to_owned())];
            assert_eq!(sessions.open(&cookies), None);
        }
    }

    #[test]
    fn a_session_ends_with_the_token_of_its_provider() {
        let sessions = Sessions::new(b"shared", true);
        let soon = now() + SignedDuration::from_mins(5);
        let late = now() + SignedDuration::from_hours(24);
        for (until, ends) in [(soon, soon), (late, now() + LIFE)] {
            let set = sessions.begin("token", By::Provider { until }, now());
            let session = sessions.open(&sent(&set.unwrap())).unwrap();
            assert_eq!((session.ends, session.is_provided), (ends, true));
        }
    }

    #[test]
    fn what_no_header_or_cookie_can_carry_is_no_token() {
        let sessions = Sessions::new(b"shared", true);
        for bad in ["", "a b", "a\nb", "é", &"a".repeat(MAX_TOKEN + 1)] {
            assert_eq!(sessions.begin(bad, By::Paste, now()), None);
        }
        let longest = sessions
            .begin(&"a".repeat(MAX_TOKEN), By::Paste, now())
            .unwrap();
        assert!(longest.len() < 3_584, "{}", longest.len());
    }
}
