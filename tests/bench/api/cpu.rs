//! Processor time of the server and of PostgreSQL, which says what a call costs also where the
//! machine is shared.

use std::{fs, path::PathBuf, time::Duration};

use crate::server::{
    Database, Server,
    system::{fields, used},
};

/// What the processes of a bench have used so far.
#[derive(Debug, Clone, Copy)]
pub struct Used {
    server: Duration,
    /// All processes of PostgreSQL; none for SQLite, which is part of the server.
    database: Option<Duration>,
}

impl Used {
    pub fn now(server: &Server, database: &Database) -> Self {
        let postmaster = match database {
            Database::Sqlite(_) => None,
            Database::Postgres { .. } => postmaster(),
        };
        Self {
            server: used(server.id(), false),
            database: postmaster.map(cluster),
        }
    }

    /// Milliseconds of the server and of the database for each of `calls` since then.
    pub fn per_call(self, before: Self, calls: usize) -> (f64, Option<f64>) {
        let calls = f64::from(u32::try_from(calls).unwrap());
        let ms = |now: Duration, before: Duration| (now - before).as_secs_f64() * 1e3 / calls;
        let database = self.database.zip(before.database);
        let database = database.map(|(now, before)| ms(now, before));
        (ms(self.server, before.server), database)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the harness is told by the environment"
)]
fn postmaster() -> Option<u32> {
    let data = PathBuf::from(std::env::var_os("HINDSIGHT_TEST_PG_DATA")?);
    let file = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    file.lines().next()?.trim().parse().ok()
}

/// A process and its children, those that have ended too.
fn cluster(postmaster: u32) -> Duration {
    let children = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let id = entry.ok()?.file_name().to_str()?.parse().ok()?;
        (fields(id)?.get(1)? == &u64::from(postmaster)).then_some(id)
    });
    let children: Duration = children.map(|id| used(id, false)).sum();
    children + used(postmaster, true)
}
