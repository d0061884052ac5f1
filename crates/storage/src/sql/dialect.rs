//! Where the two databases differ in how a thing is said; they never differ in what is meant.

use std::collections::BTreeMap;

use super::{
    columns::REASON,
    statement::{Bind, Statement},
};
use crate::codec::{row::labels_json, text::words};
use hindsight_filter::model::Resource;

/// Characters that an index of client text holds where index entries are limited.
const CUT: usize = 128;

fn is_short(text: &str) -> bool {
    text.chars().nth(CUT - 1).is_none()
}

/// A database's way of saying things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    /// PostgreSQL 14 and later.
    Postgres,
}

impl Dialect {
    /// Appends the text under `key` of a column that holds a JSON object of texts. On SQLite
    /// `->>` would read a key like `$.a` or `[0]` as a path.
    pub(super) fn lookup(self, out: &mut Statement, column: &'static str, key: &str) {
        match self {
            Self::Sqlite if column == "labels" => {
                out.push("(SELECT l.value FROM json_each(labels) AS e CROSS JOIN labels AS l ");
                out.push("ON l.row_id = e.value WHERE l.key = ");
                key_of(out, column, key).push(")");
            }
            Self::Sqlite => {
                out.push("(SELECT value FROM json_each(")
                    .push(column)
                    .push(") WHERE key = ");
                key_of(out, column, key).push(")");
            }
            Self::Postgres => {
                out.push("((").push(column).push(" ->> ");
                key_of(out, column, key).push(") COLLATE \"C\")");
            }
        }
    }

    /// Appends that a record has a label.
    pub(super) fn labelled(self, out: &mut Statement, key: &str, value: &str) {
        match self {
            Self::Sqlite => {
                out.push("EXISTS (SELECT 1 FROM record_labels WHERE label = ");
                self.label(out, key, value);
                out.push(" AND at_us = create_us AND record_row = row_id)");
            }
            Self::Postgres => {
                let label = BTreeMap::from([(key.to_owned(), value.to_owned())]);
                out.push("labels @> ")
                    .bind(Bind::Text(Some(labels_json(&label))));
                out.push("::jsonb");
            }
        }
    }

    /// Appends that a record has a label of a key with one of these values, as they are kept.
    /// PostgreSQL asks its index of labels once for all of them.
    pub(super) fn labelled_with_one(self, out: &mut Statement, key: &str, kept: Vec<String>) {
        if self == Self::Postgres {
            let quoted = |text: &str| serde_json::Value::from(text).to_string();
            let key = quoted(&words::stored(key));
            let is = |value: &String| format!("$.{key} == {}", quoted(value));
            let path = kept.iter().map(is).collect::<Vec<_>>().join(" || ");
            out.push("labels @@ ").bind(Bind::Text(Some(path)));
            out.push("::jsonpath");
            return;
        }
        out.push("EXISTS (SELECT 1 FROM record_labels WHERE label IN ");
        out.push("(SELECT l.row_id FROM labels AS l WHERE l.value");
        self.one_of(out, false, Bind::Texts(kept));
        out.push(" AND l.key = ").bind_word(key);
        out.push(") AND at_us = create_us AND record_row = row_id)");
    }

