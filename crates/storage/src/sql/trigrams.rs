//! Parts of names, by their trigrams: a name that has a part has all trigrams of it. Rows that have those are compared
//! with the part itself. Names of more than 256 characters are not divided, and all are compared.

use super::{dialect::Dialect, statement::Statement};
use hindsight_filter::condition::{Is, Test};

/// So many trigrams of a part are looked for at most, the last ones: names of runs differ at their ends.
const MOST: usize = 16;

/// The end of what every name has that passes a test; none if it has no trigram.
pub(super) fn of_names(test: &Test) -> Option<&str> {
    match (&test.is, test.negated) {
        (Is::Contains(part) | Is::EndsWith(part), false) => end(part),
        _ => None,
    }
}

/// So many characters of a part as have the trigrams that are looked for; none if it has no trigram.
pub(super) fn end(part: &str) -> Option<&str> {
    let last = part.char_indices().rev().take(MOST + 2).last();
    let end = &part[last.map_or(0, |(at, _)| at)..];
    (end.chars().count() > 2).then_some(end)
}

/// Appends a statement for records whose names may have a part.
pub(super) fn records(out: &mut Statement, dialect: Dialect, columns: &'static str, part: &str) {
    out.push("SELECT ").push(columns);
    match dialect {
        Dialect::Sqlite => {
            out.push(" FROM record_names WHERE record_names MATCH ")
                .bind(all_of(part).as_str());
            out.push(" UNION ALL SELECT ").push(columns);
            out.push(
                " FROM records INDEXED BY records_by_long_name WHERE length(object_name) > 256",
            );
        }
        Dialect::Postgres => {
            out.push(" FROM records WHERE ");
            has_all(out, "object_name", part);
        }
    }
}

/// Appends the end of a subquery of PostgreSQL for rows with a name that may have a part. `OFFSET 0` keeps other tests out: the
/// planner would take another index and divide the name of each row.
pub(super) fn has_all(out: &mut Statement, name: &'static str, part: &str) {
    out.push("name_trigrams(")
        .push(name)
        .push(") @> name_trigrams(");
    out.bind(part).push(") OR name_trigrams(").push(name);
    out.push(") @> '{-1}' OFFSET 0");
}

/// The trigrams of a part as SQLite is asked for all of them.
fn all_of(part: &str) -> String {
    let chars: Vec<char> = part.chars().collect();
    let trigrams = chars.windows(3).map(|three| {
        let three: String = three.iter().collect();
        format!("\"{}\"", three.replace('"', "\"\""))
    });
    trigrams.collect::<Vec<_>>().join(" AND ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_trigrams_are_looked_for() {
        assert_eq!(end("ab"), None);
        assert_eq!(end("aäb"), Some("aäb"));
        let long: String = ('a'..='z').collect();
        assert_eq!(end(&long), Some("ijklmnopqrstuvwxyz"));
    }

    #[test]
    fn a_quote_is_a_part_like_any_other() {
        assert_eq!(all_of("aäb"), "\"aäb\"");
        assert_eq!(all_of("a\"b-"), "\"a\"\"b\" AND \"\"\"b-\"");
    }
}
