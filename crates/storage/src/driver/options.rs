//! How a database is opened.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use crate::codec::objects::{Bucket, ObjectBackend};

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
    pub depot: Option<Arc<ObjectBackend>>,
    /// Where the files of an archive are, if there is one.
    pub archive: Option<Arc<Bucket>>,
    /// What to do if one of them is somewhere else.
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
            archive: None,
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

/// What opening did and found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Opening {
    /// The migrations that were applied.
    pub(crate) applied: Vec<i64>,
    /// How acknowledged writes may be lost.
    pub(crate) weak: Vec<String>,
}
