//! Workflows, Jobs and custom runs as they are received and kept: a workflow or run as its text, of a Job what
//! is asked of it.

pub(crate) mod pipeline;
mod text;

use std::borrow::Cow;

use hindsight_run::json;
use hindsight_workflow::{
    End, GROUP, Job, KIND, PLURAL, STEP_LABEL, Status, VERSION, Workflow,
    custom::{CustomRun, Form, RUN_UID_LABEL},
};
use kube::{Resource, core::ObjectMeta};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

/// A workflow as the text in which it was received. A spec that is not of its type breaks no list.
#[derive(Debug, Clone)]
pub(crate) struct WorkflowObject {
    text: Box<RawValue>,
    meta: ObjectMeta,
    /// The custom run that controls it and made it.
    pub(crate) run: Option<OwningRun>,
}

/// A custom run that controls a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwningRun {
    pub(crate) form: Form,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// A custom run as the text in which it was received; of those of other controllers nothing is kept.
#[derive(Debug, Clone)]
pub(crate) struct RunObject {
    text: Option<Box<RawValue>>,
    meta: ObjectMeta,
}

impl RunObject {
    /// Whether it asks for a workflow.
    pub(crate) fn is_ours(&self) -> bool {
        self.text.is_some()
    }

    /// The object with another status. It fails where that cannot be written.
    pub(crate) fn with_status(&self, status: &Value) -> Result<Self, String> {
        let text = text::with(self.text()?, "status", status)?;
        let meta = self.meta.clone();
        Ok(Self {
            text: Some(text),
            meta,
        })
    }

    /// What the run says. One that is nested too deep says that.
    pub(crate) fn read(&self, form: Form) -> Result<CustomRun, String> {
        let (value, problem) = text::outline(self.text()?)?;
        let mut run = CustomRun::read(form, &value)?;
        if let Some(problem) = problem {
            run.spec = Err(problem);
        }
        Ok(run)
    }

    fn text(&self) -> Result<&RawValue, String> {
        let text = self.text.as_deref();
        text.ok_or_else(|| "it is of another controller".to_owned())
    }
}

impl WorkflowObject {
    /// The object as JSON. It fails where it is nested deeper than can be read.
    pub(crate) fn value(&self) -> Result<Value, String> {
        json::parse(self.text.get().as_bytes()).map_err(|error| error.to_string())
    }

    /// The object with other content. It fails where that cannot be written.
    pub(crate) fn of(value: &Value) -> Result<Self, String> {
        let text = to_raw_value(value).map_err(|error| error.to_string())?;
        let head = Head::deserialize(value).map_err(|error| error.to_string())?;
        Ok(Self::new(text, &head))
    }

    fn new(text: Box<RawValue>, head: &Head) -> Self {
        Self {
            text,
            meta: head.metadata.kept(),
            run: head.metadata.run(),
        }
    }

    /// What the workflow says. One that is nested too deep says that.
    pub(crate) fn read(&self) -> Result<Workflow, String> {
        let (value, problem) = text::outline(&self.text)?;
        let mut workflow = Workflow::read(&value)?;
        if let Some(problem) = problem {
            workflow.spec = Err(problem);
        }
        Ok(workflow)
    }

    /// The workflow with another status. It fails where that cannot be written.
    pub(crate) fn with_status(&self, status: &Status) -> Result<Self, String> {
        self.with("status", status)
    }

    /// The workflow with other finalizers. It fails where they cannot be written.
    pub(crate) fn with_finalizers(&self, finalizers: &[String]) -> Result<Self, String> {
        let metadata = text::member(&self.text, "metadata")?;
        let metadata = text::with(&metadata, "finalizers", finalizers)?;
        self.with("metadata", &metadata)
    }

    fn with(&self, name: &str, member: &(impl Serialize + ?Sized)) -> Result<Self, String> {
        Ok(Self {
            text: text::with(&self.text, name, member)?,
            meta: self.meta.clone(),
            run: self.run.clone(),
        })
    }
}

