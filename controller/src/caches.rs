//! What is known of Jobs by their watch, and which workflows wait for which others.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hindsight_workflow::Job;
use kube::runtime::{reflector::ObjectRef, watcher::Event};
use tokio::{sync::watch, time::Instant};

use crate::object::{JobObject, WorkflowObject};

/// Names a workflow.
pub(crate) type Name = ObjectRef<WorkflowObject>;

/// The Jobs that workflows control, by the UID of the workflow.
#[derive(Debug)]
pub(crate) struct JobCache {
    jobs: Mutex<Jobs>,
    ready: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Jobs {
    known: HashMap<String, BTreeMap<String, (Name, Job)>>,
    /// What a list that is under way has brought.
    listed: HashMap<String, BTreeMap<String, (Name, Job)>>,
    /// Jobs that were created here and have not come over the watch, with the UID of the workflow.
    created: HashMap<String, Created>,
}

/// A Job that was created here.
#[derive(Debug)]
struct Created {
    /// UID of the workflow.
    owner: String,
    job: Job,
    at: Instant,
}

/// How long the answer to a create is believed while the watch says nothing about the Job.
const BELIEVED: Duration = Duration::from_secs(10);

impl JobCache {
    pub(crate) fn new() -> Self {
        Self {
            jobs: Mutex::default(),
            ready: watch::Sender::new(false),
        }
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all Jobs were listed once.
    pub(crate) async fn ready(&self) {
        let mut ready = self.ready.subscribe();
        // It is never dropped while somebody can ask.
        drop(ready.wait_for(|ready| *ready).await);
    }

    /// What the watch says; returns the workflows that it is about.
    pub(crate) fn take(&self, event: Event<JobObject>) -> Vec<Name> {
        let mut jobs = self.jobs();
        match event {
            Event::Init => {
                jobs.listed.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                if let Some((workflow, owner, job)) = controlled(object) {
                    let of = jobs.listed.entry(owner).or_default();
                    of.insert(job.name.clone(), (workflow, job));
                }
                Vec::new()
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut jobs.listed);
                let before = std::mem::replace(&mut jobs.known, listed);
                jobs.created.clear();
                let all = before.values().chain(jobs.known.values());
                let names: HashSet<Name> = all
                    .flat_map(|of| of.values().map(|(workflow, _)| workflow.clone()))
                    .collect();
                drop(jobs);
                self.ready.send_replace(true);
                names.into_iter().collect()
            }
            Event::Apply(object) => {
                let Some((workflow, owner, job)) = controlled(object) else {
                    return Vec::new();
                };
                jobs.created.remove(&job.uid);
                let of = jobs.known.entry(owner).or_default();
                of.insert(job.name.clone(), (workflow.clone(), job));
                vec![workflow]
            }
            Event::Delete(object) => {
                let Some((workflow, owner, job)) = controlled(object) else {
                    return Vec::new();
                };
                jobs.created.remove(&job.uid);
                if let Some(of) = jobs.known.get_mut(&owner) {
                    of.remove(&job.name);
                    if of.is_empty() {
                        jobs.known.remove(&owner);
                    }
                }
                vec![workflow]
            }
        }
    }

    /// A Job was created, which the watch is yet to say.
    pub(crate) fn created(&self, owner: &str, job: &Job) {
        let mut jobs = self.jobs();
        let is_known = jobs
            .known
            .get(owner)
            .and_then(|of| of.get(&job.name))
            .is_some_and(|(_, known)| known.uid == job.uid);
        if !is_known {
            jobs.created
                .retain(|_, created| created.at.elapsed() < BELIEVED);
            let created = Created {
                owner: owner.to_owned(),
                job: job.clone(),
                at: Instant::now(),
            };
            jobs.created.insert(job.uid.clone(), created);
        }
    }

    /// The Jobs of the workflow with this UID, as far as is known.
    pub(crate) fn of(&self, owner: &str) -> Vec<Job> {
        let jobs = self.jobs();
        let known = jobs.known.get(owner).into_iter();
        let known = known.flat_map(|of| of.values().map(|(_, job)| job.clone()));
        let created = jobs.created.values();
        let created =
            created.filter(|created| created.owner == owner && created.at.elapsed() < BELIEVED);
        // What the watch says comes last and counts.
        let created = created.map(|created| created.job.clone());
        created.chain(known).collect()
    }
}

/// A Job with the workflow that controls it, and the UID of that.
fn controlled(object: JobObject) -> Option<(Name, String, Job)> {
    let namespace = kube::ResourceExt::namespace(&object)?;
    let workflow = ObjectRef::new(&object.workflow?).within(&namespace);
    let owner = object.job.owner.clone()?;
    Some((workflow, owner, object.job))
}

/// Which workflows wait for which others.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<Edges>);

#[derive(Debug, Default)]
struct Edges {
    waits_for: HashMap<Name, Vec<Name>>,
    awaited_by: HashMap<Name, HashSet<Name>>,
}

impl Waiting {
    /// From now on `workflow` waits for these, and for no others.
    pub(crate) fn set(&self, workflow: &Name, targets: Vec<Name>) {
        let mut edges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let edges = &mut *edges;
        for before in edges.waits_for.remove(workflow).into_iter().flatten() {
            if let Some(by) = edges.awaited_by.get_mut(&before) {
                by.remove(workflow);
                if by.is_empty() {
                    edges.awaited_by.remove(&before);
                }
            }
        }
        for target in &targets {
            let by = edges.awaited_by.entry(target.clone()).or_default();
            by.insert(workflow.clone());
        }
        if !targets.is_empty() {
            edges.waits_for.insert(workflow.clone(), targets);
        }
    }

    /// Those that wait for this one.
    pub(crate) fn behind(&self, workflow: &Name) -> Vec<Name> {
        let edges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let by = edges.awaited_by.get(workflow);
        by.into_iter().flatten().cloned().collect()
    }
}
