//! The command line: flags in, an exit code out.

pub mod ledger;
mod release;
mod running;
mod upstream;

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use clap::{ArgMatches, Command};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use hindsight_client as client;
use hindsight_config::{Problems, Settings as _, Sources};
use hindsight_run::Kinds;
use hindsight_runtime::traces::Exporter;

pub use self::running::{check_kubeconfig, watch};
use crate::{
    config::{Launch, PROGRAM, reference_markdown},
    sink::GrpcSink,
};
use hindsight_runtime::{error::report, shutdown, telemetry};

/// The client of the cluster logs every call that is refused, again and again, and bodies that it
/// cannot read, which may be payloads. A refusal is said once here, when it begins. A filter that
/// names these modules gets them back.
pub const SILENCED: &str = "kube_client::client=off,kube_runtime::watcher=off";

const ABOUT: &str = "Store the runs of a Kubernetes cluster in Hindsight, and delete from the cluster \
                     those that are stored";

const MORE: &str = "Examples:
  hindsight-watcher --server http://127.0.0.1:8080
  hindsight-watcher --server https://hindsight.example --token-file token --collect --grace 10m
  hindsight-watcher --kubeconfig ~/.kube/config --namespace ci --kinds taskruns,pipelineruns
  hindsight-watcher config print

Every flag can also be set in the environment, as HINDSIGHT_WATCHER_ and \
its name in upper case with _ for -, and in the file that --config names, as `name = value` in \
TOML, with _ for - in the name. A flag beats the environment, and that beats the file.

The flags of Tekton Results' watcher (-api_addr, -completed_run_grace_period, -check_owner ...) \
are understood as well.

Exit codes: 0 stopped by SIGTERM or SIGINT, 1 it cannot go on, 2 wrong usage or configuration.";

/// It was told something wrong.
const USAGE: u8 = 2;

/// Runs the program with these arguments, the first of which is its name.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let translated =
        upstream::translate(args.into_iter().skip(1), |path| Path::new(path).is_file());
    let program = std::iter::once(NAME.to_owned());
    let matches = match command().try_get_matches_from(program.chain(translated.args)) {
        Ok(matches) => matches,
        Err(error) => {
            let code = if error.use_stderr() {
                ExitCode::from(USAGE)
            } else {
                ExitCode::SUCCESS
            };
            // Help that nobody reads to its end is no error.
            return error.print().map_or(code, |()| code);
        }
    };
    if let Some(("ledger", asked)) = matches.subcommand() {
        return match runtime().and_then(|runtime| runtime.block_on(ledger::run(asked))) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                say(&[report(error.as_ref())]);
                ExitCode::FAILURE
            }
        };
    }
    if let Some(("release", asked)) = matches.subcommand() {
        return release(asked);
    }
    if let Some(("config", asked)) = matches.subcommand() {
        return config(asked);
    }
    let launch = match Launch::load(&PROGRAM, &Sources::gather(&PROGRAM, &matches)) {
        Ok(launch) => launch,
        Err(problems) => return misused(&problems),
    };
    let traced = runtime().and_then(|runtime| {
        let traces = {
            let _inside = runtime.enter();
            traces(&launch)?
        };
        Ok((runtime, traces))
    });
    let (runtime, traces) = match traced {
        Ok(traced) => traced,
        Err(error) => {
            say(&[report(error.as_ref())]);
            return ExitCode::FAILURE;
        }
    };
    let (level, format) = (&launch.settings.log_level, launch.settings.log_format);
    if let Err(error) = telemetry::init(SILENCED, level, format, traces.as_ref()) {
        say(&[report(&error)]);
        return ExitCode::FAILURE;
    }
    translated.notes.iter().for_each(|note| warn!("{note}"));
    let ended = runtime.block_on(run(launch));
    if let Some(Err(error)) = traces.map(|traces| traces.finish()) {
        warn!(%error, "last spans not sent");
    }
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&[report(error.as_ref())]);
            ExitCode::FAILURE
        }
    }
}

fn release(matches: &ArgMatches) -> ExitCode {
    let asked = match release::read(matches) {
        Ok(asked) => asked,
        Err(problems) => return misused(&problems),
    };
    match runtime().and_then(|runtime| runtime.block_on(release::run(asked))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&[report(error.as_ref())]);
            ExitCode::FAILURE
        }
    }
}

