//! The command `hindsight open`: the address of the page of a run, or of its record.

use std::process::ExitCode;

use clap::Args;

use super::{
    failure::Failure,
    output,
    run_ref::{Lookup, RUN},
};

/// Print the address of the page of a run
///
/// With `--api` it is that of the record in the REST API, which answers JSON. Either can be given as RUN.
#[derive(Debug, Args)]
#[command(after_long_help = format!("{RUN}

Examples:
  hindsight open release-42 -n shop
  hindsight open @last -n shop -p release
  hindsight open shop/release-42 --server http://127.0.0.1:8080"))]
pub(super) struct Open {
    /// Run whose address is printed
    run: String,

    /// Print the address of the REST API
    #[arg(long)]
    api: bool,

    #[command(flatten)]
    lookup: Lookup,
}

impl Open {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let record = self.lookup.record(&self.run).await?;
        let server = self.lookup.connect.server().trim_end_matches('/');
        let before = match self.api {
            true => "apis/results.tekton.dev/v1alpha2/parents",
            false => "ui/run",
        };
        output::say(&format!("{server}/{before}/{record}"))?;
        Ok(ExitCode::SUCCESS)
    }
}
