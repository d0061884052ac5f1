//! The documents of a pipeline: which are accepted, and how they look after they were read.
//!
//! Uploads, downloads, both stores and the webhooks ask [`Documents`] and nothing else, so one text has one verdict.
//! What a pipeline does (its graph, images and parameters) is not judged here.

mod check;
pub(crate) mod read;
mod schema;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use crate::{error::Error, model::Spec};
use check::Path;
use read::Limits;

/// The version of the schema that is read.
pub const SCHEMA_VERSION: &str = "2.1.0";

/// Most bytes of the name of a pipeline in its spec.
const LONGEST_NAME: usize = 128;

/// Why documents are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(String);

impl Invalid {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    /// A field of a document that is not as the schema says.
    fn unparsed(why: impl std::fmt::Display) -> Self {
        Self(format!("failed to parse pipeline spec YAML: {why}"))
    }
}

/// A pipeline spec, and the platform spec that belongs to it, in the normal form of protocol buffers' JSON:
/// names in lowerCamelCase, names of enum values, no default scalars, 64-bit integers as strings.
#[derive(Debug, Clone, PartialEq)]
pub struct Documents {
    pipeline: Value,
    platform: Option<Value>,
    name: String,
}

/// Of which kind a document is.
enum Kind {
    Pipeline,
    Platform,
}

impl Documents {
    /// Reads a stream of YAML documents, or JSON: one pipeline spec, at most one platform spec, empty documents.
    ///
    /// # Errors
    /// If a document is neither or has a field that the schema does not know, or the text is too large once read;
    /// the error names the document, the field and its value.
    pub fn parse(text: &[u8]) -> Result<Self, Invalid> {
        let documents = read::documents(text, Limits::PACKAGE).map_err(Invalid::unparsed)?;
        let (mut pipeline, mut platform) = (None, None);
        for (index, document) in documents.into_iter().enumerate() {
            let at = format!("document {}", index + 1);
            let (slot, many) = match kind(&document, &at)? {
                Kind::Pipeline => (&mut pipeline, "multiple pipeline specs provided"),
                Kind::Platform => (&mut platform, "multiple platform specs provided"),
            };
            if slot.replace((document, at)).is_some() {
                return Err(Invalid::new(many));
            }
        }
        let pipeline = pipeline.ok_or_else(|| {
            Invalid::new("unknown template format: no pipeline spec is provided; want a document with `pipelineInfo`, `root` and `schemaVersion`")
        })?;
        let platform = platform.as_ref().map(|(value, at)| (value, at.as_str()));
        Self::checked((&pipeline.0, &pipeline.1), platform)
    }

    /// Likewise, of what the spec of a PipelineVersion object holds. Null is as good as no platform spec.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn of(pipeline: &Value, platform: Option<&Value>) -> Result<Self, Invalid> {
        let at = "pipelineSpec";
        match kind(pipeline, at)? {
            Kind::Pipeline => {}
            Kind::Platform => {
                return Err(Invalid::new(
                    "unknown template format: no pipeline spec is provided; pipelineSpec is a platform spec",
                ));
            }
        }
        let platform = platform.filter(|platform| !platform.is_null());
        Self::checked(
            (pipeline, at),
            platform.map(|value| (value, "platformSpec")),
        )
    }

    fn checked(
        (pipeline, at): (&Value, &str),
        platform: Option<(&Value, &str)>,
    ) -> Result<Self, Invalid> {
        let pipeline = check::message(schema::PIPELINE_SPEC, pipeline, &Path::root(at));
        let pipeline = pipeline.map_err(Invalid::unparsed)?;
        let name = pipeline
            .get("pipelineInfo")
            .and_then(|info| info.get("name"));
        let name = name.and_then(Value::as_str).unwrap_or_default().to_owned();
        check_name(&name)?;
        if !pipeline.contains_key("root") {
            return Err(Invalid::unparsed(format!(
                "{at} has no `root`; want the component that a run begins with"
            )));
        }
        let version = pipeline
            .get("schemaVersion")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if version != SCHEMA_VERSION {
            return Err(Invalid::new(format!(
                "KFP only supports schema version {SCHEMA_VERSION}, but the pipeline spec has version {version}"
            )));
        }
        let platform = match platform {
            Some((value, at)) => {
                let read = check::message(schema::PLATFORM_SPEC, value, &Path::root(at));
                Some(read.map_err(Invalid::unparsed)?)
            }
            None => None,
        };
        // Specs of other platforms alone are of no use to Kubernetes.
        let platform = platform.filter(|platform| {
            let platforms = platform.get("platforms");
            platforms.is_some_and(|platforms| platforms.get("kubernetes").is_some())
        });
        Ok(Self {
            pipeline: Value::Object(pipeline),
            platform: platform.map(Value::Object),
            name,
        })
    }

    /// The pipeline spec.
    #[must_use]
    pub fn pipeline(&self) -> &Value {
        &self.pipeline
    }

    /// The platform spec, if there is one for Kubernetes.
    #[must_use]
    pub fn platform(&self) -> Option<&Value> {
        self.platform.as_ref()
    }

    /// `pipelineInfo.name`, which is not empty.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl From<Documents> for Spec {
    fn from(documents: Documents) -> Self {
        Self {
            pipeline: documents.pipeline,
            platform: documents.platform,
        }
    }
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        Self::invalid(invalid.0)
    }
}

/// Of which kind a document is, by the fields that it has.
fn kind(document: &Value, at: &str) -> Result<Kind, Invalid> {
    let Value::Object(fields) = document else {
        return Err(Invalid::new(format!(
            "unknown template format: {at} is {}; want a pipeline spec",
            check::shown(document)
        )));
    };
    if let Some(Value::String(version)) = fields.get("apiVersion")
        && version.starts_with("argoproj.io/")
    {
        return Err(Invalid::new(format!(
            "unknown template format: {at} is a workflow of Argo (`{version}`), which is a pipeline of KFP 1; want what KFP 2 compiles"
        )));
    }
    let has = |table: &[schema::Field]| {
        table.iter().any(|field| {
            field
                .spellings()
                .iter()
                .any(|name| fields.contains_key(name))
        })
    };
    match (has(schema::PIPELINE_SPEC), has(schema::PLATFORM_SPEC)) {
        (true, _) => Ok(Kind::Pipeline),
        (false, true) => Ok(Kind::Platform),
        (false, false) => Err(Invalid::new(format!(
            "unknown template format: {at} is neither a pipeline spec nor a platform spec; it has {}",
            names(fields)
        ))),
    }
}

/// Some names of fields, for an error.
fn names(fields: &Map<String, Value>) -> String {
    let some: Vec<_> = fields
        .keys()
        .take(3)
        .map(|name| check::quoted(name))
        .collect();
    match some.is_empty() {
        true => "no fields".to_owned(),
        false => some.join(", "),
    }
}

fn check_name(name: &str) -> Result<(), Invalid> {
    if name.is_empty() {
        return Err(Invalid::new("pipeline's name cannot be empty"));
    }
    if name.len() > LONGEST_NAME {
        return Err(Invalid::new(format!(
            "pipeline's name must contain no more than {LONGEST_NAME} characters; it has {}",
            name.len()
        )));
    }
    let is_alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if name.starts_with('-') || !name.chars().all(|c| is_alphanumeric(c) || c == '-') {
        return Err(Invalid::new(format!(
            "pipeline's name must contain only lowercase alphanumeric characters or '-' and must start with alphanumeric characters; got {}",
            check::quoted(name)
        )));
    }
    Ok(())
}
