//! What one kind of object is called, and how it says that it is finished.

use jiff::Timestamp;
use serde_json::Value;

use super::Outcome;

/// How a kind says that it is finished.
#[derive(Debug, Clone, Copy)]
pub enum Completion {
    /// Tekton: the condition `Succeeded` is `True` or `False`.
    Succeeded,
    /// A condition `Complete` or `Failed` is `True` (batch/v1 Job, hindsight.dev Workflow).
    CompleteOrFailed,
    /// Argo: `status.phase` is `Succeeded`, `Failed` or `Error`.
    Phase,
    /// Ray: `status.jobDeploymentStatus` is `Complete` or `Failed`.
    RayJob,
    /// It lasts until it is deleted.
    Deletion,
    /// It is a definition and never finished; each change of it counts.
    Never,
    /// As the configuration that declares the kind says.
    Declared(&'static dyn StatusReader),
}

/// Reads the status of objects of a kind that is not built in.
pub trait StatusReader: std::fmt::Debug + Send + Sync {
    /// Whether the object is finished, and how it ended.
    fn finish(&self, object: &Value) -> (bool, Outcome);
    /// When the object began; absent if its status tells no time.
    fn started(&self, object: &Value) -> Option<Timestamp>;
    /// When the object ended; absent if its status tells no time.
    fn ended(&self, object: &Value) -> Option<Timestamp>;
    /// The id of the result that it belongs to, if not its own.
    fn group(&self, object: &Value) -> Option<String>;
}

/// A kind of object that Hindsight keeps. Two are the same if group, version and name are.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// API version that is watched.
    pub version: &'static str,
    /// The `kind` of its objects, such as `TaskRun`.
    pub kind: &'static str,
    /// The plural used in URLs.
    pub plural: &'static str,
    /// The variable that filters call it by.
    pub alias: Option<&'static str>,
    /// How it says that it is finished.
    pub completion: Completion,
    /// Older `data.type` texts that mean the same kind.
    pub other_types: &'static [&'static str],
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        (self.group, self.version, self.kind) == (other.group, other.version, other.kind)
    }
}

impl Eq for Kind {}

/// What ends objects of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// They finish, and say so.
    #[default]
    UntilFinished,
    /// They last until they are deleted, which is no failure.
    UntilDeleted,
    /// They are definitions: a delete ends none of their states.
    Endless,
}

impl Lifetime {
    /// Whether each state of an object counts, and not only the last one.
    pub fn is_long(self) -> bool {
        self != Self::UntilFinished
    }
}

impl Kind {
    /// What ends its objects.
    pub fn lifetime(&self) -> Lifetime {
        match self.completion {
            Completion::Deletion => Lifetime::UntilDeleted,
            Completion::Never => Lifetime::Endless,
            _ => Lifetime::UntilFinished,
        }
    }

    /// Whether each state of an object counts, and not only the last one: it ends when it is
    /// deleted, or never.
    pub fn is_long_lived(&self) -> bool {
        self.lifetime().is_long()
    }

    /// The `apiVersion` of its objects: `<group>/<version>`, or `<version>` in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The `data.type` of its records: `<group>/<version>.<kind>`.
    pub fn data_type(&self) -> String {
        format!("{}.{}", self.api_version(), self.kind)
    }

    /// Whether a record's `data.type` stands for this kind.
    pub fn has_type(&self, data_type: &str) -> bool {
        let rest = match self.group {
            "" => Some(data_type),
            group => data_type
                .strip_prefix(group)
                .and_then(|rest| rest.strip_prefix('/')),
        };
        self.other_types.contains(&data_type)
            || rest
                .and_then(|rest| rest.strip_prefix(self.version))
                .and_then(|rest| rest.strip_prefix('.'))
                == Some(self.kind)
    }
}
