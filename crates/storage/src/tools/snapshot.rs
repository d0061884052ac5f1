//! One moment of a database, read from end to end beside writers, without changing a byte of it.
//!
//! What checks and copies whole databases reads through this: one connection, one transaction.
//! SQLite keeps its log, and PostgreSQL its dead rows, for as long as one is open.

use std::{fmt, sync::Arc};

use crate::{
    codec::objects::{ObjectBackend, Objects, Totals},
    driver::{Purpose, Reader, postgres, sqlite},
    seam::Error,
    sql::{
        dialect::Dialect,
        objects as sql,
        row::{Row, SqlRow as _},
        statement::Statement,
    },
    store::resolve::{Address, address},
};

/// One moment of a database.
pub struct Snapshot {
    /// How to say things to it.
    pub(crate) dialect: Dialect,
    reader: Box<dyn Reader>,
    objects: Option<Objects>,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snapshot of {:?}", self.dialect)
    }
}

impl Snapshot {
    /// The moment that `reader` sees.
    fn new(dialect: Dialect, reader: Box<dyn Reader>) -> Self {
        Self {
            dialect,
            reader,
            objects: None,
        }
    }

    /// Opens `sqlite:PATH` or `postgres://...` as it is now, only to read it. Its schema must be
    /// up to date.
    ///
    /// # Errors
    /// Those of [`crate::store::resolve::open`], with the same remedies.
    pub async fn open(url: &str) -> Result<Self, Error> {
        match address(url)? {
            Address::Sqlite(path) => {
                let reader = sqlite::snapshot(&path).await?;
                Ok(Self::new(Dialect::Sqlite, reader))
            }
            Address::Postgres(url) => {
                let reader = postgres::snapshot(&url).await?;
                Ok(Self::new(Dialect::Postgres, reader))
            }
        }
    }

    /// The same, and the payloads that lie in an object store.
    ///
    /// # Errors
    /// Those of [`Self::open`]; and if the object store cannot be used as configured.
    pub async fn open_with(url: &str, depot: Option<&Arc<ObjectBackend>>) -> Result<Self, Error> {
        let mut snapshot = Self::open(url).await?;
        if let Some(depot) = depot {
            let rows = snapshot.rows(&sql::folder()).await?;
            let folder = rows.first().map(|row| row.bytes(0)).transpose()?.flatten();
            let objects = folder.map(|folder| Objects::new(depot, &folder));
            snapshot.objects = objects.transpose()?;
        }
        Ok(snapshot)
    }

    /// Where payloads lie outside the database, if that is known.
    pub(crate) fn objects(&self) -> Option<&Objects> {
        self.objects.as_ref()
    }

    /// The rows of a statement.
    pub(crate) async fn rows(&mut self, statement: &Statement) -> Result<Vec<Row>, Error> {
        self.reader.rows(statement).await
    }

    /// What the database says of its objects.
    pub(crate) async fn object_totals(&mut self) -> Result<Totals, Error> {
        let rows = self.rows(&sql::totals()).await?;
        sql::read_totals(&rows)
    }

    /// The one number that a statement gives.
    pub(crate) async fn number(&mut self, statement: &Statement) -> Result<i64, Error> {
        let rows = self.reader.rows(statement).await?;
        let number = rows.first().map(|row| row.int(0)).transpose()?.flatten();
        number.ok_or_else(|| Error::Corrupt("a count gave no number".to_owned()))
    }

    /// Takes the present moment instead.
    pub(crate) async fn refresh(&mut self) -> Result<(), Error> {
        self.reader.end().await?;
        self.reader.begin(Purpose::List).await
    }

    /// What the engine itself finds wrong with a table.
    pub(crate) async fn damage(&mut self, table: &'static str) -> Result<Vec<String>, Error> {
        if self.dialect == Dialect::Postgres {
            // Looking at pages and indexes takes `pg_amcheck` and its rights.
            return Ok(Vec::new());
        }
        let mut check = Statement::new("SELECT integrity_check FROM pragma_integrity_check(");
        check.bind(table).push(")");
        match self.reader.rows(&check).await {
            Ok(rows) => {
                let texts = rows
                    .iter()
                    .map(|row| row.text(0).map(Option::unwrap_or_default));
                let mut texts = texts.collect::<Result<Vec<_>, _>>()?;
                texts.retain(|text| text != "ok");
                Ok(texts)
            }
            // Some damage ends the check instead of being part of its answer.
            Err(Error::Corrupt(why)) => Ok(vec![why]),
            Err(error) => Err(error),
        }
    }

    /// Lets go of the database.
    pub async fn close(self) {
        self.reader.release().await;
    }
}
