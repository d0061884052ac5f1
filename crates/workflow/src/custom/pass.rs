//! One pass over a custom run: what is known of it and its workflows, and what is to be done next.
//!
//! As a step of a workflow, an attempt is claimed before its workflow is created: the status names the
//! workflow, and is written with a check of the version of the run.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::{
    manifest::{attempt_name, workflow},
    owned::Owned,
    run::{CustomRun, RunSpec},
    run_status::{Claim, RunStatus},
};
use crate::next::Event;

mod decide;

/// What is known of a workflow by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnedSeen {
    /// It is there; whose it is, it says itself.
    There(Owned),
    /// The API server has none of this name.
    Gone,
    /// The API server refuses to create it, for this reason, and will again.
    Refused(String),
}

/// What is known of the workflow that a run names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateSeen {
    /// The `spec` of the workflow as the cluster has it.
    There(Value),
    /// What is wrong with it.
    Unreadable(String),
    /// There is none.
    Gone,
}

/// One thing to do. What it came to is told to the pass, which then says the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Read the run from the API server: what follows must not be done of an old state.
    Reread,
    /// Read the workflow of this name.
    Look(String),
    /// Read the spec of the workflow of this name, which the run names.
    Template(String),
    /// Replace the status of this version of the run, and post the event once that is done.
    Write {
        /// The new status.
        status: RunStatus,
        /// What it tells.
        event: Option<Event>,
    },
    /// Create this workflow.
    Create(Value),
    /// Delete this workflow, if it still is the one with this UID.
    Delete {
        /// Name of the workflow.
        name: String,
        /// UID of the workflow.
        uid: String,
    },
    /// Nothing before the next news, or this time.
    Rest(Option<Timestamp>),
}

/// What is known during one pass.
#[derive(Debug, Clone)]
pub struct Pass {
    run: CustomRun,
    /// Whether the run was read from the API server, or written, during this pass.
    is_fresh: bool,
    workflows: BTreeMap<String, OwnedSeen>,
    /// Names of workflows that were read from the API server during this pass.
    looked: BTreeSet<String>,
    template: Option<TemplateSeen>,
    /// Workflows whose delete was asked for during this pass, by UID.
    deleted: BTreeSet<String>,
}

impl Pass {
    /// A pass over a run as it is known, which may be old news.
    #[must_use]
    pub fn new(run: CustomRun) -> Self {
        Self {
            run,
            is_fresh: false,
            workflows: BTreeMap::new(),
            looked: BTreeSet::new(),
            template: None,
            deleted: BTreeSet::new(),
        }
    }

    /// The run as it is known.
    #[must_use]
    pub fn run(&self) -> &CustomRun {
        &self.run
    }

    /// The names of all workflows that this run may have, that of the newest attempt last.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let attempts = 0..=self.run.status.attempt();
        attempts
            .map(|attempt| attempt_name(&self.run, attempt))
            .collect()
    }

    /// A cache has this workflow, which may be old news.
    pub fn knows(&mut self, workflow: Owned) {
        let name = workflow.name.clone();
        self.workflows.insert(name, OwnedSeen::There(workflow));
    }

    /// What to do now.
    ///
    /// Workflows are created and deleted only for a run that was read from the API server, or written with
    /// a check of its version, in this pass: a cache may be older than the end of the run.
    #[must_use]
    pub fn next(&self, now: Timestamp) -> Next {
        match decide::decide(self, now) {
            Next::Create(_) | Next::Delete { .. } if !self.is_fresh => Next::Reread,
            next => next,
        }
    }

    /// The API server has the run as `run`, after it was read or written. What was read of workflows before that
    /// may be older than the run.
    pub fn has(&mut self, run: CustomRun) {
        self.run = run;
        if !self.is_fresh {
            self.is_fresh = true;
            self.looked.clear();
        }
    }

    /// What was read of a workflow, or what its creation came to.
    pub fn saw(&mut self, name: &str, seen: OwnedSeen) {
        self.looked.insert(name.to_owned());
        self.workflows.insert(name.to_owned(), seen);
    }

    /// What was read of the workflow that the run names.
    pub fn saw_template(&mut self, seen: TemplateSeen) {
        self.template = Some(seen);
    }

    /// The delete of this workflow was asked for, or it is gone.
    pub fn deleted(&mut self, uid: &str) {
        self.deleted.insert(uid.to_owned());
    }
}
