//! Logs: to stderr, for people or for machines.

use std::io::IsTerminal;

use hindsight_runtime::traces::Exporter;
use tracing_subscriber::{
    EnvFilter, Layer, Registry, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use crate::config::LogFormat;

/// Checks what is to be logged.
///
/// # Errors
/// If that is no filter.
pub(crate) fn level(text: &str) -> Result<String, String> {
    match EnvFilter::try_new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!(
            "`{text}` says not what to log ({error}); write for example `info` or \
             `info,hindsight_watcher=debug`"
        )),
    }
}

/// The client of the cluster logs every call that is refused, again and again, and bodies that it
/// cannot read, which may be payloads. A refusal is said once here, when it begins. A filter that
/// names these modules gets them back.
pub const SILENCED: &str = "kube_client::client=off,kube_runtime::watcher=off";

/// Begins to log, and to send spans by `traces`. A second call in one process changes nothing.
pub(crate) fn start(level: &str, format: LogFormat, traces: Option<&Exporter>) {
    let logs = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let logs: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Text => logs.with_target(false).boxed(),
        LogFormat::Json => logs.json().flatten_event(true).boxed(),
    };
    let started = tracing_subscriber::registry()
        .with(logs.with_filter(filter(level)))
        .with(traces.map(Exporter::layer))
        .try_init();
    // Whoever embeds a watcher has its own logs already.
    started.unwrap_or_default();
}

fn filter(level: &str) -> EnvFilter {
    EnvFilter::try_new(format!("{SILENCED},{level}")).unwrap_or_else(|_| EnvFilter::new("info"))
}

#[cfg(test)]
mod tests {
    use super::filter;

    #[test]
    fn the_cluster_client_is_silent_unless_it_is_asked_for() {
        let silenced = filter("debug").to_string();
        assert!(silenced.contains("kube_client::client=off"), "{silenced}");
        assert!(silenced.contains("kube_runtime::watcher=off"), "{silenced}");
        assert!(silenced.contains("debug"), "{silenced}");
        let asked = filter("info,kube_client::client=error").to_string();
        assert!(!asked.contains("kube_client::client=off"), "{asked}");
        assert!(asked.contains("kube_client::client=error"), "{asked}");
    }
}
