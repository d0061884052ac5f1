//! The fields of a run that people ask for, found wherever its kind keeps them.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Completion, Finish, Kind, Kinds, json, keys};
use hindsight_proto::time;

/// An owner reference, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner<'a> {
    /// The owner's kind, such as `PipelineRun`.
    pub kind: &'a str,
    /// The owner's name, unique only within its kind and namespace.
    pub name: &'a str,
    /// The owner's UID, which no later object of that name has.
    pub uid: &'a str,
}

/// A read-only view of one Kubernetes object. Every field is optional, because third parties
/// may store anything under the type of a run; a field of the wrong JSON type is absent.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    object: &'a Value,
    kinds: &'a Kinds,
}

static BUILT_IN: Kinds = Kinds::built_in();

impl<'a> View<'a> {
    /// A view of `object`, which may be of any built-in kind.
    pub fn new(object: &'a Value) -> Self {
        Self::with_kinds(object, &BUILT_IN)
    }

    /// A view of `object`, which may be of any of `kinds`.
    pub fn with_kinds(object: &'a Value, kinds: &'a Kinds) -> Self {
        Self { object, kinds }
    }

    fn text(&self, pointer: &str) -> Option<&'a str> {
        json::at(self.object, pointer).and_then(Value::as_str)
    }

    fn time(&self, pointer: &str) -> Option<Timestamp> {
        self.text(pointer).and_then(time::parse)
    }

    fn map(&self, pointer: &str) -> Option<&'a Map<String, Value>> {
        json::at(self.object, pointer).and_then(Value::as_object)
    }

    /// The JSON of the object that this is a view of.
    pub fn object(&self) -> &'a Value {
        self.object
    }

    /// What is known about its kind, if anything is.
    pub fn known_kind(&self) -> Option<&'static Kind> {
        self.kinds.of(self.object)
    }

    fn completion(&self) -> Option<Completion> {
        self.known_kind().map(|kind| kind.completion)
    }

    /// `apiVersion`, such as `tekton.dev/v1`; absent if it is no text.
    pub fn api_version(&self) -> Option<&'a str> {
        self.text("/apiVersion")
    }

    /// `kind`, such as `TaskRun`; absent if it is no text.
    pub fn kind(&self) -> Option<&'a str> {
        self.text("/kind")
    }

    /// `metadata.name`, unique only within kind and namespace.
    pub fn name(&self) -> Option<&'a str> {
        self.text("/metadata/name")
    }

    /// `metadata.namespace`; absent from objects outside of namespaces.
    pub fn namespace(&self) -> Option<&'a str> {
        self.text("/metadata/namespace")
    }

    /// `metadata.uid`, which no other object of the cluster ever has.
    pub fn uid(&self) -> Option<&'a str> {
        self.text("/metadata/uid")
    }

    /// `metadata.resourceVersion`, an opaque text that each change replaces.
    pub fn resource_version(&self) -> Option<&'a str> {
        self.text("/metadata/resourceVersion")
    }

    /// `metadata.creationTimestamp`; absent if it is no RFC 3339 time.
    pub fn created(&self) -> Option<Timestamp> {
        self.time("/metadata/creationTimestamp")
    }

    /// `metadata.deletionTimestamp`; absent unless the object is being deleted.
    pub fn deletion(&self) -> Option<Timestamp> {
        self.time("/metadata/deletionTimestamp")
    }

    /// `metadata.labels`; their values may be of any JSON type.
    pub fn labels(&self) -> Option<&'a Map<String, Value>> {
        self.map("/metadata/labels")
    }

    /// `metadata.annotations`; their values may be of any JSON type.
    pub fn annotations(&self) -> Option<&'a Map<String, Value>> {
        self.map("/metadata/annotations")
    }

    /// The value of the label `key`; absent if it is no text.
    pub fn label(&self, key: &str) -> Option<&'a str> {
        self.labels()?.get(key)?.as_str()
    }

    /// The value of the annotation `key`; absent if it is no text.
    pub fn annotation(&self, key: &str) -> Option<&'a str> {
        self.annotations()?.get(key)?.as_str()
    }

    /// `metadata.ownerReferences`, those that are whole.
    pub fn owners(&self) -> impl Iterator<Item = Owner<'a>> + use<'a> {
        let list = json::at(self.object, "/metadata/ownerReferences").and_then(Value::as_array);
        list.into_iter().flatten().filter_map(|owner| {
            let text = |key| owner.get(key).and_then(Value::as_str);
            Some(Owner {
                kind: text("kind")?,
                name: text("name")?,
                uid: text("uid")?,
            })
        })
    }

    /// Whether the object belongs to another one.
    pub fn is_owned(&self) -> bool {
        self.owners().next().is_some()
    }

    /// When it began: `status.startTime`, or Argo's `status.startedAt`; of what lasts until it is
    /// deleted, when it was made.
    pub fn started(&self) -> Option<Timestamp> {
        match self.completion() {
            Some(Completion::Declared(reader)) => reader.started(self.object),
            Some(Completion::Deletion) => self.created(),
            _ => self
                .time("/status/startTime")
                .or_else(|| self.time("/status/startedAt")),
        }
    }

    /// When it ended: `status.completionTime`, Argo's `status.finishedAt` or Ray's
    /// `status.endTime`; for a failed Job, which has none, the time of the condition that ended
    /// it; of what lasts until it is deleted, when that was asked for; of what was closed, when it was
    /// found to be gone.
    pub fn ended(&self) -> Option<Timestamp> {
        match self.completion() {
            Some(Completion::Declared(reader)) => {
                let ended = reader.ended(self.object);
                return ended.or_else(|| self.closed().map(|closed| closed.at));
            }
            Some(Completion::Deletion) => {
                let asked = self.deletion();
                return asked.or_else(|| self.closed().map(|closed| closed.at));
            }
            _ => {}
        }
        self.time("/status/completionTime")
            .or_else(|| self.time("/status/finishedAt"))
            .or_else(|| self.time("/status/endTime"))
            .or_else(|| {
                let conditions = json::at(self.object, "/status/conditions")?.as_array()?;
                let ended = conditions.iter().find(|c| {
                    let text = |key| c.get(key).and_then(Value::as_str);
                    match text("type") {
                        Some("Failed") => text("status") == Some("True"),
                        Some("Succeeded") => text("status") == Some("False"),
                        _ => false,
                    }
                })?;
                ended
                    .get("lastTransitionTime")?
                    .as_str()
                    .and_then(time::parse)
            })
            .or_else(|| self.closed().map(|closed| closed.at))
    }

    /// Whether and how it ended. Of an object of no known kind a `Succeeded` condition says so, if
    /// it has one.
    pub fn finish(&self) -> Finish<'a> {
        Finish::of(
            self.object,
            self.completion().unwrap_or(Completion::Succeeded),
        )
    }

    /// The pipeline (or workflow template) it is a run of.
    pub fn pipeline(&self) -> Option<&'a str> {
        self.label(keys::PIPELINE)
            .or_else(|| self.text("/spec/pipelineRef/name"))
            .or_else(|| self.text("/spec/workflowTemplateRef/name"))
    }

    /// The task it is a run of.
    pub fn task(&self) -> Option<&'a str> {
        self.label(keys::TASK)
            .or_else(|| self.text("/spec/taskRef/name"))
            .or_else(|| self.text("/spec/customRef/name"))
    }
}
