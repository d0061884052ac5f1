//! Statements that go through whole tables by row, a page at a time.

use super::{
    dialect::Dialect,
    read::{self, BODY},
    row::{Row, SqlRow as _},
    statement::{Bind, Statement},
};
use crate::seam::Error;
use hindsight_filter::model::{RecordName, Resource, ResultName};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    Results,
    Records,
    Bodies,
    /// Of what payloads refer to.
    DictionaryCache,
    /// Of which dictionary is current.
    DictionaryKeys,
    Objects,
    Logs,
}

/// All tables of the schema, and what `fsck` compares the rows of each with. Every one is also
/// given to the engine's own check. PostgreSQL has indexes in the place of `labels`,
/// `record_labels` and `record_names` with its parts, and also `changes_floor`, a number that nothing else tells, and `pipeline_names`,
/// which are compared with pipelines.
pub(crate) const TABLES: [(&str, &str); 27] = [
    ("results", "what a result may hold"),
    ("records", "their results and payloads"),
    ("bodies", "their records and SHA-256"),
    ("dictionaries", "their SHA-256"),
    ("dictionary_keys", "dictionaries"),
    ("objects", "bodies, and the object store"),
    ("log_sources", "their lines and bytes in chunks"),
    ("log_chunks", "what their sources count"),
    ("labels", "records"),
    ("record_labels", "records"),
    ("record_names", "the names of records"),
    ("record_names_config", "nothing: a part of `record_names`"),
    ("record_names_data", "nothing: a part of `record_names`"),
    ("record_names_idx", "nothing: a part of `record_names`"),
    ("indexed_paths", "what a path may be"),
    ("index_entries", "payloads"),
    ("dropped_indexes", "nothing: what it names is only cleared"),
    ("index_generation", "being one row"),
    ("secrets", "being there and not empty"),
    (
        "changes",
        "nothing: a change names a record that may be gone",
    ),
    (
        "event_cursors",
        "nothing: a place may be before all changes that are kept",
    ),
    ("holds", "nothing: the database ties each to its result"),
    (
        "archive_files",
        "the files, which `hindsight archive verify` reads",
    ),
    ("archive_state", "being one row"),
    ("pipelines", "the versions that they have"),
    (
        "pipeline_tags",
        "nothing: the database ties each to its pipeline",
    ),
    ("pipeline_versions", "what their pipelines count"),
];

impl Table {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Results => "results",
            Self::Records => "records",
            Self::Bodies => "bodies",
            Self::DictionaryCache => "dictionaries",
            Self::DictionaryKeys => "dictionary_keys",
            Self::Objects => "objects",
            Self::Logs => "log_sources",
        }
    }

    /// The column that numbers its rows.
    fn key(self) -> &'static str {
        match self {
            Self::Bodies => "record_row",
            Self::DictionaryKeys => "dictionary",
            Self::Objects => "object",
            Self::Results | Self::Records | Self::DictionaryCache | Self::Logs => "row_id",
        }
    }
}

/// The statement that counts the rows of a table itself, not of an index where that can be said.
pub(crate) fn count(dialect: Dialect, table: Table) -> Statement {
    let mut out = Statement::new("SELECT count(*) FROM ");
    out.push(table.name());
    if dialect == Dialect::Postgres {
        out.push(" WHERE ctid >= '(0,0)'");
    }
    out
}

/// The statement that counts results whose records are in files.
pub(crate) fn archived() -> Statement {
    Statement::new("SELECT count(*) FROM results WHERE archive_file IS NOT NULL")
}

/// The statement that gives rows and their bytes after a row, at most `limit`.
pub(crate) fn sizes(table: Table, after: i64, limit: i64) -> Statement {
    let mut out = Statement::new("SELECT ");
    out.push(table.key()).push(match table {
        Table::Records => ", coalesce(body_size, 0)",
        Table::DictionaryCache => ", size",
        _ => ", CAST(0 AS BIGINT)",
    });
    out.push(" FROM ").push(table.name()).push(" WHERE ");
    within(&mut out, table, after, None);
    out.push(" LIMIT ").bind(limit);
    out
}

/// Appends that rows are after one and not after another, in order.
fn within(out: &mut Statement, table: Table, after: i64, last: Option<i64>) {
    out.push(table.key()).push(" > ").bind(after);
    if let Some(last) = last {
        out.push(" AND ").push(table.key()).push(" <= ").bind(last);
    }
    out.push(" ORDER BY ").push(table.key());
}

