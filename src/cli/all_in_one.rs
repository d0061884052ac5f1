//! `hindsight all-in-one`.

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use hindsight_controller as controller;
use hindsight_run::Kinds;
use hindsight_watcher::{
    self as watcher,
    cli::{SILENCED, check_kubeconfig, watch},
    config::Launch,
    sink::GrpcSink,
};
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

use super::{failure::Failure, flags, serve};
use crate::{
    app::App,
    config::{Auth, Config, PROGRAM, Sources},
};
use hindsight_runtime::error::report;

const ABOUT: &str = "Run server and watcher in one process, for small clusters: finished runs go \
from the cluster into the database without a network between them, and clients ask as they ask \
any server.

Flags, variables and files are those of `hindsight serve` and of `hindsight-watcher`; flags of \
the watcher have --watcher- before their names. What is said about the watcher's server and logs \
does not count: the server is this process, and it logs for both.

The watcher asks the server as any client does. Unless auth is `off` it needs a token of its own, \
of a caller that may get, list, create and update results and records, and with --watcher-logs get \
and update logs.

With --workflows, workflows of Jobs (workflows.hindsight.dev) are run as well, as \
`hindsight-workflow` does; its flags have --workflow- before their names.

SIGTERM or SIGINT stops the watcher, which finishes what it is storing, and then the server, after \
requests in flight.";

const EXAMPLES: &str = "Examples:
  hindsight all-in-one
  hindsight all-in-one --db sqlite:/var/lib/hindsight/history.db --watcher-collect
  hindsight all-in-one --workflows --workflow-namespace ci
  hindsight all-in-one --config /etc/server.toml --watcher-config /etc/watcher.toml";

/// The flag that starts a workflow controller.
const WORKFLOWS: &str = "workflows";

/// What runs beside the server.
struct Beside {
    watcher: Launch,
    controller: Option<controller::config::Launch>,
}

/// The command with its flags.
pub(super) fn command() -> Command {
    let command = Command::new("all-in-one")
        .about("Run server and watcher in one process")
        .long_about(ABOUT)
        .after_long_help(EXAMPLES);
    let workflows = Arg::new(WORKFLOWS)
        .long(WORKFLOWS)
        .action(ArgAction::SetTrue)
        .help("Run workflows of Jobs as well");
    let command = watcher::config::BESIDE.add_flags(flags(command).arg(workflows), |_| true);
    controller::config::BESIDE.add_flags(command, |_| true)
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let (config, beside) = load(matches)?;
    serve::start(matches, &config, SILENCED, async |app, shutdown| {
        Box::pin(all(app, beside, shutdown)).await
    })
}

/// Everything that is wrong with any of them is told at once.
fn load(matches: &ArgMatches) -> Result<(Config, Beside), Failure> {
    let controller = matches
        .get_flag(WORKFLOWS)
        .then(|| {
            controller::config::Launch::load(
                &controller::config::BESIDE,
                &Sources::gather(&controller::config::BESIDE, matches),
            )
        })
        .transpose();
    let both = load_both(matches);
    match (both, controller) {
        (Ok((config, watcher)), Ok(controller)) => {
            if let Some(Err(error)) = controller.as_ref().map(controller::cli::check_kubeconfig) {
                return Err(invalid(&report(error.as_ref())));
            }
            let beside = Beside {
                watcher,
                controller,
            };
            Ok((config, beside))
        }
        (Ok(_), Err(problems)) => Err(invalid(&problems.to_string())),
        (Err(text), Ok(_)) => Err(invalid(&text)),
        (Err(text), Err(problems)) => Err(invalid(&format!("{text}\n{problems}"))),
    }
}

fn invalid(problems: &str) -> Failure {
    Failure::usage(format!("invalid configuration\n{problems}"))
}

fn load_both(matches: &ArgMatches) -> Result<(Config, Launch), String> {
    let config = Config::load(&Sources::gather(&PROGRAM, matches));
    let launch = Launch::load(
        &watcher::config::BESIDE,
        &Sources::gather(&watcher::config::BESIDE, matches),
    );
    Err(match (config, launch) {
        (Ok(_), Ok(launch)) if let Err(error) = check_kubeconfig(&launch) => report(error.as_ref()),
        (Ok(config), Ok(launch)) => {
            let has_token = launch.settings.token.is_some() || launch.settings.token_file.is_some();
            if config.auth == Auth::Off || has_token {
                return Ok((config, launch));
            }
            format!(
                "auth is `{}` and the watcher has no token; name its file with \
                 --watcher-token-file",
                config.auth
            )
        }
        (config, launch) => {
            let of_server = config.err().map(|problems| problems.to_string());
            let of_watcher = launch.err().map(|problems| problems.to_string());
            let all: Vec<_> = of_server.into_iter().chain(of_watcher).collect();
            all.join("\n")
        }
    })
}

/// Runs the server and what is beside it until `shutdown`, or until one of them cannot go on, which ends
/// the others in order.
async fn all(app: App, beside: Beside, shutdown: CancellationToken) -> Result<(), Failure> {
    let launch = beside.watcher;
    let sink = sink(&launch, app.channel()).map_err(|error| Failure::usage(report(&error)))?;
    // The server outlives the watcher, which still stores what it knows.
    let drain = CancellationToken::new();
    let mut server = tokio::spawn(app.run(drain.clone()));
    let mut watcher = std::pin::pin!(watch(launch, sink, "this process", shutdown.clone()));
    let mut controller = std::pin::pin!(async {
        match beside.controller {
            Some(launch) => controller::cli::control(launch, shutdown.clone()).await,
            None => {
                shutdown.cancelled().await;
                Ok(())
            }
        }
    });
    let (served, watched, controlled) = tokio::select! {
        watched = &mut watcher => {
            shutdown.cancel();
            let controlled = controller.await;
            drain.cancel();
            (server.await, watched, controlled)
        }
        controlled = &mut controller => {
            shutdown.cancel();
            let watched = watcher.await;
            drain.cancel();
            (server.await, watched, controlled)
        }
        served = &mut server => {
            shutdown.cancel();
            (served, watcher.await, controller.await)
        }
    };
    served
        .map_err(|error| Failure::other(format!("the server broke: {error}")))?
        .map_err(|error| serve::failure(&error))?;
    let ended = watched.and(controlled);
    ended.map_err(|error| Failure::other(report(error.as_ref())))
}

fn sink(launch: &Launch, channel: Channel) -> Result<GrpcSink, hindsight_watcher::sink::Error> {
    let sink = match &launch.settings.token_file {
        Some(path) => GrpcSink::over_with_token_file(channel, path.clone())?,
        None => {
            let token = launch.settings.token.as_ref();
            let token = token.map(|token| token.expose());
            GrpcSink::over(channel, token)?
        }
    };
    Ok(sink.with_kinds(Kinds::with(&launch.config.kinds)))
}
