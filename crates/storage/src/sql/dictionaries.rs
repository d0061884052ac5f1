//! Statements about dictionaries: storing them, and letting go of those whose payload is gone.

use bytes::Bytes;

use super::{
    dialect::Dialect,
    statement::{Bind, Statement},
};
use crate::codec::{
    body::Packed,
    dictionary::{Key, NewDictionary},
};

fn bytes(bytes: &[u8]) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(bytes))
}

/// Appends which dictionary holds this content.
fn with_content(out: &mut Statement, new: &NewDictionary) {
    out.push("(SELECT row_id FROM dictionaries WHERE parent = ")
        .bind(new.parent.as_str())
        .push(" AND sha256 = ")
        .bind(bytes(&new.sha256))
        .push(")");
}

/// The statement that stores a dictionary, unless its content is there.
pub(crate) fn store(new: &NewDictionary) -> Statement {
    let mut out =
        Statement::new("INSERT INTO dictionaries (parent, payload_sha256, sha256, size, ");
    out.push("bytes) VALUES (").bind(new.parent.as_str());
    out.push(", ").bind(bytes(&new.payload_sha256)).push(", ");
    out.bind(bytes(&new.sha256)).push(", ").bind(new.size);
    out.push(", ").bind(Some(new.bytes.clone()));
    out.push(") ON CONFLICT (parent, sha256) DO NOTHING");
    out
}

/// The statements that store a dictionary and make it current for its keys.
pub(crate) fn put(new: &NewDictionary) -> Vec<Statement> {
    let mut statements = vec![store(new)];
    for key in &new.keys {
        let mut out = Statement::new("INSERT INTO dictionary_keys (key, dictionary) SELECT ");
        out.bind(bytes(key)).push(", row_id FROM ");
        with_content(&mut out, new);
        // `WHERE true`, because SQLite takes the ON of a conflict for that of a join.
        out.push(" AS p WHERE true ON CONFLICT (key) DO ");
        out.push(match new.replaces {
            true => "UPDATE SET dictionary = excluded.dictionary",
            false => "NOTHING",
        });
        statements.push(out);
    }
    statements
}

/// Whether a record has the payload that a dictionary was made of.
const IS_OWNED: &str = "EXISTS (SELECT 1 FROM bodies AS b JOIN records AS r \
    ON r.row_id = b.record_row WHERE b.dictionary = p.row_id AND r.body_sha256 = p.payload_sha256";

/// The dictionaries after one row of which it is not known that a record has their payload:
/// the row, the parent, and 2 if one has it, else 1 if bodies refer to the dictionary, else 0.
/// At most `limit`.
pub(crate) fn unowned(after: i64, limit: i64) -> Statement {
    let mut out = Statement::new("SELECT p.row_id, p.parent, CAST(CASE WHEN ");
    out.push(IS_OWNED).push(") THEN 2 WHEN ").push(IS_USED);
    out.push(
        " THEN 1 ELSE 0 END AS BIGINT) FROM dictionaries AS p WHERE owned = 0 AND p.row_id > ",
    )
    .bind(after)
    .push(" ORDER BY p.row_id LIMIT ")
    .bind(limit);
    out
}

/// The statement that notes that a record has the payload of a dictionary, if one has it. The
/// record cannot go or change meanwhile; when it does later, a trigger takes the note back.
pub(crate) fn own(dialect: Dialect, dictionary: i64) -> Statement {
    let mut out = Statement::new(match dialect {
        Dialect::Sqlite => "UPDATE dictionaries AS p SET owned = 1 WHERE row_id = ",
        Dialect::Postgres => {
            "WITH owner AS MATERIALIZED (SELECT p.row_id FROM dictionaries AS p JOIN bodies AS b \
             ON b.dictionary = p.row_id JOIN records AS r ON r.row_id = b.record_row \
             AND r.body_sha256 = p.payload_sha256 WHERE p.row_id = "
        }
    });
    out.bind(dictionary);
    match dialect {
        Dialect::Sqlite => out.push(" AND ").push(IS_OWNED).push(")"),
        Dialect::Postgres => out.push(
            " LIMIT 1 FOR SHARE OF r) UPDATE dictionaries SET owned = 1 \
             WHERE row_id IN (SELECT row_id FROM owner)",
        ),
    };
    out
}

