//! Where big payloads lie if not in the database, and how long they stay.

use std::{collections::BTreeMap, fmt, time::Duration};

use super::{problem::BadValue, units::Span, value::Value};

/// What variables begin with that say how a bucket is reached. They are those of the clouds' own
/// tools.
pub(super) const CLOUDS: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

const SCHEMES: [&str; 8] = ["file", "s3", "s3a", "gs", "az", "azure", "abfs", "abfss"];

/// The URL of a directory or a bucket. Whether it is there, only the store finds out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectsUrl(String);

impl ObjectsUrl {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for ObjectsUrl {
    fn read(text: &str) -> Result<Self, BadValue> {
        const WANT: &str = "write `file:///DIRECTORY`, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` \
                            or `az://CONTAINER/PREFIX`";
        let (scheme, place) = text.split_once("://").unwrap_or_default();
        let user = place.split_once('@').map_or("", |(user, _)| user);
        if user.contains(':') || place.contains(['?', '#']) {
            // What is more may be secret, so it is not repeated.
            return Err(BadValue::new(format!(
                "the URL holds more than a place; give credentials in the environment; {WANT}"
            )));
        }
        if !SCHEMES.contains(&scheme) || place.trim_matches('/').is_empty() {
            return Err(BadValue::new(format!(
                "`{text}` names no object store; {WANT}"
            )));
        }
        if scheme == "file" && !place.starts_with('/') {
            return Err(BadValue::new(format!(
                "`{text}` is not an absolute path; write `file:///DIRECTORY`"
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
pub struct Keep(Option<Span>);

impl Keep {
    /// The shortest. It has to be longer than any upload, and than any read of a whole database.
    const LEAST: Span = Span::seconds(3600);

    /// So long.
    #[must_use]
    pub const fn of(span: Span) -> Self {
        Self(Some(span))
    }

    /// So long; for ever if none.
    #[must_use]
    pub fn get(self) -> Option<Duration> {
        self.0.map(Span::get)
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("forever"),
            Some(span) => fmt::Display::fmt(&span, f),
        }
    }
}

impl Value for Keep {
    fn read(text: &str) -> Result<Self, BadValue> {
        if text == "forever" {
            return Ok(Self(None));
        }
        let span: Span = text.parse()?;
        if span < Self::LEAST {
            return Err(BadValue::new(format!(
                "`{text}` is shorter than an upload may take; want at least `1h`, or `forever`"
            )));
        }
        Ok(Self(Some(span)))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// How buckets are reached: names in lower case, and values, which are never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CloudOptions(BTreeMap<String, String>);

impl CloudOptions {
    /// Those of these variables that are about buckets.
    pub(super) fn of(env: &BTreeMap<String, String>) -> Self {
        let ours = env.iter().filter(|(name, _)| is_about_clouds(name));
        Self(
            ours.map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
                .collect(),
        )
    }

    /// The values. Do not log them.
    #[must_use]
    pub fn expose(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

impl fmt::Debug for CloudOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Whether a variable is about buckets.
pub(super) fn is_about_clouds(name: &str) -> bool {
    CLOUDS.iter().any(|cloud| name.starts_with(cloud))
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

    #[test]
    fn of_the_variables_of_clouds_only_the_names_are_shown() {
        let env = [("AWS_SECRET_ACCESS_KEY", "hidden"), ("HOME", "/root")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let options = CloudOptions::of(&env.into());
        assert_eq!(format!("{options:?}"), "{\"aws_secret_access_key\"}");
        assert_eq!(options.expose()["aws_secret_access_key"], "hidden");
    }
}
