//! Addresses of services, which are printed and logged.

use super::{problem::BadValue, value::Value};

/// An address without a user or password in it.
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
    fn read(text: &str) -> Result<Self, BadValue> {
        let after = text.split_once("://").map_or(text, |(_, after)| after);
        let authority = after.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            // The text is not repeated: it holds a password.
            return Err(BadValue::new(
                "has a user or a password in it, which would be printed and is not used; take it out",
            ));
        }
        Ok(Self(String::read(text)?))
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
        for good in [
            "http://h:4317",
            "https://id.example/realms/a@b",
            "https://id.example?x=@",
        ] {
            assert_eq!(Endpoint::read(good).unwrap().as_str(), good);
        }
    }
}
