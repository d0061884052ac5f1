//! A connection below the server, to count what is there and to measure what is compared with:
//! the same payloads in one plain column of JSON, searched row by row.

use std::time::{Duration, Instant};

use futures::TryStreamExt as _;
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, PgConnection, Row as _,
    SqliteConnection,
    postgres::{PgConnectOptions, PgPoolCopyExt as _},
    sqlite::SqliteConnectOptions,
};

use crate::{corpus::Run, data::Database};

/// Records in the plain table; more would only take longer, row by row.
pub const ROWS: usize = 50_000;

/// A connection to either database.
#[derive(Debug)]
pub enum Plain {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Plain {
    pub async fn connect(url: &str) -> Self {
        match url.strip_prefix("sqlite:") {
            Some(path) => {
                let options = SqliteConnectOptions::new().filename(path);
                Self::Sqlite(options.create_if_missing(true).connect().await.unwrap())
            }
            None => {
                let options: PgConnectOptions = url.parse().unwrap();
                Self::Postgres(options.connect().await.unwrap())
            }
        }
    }

    pub async fn run(&mut self, sql: String) {
        let sql = AssertSqlSafe(sql);
        match self {
            Self::Sqlite(connection) => drop(connection.execute(sql).await.unwrap()),
            Self::Postgres(connection) => drop(connection.execute(sql).await.unwrap()),
        }
    }

    pub async fn number(&mut self, sql: String) -> i64 {
        let sql = AssertSqlSafe(sql);
        match self {
            Self::Sqlite(connection) => {
                sqlx::query(sql).fetch_one(connection).await.unwrap().get(0)
            }
            Self::Postgres(connection) => {
                sqlx::query(sql).fetch_one(connection).await.unwrap().get(0)
            }
        }
    }

    pub async fn texts(&mut self, sql: &'static str) -> Vec<String> {
        match self {
            Self::Sqlite(connection) => {
                let rows = sqlx::query(sql).fetch_all(connection).await.unwrap();
                rows.iter().map(|row| row.get(0)).collect()
            }
            Self::Postgres(connection) => {
                let rows = sqlx::query(sql).fetch_all(connection).await.unwrap();
                rows.iter().map(|row| row.get(0)).collect()
            }
        }
    }

    /// Hands the bytes of every row to `visit`.
    pub async fn bytes(&mut self, sql: &'static str, mut visit: impl FnMut(&[u8])) {
        match self {
            Self::Sqlite(connection) => {
                let mut rows = sqlx::query(sql).fetch(connection);
                while let Some(row) = rows.try_next().await.unwrap() {
                    visit(row.get(0));
                }
            }
            Self::Postgres(connection) => {
                let mut rows = sqlx::query(sql).fetch(connection);
                while let Some(row) = rows.try_next().await.unwrap() {
                    visit(row.get(0));
                }
            }
        }
    }

    pub async fn close(self) {
        match self {
            Self::Sqlite(connection) => connection.close().await.unwrap(),
            Self::Postgres(connection) => connection.close().await.unwrap(),
        }
    }
}

/// The plain table of a size, filled once.
pub async fn fill(database: &Database) -> (Plain, usize) {
    let rows = database.records.min(ROWS);
    let url = database.plain_url();
    let mut plain = Plain::connect(&url).await;
    let column = match plain {
        Plain::Sqlite(_) => "TEXT",
        Plain::Postgres(_) => "JSONB",
    };
    plain
        .run(format!(
            "CREATE TABLE IF NOT EXISTS plain (id BIGINT PRIMARY KEY, data {column})"
        ))
        .await;
    let there = plain.number("SELECT count(*) FROM plain".to_owned()).await;
    if usize::try_from(there).unwrap() == rows {
        return (plain, rows);
    }
    plain.run("DELETE FROM plain".to_owned()).await;
    let runs = rows / crate::corpus::RECORDS;
    let payloads = move |number: usize| {
        let records = Run::new(number * database.runs() / runs, database.runs())
            .rows()
            .1;
        records.into_iter().map(|record| record.data.unwrap().value)
    };
    match &mut plain {
        Plain::Sqlite(connection) => {
            connection.execute("BEGIN").await.unwrap();
            for number in 0..runs {
                for (at, value) in payloads(number).enumerate() {
                    let id = i64::try_from(number * crate::corpus::RECORDS + at).unwrap();
                    let text = std::str::from_utf8(&value).unwrap();
                    let insert = sqlx::query("INSERT INTO plain VALUES ($1, $2)")
                        .bind(id)
                        .bind(text);
                    insert.execute(&mut *connection).await.unwrap();
                }
            }
            connection.execute("COMMIT").await.unwrap();
        }
        Plain::Postgres(connection) => {
            let pool = sqlx::PgPool::connect(&url).await.unwrap();
            for first in (0..runs).step_by(50) {
                let mut text = String::new();
                for number in first..(first + 50).min(runs) {
                    for (at, value) in payloads(number).enumerate() {
                        let escaped = std::str::from_utf8(&value).unwrap().replace('\\', "\\\\");
                        let id = number * crate::corpus::RECORDS + at;
                        text.push_str(&format!("{id}\t{escaped}\n"));
                    }
                }
                let mut copy = pool.copy_in_raw("COPY plain FROM STDIN").await.unwrap();
                copy.send(text.as_bytes()).await.unwrap();
                copy.finish().await.unwrap();
            }
            pool.close().await;
            connection.execute("VACUUM ANALYZE plain").await.unwrap();
        }
    }
    (plain, rows)
}

/// How long the plain table takes to say how many rows have a name, and how many a parameter.
pub async fn search(plain: &mut Plain) -> (Duration, Duration) {
    let (name, parameter) = match plain {
        Plain::Sqlite(_) => (
            "SELECT count(*) FROM plain WHERE json_extract(data, '$.metadata.name') = 'nobody'",
            "SELECT count(*) FROM plain WHERE EXISTS (SELECT 1 FROM json_each(data, '$.spec.params')
             WHERE json_extract(value, '$.value') = 'nobody')",
        ),
        Plain::Postgres(_) => (
            "SELECT count(*) FROM plain WHERE data -> 'metadata' ->> 'name' = 'nobody'",
            "SELECT count(*) FROM plain WHERE data @? '$.spec.params[*] ? (@.value == \"nobody\")'",
        ),
    };
    let began = Instant::now();
    assert_eq!(plain.number(name.to_owned()).await, 0);
    let by_name = began.elapsed();
    let began = Instant::now();
    assert_eq!(plain.number(parameter.to_owned()).await, 0);
    (by_name, began.elapsed())
}
