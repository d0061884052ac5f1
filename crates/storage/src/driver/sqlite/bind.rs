//! Values to and from SQLite's driver.

use sqlx::{
    AssertSqlSafe, Decode, Row, Sqlite, TypeInfo as _, ValueRef as _,
    query::Query,
    sqlite::{SqliteArguments, SqliteRow},
};

use super::errors::classify;
use crate::{
    codec::id,
    seam::Error,
    sql::{
        read::corrupt,
        row::SqlRow,
        statement::{Bind, Statement},
    },
};

/// The statement with its values bound. Lists are bound as JSON.
pub(super) fn query(statement: &Statement) -> Query<'_, Sqlite, SqliteArguments> {
    queries(&[statement])
}

/// Statements as one, with their values bound.
pub(super) fn queries<'s>(statements: &[&'s Statement]) -> Query<'s, Sqlite, SqliteArguments> {
    let texts: Vec<_> = statements
        .iter()
        .map(|statement| unnumbered(statement.text()))
        .collect();
    let mut query = sqlx::query(AssertSqlSafe(texts.join("; ")));
    for bind in statements.iter().flat_map(|statement| statement.binds()) {
        query = match bind {
            Bind::Text(text) => query.bind(text.as_deref()),
            Bind::Int(number) => query.bind(*number),
            Bind::Bytes(bytes) => query.bind(bytes.as_deref()),
            Bind::Id(text) => match text.as_deref().and_then(id::uuid) {
                Some(uuid) => query.bind(uuid.to_vec()),
                None => query.bind(text.as_deref()),
            },
            Bind::Ids(texts) => query.bind(list(&identifiers(texts))),
            Bind::Texts(texts) => query.bind(list(texts)),
            Bind::Ints(numbers) => query.bind(list(numbers)),
            Bind::Column(_) => unreachable!("columns are bound by PostgreSQL alone"),
        };
    }
    query
}

/// A text with `?` instead of `$1`, `$2`, which come in this order, once each. SQLite keeps those as names, which are compared
/// with all that came before, and looks them up again wherever one is bound.
fn unnumbered(text: &str) -> String {
    let mut parts = text.split('$');
    let mut out = String::with_capacity(text.len());
    out += parts.next().unwrap_or_default();
    let mut count = 0;
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = &part[..part.len() - rest.len()];
        if number.is_empty() {
            out.push('$');
        } else {
            count += 1;
            debug_assert_eq!(number.parse(), Ok(count), "{text}");
            out.push('?');
        }
        out += rest;
    }
    out
}

/// Identifiers as [`Dialect::one_of`](crate::sql::dialect::Dialect) reads them: UUIDs in
/// hexadecimal, and other text, each after what it is.
fn identifiers(texts: &[String]) -> Vec<String> {
    let tagged = texts.iter().map(|text| match id::uuid(text) {
        Some(_) => format!("x{}", text.replace('-', "")),
        None => format!("t{text}"),
    });
    tagged.collect()
}

fn list<T: serde::Serialize>(values: &[T]) -> String {
    serde_json::to_string(values).expect("texts and numbers are JSON")
}

impl SqlRow for SqliteRow {
    fn text(&self, at: usize) -> Result<Option<String>, Error> {
        let value = self.try_get_raw(at);
        let value = value.map_err(|e| classify("reading text", e))?;
        if value.is_null() {
            return Ok(None);
        }
        // Looked at once: a page has some thousand texts.
        match value.type_info().name() {
            "TEXT" => {
                let text = <String as Decode<'_, Sqlite>>::decode(value);
                return text.map(Some).map_err(corrupt);
            }
            "BLOB" => {}
            _ => return self.try_get(at).map_err(|e| classify("reading text", e)),
        }
        let uuid = self.bytes(at)?.unwrap_or_default();
        let uuid = uuid.try_into().map(id::of_uuid);
        uuid.map(Some)
            .map_err(|_length| corrupt("an identifier that is no UUID"))
    }

    fn int(&self, at: usize) -> Result<Option<i64>, Error> {
        self.try_get(at)
            .map_err(|e| classify("reading a number", e))
    }

    fn bytes(&self, at: usize) -> Result<Option<Vec<u8>>, Error> {
        self.try_get(at).map_err(|e| classify("reading bytes", e))
    }

    fn ints(&self, at: usize) -> Result<Vec<i64>, Error> {
        let text: Option<&str> = self
            .try_get(at)
            .map_err(|e| classify("reading numbers", e))?;
        let numbers = text.unwrap_or_default().split(',');
        let numbers = numbers.filter(|number| !number.is_empty());
        numbers
            .map(|number| number.parse().map_err(corrupt))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Statement, unnumbered};

    #[test]
    fn placeholders_lose_their_numbers_and_paths_of_json_stay() {
        let mut statement = Statement::new("SELECT json_extract(a, '$.b') FROM t WHERE a IN (");
        for number in 0..11 {
            statement.bind(number).push(", ");
        }
        statement.push("NULL)");
        let wanted = "SELECT json_extract(a, '$.b') FROM t WHERE a IN (";
        let wanted = [wanted, &"?, ".repeat(11), "NULL)"].concat();
        assert_eq!(unnumbered(statement.text()), wanted);
    }
}
