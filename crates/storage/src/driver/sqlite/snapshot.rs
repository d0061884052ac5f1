//! Reading one moment of a file, and nothing but reading.

use std::path::Path;

use async_trait::async_trait;
use futures::TryStreamExt as _;
use sqlx::{
    ConnectOptions, Connection, Executor,
    sqlite::{SqliteConnectOptions, SqliteConnection},
};

use super::{
    bind::query,
    errors::{classify, is_broken},
    file::File,
    migrate,
};
use crate::{
    driver::{Purpose, Reader, Take, each, migrations::require_current},
    seam::Error,
    sql::{dialect::Dialect, statement::Statement},
};

/// The file as it is now.
pub(crate) async fn snapshot(path: &Path) -> Result<Box<dyn Reader>, Error> {
    let file = File::named(path);
    let mut connection = connect(&file).await?;
    let found = migrate::found(&mut connection).await;
    let found = found.map_err(|error| unfit(&file, error))?;
    require_current(&found, Dialect::Sqlite, &file.to_string())?;
    let mut moment = Moment { connection };
    moment.begin(Purpose::List).await?;
    Ok(Box::new(moment))
}

/// Connects to a file that is there, and lets nothing be written to it. A log that a killed
/// server left is moved into the file when the last connection closes, as by any other.
///
/// # Errors
/// [`Error::Incompatible`] if there is none, or it is no database.
pub(super) async fn connect(file: &File) -> Result<SqliteConnection, Error> {
    if !file.path().is_file() {
        return Err(Error::Incompatible(format!("there is no file {file}")));
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
        return Error::Incompatible(format!(
            "{file} is not a SQLite database, or is damaged ({error}); restore a backup"
        ));
    }
    classify("opening the file to read", error)
}

struct Moment {
    connection: SqliteConnection,
}

#[async_trait]
impl Reader for Moment {
    async fn each(&mut self, statement: &Statement, take: &mut Take<'_>) -> Result<(), Error> {
        let rows = query(statement).fetch(&mut self.connection);
        each(rows.map_err(|e| classify("reading", e)), take).await
    }

    /// The moment is that of the first read.
    async fn begin(&mut self, _: Purpose) -> Result<(), Error> {
        let begin = "BEGIN; SELECT count(*) FROM hindsight_schema";
        let begun = self.connection.execute(begin).await;
        begun
            .map(drop)
            .map_err(|e| classify("beginning to read", e))
    }

    async fn end(&mut self) -> Result<(), Error> {
        let ended = self.connection.execute("ROLLBACK").await;
        ended.map(drop).map_err(|e| classify("ending a read", e))
    }

    async fn release(self: Box<Self>) {
        // Nothing was written, so nothing can be lost.
        drop(self.connection.close().await);
    }
}
