//! Parts of labels.

use super::Writer;
use crate::{
    codec::text::{SAME, words},
    sql::{
        dialect::Dialect,
        statement::{Bind, Statement},
    },
};
use hindsight_filter::columns::is_part_of_labels;
use hindsight_filter::condition::{Column, Is, Test, Value};

/// How many rows are looked at: a part of labels is sought in those of each row, or first among all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Thousands at most.
    Few,
    /// Those of a parent.
    Some,
    /// All of a type, or all there are.
    Many,
}

/// Whether the JSON of labels has `part` only in what keys and values are, not between them or in
/// how a word among the keys is written.
pub(super) fn is_sought_in_labels(part: &str) -> bool {
    let mut codes = words::all().map(|(code, _)| words::key_json(&code));
    is_part_of_labels(part) && !codes.any(|code| code.contains(part))
}

/// Appends a statement for the rows that have a label that a test describes; SQLite alone.
pub(in crate::sql) fn with_labels(out: &mut Statement, test: &Test) {
    out.push("SELECT record_row FROM record_labels WHERE label IN (SELECT row_id FROM labels AS l WHERE ");
    match (&test.column, &test.is) {
        (Column::Label(key), Is::OneOf(values)) => {
            let text = |value: &Value| match value {
                Value::Text(text) => Some(words::stored(text).into_owned()),
                _ => None,
            };
            out.push("l.key = ").bind_word(key).push(" AND l.value");
            let values = values.iter().filter_map(text).collect();
            Dialect::Sqlite.one_of(out, false, Bind::Texts(values));
        }
        (_, Is::Contains(part)) => has_part(out, part),
        _ => {
            out.push("1 = 0");
        }
    }
    out.push(")");
}

/// Appends that a label has `part` in its key or value; SQLite alone.
fn has_part(out: &mut Statement, part: &str) {
    out.push("(instr(l.value, ").bind(part);
    out.push(") > 0 OR instr(l.key, ").bind(part).push(") > 0");
    let words = words::all().filter(|(_, word)| word.contains(part));
    let codes: Vec<String> = words.map(|(code, _)| code).collect();
    if !codes.is_empty() {
        Dialect::Sqlite.one_of(out.push(" OR l.key"), false, Bind::Texts(codes.clone()));
        Dialect::Sqlite.one_of(out.push(" OR l.value"), false, Bind::Texts(codes));
    }
    out.push(")");
}

impl Writer<'_> {
    /// Appends a test of all labels: SQLite looks for theirs among those that have the part, and
    /// PostgreSQL searches the JSON.
    pub(super) fn labels_test(&mut self, test: &Test) {
        match &test.is {
            Is::Contains(part) => {
                self.out.push("(labels IS NOT NULL AND ");
                self.odd_labels(false);
                self.out
                    .push(if test.negated { " AND NOT (" } else { " AND (" });
                self.part_of_labels(test, part);
                self.out.push("))");
            }
            _ if test.negated => {
                self.out.push("(labels IS NULL OR ");
                self.odd_labels(true);
                self.out.push(")");
            }
            _ => {
                self.out.push("(labels IS NOT NULL AND ");
                self.odd_labels(false);
                self.out.push(")");
            }
        }
    }

    /// Appends whether labels are odd.
    fn odd_labels(&mut self, are: bool) {
        if self.dialect == Dialect::Postgres {
            self.out.push(if are { "" } else { "NOT " });
            self.out.push("jsonb_exists(labels, ");
            self.out.bind(Bind::Text(Some(SAME.to_owned()))).push(")");
            return;
        }
        self.out
            .push(if are { "row_id IN" } else { "row_id NOT IN" });
        self.out
            .push(" (SELECT record_row FROM record_labels WHERE label = ")
            .push("(SELECT l.row_id FROM labels AS l WHERE l.value = '' AND l.key = ")
            .bind(Bind::Text(Some(SAME.to_owned())))
            .push("))");
    }

    /// Appends that a label has `part` in its key or value.
    fn part_of_labels(&mut self, test: &Test, part: &str) {
        if self.dialect == Dialect::Sqlite && self.rows != Rows::Many {
            self.out.push(match self.rows {
                Rows::Few => {
                    "EXISTS (SELECT 1 FROM json_each(labels) AS e CROSS JOIN labels AS l \
                     ON l.row_id = e.value WHERE "
                }
                _ => {
                    "EXISTS (SELECT 1 FROM json_each(labels) AS e WHERE e.value IN \
                     (SELECT l.row_id FROM labels AS l WHERE "
                }
            });
            has_part(self.out, part);
            self.out
                .push(if self.rows == Rows::Few { ")" } else { "))" });
            return;
        }
        if self.dialect == Dialect::Sqlite {
            with_labels(self.out.push("row_id IN ("), test);
            if let Some(types) = &self.types {
                let types = Bind::Ints(types.clone());
                self.dialect
                    .one_of(self.out.push(" AND type"), false, types);
            }
            self.out.push(")");
            return;
        }
        self.labels_have(part);
        for (code, _) in words::all().filter(|(_, word)| word.contains(part)) {
            self.out.push(" OR ");
            self.labels_have(&words::key_json(&code));
        }
    }

    /// Appends that the JSON of labels has a text in it.
    fn labels_have(&mut self, text: &str) {
        self.out
            .push(self.dialect.position())
            .push("labels::text, ");
        self.out.bind(Bind::Text(Some(text.to_owned())));
        self.out.push(") > 0");
    }
}
