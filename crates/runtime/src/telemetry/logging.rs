//! Log events to standard error, as text for people or as JSON for machines.
//!
//! Standard output belongs to answers; nothing here writes to it.

use std::{
    fmt,
    io::{self, IsTerminal as _},
    str::FromStr,
};

use crate::traces::Exporter;
use tracing::{Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{
    EnvFilter, Layer, Registry, fmt::MakeWriter, layer::SubscriberExt as _, registry::LookupSpan,
    reload, util::SubscriberInitExt as _,
};

/// Which events are written: a level for all, and levels for modules, as in
/// `info,hindsight_storage=debug` or `warn,hindsight_access::auth=debug`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFilter(String);

/// Why a text is not a [`LogFilter`].
#[derive(Debug, thiserror::Error)]
pub enum BadFilter {
    /// A word by itself that is no level. It would silently name a module, at `trace`.
    #[error(
        "`{word}` is not a valid level; want `error`, `warn`, `info`, `debug`, `trace` or `off`, or \
         with a module `{word}=debug`"
    )]
    Level {
        /// The word as it was written.
        word: String,
    },
    /// A text without any directive.
    #[error("the filter is empty; write `off` to log nothing")]
    Empty,
    /// A text that is no list of directives.
    #[error(
        "`{filter}` is not a valid log filter; want for example `info,hindsight_storage=debug`"
    )]
    Syntax {
        /// The filter as it was written.
        filter: String,
        /// What is wrong with it.
        source: tracing_subscriber::filter::ParseError,
    },
}

impl FromStr for LogFilter {
    type Err = BadFilter;

    fn from_str(text: &str) -> Result<Self, BadFilter> {
        // The parser counts columns wrongly after a space, so spaces go first.
        let parts: Vec<_> = text.split(',').map(str::trim).collect();
        if parts.iter().all(|part| part.is_empty()) {
            return Err(BadFilter::Empty);
        }
        for part in &parts {
            let bare = !part.is_empty() && !part.contains(['=', '[', ']', '{', '}', '"']);
            if bare && part.parse::<LevelFilter>().is_err() {
                return Err(BadFilter::Level {
                    word: (*part).to_owned(),
                });
            }
        }
        let filter = parts.join(",");
        compile(&filter).map_err(|source| BadFilter::Syntax {
            filter: text.to_owned(),
            source,
        })?;
        Ok(Self(filter))
    }
}

impl fmt::Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Values in filters are compared as text; a regular expression from a variable has no
/// place in the path of every event.
fn compile(filter: &str) -> Result<EnvFilter, tracing_subscriber::filter::ParseError> {
    EnvFilter::builder().with_regex(false).parse(filter)
}

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One line for people; in colour on a terminal.
    Text,
    /// One object per line.
    Json,
}

/// Why a text is not a [`LogFormat`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid log format; want `text` or `json`")]
pub struct BadFormat(String);

impl FromStr for LogFormat {
    type Err = BadFormat;

    fn from_str(text: &str) -> Result<Self, BadFormat> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(BadFormat(text.to_owned())),
        }
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}

/// The process writes its log already.
#[derive(Debug, thiserror::Error)]
#[error("logging was started twice in one process")]
pub struct AlreadyLogging {
    source: tracing_subscriber::util::TryInitError,
}

/// Starts logging to standard error, and sending spans by `traces`, for the whole process.
///
/// What `silenced`, the beginning of a filter, turns off is left out unless the filter asks for it
/// by name, also after changes of the level. Text is coloured only on a terminal and while `NO_COLOR` is unset.
///
/// # Errors
///
/// When something in this process logs already.
pub fn init(
    silenced: &'static str,
    filter: &LogFilter,
    format: LogFormat,
    traces: Option<&Exporter>,
) -> Result<LogLevel, AlreadyLogging> {
    let (subscriber, level) = subscriber(
        silenced,
        filter,
        format,
        io::stderr().is_terminal(),
        io::stderr,
    );
    subscriber
        .with(traces.map(Exporter::layer))
        .try_init()
        .map_err(|source| AlreadyLogging { source })?;
    Ok(level)
}

/// What is logged, for as long as the process logs. Clones change the same.
#[derive(Clone)]
pub struct LogLevel {
    handle: reload::Handle<EnvFilter, Registry>,
    silenced: &'static str,
}

impl LogLevel {
    /// From now on these events are written.
    pub fn set(&self, filter: &LogFilter) {
        if let Err(error) = self.handle.reload(after(self.silenced, filter)) {
            tracing::error!(%error, "invalid log level; keeping the previous one");
        }
    }
}

impl fmt::Debug for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogLevel")
    }
}

/// What a filter says, after what is turned off.
fn after(silenced: &str, filter: &LogFilter) -> EnvFilter {
    let both = match silenced {
        "" => filter.0.clone(),
        silenced => format!("{silenced},{}", filter.0),
    };
    compile(&both).expect("a LogFilter has been compiled before")
}

fn subscriber<W>(
    silenced: &'static str,
    filter: &LogFilter,
    format: LogFormat,
    terminal: bool,
    writer: W,
) -> (
    impl Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    LogLevel,
)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    let layer: Box<dyn Layer<Registry> + Send + Sync> = match format {
        // Left alone on a terminal, the layer itself honours NO_COLOR.
        LogFormat::Text if terminal => layer.boxed(),
        LogFormat::Text => layer.with_ansi(false).boxed(),
        LogFormat::Json => layer
            .json()
            .flatten_event(true)
            // The name of the request is in an outer span.
            .with_current_span(false)
            .with_span_list(true)
            .boxed(),
    };
    let (filter, handle) = reload::Layer::new(after(silenced, filter));
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(filter));
    (subscriber, LogLevel { handle, silenced })
}

#[cfg(test)]
mod tests;
