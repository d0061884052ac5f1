//! The simulated cluster as a program: it serves until it is told to stop, and may play runs.

use std::{
    error::Error,
    io::{self, Write},
    net::SocketAddr,
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::{Args, Parser, Subcommand};
use kubesim::{Crd, Plan, Player, Sim};
use tokio::signal::unix::{SignalKind, signal};

/// A simulated Kubernetes cluster for tests and demos.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the API of a simulated cluster until SIGTERM or SIGINT.
    Serve(Serve),
}

#[derive(Debug, Args)]
struct Serve {
    /// Where to listen; port 0 takes any free port.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Where to write a kubeconfig that leads to the cluster.
    #[arg(long, value_name = "PATH")]
    kubeconfig: PathBuf,
    /// Play this many runs: Tekton's and Argo's, from creation to their end.
    #[arg(long, value_name = "N", default_value_t = 0)]
    play: usize,
    /// Runs to start per second.
    #[arg(long, default_value_t = 50.0, value_parser = positive)]
    rate: f64,
    /// What the played runs are drawn from; the same seed gives the same runs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many milliseconds a run takes to play.
    #[arg(long, value_name = "MS", default_value_t = 300)]
    life: u64,
    /// How many runs may be unfinished at once.
    #[arg(long, default_value_t = 50)]
    concurrency: usize,
    /// Dumps to start with, as `kubectl get -o json|yaml` prints them.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    load: Vec<PathBuf>,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 => Ok(rate),
        _ => Err(format!(
            "`{text}` is not a rate; want a number above 0, such as 20 or 0.5"
        )),
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let Command::Serve(serve) = Cli::parse().command;
    match run(serve).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut line = format!("error: {error}");
            let mut source = error.source();
            while let Some(cause) = source {
                line.push_str(&format!(": {cause}"));
                source = cause.source();
            }
            // With no one left to read errors, the exit code has to do.
            drop(writeln!(io::stderr(), "{line}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(serve: Serve) -> Result<(), Box<dyn Error>> {
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let sim = Sim::new();
    sim.install_all(Crd::tekton())
        .install(Crd::argo_workflow())
        .install(Crd::hindsight_workflow());
    for path in &serve.load {
        let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
        let count = sim.load_dump(&text).map_err(|error| match error.source() {
            Some(source) => named(&format!("{error}: {source}")),
            None => named(&error),
        })?;
        say(&format!("loaded {count} objects from {}", path.display()))?;
    }
    let listening = sim
        .listen(serve.listen)
        .await
        .map_err(|error| format!("cannot listen on {}: {error}", serve.listen))?;
    std::fs::write(&serve.kubeconfig, listening.kubeconfig_text())
        .map_err(|error| format!("cannot write {}: {error}", serve.kubeconfig.display()))?;
    say(&format!(
        "listening on http://{}, kubeconfig {}",
        listening.addr,
        serve.kubeconfig.display()
    ))?;
    let plan = Plan {
        seed: serve.seed,
        runs: serve.play,
        rate: serve.rate,
        concurrency: serve.concurrency,
        life: Duration::from_millis(serve.life),
        ..Plan::default()
    };
    let playing = Player::new(&sim, plan).start();
    let told = async {
        if serve.play == 0 {
            return std::future::pending().await;
        }
        let progress = playing.over().await;
        let line = format!(
            "played {} runs: {} finished, {} lost",
            serve.play, progress.finished, progress.lost
        );
        say(&line)?;
        std::future::pending::<io::Result<()>>().await
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        outcome = told => outcome?,
    }
    playing.stop();
    listening.stop().await;
    Ok(())
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "{line}")?;
    out.flush()
}
