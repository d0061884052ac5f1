//! Times in flags: a moment, or how long ago one was.

use jiff::{Span, SpanRelativeTo, Timestamp};

use super::failure::Failure;

/// A time of a flag.
#[derive(Debug, Clone, Copy)]
pub(super) enum When {
    /// So long before the command starts.
    Ago(Span),
    At(Timestamp),
}

impl When {
    /// Reads `10m`, `30d` or `2026-03-02T12:00:00Z`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Ok(time) = text.parse() {
            return Ok(Self::At(time));
        }
        text.parse().map(Self::Ago).map_err(|_odd| {
            "want how long ago, such as 10m or 2h, or a time such as 2026-03-02T12:00:00Z"
                .to_owned()
        })
    }

    /// The moment, of which `flag` was given. Days have 24 hours.
    ///
    /// # Errors
    /// If it is before the first moment that can be said.
    pub(super) fn time(self, flag: &str, now: Timestamp) -> Result<Timestamp, Failure> {
        match self {
            Self::At(time) => Ok(time),
            Self::Ago(span) => {
                let days = SpanRelativeTo::days_are_24_hours();
                let ago = span.abs().to_duration(days);
                ago.and_then(|ago| now.checked_sub(ago))
                    .map_err(|error| Failure::usage(format!("{flag}: {error}")))
            }
        }
    }
}
