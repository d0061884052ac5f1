//! The command `hindsight rerun`: a manifest that creates a run again.

mod manifest;

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use hindsight_run::json;

use super::{
    failure::Failure,
    output,
    pager::Paging,
    run_ref::{Lookup, RUN},
};

/// In which form a manifest is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// As people write manifests
    Yaml,
    /// On one line
    Json,
}

/// Print a manifest that creates a run again
///
/// It is the object without its status, UID, owners and what controllers wrote, and with a generated
/// name. Nothing is created: `kubectl create -f -` does that. A pipeline or task that the run refers to
/// is resolved anew, and may have changed. Runs that are part of another run are refused.
#[derive(Debug, Args)]
#[command(after_long_help = format!("{RUN}

Examples:
  hindsight rerun release-42 -n shop
  hindsight rerun shop/release-42 | kubectl create -f -
  hindsight rerun @last-failed -n shop -p release -o json"))]
pub(super) struct Rerun {
    /// Run to create again
    run: String,

    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Form::Yaml)]
    output: Form,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    lookup: Lookup,
}

impl Rerun {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let record = self.lookup.whole(&self.run).await?;
        let data = record.data.unwrap_or_default();
        let object = json::parse(&data.value)
            .map_err(|error| Failure::other(format!("`{}` holds no run: {error}", record.name)))?;
        let made = manifest::manifest(&object).map_err(Failure::other)?;
        let out = self.paging.out();
        output::document(out, self.output == Form::Yaml, &made)?;
        Ok(ExitCode::SUCCESS)
    }
}
