//! Which kinds of custom runs are followed, and the runs of each.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hindsight_workflow::custom::Form;
use kube::runtime::reflector::{ObjectRef, Store};
use tokio::sync::mpsc::UnboundedSender;

use crate::object::{OwningRun, RunObject};

/// Names a run.
pub(crate) type RunName = ObjectRef<RunObject>;

/// The runs that are followed: one part for each kind that the cluster has.
#[derive(Debug, Default)]
pub(crate) struct Following {
    parts: Mutex<[Option<Part>; Form::ALL.len()]>,
}

/// The runs of one kind, and the names of those that are to be passed over.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) runs: Store<RunObject>,
    pub(crate) queue: UnboundedSender<RunName>,
}

impl Following {
    /// Asks for a pass over a run, if its kind is followed.
    pub(crate) fn enqueue(&self, namespace: &str, run: &OwningRun) {
        if let Some(part) = self.part(run.form) {
            let name = ObjectRef::new_with(&run.name, run.form).within(namespace);
            // The queue is gone once the controller ends.
            drop(part.queue.send(name));
        }
    }

    /// Whether the run was there when the cluster said something last.
    pub(crate) fn knows(&self, namespace: &str, run: &OwningRun) -> bool {
        let name = ObjectRef::new_with(&run.name, run.form).within(namespace);
        let found = self.part(run.form).and_then(|part| part.runs.get(&name));
        let uid = |object: Arc<RunObject>| kube::Resource::meta(object.as_ref()).uid.clone();
        found.and_then(uid).as_deref() == Some(run.uid.as_str())
    }

    /// From now on the kind is followed by this part, or not at all.
    pub(crate) fn set(&self, form: Form, part: Option<Part>) {
        let mut parts = self.parts();
        for (place, of) in parts.iter_mut().zip(Form::ALL) {
            if of == form {
                *place = part.clone();
            }
        }
    }

    fn part(&self, form: Form) -> Option<Part> {
        let parts = self.parts();
        let mut parts = parts.iter().zip(Form::ALL);
        parts.find(|(_, of)| *of == form)?.0.clone()
    }

    fn parts(&self) -> MutexGuard<'_, [Option<Part>; Form::ALL.len()]> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
