//! Archives in PostgreSQL. Objects are `jsonb`, read as PostgreSQL writes it.

use sqlx::{
    AssertSqlSafe, Row as _,
    postgres::{PgConnection, PgRow},
};

use super::{Archive, LARGEST, MOST_ROWS, Stored};

/// What differs between archives: key, UID and object of a row `t`, and which rows are read: those of kinds or a
/// cluster `$1` after the key `$2`.
struct Names {
    key: &'static str,
    uid: &'static str,
    object: &'static str,
    which: &'static str,
}

fn names(archive: &Archive) -> Names {
    match archive {
        Archive::KubeArchive { .. } => Names {
            key: "t.id",
            uid: "t.uuid::text",
            object: "t.data::text",
            which: "t.kind = ANY($1) AND t.id > $2::bigint",
        },
        Archive::Argo { .. } => Names {
            key: "t.uid",
            uid: "t.uid::text",
            object: "t.workflow::text",
            which: "t.clustername = ANY($1) AND t.uid > $2::text",
        },
    }
}

/// The key before all others.
pub(super) fn first(archive: &Archive) -> &'static str {
    match archive {
        Archive::KubeArchive { .. } => "-9223372036854775808",
        Archive::Argo { .. } => "",
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
    let Names {
        key, object, which, ..
    } = names(archive);
    let table = archive.table();
    let sql = format!(
        "SELECT {key}::text, coalesce(octet_length({object}), 0)::bigint \
         FROM {table} AS t WHERE {which} ORDER BY {key} LIMIT {MOST_ROWS}"
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
        key,
        uid,
        object,
        which,
    } = names(archive);
    let (table, to) = match archive {
        Archive::KubeArchive { .. } => (archive.table(), "t.id <= $3::bigint"),
        Archive::Argo { .. } => (archive.table(), "t.uid <= $3::text"),
    };
    let sql = format!(
        "SELECT {uid}, t.namespace::text || '/' || t.name::text, coalesce(octet_length({object}), 0)::bigint, \
           CASE WHEN octet_length({object}) <= {LARGEST} THEN convert_to({object}, 'UTF8') END \
         FROM {table} AS t WHERE {which} AND {to} ORDER BY {key}"
    );
    let query = sqlx::query(AssertSqlSafe(sql))
        .bind(chosen)
        .bind(after)
        .bind(last);
    let rows = query.fetch_all(connection).await?;
    rows.iter().map(stored).collect()
}

fn stored(row: &PgRow) -> Result<Stored, sqlx::Error> {
    Ok(Stored {
        uid: row.try_get(0)?,
        name: row.try_get(1)?,
        size: row.try_get(2)?,
        object: row.try_get(3)?,
    })
}
