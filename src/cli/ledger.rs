//! `hindsight ledger`: what a running watcher has not stored, and why. The watcher knows how to ask;
//! this is the same under the name of the program that people have at hand.

use std::process::ExitCode;

use clap::{ArgMatches, Command};
use hindsight_watcher::cli::ledger;

use super::{failure::Failure, runtime};
use hindsight_runtime::error::report;

/// The command with its flags.
pub(super) fn command() -> Command {
    ledger::command()
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match runtime()?.block_on(ledger::run(matches)) {
        Ok(true) => Ok(ExitCode::SUCCESS),
        Ok(false) => Ok(ExitCode::from(Failure::FAILED)),
        Err(error) => Err(Failure::unreachable(report(error.as_ref()))),
    }
}