/// Of a Job, what is asked of it.
#[derive(Debug, Clone)]
pub(crate) struct JobObject {
    meta: ObjectMeta,
    /// Name of the workflow that controls it.
    pub(crate) workflow: Option<String>,
    pub(crate) job: Job,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    deletion_timestamp: Option<String>,
    owner_references: Option<Vec<Owner>>,
    labels: Option<Labels>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Owner {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    controller: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Labels {
    #[serde(rename = "hindsight.dev/step")]
    step: Option<String>,
    #[serde(rename = "hindsight.dev/custom-run-uid")]
    run_uid: Option<String>,
}

const _: () = assert!(STEP_LABEL.len() == "hindsight.dev/step".len());
const _: () = assert!(RUN_UID_LABEL.len() == "hindsight.dev/custom-run-uid".len());

#[derive(Deserialize)]
struct JobText {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    status: JobStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JobStatus {
    conditions: Option<Vec<Condition>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
    reason: String,
    message: String,
}

impl Metadata {
    fn kept(&self) -> ObjectMeta {
        ObjectMeta {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            uid: self.uid.clone(),
            resource_version: self.resource_version.clone(),
            ..ObjectMeta::default()
        }
    }

    fn run(&self) -> Option<OwningRun> {
        let labelled = self.labels.as_ref()?.run_uid.as_ref()?;
        let mut owners = self.owner_references.iter().flatten();
        let owner = owners.find(|owner| owner.controller && owner.uid == *labelled)?;
        Some(OwningRun {
            form: Form::of(&owner.api_version, &owner.kind)?,
            name: owner.name.clone(),
            uid: owner.uid.clone(),
        })
    }
}

impl JobStatus {
    fn end(&self) -> Option<End> {
        let mut conditions = self.conditions.iter().flatten();
        let last = conditions.find(|condition| {
            condition.status == "True" && matches!(condition.r#type.as_str(), "Complete" | "Failed")
        })?;
        Some(match last.r#type.as_str() {
            "Complete" => End::Complete,
            _ if last.message.is_empty() => End::Failed(last.reason.clone()),
            _ => End::Failed(format!("{}: {}", last.reason, last.message)),
        })
    }
}

impl<'de> Deserialize<'de> for WorkflowObject {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(input)?;
        let head: Result<Head, _> = serde_json::from_str(text.get());
        let head = head.map_err(serde::de::Error::custom)?;
        Ok(Self::new(text, &head))
    }
}

/// The text of an object, what is kept of its metadata, and all of it.
fn received<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<(Box<RawValue>, ObjectMeta, Value), D::Error> {
    let text = Box::<RawValue>::deserialize(input)?;
    let head: Result<Head, _> = serde_json::from_str(text.get());
    let meta = head.map_err(serde::de::Error::custom)?.metadata.kept();
    let value = json::outline(text.get().as_bytes()).unwrap_or_default();
    Ok((text, meta, value))
}

impl<'de> Deserialize<'de> for RunObject {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let (text, meta, value) = received(input)?;
        let asks = |form| CustomRun::asks_for_workflow(form, &value["spec"]);
        let is_ours = Form::ALL.into_iter().any(asks);
        let text = is_ours.then_some(text);
        Ok(Self { text, meta })
    }
}

impl Serialize for RunObject {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(output)
    }
}

impl Serialize for WorkflowObject {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(output)
    }
}

impl<'de> Deserialize<'de> for JobObject {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = JobText::deserialize(input)?;
        let metadata = &text.metadata;
        let mut owners = metadata.owner_references.iter().flatten();
        let owner = owners.find(|owner| owner.controller);
        let is_workflow = |owner: &&Owner| {
            let group = owner.api_version.split_once('/').map(|(group, _)| group);
            group == Some(GROUP) && owner.kind == KIND
        };
        let job = Job {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            version: metadata.resource_version.clone().unwrap_or_default(),
            owner: owner.map(|owner| owner.uid.clone()),
            step: metadata
                .labels
                .as_ref()
                .and_then(|labels| labels.step.clone()),
            is_deleting: metadata.deletion_timestamp.is_some(),
            end: text.status.end(),
        };
        Ok(Self {
            meta: metadata.kept(),
            workflow: owner.filter(is_workflow).map(|owner| owner.name.clone()),
            job,
        })
    }
}

macro_rules! resource {
    ($type:ty, $group:expr, $version:expr, $kind:expr, $plural:expr) => {
        impl Resource for $type {
            type DynamicType = ();
            type Scope = kube::core::NamespaceResourceScope;

            fn kind((): &()) -> Cow<'_, str> {
                $kind.into()
            }

            fn group((): &()) -> Cow<'_, str> {
                $group.into()
            }

            fn version((): &()) -> Cow<'_, str> {
                $version.into()
            }

            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.meta
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.meta
            }
        }
    };
}

