//! Which migrations there are, and which a database still needs. Pure; the stores run them.
//!
//! A database is empty, or ours at a version this program knows, or refused.

use sha2::{Digest, Sha256};

use super::{Error, sql::dialect::Dialect};

/// One step of the schema.
#[derive(Debug)]
pub(super) struct Migration {
    /// Its number; they are applied in order.
    pub(super) version: i64,
    /// What it is about.
    pub(super) title: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

/// Every migration.
pub(super) const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        title: "first",
        sqlite: include_str!("../../migrations/sqlite/0001_first.sql"),
        postgres: include_str!("../../migrations/postgres/0001_first.sql"),
    },
    Migration {
        version: 2,
        title: "pieces",
        sqlite: include_str!("../../migrations/sqlite/0002_pieces.sql"),
        postgres: include_str!("../../migrations/postgres/0002_pieces.sql"),
    },
    Migration {
        version: 3,
        title: "answers",
        sqlite: include_str!("../../migrations/sqlite/0003_answers.sql"),
        postgres: include_str!("../../migrations/postgres/0003_answers.sql"),
    },
    Migration {
        version: 4,
        title: "room",
        sqlite: include_str!("../../migrations/sqlite/0004_room.sql"),
        postgres: include_str!("../../migrations/postgres/0004_room.sql"),
    },
    Migration {
        version: 5,
        title: "questions",
        sqlite: include_str!("../../migrations/sqlite/0005_questions.sql"),
        postgres: include_str!("../../migrations/postgres/0005_questions.sql"),
    },
    Migration {
        version: 6,
        title: "promoted",
        sqlite: include_str!("../../migrations/sqlite/0006_promoted.sql"),
        postgres: include_str!("../../migrations/postgres/0006_promoted.sql"),
    },
    Migration {
        version: 7,
        title: "objects",
        sqlite: include_str!("../../migrations/sqlite/0007_objects.sql"),
        postgres: include_str!("../../migrations/postgres/0007_objects.sql"),
    },
    Migration {
        version: 8,
        title: "labels",
        sqlite: include_str!("../../migrations/sqlite/0008_labels.sql"),
        postgres: include_str!("../../migrations/postgres/0008_labels.sql"),
    },
];

impl Migration {
    /// Its SQL.
    pub(super) fn sql(&self, dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::Sqlite => self.sqlite,
            Dialect::Postgres => self.postgres,
        }
    }

    /// The digest of its SQL.
    pub(super) fn sha256(&self, dialect: Dialect) -> Vec<u8> {
        Sha256::digest(self.sql(dialect)).to_vec()
    }
}

/// A migration that a database says was applied to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Applied {
    /// Its number.
    pub(super) version: i64,
    /// The digest of its SQL.
    pub(super) sha256: Vec<u8>,
}

/// What a look at a database found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// No tables.
    Empty,
    /// Tables, but not the one that names this program; one of them is given.
    Foreign(String),
    /// What was applied, in order.
    Ours(Vec<Applied>),
}

/// The migrations that a database needs.
///
/// # Errors
/// [`Error::Unfit`] if it is not ours, newer than this program, or was migrated otherwise.
pub(super) fn needed(
    found: &Found,
    dialect: Dialect,
    place: &str,
) -> Result<&'static [Migration], Error> {
    let applied = match found {
        Found::Empty => return Ok(MIGRATIONS),
        Found::Foreign(table) => {
            return Err(Error::Unfit(format!(
                "{place} belongs to another program: it has the table `{table}` and no \
                 `hindsight_schema`; give an empty database or one that hindsight made"
            )));
        }
        Found::Ours(applied) => applied,
    };
    let newest = MIGRATIONS.last().map_or(0, |m| m.version);
    if let Some(last) = applied.last().filter(|last| last.version > newest) {
        return Err(Error::Unfit(format!(
            "{place} has schema version {} and this program knows versions up to {newest}; \
             use a newer hindsight",
            last.version
        )));
    }
    for (was, is) in applied.iter().zip(MIGRATIONS) {
        if was.version != is.version || was.sha256 != is.sha256(dialect) {
            return Err(Error::Unfit(format!(
                "{place} was migrated otherwise: its migration {} is not number {} (`{}`) of \
                 this program; restore a backup, or use the program that made it",
                was.version, is.version, is.title
            )));
        }
    }
    Ok(&MIGRATIONS[applied.len()..])
}

/// Refuses a database that needs migrations.
///
/// # Errors
/// [`Error::Unfit`] naming the remedy.
pub(super) fn require_current(found: &Found, dialect: Dialect, place: &str) -> Result<(), Error> {
    match needed(found, dialect, place)? {
        [] => Ok(()),
        [.., last] => {
            let has = match found {
                Found::Ours(applied) => applied.last().map_or(0, |a| a.version),
                _ => 0,
            };
            Err(Error::Unfit(format!(
                "{place} has schema version {has} and this program needs {}; run \
                 `hindsight migrate`",
                last.version
            )))
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod upgrades;
