//! Which directory a row is kept in.

use std::fmt;

use hindsight_filter::model::RunResult;
use jiff::{civil::Date, tz::TimeZone};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What Hive calls the directory of rows that have no value.
const NONE: &str = "__HIVE_DEFAULT_PARTITION__";
/// Everything else is written as it is.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// Cluster, namespace and day, which are the same for all records of a result.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Partition {
    cluster: Option<String>,
    namespace: String,
    date: Date,
}

impl Partition {
    /// That of the records of a result: its parent, and the day in UTC on which it was stored first.
    pub fn of(result: &RunResult) -> Self {
        let parent = result.name.parent();
        Self {
            cluster: parent.cluster().map(str::to_owned),
            namespace: parent.namespace().to_owned(),
            date: TimeZone::UTC.to_datetime(result.create_time).date(),
        }
    }
}

impl fmt::Display for Partition {
    /// The directory as Hive spells it: `cluster=east/namespace=shop/date=2026-01-02`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cluster {
            Some(id) => write!(f, "cluster={}", utf8_percent_encode(id, ESCAPED))?,
            None => write!(f, "cluster={NONE}")?,
        }
        let namespace = utf8_percent_encode(&self.namespace, ESCAPED);
        write!(f, "/namespace={namespace}/date={}", self.date)
    }
}
