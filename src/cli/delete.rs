//! `hindsight delete`.

use std::{
    io::{BufRead as _, IsTerminal as _, Write as _},
    process::ExitCode,
};

use clap::{Args, ValueEnum};
use hindsight_proto::v1alpha2 as pb;
use tonic::Code;

use super::{connect::Connect, failure::Failure, output};

/// What to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum What {
    /// Records, by their full names
    #[value(alias = "records")]
    Record,
    /// Results with all their records, by their full names
    #[value(alias = "results")]
    Result,
}

/// Delete records or results, with everything below them
///
/// What is deleted is gone for good. Asks first on a terminal; elsewhere --yes is needed.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  hindsight delete record ci/results/5d5f/records/77aa
  hindsight delete result ci/results/5d5f --yes")]
pub(super) struct Delete {
    /// What to delete
    #[arg(value_enum)]
    what: What,

    /// Full names
    #[arg(required = true)]
    names: Vec<String>,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,

    /// A name that is not there is no error
    #[arg(long)]
    ignore_not_found: bool,

    #[command(flatten)]
    connect: Connect,
}

impl Delete {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        self.confirm()?;
        let mut rpc = self.connect.client()?.rpc();
        for name in &self.names {
            let answer = match self.what {
                What::Record => {
                    rpc.delete_record(pb::DeleteRecordRequest { name: name.clone() })
                        .await
                }
                What::Result => {
                    rpc.delete_result(pb::DeleteResultRequest { name: name.clone() })
                        .await
                }
            };
            match answer {
                Ok(_) => writeln!(std::io::stdout().lock(), "{name} deleted")?,
                Err(status) if status.code() == Code::NotFound && self.ignore_not_found => {
                    output::note(&format!("{name} is not there"));
                }
                Err(status) => return Err(self.connect.failure(&status)),
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn confirm(&self) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        let stdin = std::io::stdin();
        if !stdin.is_terminal() {
            return Err(Failure::usage(
                "nobody is at the terminal to confirm; add --yes to delete",
            ));
        }
        let below = if self.what == What::Result {
            ", with all their records"
        } else {
            ""
        };
        let mut stderr = std::io::stderr().lock();
        write!(
            stderr,
            "Delete {}{below}? This cannot be undone. [y/N] ",
            self.names.join(", ")
        )?;
        stderr.flush()?;
        let mut answer = String::new();
        stdin.lock().read_line(&mut answer)?;
        if matches!(answer.trim(), "y" | "Y" | "yes") {
            Ok(())
        } else {
            Err(Failure::other("nothing was deleted"))
        }
    }
}
