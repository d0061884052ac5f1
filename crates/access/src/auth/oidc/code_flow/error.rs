//! Why a browser is not signed in, in words for the person who tried.

use hindsight_runtime::error::{ErrorKind, HasKind};

/// Why a sign-in failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SignInError {
    /// The issuer gave no code, or no tokens for it.
    #[error("{host} refused the sign-in: {said}")]
    Refused {
        /// Host of the issuer.
        host: String,
        /// Its words, of visible ASCII.
        said: String,
    },
    /// The answer is not from the issuer that was asked.
    #[error("the answer to this sign-in does not come from {host}")]
    OtherIssuer {
        /// Host of the issuer that was asked.
        host: String,
    },
    /// The ID token is not good.
    #[error("the ID token that {host} sent is not valid for this sign-in ({reason})")]
    IdToken {
        /// Host of the issuer.
        host: String,
        /// Reason, as docs/secure.md lists them.
        reason: &'static str,
    },
    /// Calls could not be made with any of the tokens.
    #[error(
        "{host} sent no token that this server takes: want a JWT for the audience `{audience}`, with the name of the caller"
    )]
    NoToken {
        /// Host of the issuer.
        host: String,
        /// The audience that tokens must have.
        audience: String,
    },
    /// The issuer, or the file of the secret, cannot be read.
    #[error("{host} cannot be asked at the moment; try again")]
    Unavailable {
        /// Host of the issuer.
        host: String,
    },
    /// Many sign in at once.
    #[error("too many sign-ins are under way; try again in a moment")]
    Busy,
}

impl HasKind for SignInError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Unavailable { .. } | Self::Busy => ErrorKind::Unavailable,
            _ => ErrorKind::Unauthenticated,
        }
    }
}
