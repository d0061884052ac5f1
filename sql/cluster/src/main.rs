//! `hindsight-sql-cluster`: statements of `hindsight-sql` that several machines execute, with Ballista.

mod args;
mod codec;
mod executor;
mod query;
mod scheduler;
mod transport;

use std::{
    io::{self, IsTerminal as _},
    process::ExitCode,
    sync::Arc,
};

use clap::Parser as _;
use hindsight_connect::Failure;
use hindsight_sql::{cluster::Cluster, command};
use tracing_subscriber::EnvFilter;

use self::{
    args::{Args, Command},
    query::Remote,
};

fn main() -> ExitCode {
    let Args { command } = Args::parse();
    command::main(async {
        match command {
            Command::Scheduler(args) => {
                log("warn");
                scheduler::serve(&args).await
            }
            Command::Executor(args) => {
                // It asks for work twenty times a second, and would say as often that the scheduler is gone.
                log("warn,ballista_executor::execution_loop=error");
                executor::serve(args).await
            }
            Command::Query(args) => {
                log("off");
                query(*args).await
            }
        }
    })
}

/// Runs statements, on the cluster if there is one. One that is interrupted is canceled there too.
async fn query(args: args::Query) -> Result<(), Failure> {
    let Some(url) = &args.scheduler else {
        return command::run(args.query, None).await;
    };
    let remote = Arc::new(Remote::of(url, &args.tls)?);
    let cluster: Arc<dyn Cluster> = Arc::<Remote>::clone(&remote);
    // A shell and a server know themselves what an interrupt means.
    let is_one = args.query.command.is_some();
    let running = command::run(args.query, Some(cluster));
    let done = tokio::select! {
        done = running => done,
        () = command::stopped(), if is_one => Err(Failure::other("the statement was interrupted")),
    };
    remote.settled().await;
    done
}

/// Writes what happens to standard error, as `RUST_LOG` says or else down to `level`.
fn log(level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_not_set| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
}
