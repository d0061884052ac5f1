//! `hindsight fsck`.

use std::{collections::BTreeMap, io::Write as _, process::ExitCode, time::Instant};

use clap::{ArgMatches, Args, FromArgMatches as _, ValueEnum};
use indicatif::ProgressBar;
use serde::Serialize;

use super::{
    failure::{Failure, of_store},
    output, progress, serve,
};
use crate::{app, config::Config};
use hindsight_runtime::clock::{Clock as _, SystemClock};
use hindsight_storage as storage;
use hindsight_storage::{
    fsck::{Depth, Event, Finding, Kind, Orphans, Seen, fsck, orphans},
    snapshot::Snapshot,
};

/// Findings of one class that a document names; all are counted.
const MOST_NAMED: u64 = 1000;

/// Look for damage in the database
///
/// Rebuilds every payload and compares its SHA-256 with that of what was stored, looks whether
/// everything that is referred to is there, extracts the columns that filters use again from the
/// payloads, counts, and on SQLite has the engine check its own pages and indexes. It reads one
/// moment of the database, changes nothing, and may run beside servers.
///
/// Payloads in an object store (objects_url) are read too, or with --quick looked for, and objects
/// are listed that the database knows nothing of.
///
/// Each finding names what is damaged and what to do. Exit codes: 0 nothing was found, 6 damage
/// was found; 1, 2 or 5 it could not be looked at (2 wrong usage, 5 database not reachable).
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  hindsight fsck --db sqlite:/var/lib/hindsight/history.db
  hindsight fsck --db postgres://hindsight:secret@db.example/hindsight --quick
  hindsight fsck -o json | jq -r '.findings[] | .kind + \" \" + .of'")]
pub(super) struct Fsck {
    /// Do not open payloads: only rows, and whether what they refer to is there
    #[arg(long)]
    quick: bool,

    /// Remove objects of the object store that the database knows nothing of, once they are as old
    /// as objects are kept
    #[arg(long)]
    remove_orphans: bool,

    /// In which form to say what was found
    #[arg(short, long, value_enum, value_name = "FORM", default_value = "text")]
    output: Form,
}

/// The objects that --remove-orphans removed, as JSON shows them.
#[derive(Debug, Default, Serialize)]
struct Removed {
    objects: u64,
    bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A line for each finding, as it is found
    Text,
    /// One JSON document at the end
    Json,
}

/// The JSON document of a whole check.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    database: String,
    clean: bool,
    seconds: f64,
    checked: Seen,
    /// Objects that the database knew nothing of.
    removed: Removed,
    /// Findings of each class, also of those that are not named.
    found: BTreeMap<&'static str, u64>,
    findings: Vec<Finding>,
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let fsck =
        Fsck::from_arg_matches(matches).map_err(|error| Failure::usage(error.to_string()))?;
    let config = serve::load(matches)?;
    let database = config.db.to_string();
    let report = super::runtime()?.block_on(fsck.look(&config, database))?;
    report.tell(fsck.output)
}

impl Fsck {
    async fn look(&self, config: &Config, database: String) -> Result<Report, Failure> {
        let failed = |error: storage::Error| of_store(&error);
        let depth = if self.quick {
            Depth::Quick
        } else {
            Depth::Full
        };
        let began = Instant::now();
        let mut report = Report {
            database,
            ..Report::default()
        };
        let object_backend = app::object_backend(config).map_err(failed)?;
        let snapshot = Snapshot::open_with(&config.db.expose(), object_backend.as_ref()).await;
        let mut snapshot = snapshot.map_err(failed)?;
        let mut bar = ProgressBar::hidden();
        let mut said = Ok(());
        let mut take = |event| match event {
            Event::Stage { what, total } => {
                bar.finish_and_clear();
                bar = progress::bar(what, total);
            }
            Event::Seen(more) => bar.inc(more),
            Event::Found(finding) => {
                if self.output == Form::Text {
                    let told = bar.suspend(|| output::say(&line(&finding)));
                    said = std::mem::replace(&mut said, Ok(())).and(told);
                }
                report.take(finding);
            }
        };
        let seen = fsck(&mut snapshot, depth, &mut take).await;
        let seen = seen.map_err(failed)?;
        let wanted = match self.remove_orphans {
            true => Orphans::Remove,
            false => Orphans::Find,
        };
        let strange = orphans(&mut snapshot, SystemClock.now(), wanted, &mut take).await;
        bar.finish_and_clear();
        let (count, bytes) = strange.map_err(failed)?;
        report.checked = seen;
        report.removed = match wanted {
            Orphans::Remove => Removed {
                objects: count,
                bytes,
            },
            Orphans::Find => Removed::default(),
        };
        snapshot.close().await;
        said?;
        report.clean = report.found.is_empty();
        report.seconds = began.elapsed().as_secs_f64();
        Ok(report)
    }
}

fn line(finding: &Finding) -> String {
    let Finding {
        kind,
        of,
        what,
        remedy,
    } = finding;
    format!("{}: {of}: {what}\n    {remedy}", kind.name())
}

impl Report {
    fn take(&mut self, finding: Finding) {
        let count = self.found.entry(Kind::name(finding.kind)).or_default();
        *count += 1;
        if *count <= MOST_NAMED {
            self.findings.push(finding);
        }
    }

    fn tell(&self, form: Form) -> Result<ExitCode, Failure> {
        if form == Form::Json {
            output::document(std::io::stdout().lock(), false, self)?;
        } else {
            let Seen {
                results,
                records,
                verified_payloads,
                verified_bytes,
                dictionaries,
                objects,
                object_bytes,
            } = self.checked;
            writeln!(
                std::io::stdout().lock(),
                "{}: {} in {:.1} s: {results} results, {records} records, {verified_payloads} \
                 payloads of {verified_bytes} bytes verified, {dictionaries} dictionaries",
                self.database,
                self.verdict(),
                self.seconds,
            )?;
            if objects > 0 {
                writeln!(
                    std::io::stdout().lock(),
                    "{objects} payloads of {object_bytes} bytes lie in the object store"
                )?;
            }
            let Removed { objects, bytes } = self.removed;
            if objects > 0 {
                writeln!(
                    std::io::stdout().lock(),
                    "{objects} objects of {bytes} bytes were removed that the database knew nothing of"
                )?;
            }
        }
        Ok(match self.clean {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(Failure::DAMAGED),
        })
    }

    fn verdict(&self) -> String {
        if self.clean {
            return "clean".to_owned();
        }
        let found = self.found.iter();
        let found: Vec<_> = found
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        format!("damaged ({})", found.join(", "))
    }
}
