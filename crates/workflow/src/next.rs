//! What is to be done next about a workflow.

use jiff::Timestamp;

use crate::status::Status;

/// One thing to do. What it came to is told to the pass, which then says the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Read the workflow from the API server: what follows must not be done of an old state.
    Reread,
    /// Read these Jobs by their names, and the external objects of these steps.
    Look {
        /// Names of Jobs in the namespace of the workflow.
        jobs: Vec<String>,
        /// Names of steps.
        targets: Vec<String>,
    },
    /// List the Jobs with the label of the workflow.
    List,
    /// Put our finalizer on the workflow.
    Protect,
    /// Replace the status of this version of the workflow, and post the events once that is done.
    Write {
        /// The new status.
        status: Status,
        /// What it tells.
        events: Vec<Event>,
    },
    /// Create the Jobs of these steps, of the spec that was read or written last.
    Create(Vec<String>),
    /// Delete these Jobs in the background.
    Delete(Vec<Delete>),
    /// Take our finalizer off the workflow, and post the events once that is done.
    Release(Vec<Event>),
    /// Nothing before the next news, or this time.
    Rest(Option<Timestamp>),
}

/// A Job that is to be deleted, if it still is this one in this version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete {
    /// Name of the Job.
    pub name: String,
    /// UID of the Job.
    pub uid: String,
    /// Version of the object.
    pub version: String,
}

/// An event on the workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Whether something is wrong.
    pub severity: Severity,
    /// One word, such as `WorkflowStarted`.
    pub reason: &'static str,
    /// What happened, in a sentence.
    pub note: String,
}

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Type `Normal`: something went as it should.
    Normal,
    /// Type `Warning`: something needs a look.
    Warning,
}

impl Event {
    pub(crate) fn normal(reason: &'static str, note: impl Into<String>) -> Self {
        let note = note.into();
        let severity = Severity::Normal;
        Self {
            severity,
            reason,
            note,
        }
    }

    pub(crate) fn warning(reason: &'static str, note: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::normal(reason, note)
        }
    }
}
