//! What each worker is for: which steps of a plan it executes, and which it leaves to others.

use crate::plan::{Removal, Step, Urgency};

/// The steps that a worker executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Whole plans. Only writes that nothing waits for are left to `Annotate`.
    Store,
    /// Puts finalizers on while `Store` waits for the server or has a backlog. Never waits
    /// for the server.
    Protect,
    /// Takes finalizers off when their deadline is over, also while the server is unavailable.
    Release,
    /// Writes annotations on stored runs, and takes finalizers off that hold nothing up, no
    /// faster than configured.
    Annotate,
    /// Stores what an earlier leader left in the spool, while another watcher leads.
    Spooled,
}

/// What a worker does with a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duty {
    /// Execute it in this lane.
    Execute,
    /// Put the run on the queue of `Lane::Annotate`, and go on.
    Queue,
    /// Leave it out, and go on.
    Skip,
    /// End here: the rest of the plan is for another lane.
    HandOver,
}

impl Lane {
    pub(super) fn duty(self, step: &Step) -> Duty {
        match (self, step) {
            (
                Self::Store,
                Step::Annotate(_)
                | Step::RemoveFinalizers(Removal {
                    urgency: Urgency::Idle,
                    ..
                }),
            ) => Duty::Queue,
            (Self::Store, _)
            | (Self::Protect, Step::AddFinalizer(_))
            | (Self::Release, Step::RemoveFinalizers(_))
            | (Self::Annotate, Step::Annotate(_) | Step::RemoveFinalizers(_))
            | (
                Self::Spooled,
                Step::Store(_) | Step::Close { .. } | Step::Refuse { .. } | Step::Forget,
            ) => Duty::Execute,
            (Self::Annotate, Step::LookAgain(_)) | (Self::Spooled, Step::StoreEvents(_)) => {
                Duty::Skip
            }
            _ => Duty::HandOver,
        }
    }

    /// What it does to a run, for messages.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Store | Self::Spooled => "stored",
            Self::Protect => "protected",
            Self::Release => "let go",
            Self::Annotate => "annotated",
        }
    }
}
