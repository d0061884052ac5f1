//! Pipelines and versions as objects of the Kubernetes API, and as the model has them.
//!
//! Of objects only what is needed is kept. Specs stay text until they are shown: a list of thousands of versions
//! reads few of them, and one that is broken or nested too deep breaks no list.

use std::{borrow::Cow, collections::BTreeMap};

use hindsight_run::json;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::{
    content::{self, CONTENT_LABEL},
    model::{NewPipeline, NewVersion, Pipeline, PipelineVersion, Spec, Status},
    query::{Field, Item},
    spec::Documents,
};

/// The API group of both kinds.
pub const GROUP: &str = "pipelines.kubeflow.org";
/// Their version.
pub const VERSION: &str = "v2beta1";
/// Both, as objects have them.
pub const API_VERSION: &str = "pipelines.kubeflow.org/v2beta1";
/// The kind of pipelines.
pub const PIPELINE: &str = "Pipeline";
/// The kind of versions.
pub const PIPELINE_VERSION: &str = "PipelineVersion";
/// The plural of pipelines.
pub const PIPELINES: &str = "pipelines";
/// The plural of versions.
pub const PIPELINE_VERSIONS: &str = "pipelineversions";
/// The label of versions that holds the uid of their pipeline.
pub const PIPELINE_ID_LABEL: &str = "pipelines.kubeflow.org/pipeline-id";
/// The label of versions that holds the name of their pipeline, as far as a label can.
pub const PIPELINE_LABEL: &str = "pipelines.kubeflow.org/pipeline";
/// The annotation that holds the id in the store that an object was exported from.
pub const ORIGINAL_ID: &str = "pipelines.kubeflow.org/original-id";
/// The type of the condition that says how far a version is.
pub const CONDITION: &str = "PipelineVersionStatus";

/// Longest value of a label.
const LONGEST_LABEL: usize = 63;

/// What is kept of the metadata of an object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<Timestamp>,
    annotations: Option<Annotations>,
    owner_references: Option<Vec<Owner>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "pipelines.kubeflow.org/original-id")]
    original_id: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Owner {
    api_version: String,
    kind: String,
    uid: String,
}

impl Metadata {
    pub(super) fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    fn original_id(&self) -> Option<String> {
        self.annotations
            .as_ref()
            .and_then(|annotations| annotations.original_id.clone())
    }

    /// In whole seconds, as the Kubernetes API has them.
    fn created_at(&self) -> Timestamp {
        let seconds = self.creation_timestamp.map_or(0, Timestamp::as_second);
        Timestamp::from_second(seconds).unwrap_or_default()
    }
}

/// A Pipeline object.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct PipelineObject {
    pub(super) metadata: Metadata,
    spec: Option<PipelineSpec>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PipelineSpec {
    display_name: Option<String>,
    description: Option<String>,
    tags: Option<BTreeMap<String, String>>,
}

/// A PipelineVersion object.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct VersionObject {
    pub(super) metadata: Metadata,
    #[serde(default)]
    spec: VersionSpec,
    status: Option<VersionStatus>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VersionSpec {
    display_name: Option<String>,
    description: Option<String>,
    pipeline_name: Option<String>,
    version_name: Option<String>,
    #[serde(rename = "codeSourceURL")]
    code_source_url: Option<String>,
    #[serde(rename = "pipelineSpecURI")]
    pipeline_spec_uri: Option<String>,
    pipeline_spec: Option<Box<RawValue>>,
    platform_spec: Option<Box<RawValue>>,
    /// Bytes of both, once they are not kept any more.
    #[serde(skip)]
    not_kept: Option<usize>,
    tags: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct VersionStatus {
    conditions: Option<Vec<Condition>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    reason: String,
}

/// The first of these texts that is not empty.
fn first<'a>(texts: &[Option<&'a str>]) -> &'a str {
    let mut given = texts.iter().flatten().filter(|text| !text.is_empty());
    given.next().copied().unwrap_or_default()
}

impl PipelineObject {
    fn display_name(&self) -> &str {
        let spec = self.spec.as_ref();
        first(&[
            spec.and_then(|spec| spec.display_name.as_deref()),
            Some(&self.metadata.name),
        ])
    }

    /// The pipeline that it is.
    pub(super) fn read(&self) -> Pipeline {
        let spec = self.spec.clone().unwrap_or_default();
        Pipeline {
            id: self.metadata.uid.clone(),
            namespace: self.metadata.namespace.clone(),
            name: self.metadata.name.clone(),
            display_name: self.display_name().to_owned(),
            description: spec.description.unwrap_or_default(),
            tags: spec.tags.unwrap_or_default(),
            created_at: self.metadata.created_at(),
            original_id: self.metadata.original_id(),
        }
    }

