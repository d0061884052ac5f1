//! Archives in MySQL and MariaDB. Objects are `JSON`, which MariaDB keeps as it was written and MySQL writes anew.

use sqlx::{
    AssertSqlSafe, ConnectOptions as _, FromRow, MySql,
    mysql::{MySqlArguments, MySqlConnectOptions, MySqlConnection, MySqlRow},
    query::QueryAs,
};

use super::{Archive, LARGEST, MOST_ROWS, Stored};
use crate::{seam::Error, tools::foreign::failed};

/// The column that is the key of rows, and their UID.
pub(super) fn key(archive: &Archive) -> &'static str {
    match archive {
        // There are no numbers of rows here, other than in PostgreSQL.
        Archive::KubeArchive { .. } => "uuid",
        Archive::Argo { .. } => "uid",
    }
}

fn object(archive: &Archive) -> &'static str {
    match archive {
        Archive::KubeArchive { .. } => "data",
        Archive::Argo { .. } => "workflow",
    }
}

pub(super) fn options(url: &str) -> Result<MySqlConnectOptions, Error> {
    url.parse().map_err(|error: sqlx::Error| {
        // The text holds a password, and the driver's word does not repeat it.
        Error::Incompatible(format!(
            "the address of the database is not one: {error}; want \
             `mysql://USER:PASSWORD@HOST:PORT/DATABASE`"
        ))
    })
}

/// Begins to read the database at `url`.
pub(super) async fn open(url: &str) -> Result<MySqlConnection, Error> {
    let options = options(url)?.disable_statement_logging();
    let mut connection = match options.connect().await {
        Err(error) if is_of_tls(&error) => {
            return Err(Error::Incompatible(format!(
                "no connection to the database that is imported: {error}; a user of `caching_sha2_password` needs \
                 TLS, `ssl-ca` names the certificate of the authority that is trusted, and a server whose TLS is too \
                 old for this client needs `?ssl-mode=DISABLED` and a user of `mysql_native_password`"
            )));
        }
        connected => connected.map_err(failed)?,
    };
    for begin in [
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    ] {
        let begun = sqlx::raw_sql(begin).execute(&mut connection).await;
        begun.map_err(failed)?;
    }
    Ok(connection)
}

/// Whether no TLS could be agreed upon, which trying again does not change.
fn is_of_tls(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Configuration(_) | sqlx::Error::Tls(_) => true,
        // What rustls does not take, or is told by an alert.
        sqlx::Error::Io(error) => error.kind() == std::io::ErrorKind::InvalidData,
        _ => false,
    }
}

/// Names of all tables and columns, as `table.column`.
pub(super) async fn columns(connection: &mut MySqlConnection) -> Result<Vec<String>, sqlx::Error> {
    let sql = "SELECT CAST(CONCAT(table_name, '.', column_name) AS CHAR) \
               FROM information_schema.columns WHERE table_schema = DATABASE()";
    sqlx::query_scalar(sql).fetch_all(connection).await
}

/// Clusters of Argo's archive.
pub(super) async fn clusters(connection: &mut MySqlConnection) -> Result<Vec<String>, sqlx::Error> {
    let sql = "SELECT DISTINCT CAST(clustername AS CHAR) FROM argo_archived_workflows ORDER BY 1 LIMIT 1000";
    sqlx::query_scalar(sql).fetch_all(connection).await
}

pub(super) async fn count(
    connection: &mut MySqlConnection,
    archive: &Archive,
    chosen: &[String],
    after: &str,
) -> Result<i64, sqlx::Error> {
    let (table, which) = (archive.table(), which(archive, chosen));
    let sql = format!("SELECT COUNT(*) FROM {table} AS t WHERE {which}");
    let query = bound(&sql, chosen, after);
    let (count,) = query.fetch_one(connection).await?;
    Ok(count)
}

/// Keys of the next rows, and how large their objects are.
pub(super) async fn sizes(
    connection: &mut MySqlConnection,
    archive: &Archive,
    chosen: &[String],
    after: &str,
) -> Result<Vec<(String, i64)>, sqlx::Error> {
    let (key, object) = (key(archive), object(archive));
    let (table, which) = (archive.table(), which(archive, chosen));
    let sql = format!(
        "SELECT CAST(t.{key} AS CHAR), CAST(COALESCE(OCTET_LENGTH(t.{object}), 0) AS SIGNED) \
         FROM {table} AS t WHERE {which} ORDER BY t.{key} LIMIT {MOST_ROWS}"
    );
    bound(&sql, chosen, after).fetch_all(connection).await
}

/// The rows up to the key `last`.
pub(super) async fn rows(
    connection: &mut MySqlConnection,
    archive: &Archive,
    chosen: &[String],
    (after, last): (&str, &str),
) -> Result<Vec<Stored>, sqlx::Error> {
    let (key, object) = (key(archive), object(archive));
    let (table, which) = (archive.table(), which(archive, chosen));
    let sql = format!(
        "SELECT CAST(t.{key} AS CHAR), CONCAT(t.namespace, '/', t.name), \
           CAST(COALESCE(OCTET_LENGTH(t.{object}), 0) AS SIGNED), \
           CASE WHEN OCTET_LENGTH(t.{object}) <= {LARGEST} THEN CONVERT(t.{object} USING utf8mb4) END \
         FROM {table} AS t WHERE {which} AND t.{key} <= ? ORDER BY t.{key}"
    );
    let query = bound(&sql, chosen, after).bind(last);
    query.fetch_all(connection).await
}

/// Which rows are read: those of kinds or a cluster, after a key.
fn which(archive: &Archive, chosen: &[String]) -> String {
    let (key, of) = match archive {
        Archive::KubeArchive { .. } => (key(archive), "kind"),
        Archive::Argo { .. } => (key(archive), "clustername"),
    };
    let places = vec!["?"; chosen.len()].join(", ");
    format!("t.{of} IN ({places}) AND t.{key} > ?")
}

fn bound<'q, O: for<'r> FromRow<'r, MySqlRow>>(
    sql: &str,
    chosen: &'q [String],
    after: &'q str,
) -> QueryAs<'q, MySql, O, MySqlArguments> {
    let query = sqlx::query_as(AssertSqlSafe(sql.to_owned()));
    let query = chosen.iter().fold(query, QueryAs::bind);
    query.bind(after)
}
