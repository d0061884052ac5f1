//! The file of receivers, in TOML.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    time::Duration,
};

use hindsight_config::{Endpoint, Span, Value as _, entry_name};
use serde::Deserialize;

/// How many receivers one file may name.
const MOST: usize = 32;
/// The source of events, unless the file says another.
const SOURCE: &str = "/hindsight";
/// Most requests to one receiver at once.
const AT_ONCE: usize = 64;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}")]
pub struct FileError {
    path: PathBuf,
    why: String,
}

impl FileError {
    pub(super) fn new(path: &Path, why: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            why: why.into(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    source: Option<String>,
    #[serde(default)]
    receivers: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    url: String,
    #[serde(default)]
    query: String,
    types: Option<Vec<Moment>>,
    token_file: Option<PathBuf>,
    hmac_key_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    timeout: Option<String>,
    skip_after: Option<String>,
    concurrency: Option<usize>,
}

/// What of a run events are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Moment {
    Started,
    Finished,
}

/// What the file says.
#[derive(Debug, PartialEq)]
pub(super) struct Receivers {
    /// The attribute `source` of all events.
    pub(super) source: String,
    pub(super) receivers: Vec<Receiver>,
}

/// Where events go, and which.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Receiver {
    pub(super) name: String,
    pub(super) url: Endpoint,
    /// Words or CEL that runs must match.
    pub(super) query: String,
    pub(super) types: Vec<Moment>,
    pub(super) token_file: Option<PathBuf>,
    pub(super) hmac_key_file: Option<PathBuf>,
    pub(super) ca_file: Option<PathBuf>,
    /// Longest time of a request.
    pub(super) timeout: Duration,
    /// For how long an event is tried that the receiver itself seems to fail at; none: for ever.
    pub(super) skip_after: Option<Duration>,
    /// Most requests at once.
    pub(super) concurrency: usize,
}

impl Receivers {
    pub(super) fn read(path: &Path) -> Result<Self, FileError> {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| FileError::new(path, error.to_string()))?;
        Self::parse(&text).map_err(|why| FileError::new(path, why))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let whole: Whole = toml::from_str(text).map_err(|error| {
            // The parser's own text quotes the line.
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.map_or(1, |before| 1 + before.matches('\n').count());
            format!("line {line}: {}", error.message())
        })?;
        let source = whole.source.unwrap_or_else(|| SOURCE.to_owned());
        if source.is_empty() || source.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err("source is no reference to a resource (RFC 3986)".to_owned());
        }
        if whole.receivers.len() > MOST {
            let count = whole.receivers.len();
            return Err(format!("{count} receivers; at most {MOST} are possible"));
        }
        let mut names = HashSet::new();
        let mut receivers = Vec::new();
        for entry in whole.receivers {
            if !names.insert(entry.name.clone()) {
                return Err(format!("receiver `{}` is there twice", entry.name));
            }
            let name = entry.name.clone();
            let receiver = Receiver::of(entry);
            receivers.push(receiver.map_err(|why| format!("receiver `{name}`: {why}"))?);
        }
        Ok(Self { source, receivers })
    }
}

impl Receiver {
    fn of(entry: Entry) -> Result<Self, String> {
        let name = entry.name;
        entry_name(&name).map_err(|bad| format!("name {bad}"))?;
        let url = Endpoint::read(&entry.url).map_err(|bad| format!("url {bad}"))?;
        let types = entry
            .types
            .unwrap_or_else(|| vec![Moment::Started, Moment::Finished]);
        if types.is_empty() {
            return Err("types is empty; give `started`, `finished` or both".to_owned());
        }
        let timeout = entry.timeout.as_deref().unwrap_or("10s");
        let timeout = Span::<100>::read(timeout).map_err(|bad| format!("timeout {bad}"))?;
        let skip_after = match entry.skip_after.as_deref().unwrap_or("1h") {
            "never" => None,
            text => {
                let span = Span::<0>::read(text);
                Some(span.map_err(|bad| format!("skip_after {bad}, or `never`"))?)
            }
        };
        let concurrency = entry.concurrency.unwrap_or(4);
        if !(1..=AT_ONCE).contains(&concurrency) {
            return Err(format!("concurrency is not 1 to {AT_ONCE}"));
        }
        Ok(Self {
            name,
            url,
            query: entry.query,
            types,
            token_file: entry.token_file,
            hmac_key_file: entry.hmac_key_file,
            ca_file: entry.ca_file,
            timeout: timeout.get(),
            skip_after: skip_after.map(Span::get),
            concurrency,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_has_a_default() {
        let text = "[[receivers]]\nname = 'broker'\nurl = 'http://broker.example/default'\n";
        let read = Receivers::parse(text).unwrap();
        assert_eq!(read.source, "/hindsight");
        let [one] = &read.receivers[..] else {
            panic!("{read:?}")
        };
        assert_eq!(one.types, [Moment::Started, Moment::Finished]);
        assert_eq!(one.timeout, Duration::from_secs(10));
        assert_eq!(one.skip_after, Some(Duration::from_secs(3_600)));
        assert_eq!((one.concurrency, one.query.as_str()), (4, ""));
        let text = format!("source = 'https://h.example'\n{text}skip_after = 'never'\n");
        let read = Receivers::parse(&text).unwrap();
        assert_eq!(read.source, "https://h.example");
        assert_eq!(read.receivers[0].skip_after, None);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_receiver() {
        let one = |name: &str, url: &str, more: &str| {
            format!("[[receivers]]\nname = '{name}'\nurl = '{url}'\n{more}\n")
        };
        let good = one("a", "http://a", "");
        for (text, said) in [
            (one("A", "http://a", ""), "`A`: name"),
            (one("", "http://a", ""), "``: name"),
            (one("a", "ftp://a", ""), "`a`: url"),
            (one("a", "https://u:p@a", ""), "`a`: url"),
            (one("a", "http://a", "timeout = '1'"), "`a`: timeout"),
            (one("a", "http://a", "timeout = '1ms'"), "`a`: timeout"),
            (one("a", "http://a", "skip_after = 'no'"), "or `never`"),
            (one("a", "http://a", "types = []"), "types is empty"),
            (one("a", "http://a", "types = ['queued']"), "line 4"),
            (one("a", "http://a", "concurrency = 0"), "concurrency"),
            (one("a", "http://a", "colour = 'red'"), "line 4"),
            (format!("{good}{good}"), "`a` is there twice"),
            (format!("source = 'a b'\n{good}"), "source"),
            ("nonsense".to_owned(), "line 1"),
        ] {
            let why = Receivers::parse(&text).unwrap_err();
            assert!(why.contains(said), "{text}: {why}");
        }
    }
}
