//! A PipelineRun as the API server has it.

use std::collections::BTreeMap;

use hindsight_run::keys;
use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::Value;

use crate::{custom::RunStatus, object::result_of};

/// A PipelineRun as the API server has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineRun {
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// What its name was generated from; empty where it was given.
    pub generate_name: String,
    /// UID of the object.
    pub uid: String,
    /// Whether its delete was asked for.
    pub is_deleting: bool,
    /// Labels of the object.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the object.
    pub annotations: BTreeMap<String, String>,
    /// The result that it is stored in, which its children are stored in too.
    pub result: Option<String>,
    /// What is asked for, as it is written.
    pub spec: Value,
    /// How far it is.
    pub status: RunStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: String,
    name: String,
    generate_name: String,
    uid: String,
    deletion_timestamp: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

/// Time that a PipelineRun may take which does not say so.
const DEFAULT_TIMEOUT: SignedDuration = SignedDuration::from_hours(1);

impl PipelineRun {
    /// Reads an object. It fails where its metadata are not of their types.
    pub fn read(object: &Value) -> Result<Self, String> {
        let head = Head::deserialize(object).map_err(|error| error.to_string())?;
        let metadata = head.metadata;
        Ok(Self {
            namespace: metadata.namespace,
            name: metadata.name,
            generate_name: metadata.generate_name,
            uid: metadata.uid,
            is_deleting: metadata.deletion_timestamp.is_some(),
            labels: metadata.labels.unwrap_or_default(),
            annotations: metadata.annotations.unwrap_or_default(),
            result: result_of(object),
            spec: object.get("spec").cloned().unwrap_or_default(),
            status: RunStatus::read(object.get("status")),
        })
    }

    /// Whether a PipelineRun with this spec is delegated to us. All others are never touched.
    #[must_use]
    pub fn is_delegated(spec: &Value) -> bool {
        spec["managedBy"] == keys::DELEGATED
    }

    /// What `spec.status` asks for.
    pub(super) fn asks_for(&self) -> &str {
        self.spec["status"].as_str().unwrap_or_default()
    }

    /// Time that it may take; `None` without a limit.
    pub(super) fn timeout(&self) -> Option<SignedDuration> {
        let timeout = self.spec["timeouts"]["pipeline"]
            .as_str()
            .and_then(duration);
        Some(timeout.unwrap_or(DEFAULT_TIMEOUT)).filter(|timeout| !timeout.is_zero())
    }

    /// Time that its tasks may take together; `None` without a limit of their own.
    pub(super) fn tasks_timeout(&self) -> Option<SignedDuration> {
        let timeout = self.spec["timeouts"]["tasks"].as_str().and_then(duration);
        timeout.filter(|timeout| !timeout.is_zero())
    }

    /// The limit of a task that has none: Tekton's own is an hour, which is too short where all tasks
    /// together have longer.
    pub(super) fn timeout_of_tasks(&self) -> Option<&str> {
        let text = self.spec["timeouts"]["tasks"].as_str()?;
        let timeout = duration(text)?;
        (timeout.is_zero() || timeout > DEFAULT_TIMEOUT).then_some(text)
    }
}

/// A duration as Go writes it, such as `1h30m0s`.
pub(super) fn duration(text: &str) -> Option<SignedDuration> {
    let duration = match text {
        "0" => SignedDuration::ZERO,
        text => text.parse().ok()?,
    };
    (!duration.is_negative()).then_some(duration)
}

/// A duration as Go writes it.
pub(super) fn go(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let rest = duration - SignedDuration::from_secs(seconds - seconds % 60);
    let rest = format!("{}s", rest.as_secs_f64());
    match (hours, minutes) {
        (0, 0) => rest,
        (0, minutes) => format!("{minutes}m{rest}"),
        (hours, minutes) => format!("{hours}h{minutes}m{rest}"),
    }
}
