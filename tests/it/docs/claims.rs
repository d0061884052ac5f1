//! Claims of a document: filters, and what it says about each.

use hindsight_filter::model::Resource;

/// A filter in the document, and what the document says about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) line: usize,
    pub(super) on: Resource,
    pub(super) filter: String,
    pub(super) says: Says,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// It matches these rows and no others.
    Rows(Vec<String>),
    /// It is refused in these words.
    Refused(String),
    /// On this row it is `true`, `false` or `unknown`.
    Is(String, String),
    /// As an order it gives these rows, in this order.
    Ordered(Vec<String>),
    /// In this language it selects these rows and no others.
    Selected(String, Vec<String>),
    /// The database is asked this, and this is left over.
    Split(String, String),
    /// As words it means this filter, and selects these runs and no others.
    Words(String, Vec<String>),
    /// The index that narrows it, or `none`.
    Indexed(String),
}

fn resource(name: &str) -> Resource {
    match name {
        "results" => Resource::Results,
        "records" => Resource::Records,
        other => panic!("`{other}` is neither results nor records"),
    }
}

/// The comment of a line that has nothing else.
fn comment(line: &str) -> Option<&str> {
    Some(
        line.strip_prefix("<!-- ")?
            .strip_suffix(" -->")
            .unwrap_or_default(),
    )
}

/// All claims of a document.
pub(super) fn claims(text: &str) -> Vec<Claim> {
    let lines: Vec<&str> = text.lines().collect();
    let mut claims = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let number = at + 1;
        let above = at.checked_sub(1).and_then(|above| comment(lines[above]));
        match line.strip_prefix("```cel") {
            Some(kind) => {
                let above = above.unwrap_or_else(|| panic!("line {number}: no comment above"));
                claims.push(block(&lines[at + 1..], number, kind, above));
            }
            None => {
                if let Some(about) = comment(line).filter(|about| about.contains(" of ")) {
                    claims.extend(table(&lines[at + 1..], number, about));
                }
            }
        }
    }
    claims
}

fn block(after: &[&str], line: usize, kind: &str, above: &str) -> Claim {
    let end = after.iter().position(|line| line.starts_with("```"));
    let end = end.unwrap_or_else(|| panic!("line {line}: the block does not end"));
    let (on, rows) = above
        .split_once(':')
        .unwrap_or_else(|| panic!("line {line}: the comment `{above}` names no rows"));
    let says = match kind {
        "" => {
            let mut rows: Vec<_> = rows.split_whitespace().map(str::to_owned).collect();
            assert!(!rows.is_empty(), "line {line}: want rows, or `none`");
            rows.retain(|row| row != "none");
            rows.sort();
            Says::Rows(rows)
        }
        "-error" => {
            assert_eq!(rows.trim(), "refused", "line {line}: `{above}`");
            let told: Vec<_> = after[end + 1..]
                .iter()
                .skip_while(|line| line.is_empty())
                .map_while(|line| line.strip_prefix("> "))
                .collect();
            assert!(!told.is_empty(), "line {line}: no message below");
            Says::Refused(told.join(" "))
        }
        other => panic!("line {line}: `cel{other}` is no kind of block"),
    };
    Claim {
        line,
        on: resource(on),
        filter: after[..end].join("\n"),
        says,
    }
}

/// The rows of the table that follows; `about` is `truth of records ROW`, `split of records`,
/// `indexed of records`, `words of records`, `order of records`, or `labels of records` and `fields of records` for selectors.
fn table(after: &[&str], line: usize, about: &str) -> Vec<Claim> {
    let words: Vec<_> = about.split(' ').collect();
    let rows = after.iter().take_while(|row| row.starts_with('|')).skip(2);
    let claims: Vec<_> = rows
        .enumerate()
        .map(|(nth, row)| {
            let row = row.replace("\\|", "\u{0}");
            let cells: Vec<_> = row
                .split('|')
                .map(|cell| cell.trim().replace('\u{0}', "|"))
                .collect();
            let code = |cell: &str| {
                let code = cell.trim_matches('`').trim();
                assert!(!code.is_empty(), "line {}: {row}", line + nth + 3);
                code.to_owned()
            };
            let says = match words[..] {
                ["truth", "of", _, row] => Says::Is(row.to_owned(), cells[2].clone()),
                ["labels" | "fields", "of", _] => {
                    let rows = code(&cells[2]);
                    let mut rows: Vec<_> = rows.split(' ').map(str::to_owned).collect();
                    rows.sort();
                    Says::Selected(words[0].to_owned(), rows)
                }
                ["words", "of", _] => {
                    let mut rows: Vec<_> = cells[3].trim_matches('`').split(' ').collect();
                    rows.sort_unstable();
                    let rows = rows.into_iter().map(str::to_owned).collect();
                    Says::Words(code(&cells[2]), rows)
                }
                ["order", "of", _] => {
                    let rows = code(&cells[2]);
                    Says::Ordered(rows.split(' ').map(str::to_owned).collect())
                }
                ["indexed", "of", _] => Says::Indexed(cells[2].clone()),
                ["split", "of", _] => Says::Split(code(&cells[2]), cells[3].clone()),
                _ => panic!("line {line}: `{about}` is not understood"),
            };
            Claim {
                line: line + nth + 3,
                on: resource(words[2]),
                filter: code(&cells[1]),
                says,
            }
        })
        .collect();
    assert!(!claims.is_empty(), "line {line}: no table follows");
    claims
}