/// The results after one row and up to another, as [`read::result`] reads them.
pub(crate) fn results(dialect: Dialect, after: i64, last: i64) -> Statement {
    let mut out = Statement::new("SELECT ");
    read::fields(&mut out, dialect, Resource::Results);
    out.push(" FROM results WHERE ");
    within(&mut out, Table::Results, after, Some(last));
    out
}

/// The dictionaries after one row and up to another, as [`read::dictionary`] reads them.
pub(crate) fn dictionaries(after: i64, last: i64) -> Statement {
    let mut out = Statement::new("SELECT row_id, sha256, size, bytes FROM dictionaries WHERE ");
    within(&mut out, Table::DictionaryCache, after, Some(last));
    out
}

/// Where, in a row of [`records`], the size of the body stands.
pub(crate) const SIZE: usize = 9;
/// Where the codec stands, which is null where there is no body.
pub(crate) const CODEC: usize = 13;
/// Where the dictionary stands that the body refers to.
pub(crate) const DICTIONARY: usize = 15;
/// Where parent and id of the record's result stand.
pub(crate) const OWNER: usize = 16;
/// Where the row of the dictionary stands, if it is there.
pub(crate) const REFERRED: usize = 18;
/// Where the columns begin that were asked for.
pub(crate) const COLUMNS: usize = 19;

