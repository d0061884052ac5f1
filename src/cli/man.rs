//! The command `hindsight man`: the help of all commands as manual pages.

use std::{io::Write as _, path::PathBuf, process::ExitCode};

use clap::{Args, Command};
use clap_mangen::Man;

use super::{failure::Failure, output};

/// Print the manual page of the program, or write those of all commands
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  hindsight man
  hindsight man | man -l -
  hindsight man --dir man1")]
pub(super) struct ManCommand {
    /// Folder into which the pages of all commands are written
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl ManCommand {
    pub(super) fn run(&self, root: Command) -> Result<ExitCode, Failure> {
        let Some(dir) = &self.dir else {
            let mut page = Vec::new();
            Man::new(root).render(&mut page)?;
            std::io::stdout().lock().write_all(&page)?;
            return Ok(ExitCode::SUCCESS);
        };
        let written = std::fs::create_dir_all(dir).and_then(|()| {
            clap_mangen::generate_to(root, dir)?;
            Ok(std::fs::read_dir(dir)?.count())
        });
        let pages =
            written.map_err(|error| Failure::other(format!("`{}`: {error}", dir.display())))?;
        output::note(&format!(
            "wrote manual pages; {} has {pages} files",
            dir.display()
        ));
        Ok(ExitCode::SUCCESS)
    }
}
