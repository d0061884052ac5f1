//! `hindsight serve`.

use std::{process::ExitCode, sync::Arc, time::Duration};

use clap::ArgMatches;
use hindsight_runtime::traces::{self, Exporter};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{failure::Failure, kubeflow};
use crate::{
    app::{App, Error, Live, Webhooks},
    config::{Config, Endpoint, PROGRAM, Sources},
};
use hindsight_runtime::clock::SystemClock;
use hindsight_runtime::error::report;
use hindsight_runtime::shutdown;
use hindsight_runtime::telemetry::{self, LogLevel};

/// How often the file of configuration is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

pub(super) const ABOUT: &str = "Run the server: keep results and records in a database and answer \
tekton.results.v1alpha2 over gRPC.

Without any flag it keeps everything in ./hindsight.db and listens on 127.0.0.1:8080. Every flag \
can also be given as HINDSIGHT_* in the environment or as a key of a TOML file (--config). The \
schema is brought up to date at the start. SIGTERM or SIGINT stops it after requests in flight; SIGHUP \
reads the configuration again, as does a change of its file.";

pub(super) const EXAMPLES: &str = "Examples:
  hindsight serve
  hindsight serve --db sqlite:/var/lib/hindsight/history.db --log-format json
  hindsight serve --db postgres://hindsight:secret@db.example/hindsight
  hindsight config print --config /etc/hindsight.toml";

/// Where the configuration of the server comes from.
fn sources(matches: &ArgMatches) -> Sources {
    let mut sources = Sources::gather(&PROGRAM, matches);
    kubeflow::apply(matches, &mut sources);
    sources
}

pub(super) fn load(matches: &ArgMatches) -> Result<Config, Failure> {
    Config::load(&sources(matches))
        .map_err(|problems| Failure::usage(format!("invalid configuration\n{problems}")))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let config = load(matches)?;
    if config.global_kubernetes_webhook_mode {
        return webhooks(&config);
    }
    start(matches, &config, "", async |app, shutdown| {
        app.run(shutdown).await.map_err(|e| failure(&e))
    })
}

/// Serves the admission webhooks of pipelines and nothing else, until a signal.
fn webhooks(config: &Config) -> Result<ExitCode, Failure> {
    let (level, format) = (&config.log_level, config.log_format);
    telemetry::init("", level, format, None).map_err(|error| Failure::other(report(&error)))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(error.to_string()))?;
    runtime.block_on(async {
        let stop = CancellationToken::new();
        shutdown::on_signal(stop.clone())?;
        let webhooks = Webhooks::of(config)
            .await
            .map_err(|error| failure(&error))?;
        if let Some(webhooks) = webhooks {
            Box::pin(webhooks.alone(config, stop))
                .await
                .map_err(|error| failure(&error))?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Starts to log, without what `silenced` turns off, makes a server and lets `go` run it, until the token that it gets is cancelled by the first
/// signal; at the second all is over.
pub(super) fn start(
    matches: &ArgMatches,
    config: &Config,
    silenced: &'static str,
    go: impl AsyncFnOnce(App, CancellationToken) -> Result<(), Failure>,
) -> Result<ExitCode, Failure> {
    // What changes from here on is noticed, also while the server is not ready yet.
    let seen = sources(matches);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(error.to_string()))?;
    let traces = {
        let _inside = runtime.enter();
        traces(config).map_err(|error| Failure::usage(report(&error)))?
    };
    let (level, format) = (&config.log_level, config.log_format);
    let log = telemetry::init(silenced, level, format, traces.as_ref())
        .map_err(|error| Failure::other(report(&error)))?;
    let outcome = runtime.block_on(async {
        let _survived = survive_file_limits()?;
        let shutdown = CancellationToken::new();
        let mut term = signal(SignalKind::terminate())?;
        let mut int = signal(SignalKind::interrupt())?;
        let app = App::bind(config, Arc::new(SystemClock))
            .await
            .map_err(|e| failure(&e))?;
        let hurry = CancellationToken::new();
        let (stop, now) = (shutdown.clone(), hurry.clone());
        let signals = tokio::spawn(async move {
            for token in [stop, now] {
                tokio::select! {
                    _ = term.recv() => {}
                    _ = int.recv() => {}
                }
                token.cancel();
            }
        });
        let hangup = signal(SignalKind::hangup())?;
        let live = app.live();
        tokio::select! {
            ended = go(app, shutdown) => ended?,
            () = hurry.cancelled() => {
                tracing::warn!("second signal to stop; aborting requests in flight");
                return Ok(ExitCode::FAILURE);
            }
            () = follow(matches, seen, hangup, live, log) => {}
        }
        signals.abort();
        Ok(ExitCode::SUCCESS)
    });
    if let Some(Err(error)) = traces.map(|traces| traces.finish()) {
        tracing::warn!(%error, "last spans not sent");
    }
    // A query that still runs must not keep the process.
    runtime.shutdown_background();
    outcome
}

/// Where spans are sent, if they are.
fn traces(config: &Config) -> Result<Option<Exporter>, traces::Error> {
    let endpoint = config.trace_endpoint.as_ref().map(Endpoint::as_str);
    let share = config.trace_percent.get() as f64 / 100.0;
    endpoint
        .map(|endpoint| Exporter::new(endpoint, "hindsight", share))
        .transpose()
}

/// Reads the configuration again whenever it is not as it was `seen`, or SIGHUP asks for it. Never
/// ends.
async fn follow(
    matches: &ArgMatches,
    mut seen: Sources,
    mut hangup: Signal,
    live: Live,
    log: LogLevel,
) {
    loop {
        let asked = tokio::select! {
            _ = hangup.recv() => true,
            () = tokio::time::sleep(INTERVAL) => false,
        };
        let sources = self::sources(matches);
        if sources == seen && !asked {
            continue;
        }
        match Config::load(&sources) {
            Ok(config) => {
                for key in live.apply(&config, &log) {
                    tracing::warn!(key, "`{key}` changed; takes effect after a restart");
                }
                tracing::info!("configuration reloaded");
            }
            Err(problems) => {
                tracing::error!(%problems, "invalid configuration; keeping the previous one");
            }
        }
        seen = sources;
    }
}

/// A file that may not grow is an error of the write then, not the end of the process.
fn survive_file_limits() -> std::io::Result<Signal> {
    const SIGXFSZ: i32 = 25;
    signal(SignalKind::from_raw(SIGXFSZ))
}

pub(super) fn failure(error: &Error) -> Failure {
    let text = report(error);
    match error {
        Error::Store {
            source: hindsight_storage::Error::Unavailable { .. },
            ..
        } => Failure::unreachable(text),
        Error::Users(_) | Error::Events(_) | Error::Retention(_) => Failure::usage(text),
        _ => Failure::other(text),
    }
}