    /// The keys of its tags.
    pub(super) fn tag_keys(&self) -> Vec<String> {
        let tags = self.spec.as_ref().and_then(|spec| spec.tags.as_ref());
        tags.into_iter()
            .flatten()
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// The owner reference of its versions. It does not block the deletion, for which one needs rights of its own; the
    /// webhook adds that.
    fn owner(&self) -> Value {
        let Metadata { name, uid, .. } = &self.metadata;
        json!({"apiVersion": API_VERSION, "kind": PIPELINE, "name": name, "uid": uid})
    }
}

impl VersionObject {
    /// The name by which its pipeline knows it.
    pub(super) fn name(&self) -> &str {
        first(&[self.spec.version_name.as_deref(), Some(&self.metadata.name)])
    }

    fn display_name(&self) -> &str {
        first(&[self.spec.display_name.as_deref(), Some(self.name())])
    }

    /// Whether it is a version of this pipeline: the first pipeline that owns it is, or none owns it, as when it was
    /// made without the webhook, and it names that one.
    pub(super) fn belongs_to(&self, pipeline: &Metadata) -> bool {
        if self.metadata.namespace != pipeline.namespace {
            return false;
        }
        let mut owners = self.metadata.owner_references.iter().flatten();
        match owners.find(|owner| owner.api_version == API_VERSION && owner.kind == PIPELINE) {
            Some(owner) => owner.uid == pipeline.uid,
            None => self.spec.pipeline_name.as_ref() == Some(&pipeline.name),
        }
    }

    /// Whether it says how far it is.
    pub(super) fn has_condition(&self) -> bool {
        self.condition().is_some()
    }

    fn condition(&self) -> Option<&Condition> {
        let conditions = self.status.as_ref()?.conditions.as_ref()?;
        conditions
            .iter()
            .find(|condition| condition.r#type == CONDITION)
    }

    fn status(&self) -> Status {
        if self.metadata.is_deleting() {
            return Status::Deleting;
        }
        let condition = self.condition();
        condition
            .and_then(|condition| Status::named(&condition.reason))
            .unwrap_or_default()
    }

    /// How many bytes its documents take in memory.
    pub(super) fn kept(&self) -> usize {
        let specs = [&self.spec.pipeline_spec, &self.spec.platform_spec];
        specs.into_iter().flatten().map(|raw| raw.get().len()).sum()
    }

    /// Forgets its documents, but not how large they are.
    pub(super) fn forget_documents(&mut self) {
        self.spec.not_kept = Some(self.kept());
        self.spec.pipeline_spec = None;
        self.spec.platform_spec = None;
    }

    /// Whether it has its documents, if it had any.
    pub(super) fn is_whole(&self) -> bool {
        self.spec.not_kept.is_none()
    }

    /// Its documents, or why there are none.
    fn documents(&self) -> Result<Spec, String> {
        let parse = |raw: &RawValue| {
            json::parse(raw.get().as_bytes())
                .map_err(|error| format!("the spec cannot be read: {error}"))
        };
        let pipeline = self
            .spec
            .pipeline_spec
            .as_deref()
            .ok_or("there is no pipelineSpec")?;
        let platform = self.spec.platform_spec.as_deref().map(parse).transpose()?;
        let documents = Documents::of(&parse(pipeline)?, platform.as_ref());
        documents
            .map(Spec::from)
            .map_err(|invalid| invalid.to_string())
    }

    /// The version of a pipeline that it is.
    pub(super) fn read(&self, pipeline_id: &str) -> PipelineVersion {
        let spec = &self.spec;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        PipelineVersion {
            id: self.metadata.uid.clone(),
            pipeline_id: pipeline_id.to_owned(),
            name: self.name().to_owned(),
            display_name: self.display_name().to_owned(),
            description: text(&spec.description),
            tags: spec.tags.clone().unwrap_or_default(),
            created_at: self.metadata.created_at(),
            package_url: text(&spec.pipeline_spec_uri),
            code_source_url: text(&spec.code_source_url),
            status: self.status(),
            spec: self.documents(),
            original_id: self.metadata.original_id(),
        }
    }

    /// The keys of its tags.
    pub(super) fn tag_keys(&self) -> Vec<String> {
        self.spec
            .tags
            .iter()
            .flatten()
            .map(|(key, _)| key.clone())
            .collect()
    }
}

/// Filters and orders look at objects; only those of the page are read.
impl Item for PipelineObject {
    fn id(&self) -> &str {
        &self.metadata.uid
    }

    fn text(&self, field: &Field) -> Option<Cow<'_, str>> {
        let spec = self.spec.as_ref();
        let text = match field {
            Field::Id => &self.metadata.uid,
            Field::Name => &self.metadata.name,
            Field::DisplayName => self.display_name(),
            Field::Description => spec
                .and_then(|spec| spec.description.as_deref())
                .unwrap_or_default(),
            Field::Namespace => &self.metadata.namespace,
            Field::Tag(key) => spec?.tags.as_ref()?.get(key)?,
            Field::CreatedAt | Field::Status | Field::PipelineSpec => return None,
        };
        Some(text.into())
    }

    fn created_at(&self) -> i64 {
        self.metadata.created_at().as_second()
    }

