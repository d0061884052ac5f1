//! `hindsight backup` and `hindsight restore`.

use std::{io::Write as _, path::PathBuf, process::ExitCode};

use clap::{ArgMatches, Args, FromArgMatches as _};
use indicatif::ProgressBar;

use super::{
    failure::{Failure, of_store},
    output, progress, serve,
};
use hindsight_storage::{
    backup::{Copied, backup, restore},
    fsck::{Event, Seen},
};

/// Copy the SQLite database into a file, while the server runs
///
/// The copy is one file, whole, of one moment, compact and synced. Its rows are looked at as
/// `hindsight fsck --quick` does. Nothing is overwritten: the file appears under its name only
/// when it is complete. A database of an older schema is copied as it is, for use before an upgrade.
///
/// Payloads that lie in an object store (objects_url) are not in the copy; it says how many there
/// are. They have to be kept there for as long as the copy is to be of use: see objects_keep.
///
/// PostgreSQL has tools of its own: `pg_dump` and `pg_restore`, or `pg_basebackup`. Exit codes: 0
/// the backup is there, 6 it is there and damaged as the database is, 1 or 5 there is none.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  hindsight backup --db sqlite:/var/lib/hindsight/history.db --to /var/backups/history.db
  hindsight backup --to /var/backups/history-$(date +%F).db")]
pub(super) struct Backup {
    /// The file to make
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

/// Put a backup into the place of a SQLite database that is not there
///
/// The backup is looked at first, as `hindsight fsck --quick` does, and is refused if it is damaged,
/// of a newer schema, or no database of this program. A database that is there is never
/// overwritten: stop its server and move it away, with its `-wal` and `-shm` if there are any.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  hindsight restore --from /var/backups/history.db --db sqlite:/var/lib/hindsight/history.db")]
pub(super) struct Restore {
    /// The file that `hindsight backup` made
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
}

pub(super) fn run_backup(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let given = Backup::from_arg_matches(matches).map_err(|e| Failure::usage(e.to_string()))?;
    let config = serve::load(matches)?;
    let mut watch = Watch::default();
    let url = config.db.expose();
    let mut see = |event| watch.see(event);
    let made = super::runtime()?.block_on(backup(&url, &given.to, &mut see));
    let what = format!("backed up {} to {}", config.db, given.to.display());
    let kept = match config.objects_keep.get() {
        Some(_) => format!(
            "they stay there for {} (objects_keep) after they are deleted, and the backup is whole \
             for as long",
            config.objects_keep
        ),
        None => "they are never removed (objects_keep)".to_owned(),
    };
    watch.conclude(made, &what, &kept)
}

pub(super) fn run_restore(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let given = Restore::from_arg_matches(matches).map_err(|e| Failure::usage(e.to_string()))?;
    let config = serve::load(matches)?;
    let mut watch = Watch::default();
    let url = config.db.expose();
    let mut see = |event| watch.see(event);
    let made = super::runtime()?.block_on(restore(&given.from, &url, &mut see));
    let what = format!("{} is restored to {}", given.from.display(), config.db);
    let kept = "`hindsight fsck` with objects_url says whether all are there. If the database that \
                was backed up goes on, its objects are shared: run only one of the two without \
                `objects_keep = forever`";
    watch.conclude(made, &what, kept)
}

/// What is told while a file is copied.
#[derive(Default)]
struct Watch {
    bar: Option<ProgressBar>,
    damaged: bool,
}

impl Watch {
    fn see(&mut self, event: Event) {
        match event {
            Event::Stage { what, total } => {
                self.clear();
                self.bar = Some(progress::bar(what, total));
            }
            Event::Seen(more) => {
                if let Some(bar) = &self.bar {
                    bar.inc(more);
                }
            }
            Event::Found(found) => {
                self.clear();
                output::note(&format!(
                    "{}: {}: {}",
                    found.kind.name(),
                    found.of,
                    found.what
                ));
                self.damaged = true;
            }
        }
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn conclude(
        mut self,
        made: Result<Copied, hindsight_storage::Error>,
        what: &str,
        kept: &str,
    ) -> Result<ExitCode, Failure> {
        self.clear();
        let Copied {
            bytes,
            version,
            seen,
        } = made.map_err(|error| of_store(&error))?;
        let looked = match (seen.is_some(), self.damaged) {
            (true, false) => "its rows are sound",
            (true, true) => "and it is damaged; see above",
            (false, _) => "its schema is older than this program's, so its rows were not looked at",
        };
        writeln!(
            std::io::stdout().lock(),
            "{what}: {bytes} bytes, schema version {version}; {looked}"
        )?;
        if let Some(Seen {
            objects,
            object_bytes,
            ..
        }) = seen
            && objects > 0
        {
            writeln!(
                std::io::stdout().lock(),
                "{objects} payloads ({object_bytes} bytes) lie in the object store and are not in \
                 the file; {kept}"
            )?;
        }
        Ok(match self.damaged {
            true => ExitCode::from(Failure::DAMAGED),
            false => ExitCode::SUCCESS,
        })
    }
}
