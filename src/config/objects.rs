//! The store of large payloads, and how long objects stay in it.

use std::{fmt, time::Duration};

use hindsight_config::{BadValue, Span, Value};

const SCHEMES: [&str; 8] = ["file", "s3", "s3a", "gs", "az", "azure", "abfs", "abfss"];

/// The URL of a directory or a bucket. Whether it is there, only the store finds out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectsUrl(String);

impl ObjectsUrl {
    /// The URL as the configuration has it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for ObjectsUrl {
    const WORD: &'static str = "URL";

    fn read(text: &str) -> Result<Self, BadValue> {
        const WANT: &str = "`file:///DIRECTORY`, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` \
                            or `az://CONTAINER/PREFIX`";
        let (scheme, place) = text.split_once("://").unwrap_or_default();
        let user = place.split_once('@').map_or("", |(user, _)| user);
        if user.contains(':') || place.contains(['?', '#']) {
            // What is more may be secret, so it is not repeated.
            return Err(BadValue::new(format!(
                "the URL holds more than a place; give credentials in the environment; want {WANT}"
            )));
        }
        if !SCHEMES.contains(&scheme) || place.trim_matches('/').is_empty() {
            return Err(BadValue::new(format!(
                "`{text}` names no object store; want {WANT}"
            )));
        }
        if scheme == "file" && !place.starts_with('/') {
            return Err(BadValue::new(format!(
                "`{text}` is not an absolute path; want `file:///DIRECTORY`"
            )));
        }
        Ok(Self(text.to_owned()))
    }

    fn show(&self) -> String {
        self.0.clone()
    }
}

/// How long an object stays that no row refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep(Option<Shortest>);

/// Longer than any upload, and than any read of a whole database.
type Shortest = Span<3_600_000>;

impl Keep {
    /// The time; none if it is for ever.
    #[must_use]
    pub fn get(self) -> Option<Duration> {
        self.0.map(Span::get)
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.show())
    }
}

impl Value for Keep {
    const WORD: &'static str = "DURATION";

    fn read(text: &str) -> Result<Self, BadValue> {
        if text == "forever" {
            return Ok(Self(None));
        }
        let span = Shortest::read(text);
        let span = span.map_err(|bad| BadValue::new(format!("{bad}, or `forever`")))?;
        Ok(Self(Some(span)))
    }

    fn show(&self) -> String {
        self.0
            .map_or_else(|| "forever".to_owned(), |span| span.show())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_of_objects_is_a_directory_or_a_bucket() {
        for good in [
            "file:///var/lib/hindsight/objects",
            "s3://bucket",
            "s3://bucket/some/prefix",
            "gs://bucket/prefix",
            "az://container/prefix",
            "abfss://container@account.dfs.core.windows.net/prefix",
        ] {
            assert_eq!(ObjectsUrl::read(good).unwrap().show(), good);
        }
        for bad in [
            "",
            "s3",
            "s3://",
            "file://",
            "file://here",
            "memory:///",
            "http://a/b",
        ] {
            assert!(ObjectsUrl::read(bad).is_err(), "{bad}");
        }
        for secret in ["s3://a:hidden@bucket", "az://container?sig=hidden"] {
            let why = ObjectsUrl::read(secret).unwrap_err().to_string();
            assert!(!why.contains("hidden"), "{why}");
        }
    }

    #[test]
    fn objects_stay_an_hour_or_longer() {
        for good in ["1h", "7d", "forever"] {
            assert_eq!(Keep::read(good).unwrap().show(), good);
        }
        for bad in ["", "59m", "never"] {
            assert!(Keep::read(bad).is_err(), "{bad}");
        }
    }
}
