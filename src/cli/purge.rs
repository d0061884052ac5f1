//! `hindsight purge`.

use std::process::ExitCode;

use clap::{ArgGroup, ArgMatches, Args, FromArgMatches as _};

use super::{
    confirm::confirm,
    failure::{Failure, of_store},
    output, serve,
};
use crate::{
    app,
    config::{Config, DbUrl},
};
use hindsight_access::audit::AuditEvent;
use hindsight_filter::model::{Parent, RecordName, ResultName};
use hindsight_runtime::clock::{Clock as _, SystemClock};
use hindsight_runtime::telemetry::Registry;
use hindsight_storage::{
    Error, Purge as What, Purged,
    resolve::{Opened, Options, open},
};
use jiff::Timestamp;

/// Delete for good: from the database's free pages, dictionaries and the object store too
///
/// `hindsight delete` and the API delete rows; within minutes no other record holds bytes of the
/// payload, and its object goes when no backup needs it any more (objects_keep). This command is
/// for what must be gone now, as the law or a leaked secret demand: it deletes, packs again the
/// records whose payloads referred to a deleted one, removes objects at once, writes the files of an archive
/// again that have rows of deleted runs of the same parent, and has the database rewrite its free space: `VACUUM` on SQLite, which takes as much room again as the file has, and
/// on PostgreSQL.
///
/// It works on the database itself and may run beside servers; on SQLite they should be stopped,
/// or the log of the file may keep bytes, which is said then. No etag is looked at. What is written
/// while it runs is deleted too, so stop or narrow what writes it first.
///
/// Not reached: backups, replicas, the archive of PostgreSQL's write-ahead log, audit logs, and
/// objects of payloads that were deleted before, which stay for objects_keep.
///
/// With `audit_log` it writes two lines there, before and after, whose verb is `purge`.
///
/// Exit codes: 0 everything is gone, 1 something is left (said on stderr) or nothing was confirmed,
/// 2 wrong usage, 3 there is no such thing, 5 the database cannot be reached.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("what").required(true),
    after_long_help = "Examples:
  hindsight purge --db sqlite:/var/lib/hindsight/history.db --parent team-a --dry-run
  hindsight purge --db sqlite:/var/lib/hindsight/history.db --parent team-a
  hindsight purge --result team-a/results/5d5f --yes
  hindsight purge --record team-a/results/5d5f/records/77aa --yes"
)]
pub(super) struct Purge {
    /// Everything of a parent, which is a namespace
    #[arg(long, value_name = "PARENT", group = "what")]
    parent: Option<Parent>,

    /// A result with all its records, by its full name
    #[arg(long, value_name = "NAME", group = "what")]
    result: Option<ResultName>,

    /// A record, by its full name
    #[arg(long, value_name = "NAME", group = "what")]
    record: Option<RecordName>,

    /// Say what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,

    /// Purge without asking for confirmation
    #[arg(short, long)]
    yes: bool,
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let purge =
        Purge::from_arg_matches(matches).map_err(|error| Failure::usage(error.to_string()))?;
    let config = serve::load(matches)?;
    super::runtime()?.block_on(purge.go(&config))
}

impl Purge {
    fn what(&self) -> Result<What, Failure> {
        let parent = self.parent.clone().map(What::Parent);
        let result = self.result.clone().map(What::Result);
        let record = self.record.clone().map(What::Record);
        let what = parent.or(result).or(record);
        what.ok_or_else(|| Failure::usage("give --parent, --result or --record"))
    }

