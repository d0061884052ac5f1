//! `hindsight delete`.

use std::{
    io::{BufRead as _, IsTerminal as _, Write as _},
    process::ExitCode,
};

use clap::{Args, ValueEnum};
use hindsight_proto::{client::Rpc, v1alpha2 as pb};
use tonic::Code;

use super::{connect::Connect, failure::Failure, output, place::Place};

/// What to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum What {
    /// Runs, by the names or UIDs of their objects
    #[value(alias = "runs")]
    Run,
    /// Records, by their full names
    #[value(alias = "records")]
    Record,
    /// Results with all their records, by their full names
    #[value(alias = "results")]
    Result,
}

/// Delete runs, records or results, with everything below them
///
/// What is deleted is gone for good. Asks first on a terminal; elsewhere --yes is needed.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  hindsight delete run nightly-00042 -n ci
  hindsight delete record ci/results/5d5f/records/77aa
  hindsight delete result ci/results/5d5f --yes")]
pub(super) struct Delete {
    /// What to delete
    #[arg(value_enum)]
    what: What,

    /// Names of runs; full names of records and results
    #[arg(required = true)]
    names: Vec<String>,

    #[command(flatten)]
    place: Place,

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
        let mut rpc = self.connect.client()?.rpc();
        let names = self.full_names(&mut rpc).await?;
        self.confirm(&names)?;
        for name in &names {
            let answer = match self.what {
                What::Run | What::Record => {
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

    /// The full names of what is to go; of runs, their records.
    async fn full_names(&self, rpc: &mut Rpc) -> Result<Vec<String>, Failure> {
        if self.what != What::Run {
            return Ok(self.names.clone());
        }
        let mut full = Vec::new();
        for name in &self.names {
            match self.place.runs(rpc, &self.connect, name).await {
                Ok(found) => match <[_; 1]>::try_from(found) {
                    Ok([record]) => full.push(record.name),
                    Err(several) => {
                        return Err(Failure::usage(format!(
                            "several runs are called `{name}`, such as {}; name one by its UID",
                            several[0].name
                        )));
                    }
                },
                Err(failure) if failure.is_missing() && self.ignore_not_found => {
                    output::note(&format!("{name} is not there"));
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(full)
    }

    fn confirm(&self, names: &[String]) -> Result<(), Failure> {
        if self.yes || names.is_empty() {
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
            names.join(", ")
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
