//! Archives in MySQL and MariaDB. Objects are `JSON`, which MariaDB keeps as it was written and MySQL writes anew.

use sqlx::{
    AssertSqlSafe, ConnectOptions as _, MySql, Row as _,
    mysql::{MySqlConnectOptions, MySqlConnection, MySqlRow},
    query::Query,
};

use super::{Archive, LARGEST, MOST_ROWS, Stored};
use crate::{seam::Error, tools::foreign::failed};

/// The column of KubeArchive that these databases do not have.
pub(super) const NO_COLUMN: &str = "resource.id";

/// Key and UID of a row, its object, and the column of what is chosen.
fn names(archive: &Archive) -> [&'static str; 3] {
    match archive {
        // There are no numbers of rows here, other than in PostgreSQL.
        Archive::KubeArchive { .. } => ["uuid", "data", "kind"],
        Archive::Argo { .. } => ["uid", "workflow", "clustername"],
    }
}

/// Whether the address is of one of these databases.
pub(super) fn is_address(url: &str) -> bool {
    url.starts_with("mysql://") || url.starts_with("mariadb://")
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
        Err(error @ (sqlx::Error::Configuration(_) | sqlx::Error::Tls(_))) => {
            return Err(Error::Incompatible(format!(
                "no connection to the database that is imported: {error}; a user of `caching_sha2_password` needs \
                 TLS, a server whose TLS is too old for this client needs `?ssl-mode=DISABLED` and a user of \
                 `mysql_native_password`"
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
    bound(&sql, chosen, after)
        .fetch_one(connection)
        .await?
        .try_get(0)
}

/// Keys of the next rows, and how large their objects are.
pub(super) async fn sizes(
    connection: &mut MySqlConnection,
    archive: &Archive,
    chosen: &[String],
    after: &str,
) -> Result<Vec<(String, i64)>, sqlx::Error> {
    let [key, object, _] = names(archive);
    let (table, which) = (archive.table(), which(archive, chosen));
    let sql = format!(
        "SELECT CAST(t.{key} AS CHAR), CAST(COALESCE(OCTET_LENGTH(t.{object}), 0) AS SIGNED) \
         FROM {table} AS t WHERE {which} ORDER BY t.{key} LIMIT {MOST_ROWS}"
    );
    let rows = bound(&sql, chosen, after).fetch_all(connection).await?;
    let sized = |row: &MySqlRow| Ok((row.try_get(0)?, row.try_get(1)?));
    rows.iter().map(sized).collect()
}

/// The rows up to the key `last`.
pub(super) async fn rows(
    connection: &mut MySqlConnection,
    archive: &Archive,
    chosen: &[String],
    (after, last): (&str, &str),
) -> Result<Vec<Stored>, sqlx::Error> {
    let [key, object, _] = names(archive);
    let (table, which) = (archive.table(), which(archive, chosen));
    let sql = format!(
        "SELECT CAST(t.{key} AS CHAR), CONCAT(t.namespace, '/', t.name), \
           CAST(COALESCE(OCTET_LENGTH(t.{object}), 0) AS SIGNED), \
           CASE WHEN OCTET_LENGTH(t.{object}) <= {LARGEST} THEN CONVERT(t.{object} USING utf8mb4) END \
         FROM {table} AS t WHERE {which} AND t.{key} <= ? ORDER BY t.{key}"
    );
    let query = bound(&sql, chosen, after).bind(last);
    let rows = query.fetch_all(connection).await?;
    rows.iter().map(stored).collect()
}

/// Which rows are read: those of kinds or a cluster, after a key.
fn which(archive: &Archive, chosen: &[String]) -> String {
    let [key, _, of] = names(archive);
    let places = vec!["?"; chosen.len()].join(", ");
    format!("t.{of} IN ({places}) AND t.{key} > ?")
}

fn bound<'q>(
    sql: &str,
    chosen: &'q [String],
    after: &'q str,
) -> Query<'q, MySql, sqlx::mysql::MySqlArguments> {
    let query = sqlx::query(AssertSqlSafe(sql.to_owned()));
    let query = chosen.iter().fold(query, Query::bind);
    query.bind(after)
}

fn stored(row: &MySqlRow) -> Result<Stored, sqlx::Error> {
    Ok(Stored {
        uid: row.try_get(0)?,
        name: row.try_get(1)?,
        size: row.try_get(2)?,
        object: row.try_get(3)?,
    })
}
