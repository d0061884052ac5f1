//! PipelineRuns and their children as they are received and kept: a PipelineRun of ours as its text, of a child
//! what is asked of it.

use std::borrow::Cow;

use hindsight_run::json;
use hindsight_workflow::pipeline::{Child, ChildKind, PipelineRun};
use kube::{Resource, core::ObjectMeta};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use super::{received, resource};

/// A PipelineRun as the text in which it was received; of those of other controllers nothing is kept.
#[derive(Debug, Clone)]
pub(crate) struct PipelineObject {
    text: Option<Box<RawValue>>,
    meta: ObjectMeta,
}

impl PipelineObject {
    /// Whether it is delegated to us.
    pub(crate) fn is_ours(&self) -> bool {
        self.text.is_some()
    }

    /// What the PipelineRun says.
    pub(crate) fn read(&self) -> Result<PipelineRun, String> {
        PipelineRun::read(&self.value()?)
    }

    /// The object with another status. It fails where that cannot be written.
    pub(crate) fn with_status(&self, status: Value) -> Result<Self, String> {
        let mut value = self.value()?;
        value["status"] = status;
        let text = to_raw_value(&value).map_err(|error| error.to_string())?;
        let meta = self.meta.clone();
        Ok(Self {
            text: Some(text),
            meta,
        })
    }

    fn value(&self) -> Result<Value, String> {
        let text = self.text.as_ref().ok_or("it is of another controller")?;
        json::parse(text.get().as_bytes()).map_err(|error| error.to_string())
    }
}

/// A TaskRun or CustomRun that a PipelineRun of ours controls.
#[derive(Debug, Clone)]
pub(crate) struct ChildObject {
    meta: ObjectMeta,
    /// What it says, or why that cannot be read.
    pub(crate) child: Result<Child, String>,
}

impl<'de> Deserialize<'de> for PipelineObject {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let (text, meta, value) = received(input)?;
        let text = PipelineRun::is_delegated(&value["spec"]).then_some(text);
        Ok(Self { text, meta })
    }
}

impl Serialize for PipelineObject {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(output)
    }
}

impl<'de> Deserialize<'de> for ChildObject {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let (_, meta, value) = received(input)?;
        let child = Child::read(&value);
        Ok(Self { meta, child })
    }
}

resource!(
    PipelineObject,
    ChildKind::GROUP,
    "v1",
    "PipelineRun",
    "pipelineruns"
);

impl Resource for ChildObject {
    type DynamicType = ChildKind;
    type Scope = kube::core::DynamicResourceScope;

    fn kind(of: &ChildKind) -> Cow<'_, str> {
        of.kind().into()
    }

    fn group(_: &ChildKind) -> Cow<'_, str> {
        ChildKind::GROUP.into()
    }

    fn version(of: &ChildKind) -> Cow<'_, str> {
        of.version().into()
    }

    fn plural(of: &ChildKind) -> Cow<'_, str> {
        of.plural().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

#[cfg(test)]
mod tests {
    use super::{ChildObject, PipelineObject};

    #[test]
    fn of_pipeline_runs_of_others_nothing_is_kept_and_no_content_breaks_a_list() {
        let text = r#"[
            {"metadata": {"name": "a"}, "spec": {"pipelineSpec": {}}},
            {"metadata": {"name": "b"}, "spec": {"managedBy": "kueue.x-k8s.io/multikueue"}},
            {"metadata": {"name": "c"}, "spec": {"managedBy": 7}},
            {"metadata": {"name": "d"}},
            {"metadata": {"name": "e"}, "spec": {"managedBy": "hindsight.dev/pipelinerun", "params": 7}}
        ]"#;
        let objects: Vec<PipelineObject> = serde_json::from_str(text).unwrap();
        let ours: Vec<bool> = objects.iter().map(PipelineObject::is_ours).collect();
        assert_eq!(ours, [false, false, false, false, true]);
        let text = r#"[{"metadata": {"name": "a"}, "status": {"results": 7}}, {"metadata": {}}]"#;
        let children: Vec<ChildObject> = serde_json::from_str(text).unwrap();
        assert!(children[0].child.is_err() && children[1].child.is_ok());
    }
}
