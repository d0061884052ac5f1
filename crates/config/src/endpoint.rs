//! Addresses of services, which are printed and logged.

use crate::{BadValue, Value};

/// An address of HTTP without a user or password in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(String);

impl Endpoint {
    /// The address as it was configured; it holds no user and no password.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for Endpoint {
    const WORD: &'static str = "URL";

    fn read(text: &str) -> Result<Self, BadValue> {
        let (scheme, after) = text.split_once("://").unwrap_or(("", text));
        let authority = after.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            // The text is not repeated: it holds a password.
            return Err(BadValue::new(
                "has a user or a password in it, which would be printed and is not used; take it out",
            ));
        }
        if !matches!(scheme, "http" | "https") || authority.is_empty() {
            let want = "`http://HOST:PORT` or `https://HOST:PORT`";
            return Err(BadValue::not_valid(text, "address of a service", want));
        }
        Ok(Self(text.to_owned()))
    }

    fn show(&self) -> String {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_a_password_is_refused_and_not_repeated() {
        for bad in ["http://u:S3CRET@h:1", "https://S3CRET@h/path", "u:S3CRET@h"] {
            let said = Endpoint::read(bad).unwrap_err().to_string();
            assert!(
                said.contains("take it out") && !said.contains("S3CRET"),
                "{said}"
            );
        }
        for bad in ["h:4317", "grpc://h:4317", "http://", "https:///path"] {
            assert!(Endpoint::read(bad).is_err(), "{bad}");
        }
        for good in [
            "http://h:4317",
            "https://id.example/realms/a@b",
            "https://id.example?x=@",
        ] {
            assert_eq!(Endpoint::read(good).unwrap().as_str(), good);
        }
    }
}
