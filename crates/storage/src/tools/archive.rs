//! Databases of other archives, whose rows hold whole objects of Kubernetes: those of KubeArchive and of
//! the workflow archive of Argo, in PostgreSQL.
//!
//! Only read, in one snapshot, beside their servers. Objects are the text of their JSON, which for `jsonb` is
//! PostgreSQL's own way to write it.

use futures::TryStreamExt;
use sqlx::{
    Row as _,
    postgres::{PgConnection, PgRow},
};

use super::foreign::{self, failed};
use crate::seam::Error;

/// Rows of a page.
const MOST_ROWS: i64 = 256;
/// Bytes of objects after which a page ends.
const MOST_BYTES: i64 = 16 << 20;
/// Bytes of an object that is read; no message is as large.
const LARGEST: i64 = 64 << 20;
/// What Argo writes in place of the character NUL, which `jsonb` cannot hold.
const ARGO_NUL: &str = "ARGO_POSTGRES_NULL_REPLACEMENT";
/// What the objects of Argo begin with that do not say what they are.
const ARGO_TYPE: &str = r#"{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "#;

/// Whose database it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Archive {
    /// KubeArchive, of whose objects those of these kinds are read.
    KubeArchive {
        /// Names of kinds, of whatever group.
        kinds: Vec<String>,
    },
    /// The workflow archive of Argo.
    Argo {
        /// Its name of the cluster whose workflows are read; the only one by default.
        cluster: Option<String>,
    },
}

impl Archive {
    fn name(&self) -> &'static str {
        match self {
            Self::KubeArchive { .. } => "KubeArchive",
            Self::Argo { .. } => "the workflow archive of Argo",
        }
    }

    /// Table and columns without which it is none.
    fn needed(&self) -> &'static [&'static str] {
        match self {
            Self::KubeArchive { .. } => &[
                "resource.id",
                "resource.uuid",
                "resource.kind",
                "resource.namespace",
                "resource.name",
                "resource.data",
            ],
            Self::Argo { .. } => &[
                "argo_archived_workflows.clustername",
                "argo_archived_workflows.uid",
                "argo_archived_workflows.namespace",
                "argo_archived_workflows.name",
                "argo_archived_workflows.workflow",
            ],
        }
    }

    /// The table, `t` in what follows: key, UID and object of its rows, and which of them are read: those
    /// after the key `$1`, of kinds or a cluster `$2`.
    fn rows(&self) -> [&'static str; 5] {
        match self {
            Self::KubeArchive { .. } => [
                "resource",
                "t.id",
                "t.uuid::text",
                "t.data",
                "t.id > $1::bigint AND t.kind = ANY($2)",
            ],
            Self::Argo { .. } => [
                "argo_archived_workflows",
                "t.uid",
                "t.uid::text",
                "t.workflow",
                "t.uid > $1::text AND t.clustername = ANY($2)",
            ],
        }
    }

    /// The key before all others.
    fn first(&self) -> &'static str {
        match self {
            Self::KubeArchive { .. } => "-9223372036854775808",
            Self::Argo { .. } => "",
        }
    }
}

/// One row of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Namespace, name and UID that the row has beside its object.
    pub of: String,
    /// The UID that the row has beside its object.
    pub uid: String,
    /// The object, or how large it is if it is not read.
    pub object: Result<Vec<u8>, i64>,
}

/// Rows that follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The rows, in the order of their keys.
    pub rows: Vec<Row>,
    /// The key of the last one; reading goes on after it.
    pub after: String,
}

/// Which database is at `url`, as `host:port/database`. Fails if that is no address of one.
pub fn place(url: &str) -> Result<String, Error> {
    foreign::place(url)
}

/// One moment of the database.
#[derive(Debug)]
pub struct Reader {
    connection: PgConnection,
    archive: Archive,
    /// Kinds, or the name of a cluster.
    chosen: Vec<String>,
    after: String,
}

impl Reader {
    /// Opens the database at `url`, to be read after the key that an earlier [`Page`] ended with. Fails if it does
    /// not answer, is not the database of this archive, or is Argo's, holds several clusters and none is named.
    pub async fn open(url: &str, archive: Archive, after: Option<&str>) -> Result<Self, Error> {
        let mut connection = foreign::open(url).await?;
        check(&mut connection, &archive).await?;
        let chosen = match &archive {
            Archive::KubeArchive { kinds } => kinds.clone(),
            Archive::Argo { cluster } => vec![chosen(&mut connection, cluster.as_deref()).await?],
        };
        let after = after.unwrap_or_else(|| archive.first()).to_owned();
        Ok(Self {
            connection,
            archive,
            chosen,
            after,
        })
    }

