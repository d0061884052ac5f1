//! Manifests: one Pipeline object and its PipelineVersion objects, as YAML.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Described, made_at, names::Names};
use crate::{
    kubernetes::{API_VERSION, ORIGINAL_ID, PIPELINE, PIPELINE_VERSION},
    model::{NewPipeline, NewVersion, Pipeline, PipelineVersion, Tags},
    spec::{
        Documents,
        read::{Limits, documents},
    },
};

/// The annotation that holds when something was made in the store that it was exported from.
const CREATED_AT: &str = "hindsight.dev/created-at";

/// The manifests of one pipeline.
#[derive(Debug)]
pub struct Manifests {
    /// The name of the file.
    pub(super) file: String,
    name: String,
    namespace: Option<String>,
    objects: Vec<Value>,
}

impl Manifests {
    pub(super) fn of(pipeline: &Pipeline, namespace: Option<&str>, names: &mut Names) -> Self {
        let name = names.pipeline(namespace.unwrap_or_default(), &pipeline.name, &pipeline.id);
        let mut spec = Map::new();
        insert(
            &mut spec,
            "displayName",
            &shown(&pipeline.display_name, &pipeline.name),
        );
        insert(&mut spec, "description", &pipeline.description);
        insert_tags(&mut spec, &pipeline.tags);
        let file = match namespace {
            Some(namespace) => format!("{namespace}.{name}.yaml"),
            None => format!("{name}.yaml"),
        };
        Self {
            objects: vec![object(
                PIPELINE,
                &name,
                namespace,
                (&pipeline.id, pipeline.created_at),
                spec,
            )],
            file,
            name,
            namespace: namespace.map(str::to_owned),
        }
    }

    /// Adds a version. It fails if the version has no spec that could be used.
    pub(super) fn add(
        &mut self,
        version: &PipelineVersion,
        names: &mut Names,
    ) -> Result<(), String> {
        let documents = version.spec.as_ref().map_err(Clone::clone)?;
        let namespace = self.namespace.as_deref();
        let (name, object_name) = names.version(
            namespace.unwrap_or_default(),
            &self.name,
            &version.name,
            &version.id,
        );
        let mut spec = Map::new();
        insert(
            &mut spec,
            "displayName",
            &shown(&version.display_name, &version.name),
        );
        insert(&mut spec, "description", &version.description);
        insert(&mut spec, "pipelineName", &self.name);
        insert(&mut spec, "versionName", &name);
        insert(&mut spec, "codeSourceURL", &version.code_source_url);
        insert(&mut spec, "pipelineSpecURI", &version.package_url);
        insert_tags(&mut spec, &version.tags);
        spec.insert("pipelineSpec".to_owned(), documents.pipeline.clone());
        if let Some(platform) = &documents.platform {
            spec.insert("platformSpec".to_owned(), platform.clone());
        }
        let origin = (version.id.as_str(), version.created_at);
        self.objects.push(object(
            PIPELINE_VERSION,
            &object_name,
            namespace,
            origin,
            spec,
        ));
        Ok(())
    }

    /// How many versions they have.
    pub(super) fn versions(&self) -> usize {
        self.objects.len().saturating_sub(1)
    }

    /// The text of the file.
    pub(super) fn text(&self) -> String {
        let texts = self.objects.iter().map(|object| {
            serde_saphyr::to_string(object).expect("an object without cycles can be written")
        });
        texts.collect::<Vec<_>>().join("---\n")
    }
}

/// The display name, or the name that it stands for.
fn shown(display_name: &str, name: &str) -> String {
    match display_name.is_empty() {
        true => name.to_owned(),
        false => display_name.to_owned(),
    }
}

fn insert(spec: &mut Map<String, Value>, key: &str, text: &str) {
    if !text.is_empty() {
        spec.insert(key.to_owned(), json!(text));
    }
}

fn insert_tags(spec: &mut Map<String, Value>, tags: &Tags) {
    if !tags.is_empty() {
        spec.insert("tags".to_owned(), json!(tags));
    }
}

fn object(
    kind: &str,
    name: &str,
    namespace: Option<&str>,
    (id, created_at): (&str, Timestamp),
    spec: Map<String, Value>,
) -> Value {
    let annotations = json!({ORIGINAL_ID: id, CREATED_AT: created_at.to_string()});
    let mut metadata = json!({"name": name, "annotations": annotations});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    json!({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec})
}

