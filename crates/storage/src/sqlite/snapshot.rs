//! Reading one moment of a file, and nothing but reading.

use std::path::Path;

use async_trait::async_trait;
use futures::TryStreamExt;
use sqlx::{
    ConnectOptions, Connection, Executor, Row as _,
    sqlite::{SqliteConnectOptions, SqliteConnection},
};

use super::{
    driver::query,
    errors::{classify, is_broken},
    migrate,
    open::File,
};
use crate::{
    Error,
    migrations::require_current,
    snapshot::{Row, Rows, Snapshot},
    sql::{dialect::Dialect, statement::Statement},
};

/// The file as it is now.
pub(crate) async fn snapshot(path: &Path) -> Result<Snapshot, Error> {
    let file = File::named(path);
    let mut connection = connect(&file).await?;
    let found = migrate::found(&mut connection).await;
    let found = found.map_err(|error| unfit(&file, error))?;
    require_current(&found, Dialect::Sqlite, &file.to_string())?;
    let mut moment = Moment { connection };
    moment.begin().await?;
    Ok(Snapshot::new(Dialect::Sqlite, Box::new(moment)))
}

/// Connects to a file that is there, and lets nothing be written to it. A log that a killed
/// server left is moved into the file when the last connection closes, as by any other.
///
/// # Errors
/// [`Error::Unfit`] if there is none, or it is no database.
pub(super) async fn connect(file: &File) -> Result<SqliteConnection, Error> {
    if !file.path().is_file() {
        return Err(Error::Unfit(format!("there is no file {file}")));
    }
    let options = file
        .options()
        .pragma("query_only", "ON")
        .pragma("cache_size", "-65536");
    let connection = match open(&options).await {
        // In a folder that cannot be written, SQLite cannot make the index of a log. If there is
        // no log, nobody writes, and the file can be read as it lies there.
        Err(error) if !is_broken(&error) && !file.beside("-wal").exists() => {
            open(&options.clone().read_only(true).immutable(true)).await
        }
        opened => opened,
    };
    connection.map_err(|error| unfit(file, error))
}

/// Connects and reads something, because connecting alone reads nothing.
async fn open(options: &SqliteConnectOptions) -> Result<SqliteConnection, sqlx::Error> {
    let mut connection = options.connect().await?;
    connection
        .execute("SELECT count(*) FROM sqlite_master")
        .await?;
    Ok(connection)
}

pub(super) fn unfit(file: &File, error: sqlx::Error) -> Error {
    if is_broken(&error) {
        return Error::Unfit(format!(
            "{file} is not a SQLite database, or is damaged ({error}); restore a backup"
        ));
    }
    classify("opening the file to read", error)
}

struct Moment {
    connection: SqliteConnection,
}

impl Moment {
    /// The moment is that of the first read.
    async fn begin(&mut self) -> Result<(), Error> {
        let begin = "BEGIN; SELECT count(*) FROM hindsight_schema";
        let begun = self.connection.execute(begin).await;
        begun
            .map(drop)
            .map_err(|e| classify("beginning to read", e))
    }
}

#[async_trait]
impl Rows for Moment {
    async fn rows(&mut self, statement: &Statement) -> Result<Vec<Row>, Error> {
        let rows = query(statement).fetch(&mut self.connection);
        rows.map_ok(|row| Box::new(row) as Row)
            .try_collect()
            .await
            .map_err(|e| classify("reading", e))
    }

    async fn refresh(&mut self) -> Result<(), Error> {
        let ended = self.connection.execute("ROLLBACK").await;
        ended.map_err(|e| classify("ending a read", e))?;
        self.begin().await
    }

    async fn damage(&mut self, table: &'static str) -> Result<Vec<String>, Error> {
        const MOST: &str = "SELECT integrity_check FROM pragma_integrity_check(";
        let mut check = Statement::new(MOST);
        check.bind(table).push(")");
        let rows = query(&check).fetch_all(&mut self.connection).await;
        match rows {
            Ok(rows) => rows
                .iter()
                .map(|row| row.try_get::<String, _>(0))
                .filter(|text| !matches!(text.as_deref(), Ok("ok")))
                .collect::<Result<_, _>>()
                .map_err(|e| classify("checking the file", e)),
            // Some damage ends the check instead of being part of its answer.
            Err(error) if is_broken(&error) => Ok(vec![error.to_string()]),
            Err(error) => Err(classify("checking the file", error)),
        }
    }

    async fn close(self: Box<Self>) {
        // Nothing was written, so nothing can be lost.
        drop(self.connection.close().await);
    }
}
