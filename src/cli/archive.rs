//! `hindsight archive`: verifies the files that records were moved to, and puts records back.

use std::{num::NonZeroU32, process::ExitCode};

use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use hindsight_filter::{
    Order,
    condition::{Column, Condition, Is, Test, Value},
    model::{ParentPattern, ResultName, ResultPattern},
};
use hindsight_runtime::{
    clock::{Clock as _, SystemClock},
    error::report,
};
use hindsight_storage::{
    Archive, ArchiveIndex, Error, ListQuery, Priority, Projection, Store, resolve::open,
};
use indicatif::ProgressBar;
use jiff::Timestamp;

use super::{
    failure::{Failure, of_store},
    flags_of, output, progress, serve,
    when::When,
};
use crate::app;

/// Results that are looked at between two questions to the database.
const PAGE: NonZeroU32 = NonZeroU32::new(500).expect("it is not zero");

const ABOUT: &str = "Verify the archive, or put records back from it

Records of old runs are moved to Parquet files by policies that have `archive_after`; docs/archive.md describes \
that. These commands work on the database and the files themselves, beside servers or without one.";

const EXAMPLES: &str = "Examples:
  hindsight archive verify --db sqlite:/var/lib/hindsight/history.db --archive-url file:///var/lib/hindsight/archive
  hindsight archive restore shop/results/5d5f --db sqlite:/var/lib/hindsight/history.db --archive-url s3://history/runs
  hindsight archive restore shop/results/- --since 2026-01-01T00:00:00Z --until 2026-02-01T00:00:00Z \
    --db sqlite:/var/lib/hindsight/history.db --archive-url s3://history/runs";

/// Read all files, and compare them with what was written and with the database
///
/// Every payload is compared with its SHA-256. Nothing is changed.
///
/// Exit codes: 0 all is well, 2 wrong usage or configuration, 5 the database cannot be reached, 6 something is damaged or
/// missing.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
struct Verify {}

/// Put the records of results back into the database
///
/// A write to one of their records does the same. A pass of retention moves them again, unless they are held
/// (`hindsight hold add`).
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
struct Restore {
    /// Names of results, such as `shop/results/5d5f`; `shop/results/-` are all of a parent
    #[arg(required_unless_present = "all_parents", value_name = "RESULT")]
    names: Vec<String>,

    /// All results of all parents
    #[arg(short = 'A', long, conflicts_with = "names")]
    all_parents: bool,

    /// Of all of a parent or of all parents, only results that were stored first at this time or later: 30d, 2026-01-01T00:00:00Z
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    since: Option<When>,

    /// Likewise, only results that were stored first before this time
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    until: Option<When>,
}

/// The command and what it consists of.
pub(super) fn command() -> Command {
    let of_db = |command| flags_of(command, &["db", "objects_url", "archive_url"]);
    Command::new("archive")
        .about("Verify the archive, or put records back from it")
        .long_about(ABOUT)
        .after_long_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(of_db(Verify::augment_args(Command::new("verify"))))
        .subcommand(of_db(Restore::augment_args(Command::new("restore"))))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let usage = |error: clap::Error| Failure::usage(error.to_string());
    match matches.subcommand() {
        Some(("restore", sub)) => {
            let given = Restore::from_arg_matches(sub).map_err(usage)?;
            let wanted = given.wanted(SystemClock.now())?;
            on(sub, async |archive, store, _| {
                restore(archive, store, &wanted).await
            })
        }
        Some((_, sub)) => on(sub, async |archive, _, index| verify(archive, index).await),
        None => Err(Failure::usage("want `verify` or `restore`")),
    }
}

/// Does something with the archive that is configured.
fn on(
    matches: &ArgMatches,
    work: impl AsyncFnOnce(&Archive, &dyn Store, &dyn ArchiveIndex) -> Result<ExitCode, Failure>,
) -> Result<ExitCode, Failure> {
    let config = serve::load(matches)?;
    super::runtime()?.block_on(async {
        let failed = |error: Error| of_store(&error);
        let options = app::command_options(&config).map_err(failed)?;
        let opened = open(&config.db.expose(), &options).await.map_err(failed)?;
        let done = match &opened.archive {
            Some(archive) => work(archive, &*opened.store, &*opened.index).await,
            None => Err(Failure::usage(
                "archive_url is not set; docs/archive.md describes the archive",
            )),
        };
        opened.maintenance.close().await;
        done
    })
}

