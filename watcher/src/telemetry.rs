//! Logs: to stderr, for people or for machines.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

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

/// Begins to log. A second call in one process changes nothing.
pub(crate) fn start(level: &str, format: LogFormat) {
    let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match format {
        LogFormat::Text => logs.with_target(false).try_init(),
        LogFormat::Json => logs.json().flatten_event(true).try_init(),
    };
    // Whoever embeds a watcher has its own logs already.
    started.unwrap_or_default();
}
