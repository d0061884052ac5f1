//! A workflow as the run that controls it sees it.

use jiff::Timestamp;
use serde_json::Value;

use super::RESULT_PREFIX;
use crate::object::Workflow;

/// Of a workflow, what the run that controls it asks of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owned {
    /// Name of the workflow, in the namespace of the run.
    pub name: String,
    /// UID of the workflow.
    pub uid: String,
    /// UID of the owner that controls it.
    pub owner: Option<String>,
    /// Whether its delete was asked for.
    pub is_deleting: bool,
    /// Whether it has ended.
    pub is_finished: bool,
    /// Why it has failed: a reason and a message.
    pub failure: Option<(String, String)>,
    /// When it ended.
    pub completion_time: Option<Timestamp>,
    /// The results that its annotations say, by name.
    pub results: Vec<(String, String)>,
}

impl Owned {
    /// Reads a workflow. It fails where metadata or status are not of their types.
    pub fn read(object: &Value) -> Result<Self, String> {
        let workflow = Workflow::read(object)?;
        let metadata = &object["metadata"];
        let owners = metadata["ownerReferences"].as_array();
        let mut owners = owners.into_iter().flatten();
        let owner = owners.find(|owner| owner["controller"] == true);
        let annotations = metadata["annotations"].as_object();
        let results = annotations.into_iter().flatten();
        let results = results.filter_map(|(key, value)| {
            let name = key.strip_prefix(RESULT_PREFIX)?;
            Some((name.to_owned(), value.as_str()?.to_owned()))
        });
        let failure = workflow.status.failure().map(|failure| {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            (text(&failure.reason), text(&failure.message))
        });
        Ok(Self {
            name: workflow.name,
            uid: workflow.uid,
            owner: owner
                .and_then(|owner| owner["uid"].as_str())
                .map(str::to_owned),
            is_deleting: workflow.is_deleting,
            is_finished: workflow.status.is_finished(),
            failure,
            completion_time: workflow.status.completion_time,
            results: results.collect(),
        })
    }
}
