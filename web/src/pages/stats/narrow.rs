//! The runs of one group: what its keys add to the filter.

use hindsight_filter::words::{self, Now, quoted, value};
use jiff::ToSpan as _;
use jiff::civil::DateTime;

use crate::query::{is_cel, toggled};

/// What selects the runs that share a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Test {
    Words(Vec<String>),
    Cel(String),
}

impl Test {
    pub(super) fn word(word: impl Into<String>) -> Self {
        Self::Words(vec![word.into()])
    }

    /// That of the key `key` of groups by `by`; none if no filter says it.
    pub(super) fn of(by: &str, key: Option<&str>) -> Option<Self> {
        let (name, inside) = match by.strip_suffix(')').and_then(|it| it.split_once('(')) {
            Some((name, inside)) => (name, inside),
            None => (by, ""),
        };
        let words = |word: &str| Some(Self::word(format!("{word}:{}", value(key?))));
        match (name, inside) {
            (
                "pipeline" | "namespace" | "kind" | "name" | "reason" | "cluster" | "signature",
                "",
            ) => words(name),
            ("outcome", "") => Some(Self::word(match key? {
                "SUCCESS" => "status:succeeded",
                "FAILURE" => "status:failed",
                "TIMEOUT" => "timeout",
                "CANCELLED" => "cancelled",
                _ => "status:unknown",
            })),
            ("task", "") => Some(Self::Cel(format!("run.task == {}", quoted(key?)))),
            ("label", label) => Some(match key {
                Some(key) => Self::word(format!("label:{label}={}", value(key))),
                None => Self::word(format!("not:label:{label}")),
            }),
            (unit, "started") => {
                let begin: DateTime = key?.get(..19)?.parse().ok()?;
                let end = match unit {
                    "hour" => begin.checked_add(1.hour()),
                    "day" => begin.checked_add(1.day()),
                    "week" => begin.checked_add(1.week()),
                    "month" => begin.checked_add(1.month()),
                    "year" => begin.checked_add(1.year()),
                    _ => return None,
                };
                let form = if unit == "hour" {
                    "%Y-%m-%dT%H:%M"
                } else {
                    "%Y-%m-%d"
                };
                let [since, until] = [begin, end.ok()?].map(|time| time.strftime(form));
                Some(Self::Words(vec![
                    format!("since:{since}"),
                    format!("until:{until}"),
                ]))
            }
            _ => None,
        }
    }
}

/// The filter `text` for those runs that pass these tests, too.
pub(super) fn narrowed(text: &str, tests: &[Test], now: &Now) -> String {
    let are_words = tests.iter().all(|test| matches!(test, Test::Words(_)));
    if are_words && !is_cel(text, now) {
        let words = tests.iter().filter_map(|test| match test {
            Test::Words(words) => Some(words),
            Test::Cel(_) => None,
        });
        return words.flatten().fold(text.to_owned(), |text, word| {
            let is_there = crate::query::split(&text).contains(&word.as_str());
            if is_there { text } else { toggled(&text, word) }
        });
    }
    let read = |text: &str| words::read(text, now).map_or_else(|_| text.to_owned(), |it| it.cel);
    let own = tests.iter().map(|test| match test {
        Test::Words(words) => read(&words.join(" ")),
        Test::Cel(cel) => cel.clone(),
    });
    let all: Vec<_> = std::iter::once(read(text))
        .chain(own)
        .filter(|cel| !cel.is_empty())
        .map(|cel| format!("({cel})"))
        .collect();
    format!("cel:{}", all.join(" && "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Now {
        Now {
            time: "2026-03-02T17:00:00Z".parse().unwrap(),
            zone: jiff::tz::TimeZone::UTC,
        }
    }

    #[test]
    fn a_group_is_a_filter_of_its_runs() {
        for (text, by, key, filter) in [
            ("failed", "pipeline", Some("a b"), "failed pipeline:\"a b\""),
            ("running", "outcome", Some("FAILURE"), "status:failed"),
            ("", "signature", Some("1a2b"), "signature:1a2b"),
            ("", "label(team)", Some("web"), "label:team=web"),
            (
                "label:team=web",
                "label(team)",
                Some("web"),
                "label:team=web",
            ),
            ("", "label(team)", None, "not:label:team"),
            (
                "since:7d",
                "day(started)",
                Some("2026-02-28T00:00:00+01:00"),
                "since:2026-02-28 until:2026-03-01",
            ),
            (
                "",
                "hour(started)",
                Some("2026-03-02T23:00:00Z"),
                "since:2026-03-02T23:00 until:2026-03-03T00:00",
            ),
            (
                "a",
                "task",
                Some("t\""),
                "cel:(data.metadata.name.contains(\"a\")) && (run.task == \"t\\\"\")",
            ),
            (
                "run.task == 'x'",
                "kind",
                Some("Job"),
                "cel:(run.task == 'x') && (data.kind == \"Job\")",
            ),
        ] {
            let test = Test::of(by, key).unwrap();
            let found = narrowed(text, &[test], &now());
            assert_eq!(found, filter, "{by}");
            assert!(words::read(&found, &now()).is_ok(), "{found}");
        }
    }

    #[test]
    fn what_no_filter_says_has_no_list() {
        for (by, key) in [
            ("day(stored)", Some("2026-03-02T00:00:00Z")),
            ("day(started)", Some("soon")),
            ("day(started)", None),
            ("pipeline", None),
            ("param(x)", Some("1")),
            ("a.b + 'c'", Some("1")),
        ] {
            assert_eq!(Test::of(by, key), None, "{by}");
        }
    }
}
