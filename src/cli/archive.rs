//! `hindsight archive`: verifies the files that records were moved to, and puts records back.

use std::process::ExitCode;

use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use hindsight_filter::model::ResultName;
use hindsight_runtime::error::report;
use hindsight_storage::{
    Archive, ArchiveIndex, Error, Store,
    resolve::{Options, Schema, open},
};

use super::{
    failure::{Failure, of_store},
    flags_of, output, progress, serve,
};
use crate::app;

const ABOUT: &str = "Verify the archive, or put records back from it

Records of old runs are moved to Parquet files by policies that have `archive_after`; docs/archive.md describes \
that. These commands work on the database and the files themselves, beside servers or without one.";

const EXAMPLES: &str = "Examples:
  hindsight archive verify --db sqlite:/var/lib/hindsight/history.db --archive-url file:///var/lib/hindsight/archive
  hindsight archive restore shop/results/5d5f --db sqlite:/var/lib/hindsight/history.db --archive-url s3://history/runs";

/// Read all files, and compare them with what was written and with the database
///
/// Every payload is compared with its SHA-256. Nothing is changed.
///
/// Exit codes: 0 all is well, 1 something is damaged or missing, 2 wrong usage or configuration, 5 the database cannot be
/// reached.
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
    /// Names of results, such as `shop/results/5d5f`
    #[arg(required = true, value_name = "RESULT")]
    names: Vec<String>,
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
            let name = |text: &String| {
                let name = text.parse::<ResultName>();
                name.map_err(|error| Failure::usage(format!("`{text}`: {error}")))
            };
            let names = given.names.iter().map(name);
            let names = names.collect::<Result<Vec<_>, _>>()?;
            on(sub, async |archive, store, _| {
                restore(archive, store, &names).await
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
        let options = Options {
            schema: Schema::Require,
            depot: app::object_backend(&config).map_err(failed)?,
            archive: app::archive_bucket(&config).map_err(failed)?,
            ..Options::default()
        };
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

async fn restore(
    archive: &Archive,
    store: &dyn Store,
    names: &[ResultName],
) -> Result<ExitCode, Failure> {
    let failed = |error: Error| of_store(&error);
    for name in names {
        if archive.restore(store, name).await.map_err(failed)? {
            output::say(&format!("{name} restored"))?;
        } else if store.result(name).await.map_err(failed)?.is_some() {
            output::say(&format!("{name} is in the database already"))?;
        } else {
            return Err(Failure::missing(format!("there is no result `{name}`")));
        }
    }
    Ok(ExitCode::SUCCESS)
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
    Ok(ExitCode::from(u8::from(!damaged.is_empty())))
}
