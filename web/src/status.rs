//! How a run or a part of it stands: a word, a shape and a colour for each state.

use askama::Template;
use askama::filters::HtmlSafe;
use hindsight_proto::v1::run_node::Outcome;

/// A state, in the words that select runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    Failed,
    Timeout,
    Cancelled,
    /// It left the cluster before it was seen to finish.
    Vanished,
    Running,
    Waiting,
    Succeeded,
    Skipped,
    Unknown,
}

/// A reason, unless it says no more than the status beside it.
pub(crate) fn telling(reason: &str) -> &str {
    match reason {
        "Succeeded" | "Failed" | "Running" | "Completed" | "Cancelled" => "",
        reason => reason,
    }
}

impl Status {
    /// The state of a row of a list.
    pub(crate) fn of_row(outcome: &str, started: bool, ended: bool) -> Self {
        match (outcome, started, ended) {
            ("SUCCESS", ..) => Self::Succeeded,
            ("FAILURE", ..) => Self::Failed,
            ("TIMEOUT", ..) => Self::Timeout,
            ("CANCELLED", ..) => Self::Cancelled,
            ("UNKNOWN", true, false) => Self::Running,
            ("UNKNOWN", false, false) => Self::Waiting,
            ("UNKNOWN", _, true) => Self::Vanished,
            _ => Self::Unknown,
        }
    }

    /// The state of a node of a tree or of a step.
    pub(crate) fn of_node(outcome: Outcome, started: bool, ended: bool) -> Self {
        match (outcome, started, ended) {
            (Outcome::Success, ..) => Self::Succeeded,
            (Outcome::Failure, ..) => Self::Failed,
            (Outcome::Timeout, ..) => Self::Timeout,
            (Outcome::Cancelled, ..) => Self::Cancelled,
            (Outcome::Skipped, ..) => Self::Skipped,
            (Outcome::Unknown, true, false) => Self::Running,
            (Outcome::Unknown, false, false) => Self::Waiting,
            (Outcome::Unknown, _, true) => Self::Vanished,
        }
    }

    /// The word that says it, which also names its class and its shape.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Succeeded => "succeeded",
            Self::Skipped => "skipped",
            Self::Vanished => "vanished",
            Self::Unknown => "unknown",
        }
    }

    /// Whether it ended badly.
    pub(crate) fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Timeout)
    }

    /// Whether it goes on.
    pub(crate) fn is_unfinished(self) -> bool {
        matches!(self, Self::Running | Self::Waiting)
    }

    /// Its shape and its word.
    pub(crate) fn badge(self) -> Badge {
        Badge { word: self.word() }
    }

    /// Its shape alone, with the word for readers of screens.
    pub(crate) fn shape(self) -> Shape {
        Shape { word: self.word() }
    }
}

/// A shape and a word.
#[derive(Debug, Clone, Template)]
#[template(
    source = r##"<span class="status {{ word }}"><svg class="shape" aria-hidden="true"><use href="#s-{{ word }}"/></svg>{{ word }}</span>"##,
    ext = "html"
)]
pub(crate) struct Badge {
    word: &'static str,
}

impl HtmlSafe for Badge {}

/// A shape whose word is not drawn.
#[derive(Debug, Clone, Template)]
#[template(
    source = r##"<span class="status {{ word }}" title="{{ word }}"><svg class="shape" aria-hidden="true"><use href="#s-{{ word }}"/></svg><span class="unseen">{{ word }}</span></span>"##,
    ext = "html"
)]
pub(crate) struct Shape {
    word: &'static str,
}

impl HtmlSafe for Shape {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_a_word_and_a_shape_beside_its_colour() {
        let badge = Status::of_row("FAILURE", true, true).badge().to_string();
        assert!(badge.contains("#s-failed") && badge.ends_with("failed</span>"));
        let running = Status::of_row("UNKNOWN", true, false);
        assert_eq!(running, Status::Running);
        assert!(running.shape().to_string().contains(">running<"));
        let unknown = Status::of_row("", false, false);
        assert_eq!(unknown, Status::Unknown);
        let node = Status::of_node(Outcome::Unknown, false, false);
        assert_eq!(node, Status::Waiting);
    }

    #[test]
    fn a_run_that_was_closed_is_vanished() {
        for started in [true, false] {
            let vanished = Status::of_row("UNKNOWN", started, true);
            assert_eq!(vanished, Status::Vanished);
            assert_eq!(Status::of_node(Outcome::Unknown, started, true), vanished);
            assert!(!vanished.is_unfinished() && !vanished.is_failure());
            assert!(vanished.badge().to_string().contains("#s-vanished"));
        }
    }
}
