//! What a person types to mean a run, before a server is asked.

use hindsight_run::reference;

use crate::cli::failure::Failure;

/// What is said of wrong references that begin with `@`.
const AT: &str = "want @last, @last-failed, or @-3 for the third newest";
/// How far back `@-N` reaches.
const FARTHEST: u32 = 1_000;

/// A run, as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    /// The full name of its record.
    Record(String),
    /// So many runs back from now: 1 is the newest.
    Back { nth: u32, failed: bool },
    /// Its name or UID, or the beginning of the UID; in this namespace, if one is given.
    Named {
        namespace: Option<String>,
        name: String,
    },
}

impl Reference {
    /// Reads a reference. It fails if no run can be meant by it.
    pub(super) fn of(text: &str) -> Result<Self, Failure> {
        if let Some(back) = text.strip_prefix('@') {
            return of_back(back).map_err(|why| Failure::usage(format!("`{text}`: {why}")));
        }
        if text.contains("://") {
            let record = reference::record(text);
            return record
                .map(|name| Self::Record(name.to_string()))
                .ok_or_else(|| {
                    let want = "want .../<namespace>/results/<result>/records/<record>";
                    Failure::usage(format!("`{text}` has no name of a record in it; {want}"))
                });
        }
        if text.contains("/records/") {
            return Ok(Self::Record(text.to_owned()));
        }
        let (namespace, name) = match text.rsplit_once('/') {
            Some((namespace, name)) => (Some(namespace.to_owned()), name),
            None => (None, text),
        };
        match (namespace.as_deref(), name) {
            (Some(""), _) | (_, "") => Err(Failure::usage(format!(
                "`{text}` is not a run; want NAME or NAMESPACE/NAME"
            ))),
            _ => Ok(Self::Named {
                namespace,
                name: name.to_owned(),
            }),
        }
    }
}

/// Reads what follows an `@`.
fn of_back(back: &str) -> Result<Reference, String> {
    let (nth, failed) = match back.strip_prefix('-') {
        Some(nth) => {
            let nth: u32 = nth.parse().map_err(|_text| AT.to_owned())?;
            (nth, false)
        }
        None => match back {
            "last" => (1, false),
            "last-failed" => (1, true),
            _ => return Err(AT.to_owned()),
        },
    };
    match nth {
        1..=FARTHEST => Ok(Reference::Back { nth, failed }),
        _ => Err(format!("want @-1 to @-{FARTHEST}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(namespace: Option<&str>, name: &str) -> Reference {
        Reference::Named {
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        }
    }

    #[test]
    fn every_form_of_a_reference_is_told_apart() {
        let back = |nth, failed| Reference::Back { nth, failed };
        let record = |name: &str| Reference::Record(name.to_owned());
        let full = "shop/results/5d5f/records/77aa";
        for (text, meant) in [
            ("release-42", named(None, "release-42")),
            ("shop/release-42", named(Some("shop"), "release-42")),
            ("cluster/east/x", named(Some("cluster/east"), "x")),
            (full, record(full)),
            ("@last", back(1, false)),
            ("@last-failed", back(1, true)),
            ("@-3", back(3, false)),
            (
                "https://h.example/runs/shop/results/5d5f/records/77aa?tab=logs#L1",
                record(full),
            ),
            (
                "https://h/base/ui/run/cluster/east/namespace/shop/results/5d5f/records/77aa",
                record("cluster/east/namespace/shop/results/5d5f/records/77aa"),
            ),
            (
                "https://h/ui/graph/shop/results/5d5f/records/77aa",
                record(full),
            ),
            (
                "http://127.0.0.1:8080/apis/hindsight.dev/v1/parents/shop/results/5d5f/records/77aa/tree",
                record(full),
            ),
            (
                "http://h/apis/x/parents/cluster%2Feast/results/a/records/b",
                record("cluster/east/results/a/records/b"),
            ),
        ] {
            assert_eq!(Reference::of(text).unwrap(), meant, "{text}");
        }
    }

    #[test]
    fn what_means_no_run_says_what_would() {
        for (text, why) in [
            ("@first", "want @last, @last-failed, or @-3"),
            ("@-", "want @last"),
            ("@-0", "want @-1 to @-1000"),
            ("@-1001", "want @-1 to @-1000"),
            ("@--1", "want @last"),
            ("/x", "want NAME or NAMESPACE/NAME"),
            ("shop/", "want NAME or NAMESPACE/NAME"),
            ("", "want NAME or NAMESPACE/NAME"),
            (
                "https://h.example/runs/release-42",
                "has no name of a record",
            ),
            (
                "https://h/results/a/records/",
                "has no name of a record in it",
            ),
        ] {
            let said = Reference::of(text).unwrap_err().to_string();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