    async fn go(&self, config: &Config) -> Result<ExitCode, Failure> {
        let failed = |error: Error| of_store(&error);
        let what = self.what()?;
        let options = Options {
            // Rewriting takes as long as it takes.
            statement_timeout: std::time::Duration::ZERO,
            ..app::command_options(config).map_err(failed)?
        };
        let opened = open(&config.db.expose(), &options).await.map_err(failed)?;
        let base = &opened.maintenance;
        let done = async {
            let mut there = base.purgeable(&what).await.map_err(failed)?;
            if let What::Record(name) = &what
                && there.records == 0
            {
                let archived = opened.store.record(name).await.map_err(failed)?;
                there.records = u64::from(archived.is_some());
            }
            // Also those that a purge which broke off has left.
            let files = match &opened.archive {
                Some(archive) => archive.erasable(parent(&what)).await.map_err(failed)?.len(),
                None => 0,
            };
            if there.results + there.records == 0 && files == 0 {
                return Err(Failure::missing(format!(
                    "there is nothing of {}",
                    shown(&what)
                )));
            }
            if self.dry_run {
                output::say(&format!("would purge {}", counted(&there)))?;
                if files > 0 {
                    output::note(&format!(
                        "{files} archive files have rows of runs that were deleted before, and would be written again"
                    ));
                }
                return Ok(ExitCode::SUCCESS);
            }
            // What cannot be written down is not begun.
            let audit = app::audit(config, &mut Registry::default()).map_err(unwritten)?;
            if !self.yes {
                let (what, there) = (shown(&what), counted(&there));
                confirm(&format!("Purge {what}, {there}?"), "nothing was purged")?;
            }
            let now = SystemClock.now();
            let operator = format!("uid:{}", rustix::process::getuid().as_raw());
            let line = AuditEvent::purged(operator, place(&what), now);
            let ahead = audit.write_ahead(vec![line.pending()]).await;
            ahead.map_err(unwritten)?;
            let purged = purge(&opened, &what, now).await;
            let came = purged.as_ref().map(|_purged| ());
            audit.write(vec![line.ended(came)]).await;
            let purged = purged.map_err(failed)?;
            output::say(&format!("purged {}", counted(&purged)))?;
            for left in &purged.left {
                output::note(&format!("left: {left}"));
            }
            output::note(beyond(&config.db));
            Ok(ExitCode::from(u8::from(!purged.left.is_empty())))
        }
        .await;
        base.close().await;
        done
    }
}

/// Purges the database, and then the files of an archive that have rows of what was purged.
async fn purge(opened: &Opened, what: &What, now: Timestamp) -> Result<Purged, Error> {
    let Some(archive) = &opened.archive else {
        return opened.maintenance.purge(what, now).await;
    };
    if let What::Record(name) = what {
        archive.restore(&*opened.store, name.result()).await?;
    }
    let mut purged = opened.maintenance.purge(what, now).await?;
    for file in archive.erase(parent(what), now).await? {
        purged.left.push(format!(
            "the archive file `{}` has rows of deleted runs, because runs moved to it meanwhile; purge again",
            file.path
        ));
    }
    Ok(purged)
}

fn parent(what: &What) -> &Parent {
    match what {
        What::Parent(parent) => parent,
        What::Result(name) => name.parent(),
        What::Record(name) => name.result().parent(),
    }
}

fn unwritten(error: std::io::Error) -> Failure {
    Failure::other(format!("cannot write the audit log: {error}"))
}

fn shown(what: &What) -> String {
    match what {
        What::Parent(parent) => format!("the parent `{parent}`"),
        What::Result(name) => format!("the result `{name}`"),
        What::Record(name) => format!("the record `{name}`"),
    }
}

/// What is purged, as the audit log names it: a result takes its records with it.
fn place(what: &What) -> String {
    match what {
        What::Parent(parent) => format!("{parent}/results/-"),
        What::Result(name) => name.to_string(),
        What::Record(name) => name.to_string(),
    }
}

fn counted(purged: &Purged) -> String {
    let number = |count: u64, of: &str| match count {
        1 => format!("1 {of}"),
        count => format!("{count} {of}s"),
    };
    format!(
        "{}, {} and {}",
        number(purged.results, "result"),
        number(purged.records, "record"),
        number(purged.objects, "object")
    )
}

/// What this command cannot reach.
fn beyond(db: &DbUrl) -> &'static str {
    match db {
        DbUrl::Sqlite { .. } => {
            "backups and copies of the file keep what they have; so may the disk, where blocks \
             were freed"
        }
        DbUrl::Postgres { .. } => {
            "backups, replicas and archives of the write-ahead log keep what they have; space that \
             VACUUM freed inside pages is overwritten as it is used again, or at once by `VACUUM \
             FULL bodies, dictionaries`, which locks them"
        }
    }
}
