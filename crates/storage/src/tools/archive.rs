//! Databases of other archives, whose rows hold whole objects of Kubernetes: those of KubeArchive and of
//! the workflow archive of Argo, in PostgreSQL, MySQL or MariaDB.
//!
//! Only read, in one snapshot, beside their servers. Objects are the text of their JSON.

mod mysql;
mod postgres;

use sqlx::{mysql::MySqlConnection, postgres::PgConnection};

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

    fn table(&self) -> &'static str {
        match self {
            Self::KubeArchive { .. } => "resource",
            Self::Argo { .. } => "argo_archived_workflows",
        }
    }

    /// Columns without which it is none, beside the key.
    fn needed(&self) -> &'static [&'static str] {
        match self {
            Self::KubeArchive { .. } => &["uuid", "kind", "namespace", "name", "data"],
            Self::Argo { .. } => &["clustername", "uid", "namespace", "name", "workflow"],
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
    if !is_mysql(url)? {
        return foreign::place(url);
    }
    let options = mysql::options(url)?;
    let database = options.get_database().unwrap_or_default();
    Ok(format!(
        "{}:{}/{database}",
        options.get_host(),
        options.get_port()
    ))
}

/// Whether the address is of MySQL or MariaDB, and not of PostgreSQL.
fn is_mysql(url: &str) -> Result<bool, Error> {
    match url.split_once("://") {
        Some(("mysql" | "mariadb", _)) => Ok(true),
        Some(("postgres" | "postgresql", _)) => Ok(false),
        // The rest may hold a password.
        other => Err(Error::Incompatible(format!(
            "the address of the database begins with `{}`; want `postgres://`, `mysql://` or `mariadb://`",
            other.map_or("", |(scheme, _)| scheme)
        ))),
    }
}

/// A row as its database gives it: its UID, namespace and name if it has both, the size of its object, and the text of
/// that if it is not too large.
type Stored = (String, Option<String>, i64, Option<Vec<u8>>);

#[derive(Debug)]
enum Connection {
    Postgres(PgConnection),
    MySql(MySqlConnection),
}

/// Asks the module of the database.
macro_rules! ask {
    ($connection:expr, $question:ident ( $($argument:expr),* )) => {
        match &mut $connection {
            Connection::Postgres(connection) => postgres::$question(connection, $($argument),*).await,
            Connection::MySql(connection) => mysql::$question(connection, $($argument),*).await,
        }
        .map_err(failed)
    };
}

/// One moment of the database.
#[derive(Debug)]
pub struct Reader {
    connection: Connection,
    archive: Archive,
    /// Kinds, or the name of a cluster.
    chosen: Vec<String>,
    after: String,
}

impl Reader {
    /// Opens the database at `url`, to be read after the key that an earlier [`Page`] ended with. Fails if it does
    /// not answer, is not the database of this archive, or is Argo's, holds several clusters and none is named.
    pub async fn open(url: &str, archive: Archive, after: Option<&str>) -> Result<Self, Error> {
        let (mut connection, key, first) = match is_mysql(url)? {
            true => {
                let connection = mysql::open(url).await?;
                (Connection::MySql(connection), mysql::key(&archive), "")
            }
            false => {
                let connection = Connection::Postgres(foreign::open(url).await?);
                let (key, first) = postgres::key(&archive);
                (connection, key, first)
            }
        };
        archive.check(&ask!(connection, columns())?, key)?;
        let chosen = match &archive {
            Archive::KubeArchive { kinds } => kinds.clone(),
            Archive::Argo { cluster } => {
                let clusters = ask!(connection, clusters())?;
                vec![chosen(&clusters, cluster.as_deref())?]
            }
        };
        let after = after.unwrap_or(first).to_owned();
        Ok(Self {
            connection,
            archive,
            chosen,
            after,
        })
    }

    /// How many rows are still to be read. Fails if the database does not answer.
    pub async fn left(&mut self) -> Result<u64, Error> {
        let (archive, chosen) = (&self.archive, &self.chosen);
        let count = ask!(self.connection, count(archive, chosen, &self.after))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// The next page; none after the last. Fails if the database does not answer.
    pub async fn next(&mut self) -> Result<Option<Page>, Error> {
        let (archive, chosen) = (&self.archive, &self.chosen);
        let sizes = ask!(self.connection, sizes(archive, chosen, &self.after))?;
        let Some(last) = last_of_page(sizes) else {
            return Ok(None);
        };
        let span = (self.after.as_str(), last.as_str());
        let rows = ask!(self.connection, rows(archive, chosen, span))?;
        let is_replaced = matches!(self.connection, Connection::Postgres(_));
        let rows = rows
            .into_iter()
            .map(|row| self.archive.read(row, is_replaced));
        let rows = rows.collect();
        self.after.clone_from(&last);
        Ok(Some(Page { rows, after: last }))
    }
}

/// The key of the last row whose objects, with those before it, are not too large for a page.
fn last_of_page(sizes: Vec<(String, i64)>) -> Option<String> {
    let mut before = 0_i64;
    let fits = |(_, size): &(String, i64)| {
        let fits = before < MOST_BYTES;
        before = before.saturating_add(*size);
        fits
    };
    let last = sizes.into_iter().take_while(fits).last();
    last.map(|(key, _)| key)
}

impl Archive {
    fn read(&self, (uid, name, size, object): Stored, is_replaced: bool) -> Row {
        let object = object.map(|bytes| match self {
            Self::KubeArchive { .. } => bytes,
            Self::Argo { .. } => restored(bytes, is_replaced),
        });
        Row {
            of: format!("{} {uid}", name.as_deref().unwrap_or("?")),
            uid,
            object: object.ok_or(size),
        }
    }

    /// It fails if a database with these columns is not that of the archive, whose rows have this key.
    fn check(&self, columns: &[String], key: &'static str) -> Result<(), Error> {
        let needed = [key].into_iter().chain(self.needed().iter().copied());
        let mut needed = needed.map(|column| format!("{}.{column}", self.table()));
        match needed.find(|name| !columns.contains(name)) {
            None => Ok(()),
            Some(missing) => Err(Error::Incompatible(format!(
                "this is no database of {}: it has no column `{missing}`; give another database, \
                 or the schema of its tables as search_path where it is in PostgreSQL",
                self.name()
            ))),
        }
    }
}

/// A workflow as it was before Argo stored it; `is_replaced` says whether Argo writes NUL in another way there.
fn restored(bytes: Vec<u8>, is_replaced: bool) -> Vec<u8> {
    let Ok(mut text) = String::from_utf8(bytes) else {
        return Vec::new();
    };
    if is_replaced {
        text = text.replace(ARGO_NUL, "\\u0000");
    }
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

/// The cluster whose workflows are read.
fn chosen(clusters: &[String], asked: Option<&str>) -> Result<String, Error> {
    match (asked, clusters) {
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
    use super::{MOST_BYTES, last_of_page, place, restored};

    #[test]
    fn an_address_says_which_database_it_is_of() {
        for (url, at) in [
            ("postgresql://u:secret@h/d", "h:5432/d"),
            ("mysql://u:secret@h/d", "h:3306/d"),
            ("mariadb://h:9/d", "h:9/d"),
        ] {
            assert_eq!(place(url).unwrap(), at);
        }
        for (url, begin) in [("sqlite:secret", ""), ("mysqlx://u:secret@h/d", "mysqlx")] {
            let refused = place(url).unwrap_err().to_string();
            assert!(refused.contains(&format!("begins with `{begin}`; want")));
            assert!(!refused.contains("secret"), "{refused}");
        }
    }

    #[test]
    fn a_page_ends_with_the_object_that_fills_it() {
        let sizes = |sizes: &[i64]| -> Option<usize> {
            let keyed = sizes.iter().enumerate();
            let keyed = keyed.map(|(key, size)| (key.to_string(), *size));
            last_of_page(keyed.collect()).map(|key| key.parse().unwrap())
        };
        assert_eq!(sizes(&[]), None);
        assert_eq!(sizes(&[1, 2, 3]), Some(2));
        assert_eq!(sizes(&[i64::MAX, 1]), Some(0));
        assert_eq!(sizes(&[MOST_BYTES - 1, 1, 1]), Some(1));
    }

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
            assert_eq!(restored(stored.into(), true), was.as_bytes());
        }
    }
}
