//! The cookie of a browser that is signing in at a provider: what its answer must fit, and the page
//! that was asked for.

use jiff::{SignedDuration, Timestamp};

use crate::api::Begun;
use crate::sealed::{Purpose, Sealed};

/// How long a person may take to sign in.
const LIFE: SignedDuration = SignedDuration::from_mins(10);
/// Longest address of a page that is kept meanwhile.
pub(crate) const MAX_PAGE: usize = 1_800;
const PURPOSE: Purpose = Purpose {
    seal: b"hindsight web sign-in 1",
    names: ("__Host-hs-login", "hs-login"),
    life: LIFE,
};

/// A sign-in that goes on.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) state: String,
    pub(crate) nonce: String,
    pub(crate) verifier: String,
    /// Where the caller goes afterwards.
    pub(crate) to: String,
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending")
            .field("to", &self.to)
            .finish_non_exhaustive()
    }
}

/// Seals sign-ins into cookies. A browser has one at a time.
#[derive(Debug)]
pub(crate) struct Pendings(Sealed);

impl Pendings {
    pub(crate) fn new(secret: &[u8], secure: bool) -> Self {
        Self(Sealed::new(PURPOSE, secret, secure))
    }

    /// The value of `Set-Cookie` of a sign-in that leads to the page `to`.
    pub(crate) fn begin(&self, begun: &Begun, to: &str, now: Timestamp) -> Option<String> {
        let ends = now.checked_add(LIFE).ok()?;
        let Begun {
            state,
            nonce,
            verifier,
            ..
        } = begun;
        self.0
            .set(&format!("{state}\n{nonce}\n{verifier}\n{to}"), ends)
    }

    /// The value of `Set-Cookie` that ends it.
    pub(crate) fn end(&self) -> String {
        self.0.clear()
    }

    /// The sign-in that goes on in the browser with these cookies.
    pub(crate) fn open(&self, cookies: &[(String, String)], now: Timestamp) -> Option<Pending> {
        let (text, ends) = self.0.open(cookies)?;
        if now >= ends {
            return None;
        }
        let mut parts = text.splitn(4, '\n').map(str::to_owned);
        Some(Pending {
            state: parts.next()?,
            nonce: parts.next()?,
            verifier: parts.next()?,
            to: parts.next()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sealed::testing::{now, sent};
    use crate::session::{By, Sessions};

    #[test]
    fn a_sign_in_is_kept_for_ten_minutes_and_is_no_session() {
        let pendings = Pendings::new(b"shared", true);
        let random = |letter: &str| letter.repeat(43);
        let begun = Begun {
            location: String::new(),
            state: random("s"),
            nonce: random("n"),
            verifier: random("v"),
        };
        let to = format!("/ui/runs?q={}", "a".repeat(MAX_PAGE - 11));
        let set = pendings.begin(&begun, &to, now()).unwrap();
        assert!(set.starts_with("__Host-hs-login="));
        assert!(set.ends_with("; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=600"));
        assert!(set.len() < 3_584 && !set.contains("sss"), "{}", set.len());
        let open = |minutes| {
            let at = now() + SignedDuration::from_mins(minutes);
            pendings.open(&sent(&set), at)
        };
        let pending = open(9).unwrap();
        assert_eq!(pending.state, random("s"));
        assert_eq!(pending.nonce, random("n"));
        assert_eq!((pending.verifier, pending.to), (random("v"), to));
        assert_eq!(open(10), None);

        // Neither is taken for the other, even under its name.
        let (_, value) = sent(&set).remove(0);
        let sessions = Sessions::new(b"shared", true);
        let as_session = [("__Host-hs".to_owned(), value)];
        assert_eq!(sessions.open(&as_session), None);
        let session = sessions.begin("a\nb", By::Paste, now());
        assert_eq!(session, None);
        let session = sessions.begin("token", By::Paste, now()).unwrap();
        let (_, value) = sent(&session).remove(0);
        let as_pending = [("__Host-hs-login".to_owned(), value)];
        assert_eq!(pendings.open(&as_pending, now()), None);
    }
}
