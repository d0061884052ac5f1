//! What the status of a PipelineRun says beyond that of a custom run. Its fields are Tekton's; what Tekton has no
//! field for is among `annotations`, which Tekton keeps and does not read.

use std::collections::BTreeMap;

use hindsight_run::json::parse;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::child::{ChildKind, ChildName, Outcome};
use crate::custom::RunStatus;

/// Annotation of the status: how tasks ended, by their names, as JSON. It outlasts their runs.
const ENDED: &str = "hindsight.dev/ended-tasks";

impl RunStatus {
    /// Ends the PipelineRun badly.
    pub(super) fn end(&mut self, reason: &str, message: &str, now: Timestamp) {
        let start = self.start_time().unwrap_or(now);
        if self.start_time().is_none() {
            self.start(now);
        }
        self.complete(now.max(start));
        self.say("False", reason, message, now);
    }

    /// The children that were claimed, by the names of their tasks.
    pub(super) fn children(&self) -> BTreeMap<String, ChildName> {
        let references = self.field("childReferences").and_then(Value::as_array);
        let read = |reference: &Value| {
            let text = |field: &str| reference[field].as_str();
            let kind = ChildKind::of(text("kind")?)?;
            let name = text("name")?.to_owned();
            Some((
                text("pipelineTaskName")?.to_owned(),
                ChildName { kind, name },
            ))
        };
        references.into_iter().flatten().filter_map(read).collect()
    }

    /// From now on the child may be created.
    pub(super) fn claim_child(&mut self, task: &str, display_name: &str, child: &ChildName) {
        let ChildName { kind, name } = child;
        let mut reference = json!({
            "apiVersion": format!("{}/{}", ChildKind::GROUP, kind.version()), "kind": kind.kind(),
            "name": name, "pipelineTaskName": task,
        });
        if !display_name.is_empty() {
            reference["displayName"] = display_name.into();
        }
        let references = self.field("childReferences").and_then(Value::as_array);
        let mut references = references.cloned().unwrap_or_default();
        references.push(reference);
        self.set("childReferences", references.into());
    }

    /// How tasks ended.
    pub(super) fn ended(&self) -> BTreeMap<String, Outcome> {
        let text = self
            .field("annotations")
            .and_then(|all| all[ENDED].as_str());
        let ended = text.and_then(|text| parse(text.as_bytes()).ok());
        let ended = ended.as_ref().and_then(Value::as_object);
        let ended = ended.into_iter().flatten();
        ended
            .filter_map(|(task, end)| Some((task.clone(), Outcome::of(end.as_str()?)?)))
            .collect()
    }

    pub(super) fn set_ended(&mut self, ended: &BTreeMap<String, Outcome>) {
        let ended = ended.iter().map(|(task, end)| (task.as_str(), end.text()));
        let text = json!(ended.collect::<BTreeMap<_, _>>()).to_string();
        let annotations = self.field("annotations").and_then(Value::as_object);
        let mut annotations = annotations.cloned().unwrap_or_default();
        annotations.insert(ENDED.to_owned(), text.into());
        self.set("annotations", annotations.into());
    }
}
