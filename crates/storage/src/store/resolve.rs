//! From the text that says where the database is to a store.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{SqlStore, objects};
use crate::{
    codec::objects::{FOLDER, Objects, new_folder},
    driver::{Database, options::Opening, postgres, sqlite},
    seam::{ArchiveIndex, Error, LogStore, Maintenance, PipelineTables, Store},
    tiers::{Archive, Tiers},
};
pub use crate::{
    driver::options::Options, driver::options::Schema, driver::options::Synchronous,
    driver::options::Unreachable,
};

/// A database that is open, and what opening it found.
#[derive(Debug, Clone)]
pub struct Opened {
    /// The database as requests use it: reads and writes of rows.
    pub store: Arc<dyn Store>,
    /// The logs of runs in the same database.
    pub logs: Arc<dyn LogStore>,
    /// Pipelines of Kubeflow in the same database.
    pub pipelines: Arc<dyn PipelineTables>,
    /// Which results have their records in files of an archive, as the same database knows it.
    pub index: Arc<dyn ArchiveIndex>,
    /// The archive, if there is one. Then `store` has its records too.
    pub archive: Option<Archive>,
    /// For operators. It is the same database.
    pub maintenance: Arc<dyn Maintenance>,
    /// The migrations that opening applied.
    pub applied: Vec<i64>,
    /// How acknowledged writes may be lost, a sentence for each way; none by default.
    pub weak: Vec<String>,
}

impl Opened {
    async fn new<D: Database>(
        (db, opening): (D, Opening),
        options: &Options,
    ) -> Result<Self, Error> {
        let Opening { applied, weak } = opening;
        let store = over(db, options).await?;
        if options.objects == Unreachable::Refuse
            && let Err(error) = objects::fits(&store).await
        {
            store.close().await;
            return Err(error);
        }
        let store = Arc::new(store);
        let index: Arc<dyn ArchiveIndex> = Arc::<SqlStore<D>>::clone(&store);
        let archive = options.archive.as_ref();
        let archive = archive.map(|bucket| Archive::new(Arc::clone(bucket), Arc::clone(&index)));
        if options.objects == Unreachable::Refuse
            && archive.is_none()
            && !index.archive_files().await?.is_empty()
        {
            store.close().await;
            return Err(Error::Incompatible(
                "records were moved from this database to the files of an archive, and none is configured; set \
                 archive_url to where they are"
                    .to_owned(),
            ));
        }
        let rows: Arc<dyn Store> = Arc::<SqlStore<D>>::clone(&store);
        Ok(Self {
            store: match &archive {
                Some(archive) => Arc::new(Tiers::new(rows, archive.clone())),
                None => rows,
            },
            logs: Arc::<SqlStore<D>>::clone(&store),
            pipelines: Arc::<SqlStore<D>>::clone(&store),
            index,
            archive,
            maintenance: store,
            applied,
            weak,
        })
    }
}

/// The store over a database that was opened.
pub(crate) async fn over<D: Database>(db: D, options: &Options) -> Result<SqlStore<D>, Error> {
    let objects = match &options.depot {
        None => None,
        Some(depot) => {
            let folder = db.secret(FOLDER, &new_folder()).await?;
            Some(Objects::new(depot, &folder)?)
        }
    };
    Ok(SqlStore::new(db, objects))
}

/// Opens `sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
///
/// # Errors
/// [`Error::Incompatible`] if the text, the database or its schema is not what is wanted, with the
/// remedy; [`Error::Unavailable`] if the database does not answer.
pub async fn open(url: &str, options: &Options) -> Result<Opened, Error> {
    match address(url)? {
        Address::Sqlite(path) => Opened::new(sqlite::open(&path, options).await?, options).await,
        Address::Postgres(url) => Opened::new(postgres::open(&url, options).await?, options).await,
    }
}

/// Where a database is. It may hold a password.
pub(crate) enum Address {
    /// The path of a file.
    Sqlite(PathBuf),
    Postgres(String),
}

/// What a text names.
pub(crate) fn address(url: &str) -> Result<Address, Error> {
    const WANT: &str = "want `sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`";
    let refuse = |why: &str| Err(Error::Incompatible(format!("{why}; {WANT}")));
    match url.split_once(':') {
        Some(("sqlite", rest)) => {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            match path {
                "" => refuse("`sqlite:` names no file"),
                ":memory:" => refuse("a database in memory keeps nothing"),
                path => Ok(Address::Sqlite(Path::new(path).to_owned())),
            }
        }
        Some(("postgres" | "postgresql", _)) => Ok(Address::Postgres(url.to_owned())),
        // The text may hold a password, so only the scheme is repeated.
        Some((scheme, _)) => refuse(&format!("`{scheme}:` is no database known here")),
        None => refuse(&format!("`{url}` is not the address of a database")),
    }
}
