//! `hindsight copy` and `hindsight import tekton-results`: rows as they are, from one database
//! into another.

use std::{
    io::Write as _,
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::{ArgMatches, Args, FromArgMatches as _};
use indicatif::ProgressBar;

use super::{
    failure::{Failure, of_store},
    output, progress, serve,
};
use crate::{app, config::DbUrl};
use hindsight_storage as storage;
use hindsight_storage::{
    copy::{Count, Depots, Event, Logs, Outcome, Said, Verify, copy},
    tekton::{self, LogsOutcome},
};

/// Copy a database into another: SQLite to PostgreSQL, back, or any to any
///
/// Keeps names, uids, etags, times and payloads byte for byte. What the target has already is
/// compared and left alone, so a second copy changes nothing, and one that was cut off goes on
/// where it stopped. A row of the target gives way only to a later version of the same row. The
/// source is read at one moment and may be in use; what is written to it afterwards is copied by
/// copying again. In the end every row is looked for in the target by name, version and SHA-256,
/// and every payload of the target is rebuilt and hashed.
///
/// Payloads that lie in an object store are read from that of the source (--from-objects) and
/// written as the target is told: into the database, or those of more than objects_above bytes
/// into its own object store (--to-objects). Credentials are read from the environment.
///
/// Logs are copied line by line, with their times; one that is sealed has the same SHA-256 in the target.
/// Lines that the target lacks at the end of a log are added; another log of the same name is kept, and
/// the copy of it refused.
///
/// Pipelines of Kubeflow and their versions are copied with their ids. What the target has under the same id
/// is kept, and where it differs refused.
///
/// The key of page tokens is not copied: lists that are under way begin anew. Exit codes: 0 all is
/// there, 1 rows were refused and listed, or it could not be copied, 5 a database is not
/// reachable, 6 the target is not as it should be.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  hindsight copy --from sqlite:history.db --to postgres://hindsight:secret@db.example/hindsight
  hindsight copy --from postgres://hindsight:secret@db.example/hindsight --to sqlite:copy.db")]
pub(super) struct Copy {
    /// The database to read
    #[arg(long, value_name = "URL", value_parser = database)]
    from: DbUrl,

    /// The database to write to; made, or brought up to date, if need be
    #[arg(long, value_name = "URL", value_parser = database)]
    to: DbUrl,

    /// Where big payloads of the source lie, if not in it: its objects_url
    #[arg(long, value_name = "URL")]
    from_objects: Option<String>,

    /// Where big payloads of the target shall lie, if not in it: its objects_url
    #[arg(long, value_name = "URL")]
    to_objects: Option<String>,

    /// Copy records without their logs
    #[arg(long)]
    no_logs: bool,

    /// Do not compare the databases once all is copied
    #[arg(long)]
    no_verify: bool,
}

/// Copy the PostgreSQL database of Tekton Results, which is only read
///
/// Keeps names, uids, etags, times, annotations and summaries. Payloads are kept as Tekton Results
/// shows them, which is as PostgreSQL writes `jsonb`. Its server may go on running; import again to
/// fetch what it stored meanwhile, which changes nothing else. Rows that cannot be taken (a name
/// that is none here, no time at all) are listed with the reason. Logs are not in that database, only
/// records that name them; with `--logs` they are read from where Tekton Results wrote them, and
/// stored as the uploaded logs of their runs, byte for byte but for what logs_redact matches. A log
/// that is stored already is compared and left alone, so that an import that was cut off goes on.
///
/// Exit codes: 0 all is there, 1 rows were refused and listed, or it could not be imported, 5 a
/// database is not reachable, 6 the target is not as it should be.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  hindsight import tekton-results postgres://tekton:secret@db.example/tekton-results \\
    --db postgres://hindsight:secret@db.example/hindsight
  hindsight import tekton-results postgres://tekton:secret@127.0.0.1/tekton-results \\
    --db sqlite:history.db
  hindsight import tekton-results postgres://tekton:secret@db.example/tekton-results \\
    --db sqlite:history.db --logs s3://tekton-logs/LOGS_PATH")]
pub(super) struct TektonResults {
    /// The database of Tekton Results, `postgres://USER:PASSWORD@HOST:PORT/DATABASE`
    #[arg(value_name = "URL", value_parser = database)]
    from: DbUrl,

    /// Import its logs too, from this directory or bucket with `LOGS_PATH`, such as
    /// `file:///DIRECTORY` or `s3://BUCKET/PREFIX`
    #[arg(long, value_name = "URL")]
    logs: Option<String>,

    /// Do not compare the databases once all is copied
    #[arg(long)]
    no_verify: bool,
}

fn database(text: &str) -> Result<DbUrl, String> {
    text.parse::<DbUrl>().map_err(|error| error.to_string())
}

fn verify(no: bool) -> Verify {
    if no { Verify::No } else { Verify::Yes }
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let given = Copy::from_arg_matches(matches).map_err(|e| Failure::usage(e.to_string()))?;
    if given.from == given.to {
        return Err(Failure::usage("--from and --to name the same database"));
    }
    let (from, to) = (given.from.expose(), given.to.expose());
    let config = serve::load(matches)?;
    let object_backend = |url: Option<&String>| {
        let opened = url
            .map(|url| app::object_backend_at(&config, url))
            .transpose();
        opened.map_err(|error| of_store(&error))
    };
    let depots = Depots {
        from: object_backend(given.from_objects.as_ref())?,
        to: object_backend(given.to_objects.as_ref())?,
    };
    let mut watch = Watch::new();
    let mut see = |event| watch.see(event);
    let logs = if given.no_logs { Logs::No } else { Logs::Yes };
    let what = (logs, verify(given.no_verify));
    let copying = copy(&from, &to, &depots, what, &mut see);
    let outcome = super::runtime()?.block_on(copying);
    watch.conclude(outcome, "copied")
}

pub(super) fn tekton_results(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let given = TektonResults::from_arg_matches(matches);
    let given = given.map_err(|e| Failure::usage(e.to_string()))?;
    let config = serve::load(matches)?;
    if given.from == config.db {
        return Err(Failure::usage("the database to read is that of --db"));
    }
    let (from, to) = (given.from.expose(), config.db.expose());
    let mut watch = Watch::new();
    let mut see = |event| watch.see(event);
    let object_backend = app::object_backend(&config).map_err(|error| of_store(&error))?;
    let verify = verify(given.no_verify);
    let runtime = super::runtime()?;
    let logs = {
        // Clients of buckets are made where they are used.
        let _entered = runtime.enter();
        let logs = given.logs.map(|url| app::foreign_logs(&config, &url));
        logs.transpose().map_err(|error| of_store(&error))?
    };
    let depot = object_backend.as_ref();
    let importing = tekton::import(&from, &to, depot, logs.as_ref(), verify, &mut see);
    let (outcome, logs) = match runtime.block_on(importing) {
        Ok((outcome, logs)) => (Ok(outcome), logs),
        Err(error) => (Err(error), None),
    };
    let code = watch.conclude(outcome, "imported")?;
    match logs {
        None => Ok(code),
        Some(logs) => told(logs, code),
    }
}

/// What is told while rows are copied.
struct Watch {
    began: Instant,
    bar: ProgressBar,
    notes: u64,
    damaged: bool,
    compared: bool,
    /// Whether logs were looked at.
    logs: bool,
}

impl Watch {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            bar: ProgressBar::hidden(),
            notes: 0,
            damaged: false,
            compared: false,
            logs: false,
        }
    }

    fn see(&mut self, event: Event) {
        let tell = |text: &str| self.bar.suspend(|| output::note(text));
        match event {
            Event::Stage { what, total } => {
                self.bar.finish_and_clear();
                self.bar = progress::bar(what, total);
                self.compared |= what == "compared";
                self.logs |= what == "logs";
            }
            Event::Seen(more) => self.bar.inc(more),
            Event::Note(Said { of, why }) => {
                tell(&format!("note {of}: {why}"));
                self.notes += 1;
            }
            Event::Refused(Said { of, why }) => tell(&format!("refused {of}: {why}")),
            Event::Found(found) => {
                tell(&format!(
                    "{}: {}: {}",
                    found.kind.name(),
                    found.of,
                    found.what
                ));
                self.damaged = true;
            }
        }
    }

    fn conclude(
        &self,
        outcome: Result<Outcome, storage::Error>,
        done: &str,
    ) -> Result<ExitCode, Failure> {
        self.bar.finish_and_clear();
        let outcome = outcome.map_err(|error| of_store(&error))?;
        let took: Duration = self.began.elapsed();
        let Outcome {
            results,
            records,
            logs,
            pipelines,
            bytes,
            log_bytes,
            verified,
        } = outcome;
        let logs_line = match self.logs {
            true => format!("logs: {}, {log_bytes} bytes of lines\n", counted(logs)),
            false => String::new(),
        };
        let pipelines_line = match pipelines == Count::default() {
            true => String::new(),
            false => format!("pipelines and versions: {}\n", counted(pipelines)),
        };
        writeln!(
            std::io::stdout().lock(),
            "{done} {bytes} bytes in {:.1} s\nresults: {}\nrecords: {}\n{logs_line}{pipelines_line}{}",
            took.as_secs_f64(),
            counted(results),
            counted(records),
            match self.compared {
                true =>
                    format!("verified: {verified} rows are in the target with the same content"),
                false => "verified: nothing was compared".to_owned(),
            }
        )?;
        Ok(
            match (
                self.damaged,
                results.refused + records.refused + logs.refused + pipelines.refused,
            ) {
                (true, _) => ExitCode::from(Failure::DAMAGED),
                (false, 0) => ExitCode::SUCCESS,
                (false, _) => ExitCode::from(Failure::FAILED),
            },
        )
    }
}

/// Says what became of logs.
fn told(outcome: LogsOutcome, code: ExitCode) -> Result<ExitCode, Failure> {
    let LogsOutcome {
        logs,
        missing,
        kept,
        bytes,
        redactions,
    } = outcome;
    output::say(&format!(
        "logs: {}, {missing} not there, {kept} with lines of containers; {bytes} bytes stored, \
         {redactions} texts redacted",
        counted(logs)
    ))?;
    Ok(match logs.refused {
        0 => code,
        _ if code == ExitCode::SUCCESS => ExitCode::from(Failure::FAILED),
        _ => code,
    })
}

fn counted(count: Count) -> String {
    let Count {
        created,
        updated,
        unchanged,
        refused,
    } = count;
    format!("{created} created, {updated} updated, {unchanged} unchanged, {refused} refused")
}
