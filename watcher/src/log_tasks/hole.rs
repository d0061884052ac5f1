//! Lines that stand for lines that are missing.

use jiff::Timestamp;
use tokio::time::Instant;

use crate::{logs::Source, metrics::OfHole, shared::Shared};

/// Why lines are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hole {
    Rotated,
    PodDeleted,
    Replaced,
    RunDeleted,
    TooLong,
    Unreadable,
    Quota,
}

impl Hole {
    /// As metrics name it.
    fn name(self) -> &'static str {
        match self {
            Self::Rotated => "rotated",
            Self::PodDeleted => "pod_deleted",
            Self::Replaced => "restarted",
            Self::RunDeleted => "run_deleted",
            Self::TooLong => "too_long",
            Self::Unreadable => "unreadable",
            Self::Quota => "quota",
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Rotated => "the log was rotated before they were read",
            Self::PodDeleted => "the pod was deleted before the end of its log was read",
            Self::Replaced => "the container was restarted before the end of its log was read",
            Self::RunDeleted => "the run was deleted while the container ran",
            Self::TooLong => "the log is longer than logs_max_bytes, and ends here",
            Self::Unreadable => "the node does not give the log",
            Self::Quota => "the logs of the namespace have as many bytes as the server allows",
        }
    }
}

/// Ends a log before lines that the server refused, of which the first has this number.
pub(super) fn cut(shared: &Shared, source: &Source, hole: Hole, first_line: i64) {
    let text = text(shared, hole, "");
    source
        .outbox
        .cut(first_line, &text, began(shared, source), Instant::now());
    shared.logs.has_lines(source);
}

/// Appends a line that says why lines are missing; `more` is what the cluster says.
pub(super) fn mark(shared: &Shared, source: &Source, hole: Hole, more: &str) {
    let text = text(shared, hole, more);
    let time = began(shared, source);
    if source.outbox.push_hole(&text, time, Instant::now()) {
        shared.logs.has_lines(source);
    }
}

/// The line, which is counted.
fn text(shared: &Shared, hole: Hole, more: &str) -> String {
    let mut text = format!("[hindsight: lines are missing: {}", hole.reason());
    if !more.is_empty() {
        text.push_str(": ");
        text.extend(more.trim().chars().take(300).map(|c| match c {
            '\n' | '\r' => ' ',
            c => c,
        }));
    }
    text.push_str("]\n");
    let labels = OfHole {
        reason: hole.name(),
    };
    shared.metrics.logs.holes.get_or_create(&labels).inc();
    text
}

/// When a container began, in microseconds, as the time of a hole that has no line before it.
fn began(shared: &Shared, source: &Source) -> i64 {
    let began = source.sight().borrow().started;
    let time = began.unwrap_or_else(|| shared.clock.now());
    Timestamp::as_microsecond(time)
}
