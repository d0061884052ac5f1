//! What a difference is about, by where it is.

/// What a difference is about, in the order in which differences are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// A parameter of a run or an argument of a workflow.
    Param,
    /// An image, or the digest that it stands for.
    Image,
    /// A reference to a pipeline, task or template, and what it was resolved to.
    Reference,
    /// An environment variable of a container.
    Environment,
    /// Anything else that was asked for.
    Spec,
    /// A label or an annotation.
    Metadata,
    /// How long something took.
    Timing,
}

impl Category {
    /// The category of what is below the member `key` of an object; `None` if `key` says nothing.
    pub(super) fn of(key: &str, has_text: bool) -> Option<Self> {
        match key {
            "params" | "parameters" => Some(Self::Param),
            "image" | "imageID" if has_text => Some(Self::Image),
            "env" | "envFrom" => Some(Self::Environment),
            "pipelineRef"
            | "taskRef"
            | "customRef"
            | "workflowTemplateRef"
            | "templateRef"
            | "provenance" => Some(Self::Reference),
            _ => None,
        }
    }
}
