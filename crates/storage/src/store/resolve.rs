//! From the text that says where the database is to a store.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{SqlStore, objects};
use crate::{
    codec::objects::{FOLDER, Objects, new_folder},
    driver::{Database, options::Opening, postgres, sqlite},
    seam::{Error, LogStore, Maintenance, Store},
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
        Ok(Self {
            store: Arc::<SqlStore<D>>::clone(&store),
            logs: Arc::<SqlStore<D>>::clone(&store),
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
