//! What filters test and orders compare.

use serde::{Deserialize, Serialize};

/// What is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listable {
    /// Pipelines of a namespace.
    Pipelines,
    /// Versions of a pipeline.
    Versions,
}

impl Listable {
    /// As errors call one of them.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pipelines => "Pipeline",
            Self::Versions => "PipelineVersion",
        }
    }
}

/// A part of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Field {
    /// `id`, or `pipeline_id` and `pipeline_version_id` as clients also call it.
    Id,
    /// `name`, unique in its namespace or pipeline.
    Name,
    /// The display name.
    DisplayName,
    /// A time, in whole seconds. All others are texts.
    CreatedAt,
    /// `description`, which may be empty.
    Description,
    /// `namespace`, which pipelines alone have.
    Namespace,
    /// `status`, which versions alone have.
    Status,
    /// Of versions: [`Spec::text`](crate::model::Spec::text).
    PipelineSpec,
    /// The value under a key of the tags. Nothing is sorted by it.
    Tag(String),
}

impl Field {
    /// The field that a filter calls so.
    pub(super) fn named(name: &str, of: Listable) -> Option<Self> {
        let field = match (name, of) {
            ("id", _) | ("pipeline_id", Listable::Pipelines) => Self::Id,
            ("pipeline_version_id", Listable::Versions) => Self::Id,
            ("name", _) => Self::Name,
            ("display_name", _) => Self::DisplayName,
            ("created_at", _) => Self::CreatedAt,
            ("description", _) => Self::Description,
            ("namespace", Listable::Pipelines) => Self::Namespace,
            ("status", Listable::Versions) => Self::Status,
            ("pipeline_spec", Listable::Versions) => Self::PipelineSpec,
            _ => match name.strip_prefix("tags.") {
                Some(key) if !key.is_empty() => Self::Tag(key.to_owned()),
                _ => return None,
            },
        };
        Some(field)
    }

    /// Whether items of this kind have it.
    pub(super) fn is_of(&self, of: Listable) -> bool {
        match self {
            Self::Namespace => of == Listable::Pipelines,
            Self::Status | Self::PipelineSpec => of == Listable::Versions,
            _ => true,
        }
    }
}
