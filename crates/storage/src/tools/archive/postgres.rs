//! Archives in PostgreSQL. Objects are `jsonb`, read as PostgreSQL writes it.

use sqlx::{AssertSqlSafe, postgres::PgConnection};

use super::{Archive, LARGEST, MOST_ROWS, Stored};

/// What differs between archives.
struct Names {
    uid: &'static str,
    object: &'static str,
    /// Which rows are read: those of kinds or a cluster `$1`, after the key `$2`.
    which: &'static str,
    /// And those up to the key `$3`.
    to: &'static str,
}

fn names(archive: &Archive) -> Names {
    match archive {
        Archive::KubeArchive { .. } => Names {
            uid: "t.uuid::text",
            object: "t.data::text",
            which: "t.kind = ANY($1) AND t.id > $2::bigint",
            to: "t.id <= $3::bigint",
        },
        Archive::Argo { .. } => Names {
            uid: "t.uid::text",
            object: "t.workflow::text",
            which: "t.clustername = ANY($1) AND t.uid > $2::text",
            to: "t.uid <= $3::text",
        },
    }
}

/// The column that is the key of rows, and what is before all keys.
pub(super) fn key(archive: &Archive) -> (&'static str, &'static str) {
    match archive {
        Archive::KubeArchive { .. } => ("id", "-9223372036854775808"),
        Archive::Argo { .. } => ("uid", ""),
    }
}

/// Names of all tables and columns, as `table.column`.
pub(super) async fn columns(connection: &mut PgConnection) -> Result<Vec<String>, sqlx::Error> {
    let sql = "SELECT table_name || '.' || column_name \
               FROM information_schema.columns WHERE table_schema = current_schema()";
    sqlx::query_scalar(sql).fetch_all(connection).await
}

/// Clusters of Argo's archive.
pub(super) async fn clusters(connection: &mut PgConnection) -> Result<Vec<String>, sqlx::Error> {
    let sql =
        "SELECT DISTINCT clustername::text FROM argo_archived_workflows ORDER BY 1 LIMIT 1000";
    sqlx::query_scalar(sql).fetch_all(connection).await
}

pub(super) async fn count(
    connection: &mut PgConnection,
    archive: &Archive,
    chosen: &[String],
    after: &str,
) -> Result<i64, sqlx::Error> {
    let (table, Names { which, .. }) = (archive.table(), names(archive));
    let sql = format!("SELECT count(*) FROM {table} AS t WHERE {which}");
    let query = sqlx::query_scalar(AssertSqlSafe(sql))
        .bind(chosen)
        .bind(after);
    query.fetch_one(connection).await
}

/// Keys of the next rows, and how large their objects are.
pub(super) async fn sizes(
    connection: &mut PgConnection,
    archive: &Archive,
    chosen: &[String],
    after: &str,
) -> Result<Vec<(String, i64)>, sqlx::Error> {
    let Names { object, which, .. } = names(archive);
    let (table, (key, _)) = (archive.table(), key(archive));
    let sql = format!(
        "SELECT t.{key}::text, coalesce(octet_length({object}), 0)::bigint \
         FROM {table} AS t WHERE {which} ORDER BY t.{key} LIMIT {MOST_ROWS}"
    );
    let query = sqlx::query_as(AssertSqlSafe(sql)).bind(chosen).bind(after);
    query.fetch_all(connection).await
}

/// The rows up to the key `last`.
pub(super) async fn rows(
    connection: &mut PgConnection,
    archive: &Archive,
    chosen: &[String],
    (after, last): (&str, &str),
) -> Result<Vec<Stored>, sqlx::Error> {
    let Names {
        uid,
        object,
        which,
        to,
    } = names(archive);
    let (table, (key, _)) = (archive.table(), key(archive));
    let sql = format!(
        "SELECT {uid}, t.namespace::text || '/' || t.name::text, coalesce(octet_length({object}), 0)::bigint, \
           CASE WHEN octet_length({object}) <= {LARGEST} THEN convert_to({object}, 'UTF8') END \
         FROM {table} AS t WHERE {which} AND {to} ORDER BY t.{key}"
    );
    let query = sqlx::query_as(AssertSqlSafe(sql))
        .bind(chosen)
        .bind(after)
        .bind(last);
    query.fetch_all(connection).await
}