    /// How many rows are still to be read. Fails if the database does not answer.
    pub async fn left(&mut self) -> Result<u64, Error> {
        let [table, _, _, _, which] = self.archive.rows();
        let sql = format!("SELECT count(*) FROM {table} AS t WHERE {which}");
        let row = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(&self.after)
            .bind(&self.chosen)
            .fetch_one(&mut self.connection);
        let count: i64 = row.await.and_then(|row| row.try_get(0)).map_err(failed)?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// The next page; none after the last. Fails if the database does not answer.
    pub async fn next(&mut self) -> Result<Option<Page>, Error> {
        let [table, key, uid, object, which] = self.archive.rows();
        // Sizes are added up before objects are fetched, so that a page of large ones ends early.
        let sql = format!(
            "WITH page AS (SELECT {key} AS key, \
               coalesce(octet_length({object}::text), 0)::bigint AS size \
               FROM {table} AS t WHERE {which} ORDER BY {key} LIMIT {MOST_ROWS}), \
             part AS (SELECT key, size, sum(size) OVER (ORDER BY key) - size AS before FROM page) \
             SELECT part.key::text, {uid}, t.namespace::text || '/' || t.name::text, part.size, \
               CASE WHEN part.size <= {LARGEST} THEN convert_to({object}::text, 'UTF8') END \
             FROM part JOIN {table} AS t ON {key} = part.key \
             WHERE part.before < {MOST_BYTES} AND {which} ORDER BY part.key"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(&self.after)
            .bind(&self.chosen)
            .fetch(&mut self.connection);
        let rows: Vec<PgRow> = rows.try_collect().await.map_err(failed)?;
        let Some(last) = rows.last() else {
            return Ok(None);
        };
        self.after = last.try_get(0).map_err(failed)?;
        let read = |row| self.archive.read(row);
        let rows = rows.iter().map(read).collect::<Result<_, _>>();
        Ok(Some(Page {
            rows: rows.map_err(failed)?,
            after: self.after.clone(),
        }))
    }
}

impl Archive {
    fn read(&self, row: &PgRow) -> Result<Row, sqlx::Error> {
        let uid: String = row.try_get(1)?;
        let name: Option<String> = row.try_get(2)?;
        let object: Option<Vec<u8>> = row.try_get(4)?;
        let object = object.map(|bytes| match self {
            Self::KubeArchive { .. } => bytes,
            Self::Argo { .. } => restored(bytes),
        });
        let size: i64 = row.try_get(3)?;
        Ok(Row {
            of: format!("{} {uid}", name.as_deref().unwrap_or("?")),
            uid,
            object: object.ok_or(size),
        })
    }
}

/// A workflow as it was before Argo stored it.
fn restored(bytes: Vec<u8>) -> Vec<u8> {
    let Ok(text) = String::from_utf8(bytes) else {
        return Vec::new();
    };
    let text = text.replace(ARGO_NUL, "\\u0000");
    let names_type = serde_json::from_str::<Typed>(&text)
        .is_ok_and(|typed| typed.kind.is_some() || typed.api_version.is_some());
    match text.strip_prefix('{') {
        Some(rest) if !names_type && !rest.trim_start().starts_with('}') => {
            [ARGO_TYPE, rest].concat().into_bytes()
        }
        _ => text.into_bytes(),
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Typed {
    kind: Option<serde::de::IgnoredAny>,
    api_version: Option<serde::de::IgnoredAny>,
}

/// It fails if the database is not that of the archive.
async fn check(connection: &mut PgConnection, archive: &Archive) -> Result<(), Error> {
    let sql = "SELECT table_name || '.' || column_name \
               FROM information_schema.columns WHERE table_schema = current_schema()";
    let columns = sqlx::query_scalar(sql).fetch_all(connection).await;
    let columns: Vec<String> = columns.map_err(failed)?;
    let has = |name: &&&str| columns.iter().any(|column| column == **name);
    match archive.needed().iter().find(|name| !has(name)) {
        None => Ok(()),
        Some(missing) => Err(Error::Incompatible(format!(
            "this is no database of {}: it has no column `{missing}` in the schema where new tables \
             would be made; give another database or set its search_path",
            archive.name()
        ))),
    }
}

/// The cluster whose workflows are read.
async fn chosen(connection: &mut PgConnection, asked: Option<&str>) -> Result<String, Error> {
    let sql = "SELECT DISTINCT clustername::text FROM argo_archived_workflows ORDER BY 1 LIMIT 20";
    let clusters = sqlx::query_scalar(sql).fetch_all(connection).await;
    let clusters: Vec<String> = clusters.map_err(failed)?;
    match (asked, clusters.as_slice()) {
        (Some(asked), _) if clusters.iter().any(|known| known == asked) => Ok(asked.to_owned()),
        (None, []) => Ok(String::new()),
        (None, [only]) => Ok(only.clone()),
        (Some(asked), _) => Err(Error::Incompatible(format!(
            "the archive has no cluster `{asked}`; it has {}",
            clusters.join(", ")
        ))),
        (None, _) => Err(Error::Incompatible(format!(
            "the archive has workflows of several clusters, {}; import one after the other with \
             --from-cluster and --cluster-id",
            clusters.join(", ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::restored;

    #[test]
    fn a_workflow_of_argo_is_what_it_was() {
        for (stored, was) in [
            (
                r#"{"kind": "Workflow", "x": "aARGO_POSTGRES_NULL_REPLACEMENTb"}"#,
                r#"{"kind": "Workflow", "x": "a\u0000b"}"#,
            ),
            (
                r#"{"metadata": {"kind": "x"}}"#,
                r#"{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"kind": "x"}}"#,
            ),
            ("null", "null"),
            ("[1]", "[1]"),
            ("{}", "{}"),
        ] {
            assert_eq!(restored(stored.into()), was.as_bytes());
        }
    }
}
