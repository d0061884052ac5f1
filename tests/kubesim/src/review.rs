//! Validating webhooks, called in process: a write that one of them denies is refused.

use std::{
    fmt::{self, Debug},
    sync::Arc,
};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::{objects::KindId, refusal::Refusal, sim::Sim, world::World};

/// A validating webhook.
#[derive(Clone)]
pub(crate) struct Reviewer {
    name: String,
    answer: Arc<dyn Fn(&Value) -> Value + Send + Sync>,
}

impl Debug for Reviewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reviewer")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Sim {
    /// Has the creates and updates of a kind, but not those of its status, reviewed by the webhook `name`:
    /// `answer` is given an AdmissionReview and returns one.
    ///
    /// # Errors
    /// 404 when the kind is not installed.
    pub fn review(
        &self,
        group: &str,
        plural: &str,
        name: &str,
        answer: impl Fn(&Value) -> Value + Send + Sync + 'static,
    ) -> Result<(), Refusal> {
        let (id, _) = self.find(group, plural)?;
        let reviewer = Reviewer {
            name: name.to_owned(),
            answer: Arc::new(answer),
        };
        self.shared
            .change(|world| world.reviewers.push((id, reviewer)));
        Ok(())
    }
}

impl World {
    /// Asks the webhooks of a kind about a write; `old` is null for a new object.
    ///
    /// # Errors
    /// When one denies it, with the code that it gives.
    pub(crate) fn ask_reviewers(
        &self,
        id: KindId,
        old: &Value,
        new: &Value,
    ) -> Result<(), Refusal> {
        for (_, reviewer) in self.reviewers.iter().filter(|(of, _)| *of == id) {
            let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
            let review = json!({"request": {
                "uid": Uuid::new_v4().to_string(), "operation": operation, "object": new, "oldObject": old,
            }});
            let answer = (reviewer.answer)(&review);
            let response = &answer["response"];
            if response["allowed"] != true {
                let status = &response["status"];
                let why = status["message"].as_str().unwrap_or("without explanation");
                let message = format!(
                    "admission webhook \"{}\" denied the request: {why}",
                    reviewer.name
                );
                return Err(match status["code"].as_u64() {
                    Some(400) => Refusal::bad_request(message),
                    _ => Refusal::new(403, "Forbidden", message),
                });
            }
        }
        Ok(())
    }
}
