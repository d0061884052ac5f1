//! From the text that says where the database is to a store.

use std::{
    num::NonZeroU32,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::{
    Error, Maintenance, Store,
    driver::Database,
    objects::{Depot, FOLDER, Objects, new_folder},
    objects_of as objects, postgres, sqlite,
    store::SqlStore,
};

/// How to open a store.
#[derive(Debug, Clone)]
pub struct Options {
    /// At most so many connections: of SQLite, to read (one more writes).
    pub max_connections: NonZeroU32,
    /// How many of them, on PostgreSQL, are for what may take long; all but one at most.
    pub long_connections: NonZeroU32,
    /// How long PostgreSQL may work on one statement; for ever, if it is nothing.
    pub statement_timeout: Duration,
    /// How long a call waits for one of them, on PostgreSQL.
    pub wait: Duration,
    /// What to do about a schema that is missing or old.
    pub schema: Schema,
    /// What a write waits for before it is answered.
    pub synchronous: Synchronous,
    /// Where big bodies lie, if not in the database.
    pub depot: Option<Arc<Depot>>,
    /// What to do if that is somewhere else.
    pub objects: Unreachable,
}

/// What to do about a database that refers to objects which cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unreachable {
    /// Refuse it, naming the remedy.
    #[default]
    Refuse,
    /// Open it, for those who read no bodies.
    Ignore,
}

/// What a write waits for before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// Until it is on disk.
    #[default]
    Durable,
    /// `synchronous` of SQLite or `synchronous_commit` of PostgreSQL, by its name there.
    Named(&'static str),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_connections: NonZeroU32::new(8).expect("8 is not 0"),
            long_connections: NonZeroU32::new(4).expect("4 is not 0"),
            statement_timeout: Duration::from_mins(1),
            wait: Duration::from_secs(5),
            schema: Schema::Require,
            synchronous: Synchronous::Durable,
            depot: None,
            objects: Unreachable::Refuse,
        }
    }
}

/// What to do about a schema that is missing or old. A newer one is always refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// Refuse it, naming the remedy.
    Require,
    /// Bring it up to date first; a file that does not exist is made.
    Migrate,
}

/// An open database.
#[derive(Debug, Clone)]
pub struct Opened {
    /// For requests.
    pub store: Arc<dyn Store>,
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
            maintenance: store,
            applied,
            weak,
        })
    }
}

/// The store over a database that was opened.
pub(super) async fn over<D: Database>(db: D, options: &Options) -> Result<SqlStore<D>, Error> {
    let objects = match &options.depot {
        None => None,
        Some(depot) => {
            let folder = db.secret(FOLDER, &new_folder()).await?;
            Some(Objects::new(depot, &folder)?)
        }
    };
    Ok(SqlStore::new(db, objects))
}

/// What opening did and found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Opening {
    /// The migrations that were applied.
    pub(super) applied: Vec<i64>,
    /// How acknowledged writes may be lost.
    pub(super) weak: Vec<String>,
}

/// Opens `sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
///
/// # Errors
/// [`Error::Unfit`] if the text, the database or its schema is not what is wanted, with the
/// remedy; [`Error::Unavailable`] if the database does not answer.
pub async fn open(url: &str, options: &Options) -> Result<Opened, Error> {
    match address(url)? {
        Address::Sqlite(path) => Opened::new(sqlite::open(&path, options).await?, options).await,
        Address::Postgres(url) => Opened::new(postgres::open(&url, options).await?, options).await,
    }
}

/// Where a database is. It may hold a password.
pub(super) enum Address {
    /// The path of a file.
    Sqlite(PathBuf),
    /// The whole text.
    Postgres(String),
}

/// What a text names.
pub(super) fn address(url: &str) -> Result<Address, Error> {
    const WANT: &str = "want `sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`";
    let refuse = |why: &str| Err(Error::Unfit(format!("{why}; {WANT}")));
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
