//! How each type of value is read from text and shown again.

use std::{
    fmt,
    net::SocketAddr,
    num::{NonZeroU32, NonZeroU64},
    path::PathBuf,
    str::FromStr,
};

use super::{
    database::DbUrl,
    problem::BadValue,
    secret::Secret,
    units::{ByteSize, Span},
};
use hindsight_runtime::telemetry::{LogFilter, LogFormat};

/// A type that a key can have.
///
/// Invariant: `read` takes what `show` gives, and yields the same value; secrets excepted.
pub(super) trait Value: Sized {
    fn read(text: &str) -> Result<Self, BadValue>;
    fn show(&self) -> String;
}

/// How callers are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// They are not: whoever reaches the server may do everything.
    Off,
    /// By the tokens and the RBAC of a Kubernetes cluster.
    Kubernetes,
    /// By the tokens of an issuer (OpenID Connect).
    Oidc,
    /// By the digests of tokens in a file.
    Tokens,
}

impl fmt::Display for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Kubernetes => f.write_str("kubernetes"),
            Self::Oidc => f.write_str("oidc"),
            Self::Tokens => f.write_str("tokens"),
        }
    }
}

impl Value for Auth {
    fn read(text: &str) -> Result<Self, BadValue> {
        match text {
            "off" => Ok(Self::Off),
            "kubernetes" => Ok(Self::Kubernetes),
            "oidc" => Ok(Self::Oidc),
            "tokens" => Ok(Self::Tokens),
            _ => Err(BadValue::new(format!(
                "`{text}` is not a method of authentication; want `off`, `kubernetes`, \
                 `oidc` or `tokens`"
            ))),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsVersion {
    /// 1.2, of 2008.
    V1_2,
    /// 1.3, of 2018.
    V1_3,
}

impl Value for TlsVersion {
    fn read(text: &str) -> Result<Self, BadValue> {
        match text {
            "1.2" => Ok(Self::V1_2),
            "1.3" => Ok(Self::V1_3),
            _ => Err(BadValue::new(format!(
                "`{text}` is not a version of TLS that is safe; want `1.2` or `1.3`"
            ))),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::V1_2 => "1.2".to_owned(),
            Self::V1_3 => "1.3".to_owned(),
        }
    }
}

/// Names and addresses that are somebody else's to judge.
impl Value for String {
    fn read(text: &str) -> Result<Self, BadValue> {
        if text.trim().is_empty() {
            return Err(BadValue::new("is empty"));
        }
        Ok(text.to_owned())
    }

    fn show(&self) -> String {
        self.clone()
    }
}

impl Value for DbUrl {
    fn read(text: &str) -> Result<Self, BadValue> {
        text.parse()
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for SocketAddr {
    fn read(text: &str) -> Result<Self, BadValue> {
        let numeric = match text.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => text.to_owned(),
        };
        parsed(&numeric).ok_or_else(|| {
            BadValue::new(format!(
                "`{text}` is not an address; write an IP address and a port, as in \
                 `127.0.0.1:8080` or `[::]:8080`"
            ))
        })
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for Option<SocketAddr> {
    fn read(text: &str) -> Result<Self, BadValue> {
        if text == "off" {
            return Ok(None);
        }
        SocketAddr::read(text)
            .map(Some)
            .map_err(|bad| BadValue::new(format!("{bad}, or `off`")))
    }

    fn show(&self) -> String {
        self.map_or_else(|| "off".to_owned(), |address| address.to_string())
    }
}

impl Value for LogFilter {
    fn read(text: &str) -> Result<Self, BadValue> {
        text.parse::<Self>()
            .map_err(|bad| BadValue::new(hindsight_runtime::error::report(&bad)))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for LogFormat {
    fn read(text: &str) -> Result<Self, BadValue> {
        text.parse::<Self>()
            .map_err(|bad| BadValue::new(hindsight_runtime::error::report(&bad)))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for PathBuf {
    fn read(text: &str) -> Result<Self, BadValue> {
        if text.is_empty() {
            return Err(BadValue::new("is empty; want the path of a file"));
        }
        Ok(Self::from(text))
    }

    fn show(&self) -> String {
        self.display().to_string()
    }
}

impl Value for ByteSize {
    fn read(text: &str) -> Result<Self, BadValue> {
        let size = text.parse::<Self>()?;
        let range = Self::bytes(1 << 10)..=Self::bytes(2 << 30);
        if !range.contains(&size) {
            return Err(BadValue::new(format!(
                "`{text}` is out of range; want {} to {}",
                range.start(),
                range.end()
            )));
        }
        Ok(size)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for Span {
    fn read(text: &str) -> Result<Self, BadValue> {
        text.parse()
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for NonZeroU64 {
    fn read(text: &str) -> Result<Self, BadValue> {
        parsed(&text.replace('_', "")).ok_or_else(|| {
            BadValue::new(format!(
                "`{text}` is not a number of records; want a whole number from 1"
            ))
        })
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for NonZeroU32 {
    fn read(text: &str) -> Result<Self, BadValue> {
        parsed::<Self>(text)
            .filter(|number| number.get() <= 10_000)
            .ok_or_else(|| {
                BadValue::new(format!(
                    "`{text}` is not a number of connections; want a whole number from 1 to 10000"
                ))
            })
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
    fn read(text: &str) -> Result<Self, BadValue> {
        parsed(text).ok_or_else(|| BadValue::new(format!("`{text}` is neither `true` nor `false`")))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// Keys for sealing. The text of a refusal never holds the secret.
impl Value for Secret {
    fn read(text: &str) -> Result<Self, BadValue> {
        let length = text.chars().count();
        if length < 32 {
            return Err(BadValue::new(format!(
                "the key has {length} characters; want at least 32, as `openssl rand -hex 32` \
                 makes them"
            )));
        }
        Ok(Self::new(text))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// `text` as a `T`, for types whose own complaint says less than ours.
fn parsed<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}