/// Prints the settings that count, or the reference of all keys.
fn config(matches: &ArgMatches) -> ExitCode {
    let text = match matches.subcommand() {
        Some(("print", asked)) => match Launch::load(&PROGRAM, &Sources::gather(&PROGRAM, asked)) {
            Ok(launch) => launch.settings.print(),
            Err(problems) => return misused(&problems),
        },
        _ => reference_markdown(),
    };
    match io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_closed) => ExitCode::FAILURE,
    }
}

fn misused(problems: &Problems) -> ExitCode {
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    say(&problems);
    ExitCode::from(USAGE)
}

const NAME: &str = "hindsight-watcher";

fn say(problems: &[String]) {
    let mut stderr = io::stderr().lock();
    for problem in problems {
        // There is nobody left to tell if this does not work.
        writeln!(stderr, "{NAME}: {problem}").unwrap_or_default();
    }
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
    PROGRAM
        .add_flags(Command::new(NAME), |_| true)
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .after_help(MORE)
        .subcommand(config)
        .subcommand(ledger::command())
        .subcommand(release::command())
}

async fn run(launch: Launch) -> anyhow::Result<()> {
    let sink = sink(&launch)?;
    let shutdown = CancellationToken::new();
    shutdown::on_signal(shutdown.clone()).context("signals cannot be heard")?;
    let server = launch.settings.server.as_str().to_owned();
    Box::pin(watch(launch, sink, &server, shutdown)).await
}

/// Where spans are sent, if they are.
fn traces(launch: &Launch) -> anyhow::Result<Option<Exporter>> {
    let share = launch.settings.trace_percent.get() as f64 / 100.0;
    let endpoint = launch.settings.trace_endpoint.as_ref();
    let exporter = endpoint.map(|endpoint| Exporter::new(endpoint.as_str(), NAME, share));
    Ok(exporter.transpose()?)
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    hindsight_cluster::choose_cryptography();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no threads can be started")
}

/// The server at its address.
fn sink(launch: &Launch) -> anyhow::Result<GrpcSink> {
    let settings = &launch.settings;
    let mut options = client::Options::new(settings.server.as_str());
    options.token = settings
        .token
        .as_ref()
        .map(|token| token.expose().to_owned());
    let read = |path: &Option<PathBuf>, flag| {
        let read = |path: &PathBuf| {
            let why = || format!("`{}` cannot be read; see --{flag}", path.display());
            std::fs::read(path).with_context(why)
        };
        path.as_ref().map(read).transpose()
    };
    options.authorities = read(&settings.server_ca, "server-ca")?;
    let (cert, key) = (&settings.client_cert, &settings.client_key);
    options.identity = read(cert, "client-cert")?.zip(read(key, "client-key")?);
    let sink = match &settings.token_file {
        Some(path) => GrpcSink::with_token_file(options, path.clone())?,
        None => GrpcSink::new(client::Client::new(&options)?),
    };
    let sink = sink.with_kinds(Kinds::with(&launch.config.kinds));
    Ok(if settings.plain_calls {
        sink.with_plain_calls()
    } else {
        sink
    })
}

#[cfg(test)]
mod tests {
    use clap::Command;
    use hindsight_config::Sources;

    use super::command;
    use crate::config::{BESIDE, Launch, PROGRAM};

    #[test]
    fn the_flags_fit_together() {
        command().debug_assert();
    }

    #[test]
    fn help_tells_of_every_flag_its_default_and_its_variable() {
        let help = command().render_long_help().to_string();
        for key in PROGRAM.keys {
            assert!(
                help.contains(&format!("--{}", PROGRAM.flag(key.name))),
                "{}",
                key.name
            );
            assert!(help.contains(&PROGRAM.variable(key.name)), "{}", key.name);
        }
        assert!(help.contains(", default: 10m]"), "{help}");
    }

    #[test]
    fn beside_others_flags_have_a_name_of_their_own_also_in_complaints() {
        let command = BESIDE.add_flags(Command::new("both"), |_| true);
        let read = |args: &[&str]| {
            let matches = command
                .clone()
                .try_get_matches_from([&["both"], args].concat());
            Launch::load(&BESIDE, &Sources::gather(&BESIDE, &matches.unwrap()))
        };
        let launch = read(&["--watcher-collect", "--watcher-grace=-1s"]).unwrap();
        assert!(launch.config.policy.collect.unwrap().grace.is_negative());
        let problems = read(&["--watcher-threadiness", "0"]).unwrap_err();
        let said = problems.to_string();
        assert!(said.starts_with("--watcher-threadiness: "), "{said}");
        assert!(
            command
                .clone()
                .try_get_matches_from(["both", "--watcher-server=x"])
                .is_err()
        );
    }
}
