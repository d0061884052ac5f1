//! `hindsight config`.

use std::{io::Write as _, process::ExitCode};

use clap::ArgMatches;

use super::{failure::Failure, serve};
use crate::config::{Settings as _, reference_markdown};

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let text = match matches.subcommand() {
        Some(("print", sub)) => serve::load(sub)?.print(),
        _ => reference_markdown(),
    };
    write!(std::io::stdout().lock(), "{text}")?;
    Ok(ExitCode::SUCCESS)
}
