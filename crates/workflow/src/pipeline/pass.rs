//! One pass over a PipelineRun: what is known of it and its children, and what is to be done next.
//!
//! As a step of a workflow, a task is claimed before its child is created: the status names the child, and is
//! written with a check of the version of the PipelineRun.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::{
    child::{Child, ChildName},
    manifest::name_of_child,
    plan::resolved,
    run::PipelineRun,
    spec::Pipeline,
};
use crate::{custom::RunStatus, next::Event};

mod decide;
mod progress;

/// What is known of a child by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildSeen {
    /// It is there; whose it is, it says itself.
    There(Child),
    /// The API server has none of this name.
    Gone,
    /// The API server refuses to create it, for this reason, and will again.
    Refused(String),
}

/// One thing to do. What it came to is told to the pass, which then says the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Read the PipelineRun from the API server: what follows must not be done of an old state.
    Reread,
    /// Read this child.
    Look(ChildName),
    /// Replace the status of this version of the PipelineRun, and post the event once that is done.
    Write {
        /// The new status.
        status: RunStatus,
        /// What it tells.
        event: Option<Event>,
    },
    /// Create this child.
    Create {
        /// Kind and name of the child.
        child: ChildName,
        /// What it is created from.
        manifest: Value,
    },
    /// Ask this child to end, if it still is the one with this UID.
    Cancel {
        /// Kind and name of the child.
        child: ChildName,
        /// UID of the child.
        uid: String,
        /// Why, for its `spec.statusMessage`.
        message: String,
    },
    /// Nothing before the next news, or this time.
    Rest(Option<Timestamp>),
}

/// What is known during one pass.
#[derive(Debug, Clone)]
pub struct Pass {
    run: PipelineRun,
    /// Whether the PipelineRun was read from the API server, or written, during this pass.
    is_fresh: bool,
    children: BTreeMap<ChildName, ChildSeen>,
    /// Children that were read from the API server, or claimed, during this pass.
    looked: BTreeSet<ChildName>,
    /// Children that were asked to end during this pass, by UID.
    cancelled: BTreeSet<String>,
}

impl Pass {
    /// A pass over a PipelineRun as it is known, which may be old news.
    #[must_use]
    pub fn new(run: PipelineRun) -> Self {
        Self {
            run,
            is_fresh: false,
            children: BTreeMap::new(),
            looked: BTreeSet::new(),
            cancelled: BTreeSet::new(),
        }
    }

    /// The PipelineRun as it is known.
    #[must_use]
    pub fn run(&self) -> &PipelineRun {
        &self.run
    }

    /// The names of all children that this PipelineRun may have.
    #[must_use]
    pub fn names(&self) -> Vec<ChildName> {
        let pipeline = Pipeline::started(&self.run);
        let pipeline = pipeline.or_else(|| Some(resolved(&self.run).ok()?.1));
        let tasks = pipeline.iter().flat_map(|pipeline| &pipeline.tasks);
        tasks.map(|task| name_of_child(&self.run, task)).collect()
    }

    /// A cache has this child, which may be old news.
    pub fn knows(&mut self, name: ChildName, child: Child) {
        self.children.insert(name, ChildSeen::There(child));
    }

    /// What to do now.
    ///
    /// Children are created and asked to end only for a PipelineRun that was read from the API server, or
    /// written with a check of its version, in this pass: a cache may be older than the end of the run.
    #[must_use]
    pub fn next(&self, now: Timestamp) -> Next {
        match decide::decide(self, now) {
            Next::Create { .. } | Next::Cancel { .. } if !self.is_fresh => Next::Reread,
            next => next,
        }
    }

    /// The API server has the PipelineRun as `run`, after it was read.
    pub fn has(&mut self, run: PipelineRun) {
        self.run = run;
        self.is_fresh = true;
    }

    /// The API server has the PipelineRun as `run`, after its status was written here. Of what was claimed by
    /// that nobody can have created a child yet.
    pub fn wrote(&mut self, run: PipelineRun) {
        let before = self.run.status.children();
        let claimed = run.status.children().into_iter();
        let claimed = claimed.filter(|(task, _)| !before.contains_key(task));
        self.looked.extend(claimed.map(|(_, child)| child));
        self.has(run);
    }

    /// What was read of a child, or what its creation came to.
    pub fn saw(&mut self, child: &ChildName, seen: ChildSeen) {
        self.looked.insert(child.clone());
        self.children.insert(child.clone(), seen);
    }

    /// This child was asked to end, or has.
    pub fn cancelled(&mut self, uid: &str) {
        self.cancelled.insert(uid.to_owned());
    }

    /// The child of this name if the PipelineRun controls it.
    fn own(&self, name: &ChildName) -> Option<&Child> {
        match self.children.get(name)? {
            ChildSeen::There(child) => {
                Some(child).filter(|child| child.owner.as_deref() == Some(self.run.uid.as_str()))
            }
            ChildSeen::Gone | ChildSeen::Refused(_) => None,
        }
    }
}
