//! Values to and from SQLite's driver.

use sqlx::{
    AssertSqlSafe, Row, Sqlite,
    query::Query,
    sqlite::{SqliteArguments, SqliteRow},
};

use super::errors::classify;
use crate::{
    seam::Error,
    sql::{
        read::corrupt,
        row::SqlRow,
        statement::{Bind, Statement},
    },
};

/// The statement with its values bound. Lists are bound as JSON.
pub(super) fn query(statement: &Statement) -> Query<'_, Sqlite, SqliteArguments> {
    let mut query = sqlx::query(AssertSqlSafe(statement.text().to_owned()));
    for bind in statement.binds() {
        query = match bind {
            Bind::Text(text) => query.bind(text.as_deref()),
            Bind::Int(number) => query.bind(*number),
            Bind::Bytes(bytes) => query.bind(bytes.as_deref()),
            Bind::Texts(texts) => query.bind(list(texts)),
            Bind::Ints(numbers) => query.bind(list(numbers)),
            Bind::Column(_) => unreachable!("columns are bound by PostgreSQL alone"),
        };
    }
    query
}

fn list<T: serde::Serialize>(values: &[T]) -> String {
    serde_json::to_string(values).expect("texts and numbers are JSON")
}

impl SqlRow for SqliteRow {
    fn text(&self, at: usize) -> Result<Option<String>, Error> {
        self.try_get(at).map_err(|e| classify("reading text", e))
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
