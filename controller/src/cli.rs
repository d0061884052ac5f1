//! The command line: flags in, an exit code out.

pub mod plugin;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Context;
use clap::{ArgMatches, Command};
use hindsight_cluster::{choose_cryptography, connect, readable};
use hindsight_config::{Key, Problems, Program, Settings as _, Sources};
use hindsight_runtime::{error::report, telemetry};
use tokio::signal::unix::{SignalKind, signal};
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

/// What a server in the same process makes pointless: it logs for both.
const POINTLESS: [&str; 2] = ["log_level", "log_format"];

/// How the flags of a controller are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flags {
    /// Each is called as its key, with dashes for underscores.
    Alone,
    /// With `workflow-` before their keys, because they stand beside those of a server in the same process.
    Beside,
}

impl Flags {
    /// Adds `--config` and the flags of all keys to `command`.
    #[must_use]
    pub fn added_to(self, command: Command) -> Command {
        let wanted = |key: &Key| self == Self::Alone || !POINTLESS.contains(&key.name);
        self.program().add_flags(command, wanted)
    }

    /// Reads the flags that were added, the environment and the file; all faults are one error.
    pub fn read(self, matches: &ArgMatches) -> Result<Launch, Problems> {
        let program = self.program();
        Launch::load(&program, &Sources::gather(&program, matches))
    }

    const fn program(self) -> Program {
        match self {
            Self::Alone => PROGRAM,
            Self::Beside => Program {
                flags: "workflow-",
                heading: Some("Workflow controller"),
                ..PROGRAM
            },
        }
    }
}

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
        _ => match Flags::Alone.read(&matches) {
            Ok(launch) => start(launch),
            Err(problems) => misused(&problems),
        },
    }
}

/// Prints the settings that count, or the reference of all keys.
fn config(matches: &ArgMatches) -> ExitCode {
    match matches.subcommand() {
        Some(("print", asked)) => match Flags::Alone.read(asked) {
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
            on_signal(shutdown.clone())?;
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

/// SIGTERM and SIGINT ask the controller to end.
fn on_signal(shutdown: CancellationToken) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be heard")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be heard")?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => info!("SIGTERM received; ending"),
            _ = interrupt.recv() => info!("SIGINT received; ending"),
        }
        shutdown.cancel();
    });
    Ok(())
}

fn command() -> Command {
    let print = Command::new("print")
        .about("Print the configuration in effect, and where each value comes from");
    let docs = Command::new("docs").about("Print the reference of every key, as Markdown");
    let config = Command::new("config")
        .about("Look at the configuration")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(Flags::Alone.added_to(print))
        .subcommand(docs);
    let crd = Command::new("crd").about("Print the CustomResourceDefinition of workflows, as JSON");
    Flags::Alone
        .added_to(Command::new(NAME))
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
