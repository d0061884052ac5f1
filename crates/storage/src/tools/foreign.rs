//! A database of another program in PostgreSQL, which is read in one snapshot and not changed.

use sqlx::{
    ConnectOptions as _,
    postgres::{PgConnectOptions, PgConnection},
};

use crate::seam::Error;

fn options(url: &str) -> Result<PgConnectOptions, Error> {
    url.parse().map_err(|error: sqlx::Error| {
        // The text holds a password, and the driver's word does not repeat it.
        Error::Incompatible(format!(
            "the address of the database is not one: {error}; want \
             `postgres://USER:PASSWORD@HOST:PORT/DATABASE`"
        ))
    })
}

/// Which database is at `url`, as `host:port/database`: without the user, who may change. Fails if that is no
/// address of one.
pub(super) fn place(url: &str) -> Result<String, Error> {
    let options = options(url)?;
    let database = options.get_database().unwrap_or_default();
    Ok(format!(
        "{}:{}/{database}",
        options.get_host(),
        options.get_port()
    ))
}

/// Begins to read the database at `url`. Fails if that is no address of one, or nothing answers there.
pub(super) async fn open(url: &str) -> Result<PgConnection, Error> {
    let options = options(url)?
        .application_name("hindsight import")
        .disable_statement_logging();
    let mut connection = options.connect().await.map_err(failed)?;
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    let begun = sqlx::raw_sql(begin).execute(&mut connection).await;
    begun.map_err(failed)?;
    Ok(connection)
}

/// What the database refuses stays refused; everything else may pass.
pub(super) fn failed(error: sqlx::Error) -> Error {
    if matches!(error, sqlx::Error::Database(_)) {
        return Error::Incompatible(format!("the database that is imported refuses: {error}"));
    }
    Error::Unavailable {
        what: "reading the database that is imported",
        source: error.into(),
    }
}
