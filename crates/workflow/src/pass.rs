//! One pass over a workflow: what is known of it and its Jobs, which things that are done add to, and what
//! is to be done next.
//!
//! The caller starts with what its caches have, does what [`Pass::next`] says, tells what it came to, and
//! asks again until there is nothing to do or something fails. Then the pass is thrown away: what has to be
//! remembered is in the cluster.

mod decide;
mod ends;
mod progress;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::{
    job::{End, Job},
    next::Next,
    object::Workflow,
};

/// What is known of a Job by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobSeen {
    /// It is there; whose it is, it says itself.
    There(Job),
    /// The API server has none of this name.
    Gone,
    /// The API server refuses to create it, for this reason, and will again.
    Refused(String),
}

/// What is known of an external object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetSeen {
    /// It is there.
    There {
        /// UID of the object.
        uid: String,
        /// How it ended, if it has.
        end: Option<End>,
    },
    /// There is none.
    Gone,
    /// The API server does not show it, for this reason.
    Hidden(String),
}

/// What is known during one pass.
#[derive(Debug, Clone)]
pub struct Pass {
    workflow: Workflow,
    /// Whether the workflow was read from the API server, or written, during this pass.
    is_fresh: bool,
    jobs: BTreeMap<String, JobSeen>,
    /// Whether `jobs` has all Jobs of the workflow that the API server has.
    is_listed: bool,
    targets: BTreeMap<String, TargetSeen>,
    /// Jobs whose delete was asked for during this pass, by UID.
    deleted: BTreeSet<String>,
}

impl Pass {
    /// A pass over a workflow and its Jobs as they are known, which may be old news.
    pub fn new(workflow: Workflow, jobs: impl IntoIterator<Item = Job>) -> Self {
        let jobs = jobs.into_iter();
        Self {
            workflow,
            is_fresh: false,
            jobs: jobs
                .map(|job| (job.name.clone(), JobSeen::There(job)))
                .collect(),
            is_listed: false,
            targets: BTreeMap::new(),
            deleted: BTreeSet::new(),
        }
    }

    /// The workflow as it is known.
    #[must_use]
    pub fn workflow(&self) -> &Workflow {
        &self.workflow
    }

    /// What to do now.
    ///
    /// Jobs are created and deleted only of a workflow that was read from the API server, or written with
    /// a check of its version, in this pass: a cache may be older than the end of the workflow.
    #[must_use]
    pub fn next(&self, now: Timestamp) -> Next {
        match decide::decide(self, now) {
            Next::Create(_) | Next::Delete(_) if !self.is_fresh => Next::Reread,
            next => next,
        }
    }

    /// The API server has the workflow as `workflow`, after it was read or written.
    pub fn has(&mut self, workflow: Workflow) {
        self.workflow = workflow;
        self.is_fresh = true;
    }

    /// What was read of a Job, or what its creation came to.
    pub fn saw_job(&mut self, name: &str, seen: JobSeen) {
        self.jobs.insert(name.to_owned(), seen);
    }

    /// What was read of the external object of a step.
    pub fn saw_target(&mut self, step: &str, seen: TargetSeen) {
        self.targets.insert(step.to_owned(), seen);
    }

    /// The API server has these Jobs with the label of the workflow.
    pub fn listed(&mut self, jobs: impl IntoIterator<Item = Job>) {
        let jobs = jobs.into_iter();
        self.jobs = jobs
            .map(|job| (job.name.clone(), JobSeen::There(job)))
            .collect();
        self.is_listed = true;
    }

    /// The delete of this Job was asked for, or it is gone.
    pub fn deleted(&mut self, uid: &str) {
        self.deleted.insert(uid.to_owned());
    }

    /// The Jobs that the workflow controls and that go on.
    fn going_on(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().filter_map(|seen| match seen {
            JobSeen::There(job) if self.is_ours(job) && job.end.is_none() => {
                (!job.is_deleting && !self.deleted.contains(&job.uid)).then_some(job)
            }
            _ => None,
        })
    }

    fn is_ours(&self, job: &Job) -> bool {
        job.owner.as_deref() == Some(self.workflow.uid.as_str())
    }
}
