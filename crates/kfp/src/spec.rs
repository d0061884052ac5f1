//! Documents of pipeline specifications.

use serde_json::Value;

/// What a text of one or more documents says.
#[derive(Debug, Clone, PartialEq)]
pub struct Documents {
    /// The pipeline specification, an object.
    pub pipeline: Value,
    /// The platform specification, if there is one for Kubernetes.
    pub platform: Option<Value>,
    /// Both as they are written.
    pub text: String,
}