/// What manifests describe, each text with a name for errors. Versions may be in other texts than their pipelines.
///
/// # Errors
/// If a text is none, or an object is not one of both kinds or cannot be used.
pub fn read(texts: &[(String, String)], now: Timestamp) -> Result<Vec<Described>, String> {
    let mut found: Vec<Described> = Vec::new();
    let mut places: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (file, text) in texts {
        let objects =
            documents(text.as_bytes(), Limits::FILE).map_err(|why| format!("{file}: {why}"))?;
        for (index, object) in objects.iter().enumerate() {
            let wrong = |why: String| format!("{file}, document {}: {why}", index + 1);
            let what = Object::of(object).map_err(wrong)?;
            let of = match what.kind {
                PIPELINE => what.name,
                _ => text_of(&object["spec"]["pipelineName"]),
            };
            let key = (what.namespace.to_owned(), of.to_owned());
            let at = *places.entry(key).or_insert_with(|| {
                found.push(Described {
                    pipeline: None,
                    namespace: what.namespace.to_owned(),
                    name: of.to_owned(),
                    versions: Vec::new(),
                });
                found.len() - 1
            });
            let Some(described) = found.get_mut(at) else {
                continue;
            };
            match what.kind {
                PIPELINE => described.pipeline = Some(what.pipeline(now)),
                _ => described.versions.push(what.version(now).map_err(wrong)?),
            }
        }
    }
    Ok(found)
}

/// An object of a manifest.
struct Object<'a> {
    kind: &'static str,
    name: &'a str,
    namespace: &'a str,
    original_id: Option<String>,
    created_at: Option<Timestamp>,
    spec: &'a Value,
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl<'a> Object<'a> {
    fn of(object: &'a Value) -> Result<Self, String> {
        let kind = match text_of(&object["kind"]) {
            PIPELINE => PIPELINE,
            PIPELINE_VERSION => PIPELINE_VERSION,
            other => {
                return Err(format!(
                    "its kind is `{other}`; want Pipeline or PipelineVersion"
                ));
            }
        };
        if object["apiVersion"] != API_VERSION {
            let version = text_of(&object["apiVersion"]);
            return Err(format!("its apiVersion is `{version}`; want {API_VERSION}"));
        }
        let metadata = &object["metadata"];
        let original_id = metadata["annotations"][ORIGINAL_ID].as_str();
        match text_of(&metadata["name"]) {
            "" => Err("it has no metadata.name".to_owned()),
            name => Ok(Self {
                kind,
                name,
                namespace: text_of(&metadata["namespace"]),
                original_id: original_id.map(str::to_owned),
                created_at: text_of(&metadata["annotations"][CREATED_AT]).parse().ok(),
                spec: &object["spec"],
            }),
        }
    }

    fn field(&self, key: &str) -> String {
        text_of(&self.spec[key]).to_owned()
    }

    fn display_name(&self, name: &str) -> String {
        shown(text_of(&self.spec["displayName"]), name)
    }

    fn tags(&self) -> Tags {
        let tags = self.spec["tags"].as_object().into_iter().flatten();
        tags.map(|(key, value)| (key.clone(), text_of(value).to_owned()))
            .collect()
    }

    fn pipeline(&self, now: Timestamp) -> NewPipeline {
        NewPipeline {
            namespace: self.namespace.to_owned(),
            name: self.name.to_owned(),
            display_name: self.display_name(self.name),
            description: self.field("description"),
            tags: self.tags(),
            original_id: self.original_id.clone(),
            now: made_at(self.created_at.unwrap_or(now)),
        }
    }

    fn version(&self, now: Timestamp) -> Result<NewVersion, String> {
        let platform = self.spec.get("platformSpec");
        let documents = Documents::of(&self.spec["pipelineSpec"], platform);
        let documents = documents.map_err(|invalid| invalid.to_string())?;
        let name = match text_of(&self.spec["versionName"]) {
            "" => self.name,
            name => name,
        };
        Ok(NewVersion {
            name: name.to_owned(),
            display_name: self.display_name(name),
            description: self.field("description"),
            tags: self.tags(),
            package_url: self.field("pipelineSpecURI"),
            code_source_url: self.field("codeSourceURL"),
            spec: documents.into(),
            original_id: self.original_id.clone(),
            now: made_at(self.created_at.unwrap_or(now)),
        })
    }
}