use resource;

impl Resource for RunObject {
    type DynamicType = Form;
    type Scope = kube::core::DynamicResourceScope;

    fn kind(form: &Form) -> Cow<'_, str> {
        form.kind().into()
    }

    fn group(_: &Form) -> Cow<'_, str> {
        Form::GROUP.into()
    }

    fn version(form: &Form) -> Cow<'_, str> {
        form.version().into()
    }

    fn plural(form: &Form) -> Cow<'_, str> {
        form.plural().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

resource!(WorkflowObject, GROUP, VERSION, KIND, PLURAL);
resource!(JobObject, "batch", "v1", "Job", "jobs");

#[cfg(test)]
mod tests {
    use hindsight_workflow::{End, Status, custom::Form};

    use super::{JobObject, RunObject, WorkflowObject};

    #[test]
    fn a_spec_that_is_not_of_its_type_breaks_no_list() {
        let text = r#"[{"metadata":{"name":"a"},"spec":{"steps":7,"$serde_json::private::RawValue":"["}},{"metadata":{}}]"#;
        let objects: Vec<WorkflowObject> = serde_json::from_str(text).unwrap();
        let workflow = objects[0].read().unwrap();
        assert_eq!(workflow.name, "a");
        assert!(workflow.spec.unwrap_err().starts_with("spec: invalid type"));
    }

    #[test]
    fn a_spec_that_is_nested_too_deep_is_said_and_stays_as_it_is() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let text = format!(
            r#"{{"metadata":{{"name":"a","uid":"u","managedFields":{deep},"finalizers":["x"]}},"spec":{{"steps":{deep}}}}}"#
        );
        let object: WorkflowObject = serde_json::from_str(&text).unwrap();
        let workflow = object.read().unwrap();
        assert_eq!((workflow.name.as_str(), workflow.uid.as_str()), ("a", "u"));
        assert_eq!(workflow.finalizers, ["x"]);
        let why = "spec: the object is nested more than 127 deep";
        assert_eq!(workflow.spec.unwrap_err(), why);
        let status = Status {
            progress: "0/0".to_owned(),
            ..Status::default()
        };
        let written = object.with_status(&status).unwrap();
        let written = written.with_finalizers(&[]).unwrap();
        assert!(written.text.get().contains(&format!(r#""steps":{deep}"#)));
        let workflow = written.read().unwrap();
        assert_eq!(workflow.status, status);
        assert_eq!(workflow.finalizers, Vec::<String>::new());

        let task = r#""apiVersion":"hindsight.dev/v1alpha1","kind":"Workflow""#;
        let text = format!(
            r#"{{"metadata":{{"name":"r"}},"spec":{{"customSpec":{{{task},"spec":{deep}}}}}}}"#
        );
        let run: RunObject = serde_json::from_str(&text).unwrap();
        assert!(run.is_ours());
        let run = run.with_status(&serde_json::json!({})).unwrap();
        let spec = run.read(Form::CustomRun).unwrap().spec;
        assert_eq!(spec.unwrap_err(), why);
    }

    #[test]
    fn wf_25_the_end_of_a_job_is_read_from_its_conditions() {
        let read = |status: &str| {
            let text = format!(
                r#"{{"metadata":{{"name":"j","labels":{{"hindsight.dev/step":"s"}}}},"status":{status}}}"#
            );
            let object: JobObject = serde_json::from_str(&text).unwrap();
            assert_eq!(object.job.step.as_deref(), Some("s"));
            object.job.end
        };
        assert_eq!(
            read(r#"{"succeeded":1,"failed":9,"completionTime":"2026-03-01T10:00:00Z"}"#),
            None
        );
        assert_eq!(
            read(r#"{"conditions":[{"type":"SuccessCriteriaMet","status":"True"}]}"#),
            None
        );
        assert_eq!(
            read(r#"{"conditions":[{"type":"Complete","status":"False"}]}"#),
            None
        );
        assert_eq!(
            read(r#"{"conditions":[{"type":"Complete","status":"True"}]}"#),
            Some(End::Complete)
        );
        let failed = r#"{"conditions":[{"type":"Failed","status":"True","reason":"BackoffLimitExceeded","message":"too often"}]}"#;
        assert_eq!(
            read(failed),
            Some(End::Failed("BackoffLimitExceeded: too often".to_owned()))
        );
    }
}