impl Restore {
    /// Which results are meant.
    fn wanted(&self, now: Timestamp) -> Result<Vec<ListQuery>, Failure> {
        let bound = |flag, when: Option<When>, is: fn(Value) -> Is| {
            let time = when.map(|when| when.time(flag, now)).transpose()?;
            Ok::<_, Failure>(time.map(|time| {
                Condition::Test(Test {
                    column: Column::CreateTime,
                    is: is(Value::Time(time)),
                    negated: false,
                })
            }))
        };
        let bounds = [
            bound("--since", self.since, Is::AtLeast)?,
            bound("--until", self.until, Is::Less)?,
        ];
        let bounds: Vec<_> = bounds.into_iter().flatten().collect();
        let query = |text: &str| {
            let scope = text.parse::<ResultPattern>();
            let scope = scope.map_err(|error| Failure::usage(format!("`{text}`: {error}")))?;
            if scope.id.is_some() && !bounds.is_empty() {
                return Err(Failure::usage(format!(
                    "`{text}` is one result; --since and --until are for all of a parent, such as `shop/results/-`"
                )));
            }
            Ok(ListQuery {
                scope,
                condition: Condition::And(bounds.clone()),
                order: Order::newest_first(),
                after: None,
                limit: PAGE,
                bodies: false,
                max_bytes: None,
                projection: Projection::ALL,
                priority: Priority::Low,
            })
        };
        match self.all_parents {
            true => Ok(vec![query("-/results/-")?]),
            false => self.names.iter().map(|name| query(name)).collect(),
        }
    }
}

async fn restore(
    archive: &Archive,
    store: &dyn Store,
    wanted: &[ListQuery],
) -> Result<ExitCode, Failure> {
    for query in wanted {
        match &query.scope {
            ResultPattern {
                parent: ParentPattern::Exact(parent),
                id: Some(id),
            } => {
                let name = ResultName::new(parent.clone(), id);
                let name = name.map_err(|error| Failure::usage(error.to_string()))?;
                restore_one(archive, store, &name).await?;
            }
            _ => restore_all(archive, store, query.clone()).await?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn restore_one(
    archive: &Archive,
    store: &dyn Store,
    name: &ResultName,
) -> Result<(), Failure> {
    let failed = |error: Error| of_store(&error);
    if archive.restore(store, name).await.map_err(failed)? {
        output::say(&format!("{name} restored"))
    } else if store.result(name).await.map_err(failed)?.is_some() {
        output::say(&format!("{name} is in the database already"))
    } else {
        Err(Failure::missing(format!("there is no result `{name}`")))
    }
}

/// Goes through results a page at a time, so that a command that was stopped can be given again.
async fn restore_all(
    archive: &Archive,
    store: &dyn Store,
    mut query: ListQuery,
) -> Result<(), Failure> {
    let failed = |error: Error| of_store(&error);
    let bar = ProgressBar::new_spinner().with_message("results looked at");
    let (mut seen, mut restored) = (0_u64, 0_u64);
    loop {
        let page = store.list_results(&query).await.map_err(failed)?;
        let Some(last) = page.last() else { break };
        query.after = Some(last.position.clone());
        for listed in page {
            let name = &listed.item.name;
            restored += u64::from(archive.restore(store, name).await.map_err(failed)?);
            seen += 1;
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    output::say(&format!(
        "{seen} results: {restored} restored, {} in the database already",
        seen - restored
    ))
}

async fn verify(archive: &Archive, index: &dyn ArchiveIndex) -> Result<ExitCode, Failure> {
    let failed = |error: Error| of_store(&error);
    let files = index.archive_files().await.map_err(failed)?;
    let bar = progress::bar("verified", files.len() as u64);
    let (mut records, mut results, mut damaged) = (0, 0, Vec::new());
    for file in &files {
        match archive.verify_with_index(file).await {
            Ok(of_file) => {
                records += file.records;
                results += of_file;
            }
            Err(error) => damaged.push(report(&error)),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    for why in &damaged {
        output::note(why);
    }
    output::say(&format!(
        "{} files with {records} records, {results} results of the database: {} damaged or missing",
        files.len(),
        damaged.len()
    ))?;
    Ok(match damaged.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(Failure::DAMAGED),
    })
}
