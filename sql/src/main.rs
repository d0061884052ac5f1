//! `hindsight-sql`: one statement, a shell, or a server of Arrow Flight SQL.

use std::process::ExitCode;

use clap::Parser as _;
use hindsight_sql::{args::Args, command};

fn main() -> ExitCode {
    let args = Args::parse();
    command::main(command::run(args, None))
}
