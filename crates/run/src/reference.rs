//! What people write to mean a run that is stored: an address of its record, or the beginning of a UID.

use hindsight_proto::names::RecordName;
use percent_encoding::percent_decode_str;

/// Fewest hexadecimal digits of a UID that are taken for its beginning.
const FEWEST: usize = 4;
/// Pages below `/ui` whose addresses go on with the name of a record.
const PAGES: [&str; 5] = ["run", "raw", "payload", "graph", "logs"];

/// The record that an address of a page or of a call is about, or a full name means.
pub fn record(text: &str) -> Option<RecordName> {
    let path = text.split(['?', '#']).next()?;
    let path = percent_decode_str(path).decode_utf8().ok()?;
    let parts: Vec<&str> = path.split('/').collect();
    let results = parts
        .windows(3)
        .position(|at| at[0] == "results" && at[2] == "records")?;
    let [result, _, record] = parts.get(results + 1..results + 4)? else {
        return None;
    };
    let before = parts.get(..results)?;
    // Calls and pages say where the parent begins, which may have several segments.
    let is_page = |at: &[&str]| at[0] == "ui" && PAGES.contains(&at[1]);
    let begins = before
        .iter()
        .rposition(|part| *part == "parents")
        .map(|at| at + 1)
        .or_else(|| Some(before.windows(2).position(is_page)? + 2));
    let begins = match begins {
        Some(begins) => begins,
        None if text.contains("://") => before.len().checked_sub(1)?,
        None => 0,
    };
    let parent = before.get(begins..)?.join("/");
    let name = format!("{parent}/results/{result}/records/{record}");
    name.parse().ok()
}

/// Whether a text can be the beginning of a UID.
pub fn begins_uid(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_hexdigit).count();
    let is_uid = |c: char| c == '-' || (c.is_ascii_hexdigit() && !c.is_ascii_uppercase());
    text.len() < 36 && digits >= FEWEST && text.chars().all(is_uid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_begin_a_uid() {
        for (text, is) in [
            ("0b4f", true),
            ("0b4f9a2e-5f0a", true),
            ("0b4", false),
            ("a-b-c", false),
            ("0B4F", false),
            ("release", false),
            ("0b4f9a2e-5f0a-4a30-9d3a-6f2c1f0d9e11", false),
        ] {
            assert_eq!(begins_uid(text), is, "{text}");
        }
    }

    #[test]
    fn an_address_says_where_the_parent_begins() {
        for (text, name) in [
            ("shop/results/a/records/b", Some("shop/results/a/records/b")),
            (
                "https://h/x/shop/results/a/records/b?tab=logs#L1",
                Some("shop/results/a/records/b"),
            ),
            (
                "/base/ui/graph/cluster/east/results/a/records/b",
                Some("cluster/east/results/a/records/b"),
            ),
            (
                "http://h/apis/x/parents/cluster%2Feast/results/a/records/b",
                Some("cluster/east/results/a/records/b"),
            ),
            ("https://h/results/a/records/", None),
            ("https://h/runs/release-42", None),
        ] {
            let found = record(text).map(|name| name.to_string());
            assert_eq!(found.as_deref(), name, "{text}");
        }
    }
}
