//! The rule about docs/weaknesses.md: every row names tests that exist, or says why it has none.

use std::collections::BTreeSet;

use crate::source::Source;

/// How many rows each chapter of the page has, by its letter.
pub(crate) const CHAPTERS: &[(char, std::ops::RangeInclusive<usize>)] = &[
    ('A', 1..=11),
    ('B', 12..=16),
    ('C', 17..=20),
    ('D', 21..=27),
];

/// The names of all tests.
fn tests(files: &[Source]) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for file in files {
        let mut is_test = false;
        for (code, text) in file.code.lines().zip(file.text.lines()) {
            is_test |= code.contains("#[test]") || code.contains("#[tokio::test");
            let Some((before, _)) = code.split_once('(').filter(|_| is_test) else {
                continue;
            };
            if let Some((start, name)) = before.rsplit_once("fn ") {
                // The blanked code and the text have the same columns.
                names.insert(&text[start.len() + 3..start.len() + 3 + name.len()]);
                is_test = false;
            }
        }
    }
    names
}

/// Complains about rows that are missing, show nothing, or name a test that is not there.
pub(crate) fn unshown(
    page: &Source,
    files: &[Source],
    chapters: &[(char, std::ops::RangeInclusive<usize>)],
) -> Vec<String> {
    let tests = tests(files);
    let mut missing: BTreeSet<String> = chapters
        .iter()
        .flat_map(|(letter, rows)| rows.clone().map(move |row| format!("{letter}{row}")))
        .collect();
    let mut complaints = Vec::new();
    for (nth, line) in page.text.lines().enumerate() {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let ["", number, _, here, shown, ""] = cells[..] else {
            continue;
        };
        if !missing.remove(number) {
            continue;
        }
        let mut complain = |text: String| {
            complaints.push(format!("{}:{}: {number} {text}", page.path, nth + 1));
        };
        let named: Vec<_> = shown.split('`').skip(1).step_by(2).collect();
        for name in named.iter().filter(|name| !tests.contains(*name)) {
            complain(format!("names `{name}`, which is no test"));
        }
        if named.is_empty() && !here.contains("Reason: ") {
            complain("names no test and gives no reason".to_owned());
        }
    }
    complaints.extend(
        missing
            .iter()
            .map(|number| format!("{}:1: there is no row {number}", page.path)),
    );
    complaints
}