    fn size(&self) -> usize {
        self.read().size()
    }
}

impl Item for VersionObject {
    fn id(&self) -> &str {
        &self.metadata.uid
    }

    fn text(&self, field: &Field) -> Option<Cow<'_, str>> {
        let text = match field {
            Field::Id => &self.metadata.uid,
            Field::Name => self.name(),
            Field::DisplayName => self.display_name(),
            Field::Description => self.spec.description.as_deref().unwrap_or_default(),
            Field::Status => self.status().name(),
            Field::Tag(key) => self.spec.tags.as_ref()?.get(key)?,
            Field::PipelineSpec => {
                let spec = self.documents();
                return Some(
                    spec.map_or_else(|_broken| String::new(), |spec| spec.text())
                        .into(),
                );
            }
            Field::CreatedAt | Field::Namespace => return None,
        };
        Some(text.into())
    }

    fn created_at(&self) -> i64 {
        self.metadata.created_at().as_second()
    }

    fn size(&self) -> usize {
        let specs = self.spec.not_kept.unwrap_or_else(|| self.kept());
        let tags = self.spec.tags.iter().flatten();
        let tags = tags.map(|(key, value)| key.len() + value.len());
        let texts = [
            self.spec.description.as_deref(),
            self.spec.code_source_url.as_deref(),
            self.spec.pipeline_spec_uri.as_deref(),
        ];
        let texts = texts.into_iter().flatten().map(str::len);
        self.name().len() + self.display_name().len() + specs + tags.chain(texts).sum::<usize>()
    }
}

/// The value of the label that holds the name of a pipeline: as much of it as a label can.
#[must_use]
fn label_of_name(name: &str) -> &str {
    let cut = name.get(..LONGEST_LABEL).unwrap_or(name);
    cut.trim_end_matches(['-', '.', '_'])
}

/// A new Pipeline object.
pub(super) fn new_pipeline(namespace: &str, new: &NewPipeline) -> Value {
    let mut spec = json!({"displayName": new.display_name});
    insert(&mut spec, "description", &new.description);
    if !new.tags.is_empty() {
        spec["tags"] = json!(new.tags);
    }
    json!({
        "apiVersion": API_VERSION,
        "kind": PIPELINE,
        "metadata": metadata(&new.name, namespace, new.original_id.as_deref()),
        "spec": spec,
    })
}

/// A new PipelineVersion object of this name. Owner and labels are those that the webhook gives.
pub(super) fn new_version(name: &str, pipeline: &PipelineObject, new: &NewVersion) -> Value {
    let Metadata {
        name: pipeline_name,
        namespace,
        uid,
        ..
    } = &pipeline.metadata;
    let mut spec = json!({
        "displayName": new.display_name,
        "pipelineName": pipeline_name,
        "versionName": new.name,
        "pipelineSpec": new.spec.pipeline,
    });
    insert(&mut spec, "description", &new.description);
    insert(&mut spec, "codeSourceURL", &new.code_source_url);
    insert(&mut spec, "pipelineSpecURI", &new.package_url);
    if let Some(platform) = &new.spec.platform {
        spec["platformSpec"] = platform.clone();
    }
    if !new.tags.is_empty() {
        spec["tags"] = json!(new.tags);
    }
    let mut metadata = metadata(name, namespace, new.original_id.as_deref());
    let content = content::of_version(&new.spec.pipeline, new.spec.platform.as_ref());
    metadata["labels"] = labels(uid, pipeline_name, content.as_deref()).collect();
    metadata["ownerReferences"] = json!([pipeline.owner()]);
    json!({
        "apiVersion": API_VERSION,
        "kind": PIPELINE_VERSION,
        "metadata": metadata,
        "spec": spec,
    })
}

/// The labels of a version of a pipeline, with the digest of its content.
pub fn labels<'a>(
    uid: &'a str,
    pipeline_name: &'a str,
    content: Option<&'a str>,
) -> impl Iterator<Item = (&'static str, &'a str)> {
    let content = content.map(|digest| (CONTENT_LABEL, digest));
    [
        (PIPELINE_ID_LABEL, uid),
        (PIPELINE_LABEL, label_of_name(pipeline_name)),
    ]
    .into_iter()
    .chain(content)
}

/// The status of a version that can be used.
pub(super) fn ready() -> Value {
    json!({"conditions": [condition(Status::Ready)]})
}

/// The condition that says how far a version is.
#[must_use]
pub fn condition(status: Status) -> Value {
    let name = status.name();
    json!({"type": CONDITION, "status": "True", "reason": name, "message": name})
}

fn metadata(name: &str, namespace: &str, original_id: Option<&str>) -> Value {
    let mut metadata = json!({"name": name, "namespace": namespace});
    if let Some(id) = original_id {
        metadata["annotations"] = json!({ORIGINAL_ID: id});
    }
    metadata
}

fn insert(spec: &mut Value, key: &str, text: &str) {
    if !text.is_empty() {
        spec[key] = json!(text);
    }
}

#[cfg(test)]
mod tests;