/// The records after one row and up to another: as [`read::StoredRecord`] reads them, then what
/// they refer to, then `columns`, each with whether it holds JSON. Without `bytes` the bytes of
/// bodies are left out.
pub(crate) fn records(
    dialect: Dialect,
    after: i64,
    last: i64,
    bytes: bool,
    columns: &[(&'static str, bool)],
) -> Statement {
    let page = |out: &mut Statement| within(out, Table::Records, after, Some(last));
    page_of_records(dialect, page, bytes, columns)
}

/// The records in these rows, as [`records`] gives them, with their bytes.
pub(crate) fn records_of(dialect: Dialect, rows: Vec<i64>) -> Statement {
    let page = |out: &mut Statement| {
        out.push("row_id");
        dialect.one_of(out, false, Bind::Ints(rows));
    };
    page_of_records(dialect, page, true, &[])
}

fn page_of_records(
    dialect: Dialect,
    page: impl FnOnce(&mut Statement),
    bytes: bool,
    columns: &[(&'static str, bool)],
) -> Statement {
    let mut out = Statement::new("SELECT ");
    read::fields(&mut out, dialect, Resource::Records);
    out.push(", NULL, NULL, ");
    out.push(if bytes {
        BODY
    } else {
        "codec, NULL, dictionary"
    });
    out.push(", owner_parent, owner_id, dictionary_row");
    for (column, is_json) in columns {
        out.push(", ");
        match *column {
            "labels" => out.push(dialect.labels()),
            column => out.push(column),
        };
        if *is_json && *column != "labels" {
            out.push(dialect.json_as_text());
        }
    }
    out.push(" FROM (SELECT * FROM records WHERE ");
    page(&mut out);
    out.push(") AS page LEFT JOIN bodies ON record_row = row_id LEFT JOIN (SELECT row_id AS ");
    out.push("owner_row, parent AS owner_parent, id AS owner_id FROM results) AS owners ");
    out.push(
        "ON owner_row = result_row LEFT JOIN (SELECT row_id AS dictionary_row FROM dictionaries) ",
    );
    out.push("AS referred ON dictionary_row = dictionary ORDER BY row_id");
    out
}

/// The sources of logs whose chunks have other lines or bytes than the source counts: its row, and the
/// lines that it counts and that are there. At most `limit`.
pub(crate) fn logs_in_part(limit: i64) -> Statement {
    let mut out = Statement::new("SELECT s.row_id, s.lines, ");
    out.push("CAST(coalesce(sum(c.lines), 0) AS BIGINT) FROM log_sources AS s ");
    out.push("LEFT JOIN log_chunks AS c ON c.source = s.row_id ");
    out.push("GROUP BY s.row_id, s.lines, s.bytes HAVING coalesce(sum(c.lines), 0) <> s.lines ");
    out.push("OR coalesce(sum(c.bytes), 0) <> s.bytes ORDER BY s.row_id LIMIT ");
    out.bind(limit);
    out
}

/// The bodies whose record is not there, at most `limit`.
pub(crate) fn bodies_without_record(limit: i64) -> Statement {
    let mut out = Statement::new("SELECT record_row FROM bodies WHERE NOT EXISTS ");
    out.push("(SELECT 1 FROM records WHERE row_id = record_row) ORDER BY record_row LIMIT ");
    out.bind(limit);
    out
}

/// The labels of records after one row and up to another that SQLite's index of labels lacks: the
/// name of the record in three parts, key and value, which are null where the label is not there.
/// At most `limit`.
pub(crate) fn labels_not_indexed(after: i64, last: i64, limit: i64) -> Statement {
    let mut out = Statement::new("SELECT c.parent, s.id, c.id, l.key, l.value ");
    out.push("FROM records AS c LEFT JOIN results AS s ON s.row_id = c.result_row ");
    out.push("CROSS JOIN json_each(").push(LABELS);
    out.push(") AS e LEFT JOIN labels AS l ON l.row_id = e.value WHERE c.row_id > ")
        .bind(after);
    out.push(" AND c.row_id <= ").bind(last);
    out.push(" AND (l.row_id IS NULL OR NOT EXISTS (SELECT 1 FROM record_labels AS r ");
    out.push(
        "WHERE r.label = e.value AND r.at_us = c.create_us AND r.record_row = c.row_id)) LIMIT ",
    );
    out.bind(limit);
    out
}

/// The records after one row and up to another whose names SQLite's index of parts of names lacks: parent, id of the result and of the
/// record. The first three characters of each name are looked for. At most `limit`.
pub(crate) fn names_not_indexed(after: i64, last: i64, limit: i64) -> Statement {
    let mut out = Statement::new("WITH page AS (SELECT row_id, parent, result_row, id, ");
    out.push("substr(object_name, 1, 3) AS part FROM records WHERE row_id > ")
        .bind(after);
    out.push(" AND row_id <= ").bind(last);
    out.push(
        " AND length(object_name) BETWEEN 3 AND 256), indexed AS (SELECT p.part, n.rowid AS row ",
    );
    out.push("FROM (SELECT DISTINCT part FROM page) AS p CROSS JOIN record_names AS n ");
    out.push(
        "WHERE n.record_names MATCH '\"' || replace(p.part, '\"', '\"\"') || '\"' AND n.rowid > ",
    )
    .bind(after);
    out.push(" AND n.rowid <= ").bind(last);
    out.push(") SELECT c.parent, s.id, c.id FROM page AS c ");
    out.push("LEFT JOIN results AS s ON s.row_id = c.result_row ");
    out.push("LEFT JOIN indexed AS i ON i.part = c.part AND i.row = c.row_id ");
    out.push("WHERE i.row IS NULL LIMIT ").bind(limit);
    out
}

/// The labels that SQLite's index of labels has and records have not: row of the record, key and
/// value. At most `limit`.
pub(crate) fn labels_without_record(limit: i64) -> Statement {
    let mut out = Statement::new("SELECT r.record_row, l.key, l.value FROM record_labels AS r ");
    out.push("LEFT JOIN labels AS l ON l.row_id = r.label ");
    out.push("LEFT JOIN records AS c ON c.row_id = r.record_row ");
    out.push("WHERE l.row_id IS NULL OR c.row_id IS NULL OR c.create_us <> r.at_us ");
    out.push("OR r.type IS NOT CASE unicode(c.data_type) WHEN 1 THEN unicode(substr(c.data_type, 2)) END ");
    out.push("OR NOT EXISTS (SELECT 1 FROM json_each(")
        .push(LABELS);
    out.push(") AS e WHERE e.value = r.label) LIMIT ");
    out.bind(limit);
    out
}

/// The labels of a record, if they are JSON.
const LABELS: &str = "CASE WHEN json_valid(c.labels) THEN c.labels END";

/// The keys of fields without their record, or of fields that are neither indexed nor being
/// cleared: row of the record, field and key. At most `limit`.
pub(crate) fn keys_without_field(limit: i64) -> Statement {
    let mut out = Statement::new("SELECT v.record_row, v.field, v.value FROM index_entries AS v ");
    out.push("LEFT JOIN records AS c ON c.row_id = v.record_row ");
    out.push("WHERE c.row_id IS NULL OR c.create_us <> v.at_us OR NOT EXISTS ");
    out.push("(SELECT 1 FROM indexed_paths WHERE row_id = v.field UNION ALL ");
    out.push("SELECT 1 FROM dropped_indexes WHERE field = v.field) LIMIT ");
    out.bind(limit);
    out
}

/// The statement that gives the number of rows that say of which generation indexed paths are.
pub(crate) fn generations() -> Statement {
    Statement::new("SELECT count(*) FROM index_generation")
}

/// The statement that gives the secrets: name and bytes.
pub(crate) fn secrets() -> Statement {
    Statement::new("SELECT name, CAST(length(value) AS BIGINT) FROM secrets")
}

/// The keys whose dictionary is not there, at most `limit`.
pub(crate) fn keys_without_dictionary(limit: i64) -> Statement {
    let mut out =
        Statement::new("SELECT key, dictionary FROM dictionary_keys AS k WHERE NOT EXISTS ");
    out.push("(SELECT 1 FROM dictionaries WHERE row_id = k.dictionary) ORDER BY key LIMIT ");
    out.bind(limit);
    out
}

/// The results of these names, as [`read::result`] reads them.
pub(crate) fn held_results(dialect: Dialect, names: &[&ResultName]) -> Statement {
    let mut out = Statement::new("WITH wanted (in_parent, in_result) AS (VALUES ");
    for (at, name) in names.iter().enumerate() {
        out.push(if at == 0 { "(" } else { ", (" });
        out.bind(name.parent().as_str()).push(", ");
        out.bind_id(name.id()).push(")");
    }
    out.push(") SELECT ");
    read::fields(&mut out, dialect, Resource::Results);
    // In this order, so that each name is looked up.
    out.push(" FROM wanted CROSS JOIN results WHERE id = in_result AND parent = in_parent");
    out
}

/// What is stored of the records of these names: for each whose result is there, its place among
/// the names, the uid of the result, uid, etag, times, type, size and SHA-256 of the record, all null if
/// it is not there, and when the result was created.
pub(crate) fn held_records(names: &[&RecordName]) -> Statement {
    let mut out = Statement::new("WITH wanted (place, in_parent, in_result, in_id) AS (VALUES ");
    for (at, name) in names.iter().enumerate() {
        out.push(if at == 0 { "(" } else { ", (" });
        out.bind(i64::try_from(at).expect("a page is smaller than an i64"));
        out.push(", ").bind(name.result().parent().as_str());
        out.push(", ").bind_id(name.result().id());
        out.push(", ").bind_id(name.id()).push(")");
    }
    out.push(") SELECT place, o.uid, c.uid, c.etag, c.create_us, c.update_us, c.data_type, ");
    out.push("c.body_size, c.body_sha256, o.create_us FROM wanted CROSS JOIN results AS o LEFT JOIN records ");
    out.push("AS c ON c.result_row = o.row_id AND c.id = in_id ");
    out.push("WHERE o.id = in_result AND o.parent = in_parent");
    out
}

/// Who the records after one row and up to another are, without their payloads: row, parent, id
/// of the result, id, uid of the result, uid, etag, times, type, size and SHA-256, and when the result was
/// created.
pub(crate) fn outlines(after: i64, last: i64) -> Statement {
    let mut out = Statement::new("SELECT page.row_id, page.parent, o.id, page.id, o.uid, ");
    out.push("page.uid, page.etag, page.create_us, page.update_us, data_type, body_size, ");
    out.push("body_sha256, o.create_us FROM (SELECT * FROM records WHERE ");
    within(&mut out, Table::Records, after, Some(last));
    out.push(") AS page LEFT JOIN results AS o ON o.row_id = result_row ORDER BY page.row_id");
    out
}

/// The row with which a page of `(row, size)` has had its bytes, if it has rows.
pub(crate) fn cut(rows: &[Row], most: i64) -> Result<Option<i64>, Error> {
    let mut bytes = 0_i64;
    let mut last = None;
    for row in rows {
        last = row.int(0)?;
        bytes = bytes.saturating_add(row.int(1)?.unwrap_or(0).max(0));
        if bytes >= most {
            break;
        }
    }
    Ok(last)
}
