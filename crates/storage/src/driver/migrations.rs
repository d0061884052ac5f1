//! Which migrations there are, and which a database still needs. Pure; the stores run them.
//!
//! A database is empty, or ours at a version this program knows, or refused.

use sha2::{Digest, Sha256};

use crate::{seam::Error, sql::dialect::Dialect};

/// One step of the schema.
#[derive(Debug)]
pub(crate) struct Migration {
    /// Its number; they are applied in order.
    pub(crate) version: i64,
    /// What it is about.
    pub(crate) title: &'static str,
    /// Its SQL on SQLite, which is one transaction.
    pub(crate) sqlite: &'static str,
    /// Its SQL on PostgreSQL: one transaction, unless it begins with [`OUTSIDE`].
    pub(crate) postgres: &'static str,
}

pub(crate) const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    title: "baseline",
    sqlite: include_str!("../../../../migrations/sqlite/0001_baseline.sql"),
    postgres: include_str!("../../../../migrations/postgres/0001_baseline.sql"),
}];

/// The first line of a migration whose statements run outside of a transaction, one by one.
const OUTSIDE: &str = "-- no-transaction\n";

/// How PostgreSQL runs a migration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    /// All of it in one transaction.
    Together(&'static str),
    /// Indexes that are made while others write.
    Concurrently(Vec<Concurrent>),
}

/// A statement that makes an index while others write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Concurrent {
    /// Name of the index, by which an invalid leftover is found.
    pub(crate) index: &'static str,
    /// The `CREATE INDEX CONCURRENTLY` statement that makes it.
    pub(crate) sql: &'static str,
}

impl Migration {
    pub(crate) fn sql(&self, dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::Sqlite => self.sqlite,
            Dialect::Postgres => self.postgres,
        }
    }

    /// How PostgreSQL runs it.
    ///
    /// # Errors
    /// The statement that has no place outside of a transaction, because half of it could not be
    /// told from all of it.
    pub(crate) fn steps(&self) -> Result<Steps, &'static str> {
        let Some(outside) = self.postgres.strip_prefix(OUTSIDE) else {
            return Ok(Steps::Together(self.postgres));
        };
        let statements = outside.split(';').map(without_comments);
        let concurrent = statements.filter(|sql| !sql.is_empty()).map(|sql| {
            let rest = sql.strip_prefix("CREATE ").ok_or(sql)?;
            let rest = rest.strip_prefix("UNIQUE ").unwrap_or(rest);
            let rest = rest.strip_prefix("INDEX CONCURRENTLY ").ok_or(sql)?;
            let index = rest.split_whitespace().next().ok_or(sql)?;
            Ok(Concurrent { index, sql })
        });
        concurrent
            .collect::<Result<_, _>>()
            .map(Steps::Concurrently)
    }

    /// The digest of its SQL.
    pub(crate) fn sha256(&self, dialect: Dialect) -> Vec<u8> {
        Sha256::digest(self.sql(dialect)).to_vec()
    }
}

/// A statement without what is said of it in the lines before.
fn without_comments(mut sql: &str) -> &str {
    loop {
        sql = sql.trim();
        if !sql.starts_with("--") {
            return sql;
        }
        sql = sql.split_once('\n').map_or("", |(_, rest)| rest);
    }
}

/// A migration that a database says was applied to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Applied {
    pub(crate) version: i64,
    /// The digest of its SQL.
    pub(crate) sha256: Vec<u8>,
}

/// What a look at a database found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    Empty,
    /// Tables, but not the one that names this program; one of them is given.
    Foreign(String),
    /// What was applied, in order.
    Ours(Vec<Applied>),
}

/// The migrations that a database needs.
///
/// # Errors
/// [`Error::Incompatible`] if it is not ours, newer than this program, or was migrated otherwise.
pub(crate) fn needed(
    found: &Found,
    dialect: Dialect,
    place: &str,
) -> Result<&'static [Migration], Error> {
    needed_of(MIGRATIONS, found, dialect, place)
}

/// Those of `all` that a database needs.
///
/// # Errors
/// As [`needed`].
pub(crate) fn needed_of(
    all: &'static [Migration],
    found: &Found,
    dialect: Dialect,
    place: &str,
) -> Result<&'static [Migration], Error> {
    let applied = match found {
        Found::Empty => return Ok(all),
        Found::Foreign(table) => {
            return Err(Error::Incompatible(format!(
                "{place} belongs to another program: it has the table `{table}` and no \
                 `hindsight_schema`; give an empty database or one that hindsight made"
            )));
        }
        Found::Ours(applied) => applied,
    };
    let baseline = all.first().map(|first| first.sha256(dialect));
    if applied.first().map(|first| &first.sha256) != baseline.as_ref() {
        return Err(Error::Incompatible(format!(
            "{place} has the schema of another development version of hindsight; use the \
             version that made it, or give an empty database"
        )));
    }
    let newest = all.last().map_or(0, |m| m.version);
    if let Some(last) = applied.last().filter(|last| last.version > newest) {
        return Err(Error::Incompatible(format!(
            "{place} has schema version {} and this program knows versions up to {newest}; \
             use a newer hindsight",
            last.version
        )));
    }
    for (was, is) in applied.iter().zip(all) {
        if was.version != is.version || was.sha256 != is.sha256(dialect) {
            return Err(Error::Incompatible(format!(
                "{place} was migrated otherwise: its migration {} is not number {} (`{}`) of \
                 this program; restore a backup, or use the program that made it",
                was.version, is.version, is.title
            )));
        }
    }
    Ok(&all[applied.len()..])
}

/// Refuses a database that needs migrations.
///
/// # Errors
/// [`Error::Incompatible`] naming the remedy.
pub(crate) fn require_current(found: &Found, dialect: Dialect, place: &str) -> Result<(), Error> {
    match needed(found, dialect, place)? {
        [] => Ok(()),
        [.., last] => {
            let has = match found {
                Found::Ours(applied) => applied.last().map_or(0, |a| a.version),
                _ => 0,
            };
            Err(Error::Incompatible(format!(
                "{place} has schema version {has} and this program needs {}; run \
                 `hindsight migrate`",
                last.version
            )))
        }
    }
}

#[cfg(test)]
mod tests;
