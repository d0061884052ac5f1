//! What bodies are alike: those of one type, and of one task of one pipeline even more so. Those of
//! different parents have no key in common.

use hindsight_filter::extract::Family;
use sha2::{Digest, Sha256};

/// A digest of what bodies have in common.
pub(crate) type Key = [u8; 32];

/// The keys of one body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keys {
    /// Of its pipeline and task, if it says what they are.
    pub(crate) own: Option<Key>,
    pub(crate) of_type: Key,
    /// Whether it may become a dictionary: bodies that will change have little to refer to.
    pub(crate) is_settled: bool,
}

impl Keys {
    /// The keys of a body that says nothing of its template.
    pub(crate) fn of_type(parent: &str, data_type: &str) -> Self {
        Self {
            own: None,
            of_type: digest(&[parent, data_type]),
            is_settled: true,
        }
    }

    /// The keys of a run.
    pub(crate) fn of_run(parent: &str, data_type: &str, run: &Family) -> Self {
        let (pipeline, task) = (run.pipeline.as_deref(), run.task.as_deref());
        let own = (pipeline.is_some() || task.is_some()).then(|| {
            let (pipeline, task) = (pipeline.unwrap_or_default(), task.unwrap_or_default());
            digest(&[parent, data_type, pipeline, task])
        });
        Self {
            own,
            of_type: digest(&[parent, data_type]),
            is_settled: run.is_settled,
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = Key> + use<> {
        self.own.into_iter().chain([self.of_type])
    }
}

fn digest(parts: &[&str]) -> Key {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or_default().to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
