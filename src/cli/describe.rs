//! The command `hindsight describe`: a run as a tree.

mod draw;

use std::{io::Write as _, process::ExitCode};

use clap::Args;
use hindsight_proto::v1::{GetRunTreeRequest, RunNode, run_node::Outcome};

use super::{
    failure::Failure,
    output::{self, Form},
    pager::Paging,
    run_ref::{Lookup, RUN},
    terminal::{ColorWhen, Screen},
};

pub(super) use draw::word;

/// Draw a run and everything below it, with times
///
/// One line for each task, in the order of their start: how it stands, how long it waited and took,
/// and when, from the start of the run on the left to its end on the right. A dot or light cell is
/// time before the first step, an equals sign or full cell time in steps. Tasks that share a name are
/// one line; steps are shown of tasks that failed. On terminals lines are cut to the width.
#[derive(Debug, Args)]
#[command(after_long_help = format!("{RUN}

Examples:
  hindsight describe release-42 -n shop
  hindsight describe @last -n shop -p release --all
  hindsight describe shop/results/5d5f/records/5d5f -o json"))]
pub(super) struct Describe {
    /// Run to draw
    run: String,

    /// Most levels below the run
    #[arg(long, value_name = "LEVELS", default_value_t = 10)]
    depth: u32,

    /// Show every task and step on a line of its own
    #[arg(short, long)]
    all: bool,

    /// Exit with 1 if the run failed, timed out or was cancelled
    #[arg(long)]
    exit_status: bool,

    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Form::Text)]
    output: Form,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    lookup: Lookup,
}

impl Describe {
    pub(super) async fn run(&self) -> Result<ExitCode, Failure> {
        let name = self.lookup.record(&self.run).await?;
        let connect = &self.lookup.connect;
        let request = GetRunTreeRequest {
            name,
            steps: true,
            brief: false,
        };
        let reply = connect.client()?.runs().get_run_tree(request).await;
        let tree = reply
            .map_err(|status| connect.failure(&status))?
            .into_inner();
        match self.output {
            Form::Text => {
                let mut out = self.paging.out();
                let screen = Screen::of_stdout(ColorWhen::Auto);
                for line in draw::draw(&tree, self.depth, self.all, screen) {
                    writeln!(out, "{line}")?;
                }
            }
            form => {
                let is_yaml = form == Form::Yaml;
                output::message(self.paging.out(), is_yaml, "hindsight.v1.RunTree", &tree)?;
            }
        }
        for note in &tree.notes {
            output::note(&format!("warning: {note}"));
        }
        if tree.nodes_left_out > 0 {
            let left_out = tree.nodes_left_out;
            output::note(&format!("warning: {left_out} nodes are left out"));
        }
        let root = tree.nodes.first().map(RunNode::outcome);
        let failed = matches!(
            root,
            Some(Outcome::Failure | Outcome::Timeout | Outcome::Cancelled)
        );
        Ok(match self.exit_status && failed {
            true => ExitCode::from(Failure::FAILED),
            false => ExitCode::SUCCESS,
        })
    }
}
