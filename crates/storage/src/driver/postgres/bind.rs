//! Values to and from PostgreSQL's driver.

use sqlx::{
    AssertSqlSafe, Column as _, Postgres, Row, TypeInfo as _, ValueRef as _,
    postgres::{PgArguments, PgRow, PgTypeInfo},
    query::Query,
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

type PgQuery<'q> = Query<'q, Postgres, PgArguments>;

/// The statement with its values bound. Lists are bound as arrays.
pub(super) fn query(statement: &Statement) -> PgQuery<'_> {
    let mut query = sqlx::query(AssertSqlSafe(statement.text().to_owned()))
        .persistent(!statement.is_planned_anew());
    for bind in statement.binds() {
        query = match bind {
            Bind::Text(text) => query.bind(text.as_deref()),
            Bind::Int(number) => query.bind(*number),
            Bind::Bytes(bytes) => query.bind(bytes.as_deref()),
            Bind::Id(text) => query.bind(text.as_deref().map(id::packed)),
            Bind::Ids(texts) => query.bind(
                texts
                    .iter()
                    .map(|text| id::packed(text))
                    .collect::<Vec<_>>(),
            ),
            Bind::Texts(texts) => query.bind(texts.as_slice()),
            Bind::Ints(numbers) => query.bind(numbers.as_slice()),
            Bind::Column(values) => column(query, values),
        };
    }
    query
}

/// Binds one column of many rows.
fn column<'q>(query: PgQuery<'q>, values: &'q [Bind]) -> PgQuery<'q> {
    match values.first() {
        Some(Bind::Int(_)) => {
            let number = |value: &Bind| match value {
                Bind::Int(number) => *number,
                _ => None,
            };
            query.bind(values.iter().map(number).collect::<Vec<_>>())
        }
        Some(Bind::Id(_)) => {
            let bytes = |value: &Bind| match value {
                Bind::Id(text) => text.as_deref().map(id::packed),
                _ => None,
            };
            query.bind(values.iter().map(bytes).collect::<Vec<_>>())
        }
        Some(Bind::Bytes(_)) => {
            let bytes = |value: &'q Bind| match value {
                Bind::Bytes(bytes) => bytes.as_deref(),
                _ => None,
            };
            query.bind(values.iter().map(bytes).collect::<Vec<_>>())
        }
        _ => {
            let text = |value: &'q Bind| match value {
                Bind::Text(text) => text.as_deref(),
                _ => None,
            };
            query.bind(values.iter().map(text).collect::<Vec<_>>())
        }
    }
}

impl SqlRow for PgRow {
    fn text(&self, at: usize) -> Result<Option<String>, Error> {
        let value = self.try_get_raw(at);
        let value = value.map_err(|e| classify("reading text", e))?;
        if *value.type_info() != PgTypeInfo::with_name("bytea") {
            return self.try_get(at).map_err(|e| classify("reading text", e));
        }
        let unpacked = |bytes: Vec<u8>| {
            id::unpacked(&bytes).ok_or_else(|| corrupt("an identifier that is no text"))
        };
        self.bytes(at)?.map(unpacked).transpose()
    }

    fn int(&self, at: usize) -> Result<Option<i64>, Error> {
        let number = match self.column(at).type_info().name() {
            "INT2" => self.try_get::<Option<i16>, _>(at).map(|n| n.map(i64::from)),
            "INT4" => self.try_get::<Option<i32>, _>(at).map(|n| n.map(i64::from)),
            _ => self.try_get(at),
        };
        number.map_err(|e| classify("reading a number", e))
    }

    fn bytes(&self, at: usize) -> Result<Option<Vec<u8>>, Error> {
        self.try_get(at).map_err(|e| classify("reading bytes", e))
    }

    fn ints(&self, at: usize) -> Result<Vec<i64>, Error> {
        let numbers: Option<Vec<i64>> = self
            .try_get(at)
            .map_err(|e| classify("reading numbers", e))?;
        Ok(numbers.unwrap_or_default())
    }
}
