//! What is kept of pipelines and their versions.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

/// Texts under keys that users chose.
pub type Tags = BTreeMap<String, String>;

/// A name under which versions are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// A UUID.
    pub id: String,
    /// Empty in a database whose pipelines do not belong to namespaces.
    pub namespace: String,
    /// No other pipeline of the namespace has it.
    pub name: String,
    /// The name, where none was given.
    pub display_name: String,
    /// May be empty.
    pub description: String,
    /// Texts under keys that users chose.
    pub tags: Tags,
    /// In whole seconds.
    pub created_at: Timestamp,
    /// Its id in the store that it was imported from.
    pub original_id: Option<String>,
}

/// What can be run: a specification under a name.
#[derive(Debug, Clone, PartialEq)]
pub struct PipelineVersion {
    /// A UUID.
    pub id: String,
    /// The id of its pipeline.
    pub pipeline_id: String,
    /// No other version of the pipeline has it.
    pub name: String,
    /// The name, where none was given.
    pub display_name: String,
    /// May be empty.
    pub description: String,
    /// Texts under keys that users chose.
    pub tags: Tags,
    /// In whole seconds.
    pub created_at: Timestamp,
    /// Where its package was downloaded; empty if it was uploaded.
    pub package_url: String,
    /// Where its source is; may be empty.
    pub code_source_url: String,
    /// How far it is.
    pub status: Status,
    /// The specification, or why what is stored is none.
    pub spec: Result<Spec, String>,
    /// Its id in the store that it was imported from.
    pub original_id: Option<String>,
}

/// How far a version is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Status {
    /// It can be run.
    #[default]
    Ready,
    /// It is being made.
    Creating,
    /// It is being deleted.
    Deleting,
}

impl Status {
    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ready => "READY",
            Self::Creating => "CREATING",
            Self::Deleting => "DELETING",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Ready, Self::Creating, Self::Deleting];
        all.into_iter().find(|status| status.name() == name)
    }
}

/// The documents of a version.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// The pipeline specification, an object.
    pub pipeline: Value,
    /// The platform specification, if it has one for Kubernetes.
    pub platform: Option<Value>,
}

impl Spec {
    /// As answers show it: the pipeline specification, or an object of both; keys in order at every level, which is the
    /// order that the Kubernetes API keeps.
    #[must_use]
    pub fn shown(&self) -> Value {
        let pipeline = sorted(&self.pipeline);
        match &self.platform {
            None => pipeline,
            Some(platform) => {
                json!({ "pipeline_spec": pipeline, "platform_spec": sorted(platform) })
            }
        }
    }

    /// The text that filters and orders compare.
    #[must_use]
    pub fn text(&self) -> String {
        self.shown().to_string()
    }

    /// The specification of [`Spec::shown`].
    #[must_use]
    pub fn of_shown(mut shown: Value) -> Self {
        let object = shown.as_object_mut();
        let both = object.and_then(|object| {
            let pipeline = object.remove("pipeline_spec")?;
            Some((pipeline, object.remove("platform_spec")))
        });
        match both {
            Some((pipeline, platform)) => Self { pipeline, platform },
            None => Self {
                pipeline: shown,
                platform: None,
            },
        }
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<_, _> = fields.iter().collect();
            let fields = fields.into_iter();
            Value::Object(
                fields
                    .map(|(key, value)| (key.clone(), sorted(value)))
                    .collect(),
            )
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// A pipeline to create. A store gives it an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPipeline {
    /// The namespace it belongs to; may be empty.
    pub namespace: String,
    /// Unique where it belongs.
    pub name: String,
    /// What people call it.
    pub display_name: String,
    /// May be empty.
    pub description: String,
    /// Texts under keys that users chose.
    pub tags: Tags,
    /// Its id in the store that it was imported from.
    pub original_id: Option<String>,
    /// The time of a database; the Kubernetes API has its own.
    pub now: Timestamp,
}

/// A version to create. A store gives it an id.
#[derive(Debug, Clone, PartialEq)]
pub struct NewVersion {
    /// Unique where it belongs.
    pub name: String,
    /// What people call it.
    pub display_name: String,
    /// May be empty.
    pub description: String,
    /// Texts under keys that users chose.
    pub tags: Tags,
    /// Where its package was downloaded; empty if it was uploaded.
    pub package_url: String,
    /// Where its source is; may be empty.
    pub code_source_url: String,
    /// The pipeline specification, with that of the platform if there is one.
    pub spec: Spec,
    /// Its id in the store that it was imported from.
    pub original_id: Option<String>,
    /// The time of a database; the Kubernetes API has its own.
    pub now: Timestamp,
}

/// What an update changes; nothing else can be changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Stays where it is `None`.
    pub display_name: Option<String>,
    /// All tags, in the place of those that are there; they stay where it is `None`.
    pub tags: Option<Tags>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_specification_is_shown_alone_or_beside_that_of_the_platform_with_its_keys_in_order() {
        let alone = Spec {
            pipeline: json!({"root": {"b": 1, "a": [{"d": 1, "c": 2}]}, "pipelineInfo": {"name": "x"}}),
            platform: None,
        };
        assert_eq!(
            alone.text(),
            r#"{"pipelineInfo":{"name":"x"},"root":{"a":[{"c":2,"d":1}],"b":1}}"#
        );
        assert_eq!(Spec::of_shown(alone.shown()), alone);
        let both = Spec {
            platform: Some(json!({"platforms": {"kubernetes": {}}})),
            ..alone
        };
        assert_eq!(
            both.text(),
            r#"{"pipeline_spec":{"pipelineInfo":{"name":"x"},"root":{"a":[{"c":2,"d":1}],"b":1}},"platform_spec":{"platforms":{"kubernetes":{}}}}"#
        );
        assert_eq!(Spec::of_shown(both.shown()), both);
    }
}