/// The statement that says that a dictionary, which belongs to no record, has the payload of another
/// one with the same content.
pub(crate) fn adopt(dictionary: i64, new: &NewDictionary) -> Statement {
    let mut out = Statement::new("UPDATE dictionaries SET payload_sha256 = ");
    out.bind(bytes(&new.payload_sha256))
        .push(" WHERE owned = 0 AND row_id = ")
        .bind(dictionary);
    out
}

/// The keys that a dictionary is current for.
pub(crate) fn keys_of(dictionary: i64) -> Statement {
    let mut out = Statement::new("SELECT key FROM dictionary_keys WHERE dictionary = ");
    out.bind(dictionary);
    out
}

/// Of the bodies that refer to a dictionary: the row of the newest record.
pub(crate) fn newest(dictionary: i64) -> Statement {
    let mut out = Statement::new("SELECT max(record_row) FROM bodies WHERE dictionary = ");
    out.bind(dictionary);
    out
}

/// Bodies that refer to a dictionary, at most `limit`, but for those of some records: the row of
/// the record, codec, bytes, size and SHA-256 of the payload, and the ids of record and result.
pub(crate) fn referring(
    dialect: Dialect,
    dictionary: i64,
    except: Vec<i64>,
    limit: i64,
) -> Statement {
    let mut out = bodies();
    out.push("b.dictionary = ")
        .bind(dictionary)
        .push(" AND b.record_row");
    dialect.one_of(&mut out, true, Bind::Ints(except));
    out.push(" LIMIT ").bind(limit);
    out
}

/// The body of the record in a row, as [`referring`] gives it.
pub(crate) fn body_of(record_row: i64) -> Statement {
    let mut out = bodies();
    out.push("b.record_row = ").bind(record_row);
    out
}

fn bodies() -> Statement {
    Statement::new(
        "SELECT b.record_row, b.codec, b.bytes, r.body_size, r.body_sha256, r.id, o.id FROM bodies \
         AS b JOIN records AS r ON r.row_id = b.record_row JOIN results AS o \
         ON o.row_id = r.result_row WHERE ",
    )
}

/// The statement that keeps a body in another way, if it is still the one that was read. What it
/// refers to then is `with`.
pub(crate) fn repack(
    (record_row, dictionary, read): (i64, i64, Bytes),
    body: &Packed,
    with: Option<&NewDictionary>,
) -> Statement {
    let mut out = Statement::new("UPDATE bodies SET codec = ");
    out.bind(body.code()).push(", bytes = ");
    out.bind(Some(body.bytes.clone())).push(", dictionary = ");
    match with {
        Some(with) => with_content(&mut out, with),
        None => drop(out.push("NULL")),
    }
    out.push(" WHERE record_row = ").bind(record_row);
    out.push(" AND dictionary = ").bind(dictionary);
    out.push(" AND bytes = ").bind(Some(read));
    if let Some(with) = with {
        with_content(out.push(" AND EXISTS "), with);
    }
    out
}

/// The statements that delete these dictionaries, but for those that bodies refer to.
pub(crate) fn delete(dialect: Dialect, dictionaries: &[i64]) -> Vec<Statement> {
    let ids = || Bind::Ints(dictionaries.to_vec());
    let mut statements = Vec::new();
    if dialect == Dialect::Postgres {
        // A writer that refers to one right now has it locked; what it wrote is seen afterwards.
        let mut lock = Statement::new("SELECT row_id FROM dictionaries WHERE row_id");
        dialect.one_of(&mut lock, false, ids());
        lock.push(" ORDER BY row_id FOR UPDATE");
        statements.push(lock);
    }
    let mut delete = Statement::new("DELETE FROM dictionaries AS p WHERE row_id");
    dialect.one_of(&mut delete, false, ids());
    delete.push(" AND NOT ").push(IS_USED);
    statements.push(delete);
    statements
}

const IS_USED: &str = "EXISTS (SELECT 1 FROM bodies WHERE dictionary = p.row_id)";

/// Those of these dictionaries that are there.
pub(crate) fn there(dialect: Dialect, dictionaries: &[i64]) -> Statement {
    let mut out = Statement::new("SELECT row_id FROM dictionaries WHERE row_id");
    dialect.one_of(&mut out, false, Bind::Ints(dictionaries.to_vec()));
    out
}

/// A key as a row has it.
pub(crate) fn key(bytes: Option<Vec<u8>>) -> Option<Key> {
    Key::try_from(bytes?).ok()
}