    /// The labels of a record as a JSON object, of which SQLite keeps the numbers.
    pub(super) fn labels(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "(CASE WHEN labels IS NOT NULL THEN (SELECT json_group_object(l.key, l.value) \
                 FROM json_each(labels) AS e CROSS JOIN labels AS l ON l.row_id = e.value) END)"
            }
            Self::Postgres => "labels::text",
        }
    }

    /// Appends the number of a label; SQLite alone.
    pub(super) fn label(self, out: &mut Statement, key: &str, value: &str) {
        out.push("(SELECT labels.row_id FROM labels WHERE labels.value = ")
            .bind_word(value)
            .push(" AND labels.key = ")
            .bind_word(key)
            .push(")");
    }

    /// How `column` is written so that an index is found for comparing it with texts that all
    /// have fewer than [`CUT`] characters, if that is another way than its name: a cut of fewer
    /// characters is the whole text, so the meaning is the same.
    pub(super) fn indexed(self, column: &'static str, texts: &[&str]) -> Option<&'static str> {
        self.cut(column)
            .filter(|_| texts.iter().copied().all(is_short))
    }

    /// What an index has in the place of `column` and of these texts, of which one or more have
    /// at least [`CUT`] characters.
    pub(super) fn cut_of(
        self,
        column: &'static str,
        texts: &[&str],
    ) -> Option<(&'static str, Vec<String>)> {
        let cut = self.cut(column);
        let cut = cut.filter(|_| !texts.iter().copied().all(is_short))?;
        let texts = texts.iter().map(|text| text.chars().take(CUT).collect());
        Some((cut, texts.collect()))
    }

    fn cut(self, column: &'static str) -> Option<&'static str> {
        if self == Self::Sqlite {
            return None;
        }
        match column {
            "data_type" => Some("left(data_type, 128)"),
            "object_name" => Some("left(object_name, 128)"),
            "object_pipeline_ref" => Some("left(object_pipeline_ref, 128)"),
            REASON => Some("left(coalesce(object_reason, object_phase), 128)"),
            "object_condition_status" => Some("left(object_condition_status, 128)"),
            _ => None,
        }
    }

    /// What stands in a column in the place of what another one has.
    pub(super) fn same(self) -> &'static str {
        match self {
            Self::Sqlite => "char(1)",
            Self::Postgres => "'\\x01'::bytea",
        }
    }

    /// The cluster that the parent names.
    pub(super) fn cluster(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "(CASE WHEN parent GLOB 'cluster/*/*' \
                 THEN substr(parent, 9, instr(substr(parent, 9), '/') - 1) END)"
            }
            Self::Postgres => {
                "(CASE WHEN parent LIKE 'cluster/%/%' THEN split_part(parent, '/', 2) END)"
            }
        }
    }

    /// The tier of every record of the database.
    pub(super) fn tier(self) -> &'static str {
        match self {
            Self::Sqlite => "'hot'",
            Self::Postgres => "('hot' COLLATE \"C\")",
        }
    }

    /// A uid, as an identifier; see `codec/uid.rs`.
    pub(super) fn uid(self, of: Resource) -> &'static str {
        match (self, of) {
            (Self::Sqlite, Resource::Results) => {
                "(CASE results.uid WHEN char(1) THEN unhex(printf('%016x', \
                 results.create_us / 1000 * 65536 + 30720 + results.create_us % 1000) \
                 || substr(hex(results.id), 17)) ELSE results.uid END)"
            }
            (Self::Sqlite, Resource::Records) => {
                "(CASE records.uid WHEN char(1) THEN unhex(printf('%016x', \
                 records.create_us / 1000 * 65536 + 28672 + records.create_us % 1000) \
                 || substr(hex(records.id), 17)) ELSE records.uid END)"
            }
            (Self::Postgres, Resource::Results) => {
                "following_uid(results.uid, results.id, results.create_us, 30720)"
            }
            (Self::Postgres, Resource::Records) => {
                "following_uid(records.uid, records.id, records.create_us, 28672)"
            }
        }
    }

    /// The uid of an object, as an identifier.
    pub(super) fn object_uid(self) -> &'static str {
        match self {
            Self::Sqlite => "(CASE object_uid WHEN char(1) THEN id ELSE object_uid END)",
            Self::Postgres => "(CASE object_uid WHEN '\\x01' THEN id ELSE object_uid END)",
        }
    }

    /// The namespace of an object.
    pub(super) fn object_namespace(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "(CASE object_namespace WHEN char(1) THEN parent ELSE object_namespace END)"
            }
            Self::Postgres => {
                "(CASE object_namespace WHEN E'\\x01' THEN parent ELSE object_namespace END)"
            }
        }
    }

    /// Appends the text of which `value` appends what a column of words keeps.
    pub(super) fn word(self, out: &mut Statement, value: &dyn Fn(&mut Statement)) {
        let text = |out: &mut Statement, text: &str| {
            out.bind(Bind::Text(Some(text.to_owned())));
            out.push(if self == Self::Postgres { "::text" } else { "" });
        };
        value(out.push("(CASE "));
        for (code, word) in words::all() {
            text(out.push(" WHEN "), &code);
            text(out.push(" THEN "), word);
        }
        value(out.push(" ELSE "));
        out.push(if self == Self::Postgres {
            " END COLLATE \"C\")"
        } else {
            " END)"
        });
    }

    /// Appends the text of a column of identifiers.
    pub(super) fn identifier(self, out: &mut Statement, column: &'static str) {
        if self == Self::Postgres {
            out.push("(id_text(").push(column).push(") COLLATE \"C\")");
            return;
        }
        out.push("(CASE typeof(")
            .push(column)
            .push(") WHEN 'blob' THEN lower(");
        for (at, part) in [", 1, 8)", ", 9, 4)", ", 13, 4)", ", 17, 4)", ", 21)"]
            .iter()
            .enumerate()
        {
            out.push(if at == 0 { "" } else { " || '-' || " });
            out.push("substr(hex(").push(column).push(")").push(part);
        }
        out.push(") ELSE ").push(column).push(" END)");
    }

    /// Appends ` is one of` or ` is none of` the values.
    pub(super) fn one_of(self, out: &mut Statement, negated: bool, values: Bind) {
        if let (Self::Sqlite, Bind::Ids(_)) = (self, &values) {
            out.push(if negated { " NOT IN " } else { " IN " });
            out.push("(SELECT CASE substr(value, 1, 1) WHEN 'x' THEN unhex(substr(value, 2)) ");
            out.push("ELSE substr(value, 2) END FROM json_each(")
                .bind(values)
                .push("))");
            return;
        }
        let (before, after) = match (self, negated) {
            (Self::Sqlite, false) => (" IN (SELECT value FROM json_each(", "))"),
            (Self::Sqlite, true) => (" NOT IN (SELECT value FROM json_each(", "))"),
            (Self::Postgres, false) => (" = ANY(", ")"),
            (Self::Postgres, true) => (" <> ALL(", ")"),
        };
        out.push(before).bind(values).push(after);
    }

    /// The function that finds a part of a text; it gives 0 where there is none.
    pub(super) fn position(self) -> &'static str {
        match self {
            Self::Sqlite => "instr(",
            Self::Postgres => "strpos(",
        }
    }

    /// The function that gives the first characters of a text, and what stands between it and
    /// their number.
    pub(super) fn first(self) -> (&'static str, &'static str) {
        match self {
            Self::Sqlite => ("substr(", ", 1, "),
            Self::Postgres => ("left(", ", "),
        }
    }

    /// What stands before and after the number of last characters that are wanted of a text.
    pub(super) fn last(self) -> (&'static str, &'static str) {
        match self {
            Self::Sqlite => ("substr(", ", -length("),
            Self::Postgres => ("right(", ", length("),
        }
    }

    /// What stands before, between and after two mentions of a number that is gathered from many
    /// rows; where nothing stands after, it is mentioned once.
    pub(super) fn gather(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Sqlite => ("group_concat(", ")", ""),
            Self::Postgres => ("array_agg(", ") FILTER (WHERE ", " IS NOT NULL)"),
        }
    }

    /// What stands before a statement that is to be explained, and which column of the answer
    /// has the words.
    pub(crate) fn explain(self) -> (&'static str, usize) {
        match self {
            Self::Sqlite => ("EXPLAIN QUERY PLAN ", 3),
            Self::Postgres => ("EXPLAIN ", 0),
        }
    }

    /// What follows a placeholder of JSON text.
    pub(super) fn json_cast(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "::jsonb",
        }
    }

    /// What follows a JSON column that is read as text.
    pub(super) fn json_as_text(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => "::text",
        }
    }
}

/// Appends the key of a map of a column.
fn key_of<'o>(out: &'o mut Statement, column: &'static str, key: &str) -> &'o mut Statement {
    match column {
        "labels" => out.bind_word(key),
        _ => out.bind(key),
    }
}
