//! Values to and from PostgreSQL's driver.

use sqlx::{
    Postgres, Row,
    postgres::{PgArguments, PgRow},
    query::Query,
};

use super::errors::classify;
use crate::storage::{
    Error,
    sql::{
        read::Cells,
        statement::{Bind, Statement},
    },
};

/// The statement with its values bound. Lists are bound as arrays.
pub(super) fn query(statement: &Statement) -> Query<'_, Postgres, PgArguments> {
    let mut query = sqlx::query(statement.sql());
    for bind in statement.binds() {
        query = match bind {
            Bind::Text(text) => query.bind(text.as_deref()),
            Bind::Int(number) => query.bind(*number),
            Bind::Bytes(bytes) => query.bind(bytes.as_deref()),
            Bind::Texts(texts) => query.bind(texts.as_slice()),
            Bind::Ints(numbers) => query.bind(numbers.as_slice()),
        };
    }
    query
}

impl Cells for PgRow {
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
}
