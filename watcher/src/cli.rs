//! The command line: flags in, an exit code out.

mod ledger;
mod upstream;

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use anyhow::Context;
use clap::{Arg, ArgAction, ArgMatches, Command, builder::NonEmptyStringValueParser};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use hindsight_proto::client;

use crate::{
    app::{App, identify},
    config::{Launch, keys::KEYS, load::load, sources::Sources},
    report::report,
    sink::GrpcSink,
    telemetry,
};

const ABOUT: &str = "Streams finished runs off a Kubernetes cluster into Hindsight, and \
                     collects what is stored";

const MORE: &str = "Every flag can also be set in the environment, as HINDSIGHT_WATCHER_ and \
its name in upper case with _ for -, and in the file that --config names, as `name = value` in \
TOML. A flag beats the environment, and that beats the file.

The flags of Tekton Results' watcher (-api_addr, -completed_run_grace_period, -check_owner ...) \
are understood as well.

Exit codes: 0 after SIGTERM or SIGINT, 1 if it cannot go on, 2 if it was told something wrong.";

/// It was told something wrong.
const USAGE: u8 = 2;

/// Runs the program with these arguments, the first of which is its name.
pub fn main(args: impl IntoIterator<Item = String>) -> ExitCode {
    let translated = upstream::translate(args.into_iter().skip(1));
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
    let launch = match read(&matches) {
        Ok(launch) => launch,
        Err(problems) => {
            say(&problems);
            return ExitCode::from(USAGE);
        }
    };
    telemetry::start(&launch.log_level, launch.log_format);
    translated.notes.iter().for_each(|note| warn!("{note}"));
    match run(launch) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&[report(error.as_ref())]);
            ExitCode::FAILURE
        }
    }
}

const NAME: &str = "hindsight-watcher";

fn say(problems: &[String]) {
    let mut stderr = io::stderr().lock();
    for problem in problems {
        // There is nobody left to tell if this does not work.
        writeln!(stderr, "error: {problem}").unwrap_or_default();
    }
}

/// The flags, made from the keys of the configuration.
fn command() -> Command {
    let config = Arg::new("config")
        .long("config")
        .value_name("PATH")
        .value_parser(clap::value_parser!(PathBuf))
        .help("TOML file with any of the other flags as keys [env: HINDSIGHT_WATCHER_CONFIG]");
    let flags = KEYS.iter().map(|key| {
        let mut help = key.help.to_owned();
        if key.value.is_some() && !key.default.is_empty() {
            help.push_str(&format!(" [default: {}]", key.default));
        }
        help.push_str(&format!(" [env: {}]", key.variable()));
        let arg = Arg::new(key.name)
            .long(key.name)
            .help(help)
            .help_heading(key.group)
            .allow_hyphen_values(true)
            .action(ArgAction::Set);
        match key.value {
            Some(value) => arg.value_name(value),
            None => arg
                .value_name("BOOL")
                .value_parser(NonEmptyStringValueParser::new())
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true"),
        }
    });
    Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .after_help(MORE)
        .arg(config)
        .args(flags)
        .subcommand(ledger::command())
        .disable_help_subcommand(true)
}

fn read(matches: &ArgMatches) -> Result<Launch, Vec<String>> {
    let flags: BTreeMap<&'static str, String> = KEYS
        .iter()
        .filter_map(|key| Some((key.name, matches.get_one::<String>(key.name)?.clone())))
        .collect();
    let file = matches.get_one::<PathBuf>("config");
    let sources =
        Sources::gather(flags, file.map(PathBuf::as_path)).map_err(|e| vec![report(&e)])?;
    load(&sources).map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn run(launch: Launch) -> anyhow::Result<()> {
    runtime()?.block_on(watch(launch))
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    // Only fails if somebody chose before, and then that is what is wanted.
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .unwrap_or_default();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no threads can be started")
}

async fn watch(launch: Launch) -> anyhow::Result<()> {
    let Launch {
        server,
        token,
        token_file,
        kubeconfig,
        cluster_from_uid,
        mut config,
        ..
    } = launch;
    let client = cluster(kubeconfig).await?;
    let mut options = client::Options::new(server.clone());
    options.token = token.map(|token| token.0);
    let sink = match token_file {
        Some(path) => GrpcSink::with_token_file(options, path)?,
        None => GrpcSink::new(client::Client::new(&options)?),
    };
    let shutdown = CancellationToken::new();
    on_signal(shutdown.clone())?;
    if cluster_from_uid {
        let backoff = config.tuning.cluster;
        config.policy.cluster = identify(client.clone(), backoff, &shutdown).await?;
        if config.policy.cluster.is_none() {
            return Ok(());
        }
    }
    let collecting = match (&config.policy.collect, config.dry_run) {
        (None, _) => "nothing is deleted from the cluster",
        (Some(_), true) => "what would be deleted from the cluster is only logged",
        (Some(_), false) => "stored runs are deleted from the cluster",
    };
    info!(server, "storing into {server}; {collecting}");
    let app = App::bind(config, client, Arc::new(sink)).await?;
    let handle = app.handle();
    app.run(shutdown).await?;
    let progress = handle.progress();
    info!(
        stored = progress.stored,
        collected = progress.collected,
        lost = progress.lost,
        "ended in order"
    );
    Ok(())
}

async fn cluster(kubeconfig: Option<PathBuf>) -> anyhow::Result<kube::Client> {
    let mut config = match kubeconfig {
        None => kube::Config::infer()
            .await
            .context("no cluster was found; name a kubeconfig with --kubeconfig")?,
        Some(path) => {
            let read = kube::config::Kubeconfig::read_from(&path)
                .with_context(|| format!("kubeconfig `{}` cannot be read", path.display()))?;
            kube::Config::from_custom_kubeconfig(read, &kube::config::KubeConfigOptions::default())
                .await
                .with_context(|| format!("kubeconfig `{}` leads nowhere", path.display()))?
        }
    };
    // Otherwise a call that meets a busy API server is repeated for minutes, unseen, and keeps a
    // worker that long. What failed is tried again here, later, and others get their turn.
    config.default_retry = false;
    kube::Client::try_from(config).context("the kubeconfig cannot be used")
}

/// SIGTERM and SIGINT ask the watcher to end.
fn on_signal(shutdown: CancellationToken) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be heard")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be heard")?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => info!("SIGTERM: finishing what is being stored"),
            _ = interrupt.recv() => info!("SIGINT: finishing what is being stored"),
        }
        shutdown.cancel();
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{KEYS, command};

    #[test]
    fn the_flags_fit_together() {
        command().debug_assert();
    }

    #[test]
    fn help_tells_of_every_flag_its_default_and_its_variable() {
        let help = command().render_long_help().to_string();
        for key in KEYS {
            assert!(help.contains(&format!("--{}", key.name)), "{}", key.name);
            assert!(help.contains(&key.variable()), "{}", key.name);
        }
        assert!(help.contains("[default: 10m]"), "{help}");
    }
}
