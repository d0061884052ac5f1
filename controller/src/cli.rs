//! The command line: flags in, an exit code out.

pub mod plugin;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Context;
use clap::{ArgMatches, Command};
use hindsight_cluster::{choose_cryptography, connect, readable};
use hindsight_config::{Problems, Settings as _, Sources};
use hindsight_runtime::{error::report, shutdown, telemetry};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::{
    app::App,
    config::{Launch, PROGRAM, reference_markdown},
};

/// What the client of the cluster logs again and again, and is said here once.
pub const SILENCED: &str = "kube_client::client=off,kube_runtime=off";

const NAME: &str = "hindsight-workflow";

const ABOUT: &str = "Run workflows of Jobs, workflows.hindsight.dev, on a Kubernetes cluster";

const MORE: &str = "Examples:
  hindsight-workflow
  hindsight-workflow --kubeconfig ~/.kube/config --namespace ci
  hindsight-workflow --leader-elect --metrics-listen 0.0.0.0:9092
  hindsight-workflow crd | kubectl apply -f -

Every flag can also be set in the environment, as HINDSIGHT_WORKFLOW_ and \
its name in upper case with _ for -, and in the file that --config names, as `name = value` in \
TOML, with _ for - in the name. A flag beats the environment, and that beats the file.

Exit codes: 0 stopped by SIGTERM or SIGINT, 1 it cannot go on, 2 wrong usage or configuration.";

/// It was told something wrong.
const USAGE: u8 = 2;

/// Runs the program with these arguments, the first of which is its name.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let matches = match command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => {
            let code = match error.use_stderr() {
                true => ExitCode::from(USAGE),
                false => ExitCode::SUCCESS,
            };
            // Help that nobody reads to its end is no error.
            return error.print().map_or(code, |()| code);
        }
    };
    match matches.subcommand() {
        Some(("config", asked)) => config(asked),
        Some(("crd", _)) => {
            match serde_json::to_string_pretty(&hindsight_workflow::crd::definition()) {
                Ok(text) => print(&format!("{text}\n")),
                Err(error) => failed(&error),
            }
        }
        _ => match Launch::load(&PROGRAM, &Sources::gather(&PROGRAM, &matches)) {
            Ok(launch) => start(launch),
            Err(problems) => misused(&problems),
        },
    }
}

/// Prints the settings that count, or the reference of all keys.
fn config(matches: &ArgMatches) -> ExitCode {
    match matches.subcommand() {
        Some(("print", asked)) => match Launch::load(&PROGRAM, &Sources::gather(&PROGRAM, asked)) {
            Ok(launch) => print(&launch.settings.print()),
            Err(problems) => misused(&problems),
        },
        _ => print(&reference_markdown()),
    }
}

fn start(launch: Launch) -> ExitCode {
    choose_cryptography();
    let (level, format) = (&launch.settings.log_level, launch.settings.log_format);
    if let Err(error) = telemetry::init(SILENCED, level, format, None) {
        return failed(&error);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no threads can be started");
    let ended = runtime.and_then(|runtime| {
        runtime.block_on(async {
            let shutdown = CancellationToken::new();
            shutdown::on_signal(shutdown.clone()).context("signals cannot be heard")?;
            Box::pin(control(launch, shutdown)).await
        })
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(error.as_ref()),
    }
}

/// Runs the workflows of a cluster as `launch` says, until `shutdown`. It fails if no cluster is named or the
/// controller cannot go on.
pub async fn control(launch: Launch, shutdown: CancellationToken) -> anyhow::Result<()> {
    choose_cryptography();
    let client = connect(launch.settings.kubeconfig.clone()).await?;
    let app = App::bind(launch.config, client).await?;
    app.run(shutdown).await?;
    info!("ended in order");
    Ok(())
}

/// Whether the kubeconfig that `launch` names can be read, before anything is made or opened.
pub fn check_kubeconfig(launch: &Launch) -> anyhow::Result<()> {
    let path = launch.settings.kubeconfig.as_deref();
    Ok(path.map_or(Ok(()), readable)?)
}

fn command() -> Command {
    let print = Command::new("print")
        .about("Print the configuration in effect, and where each value comes from");
    let docs = Command::new("docs").about("Print the reference of every key, as Markdown");
    let config = Command::new("config")
        .about("Look at the configuration")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(PROGRAM.add_flags(print, |_| true))
        .subcommand(docs);
    let crd = Command::new("crd").about("Print the CustomResourceDefinition of workflows, as JSON");
    PROGRAM
        .add_flags(Command::new(NAME), |_| true)
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .after_help(MORE)
        .subcommand(config)
        .subcommand(crd)
}

fn print(text: &str) -> ExitCode {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_closed) => ExitCode::FAILURE,
    }
}

fn misused(problems: &Problems) -> ExitCode {
    say(&problems.to_string());
    ExitCode::from(USAGE)
}

fn failed(error: &(dyn std::error::Error + 'static)) -> ExitCode {
    say(&report(error));
    ExitCode::FAILURE
}

fn say(problem: &str) {
    // There is nobody left to tell if this does not work.
    writeln!(io::stderr().lock(), "{NAME}: {problem}").unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::command;
    use crate::config::PROGRAM;

    #[test]
    fn help_tells_of_every_flag_and_its_variable() {
        command().debug_assert();
        let help = command().render_long_help().to_string();
        for key in PROGRAM.keys {
            assert!(
                help.contains(&format!("--{}", PROGRAM.flag(key.name))),
                "{}",
                key.name
            );
            assert!(help.contains(&PROGRAM.variable(key.name)), "{}", key.name);
        }
    }
}
