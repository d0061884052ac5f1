//! Why a token is rejected: for the log and the metrics, never for the caller.

use std::fmt;

use jsonwebtoken::errors::ErrorKind;

/// Reason for which a token is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rejected {
    /// It is not a signed JWT.
    Malformed,
    /// It is signed in a way that is not taken, or that its key is not for.
    Algorithm,
    /// The issuer has no key for signatures of that name.
    Key,
    /// The signature is not that of the key.
    Signature,
    /// `iss` is not `oidc_issuer`.
    Issuer,
    /// `aud` does not hold `oidc_audience`.
    Audience,
    /// The time in `exp` has passed.
    Expired,
    /// `nbf` has not come.
    NotYetValid,
    /// The claim with the name is missing, empty or no text.
    Name,
    /// The name is an address, and `email_verified` is not `true`.
    UnverifiedEmail,
    /// `nonce` of an ID token is not that of its sign-in.
    Nonce,
    /// A claim is missing, or is not what it should be.
    Claims,
}

impl Rejected {
    /// What a refusal of the decoder means.
    pub(super) fn of(kind: &ErrorKind) -> Self {
        match kind {
            ErrorKind::InvalidSignature => Self::Signature,
            ErrorKind::InvalidIssuer => Self::Issuer,
            ErrorKind::InvalidAudience => Self::Audience,
            ErrorKind::InvalidAlgorithm => Self::Algorithm,
            ErrorKind::MissingRequiredClaim(claim) => match claim.as_str() {
                "iss" => Self::Issuer,
                "aud" => Self::Audience,
                _ => Self::Claims,
            },
            ErrorKind::InvalidClaimFormat(_) | ErrorKind::Json(_) => Self::Claims,
            _ => Self::Malformed,
        }
    }

    /// How it is called in logs and metrics.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Algorithm => "algorithm",
            Self::Key => "key",
            Self::Signature => "signature",
            Self::Issuer => "issuer",
            Self::Audience => "audience",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::Name => "name",
            Self::UnverifiedEmail => "unverified_email",
            Self::Nonce => "nonce",
            Self::Claims => "claims",
        }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
