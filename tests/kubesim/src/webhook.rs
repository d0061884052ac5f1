//! Validating webhooks, called in process: a write that one of them denies is refused.

use std::{
    fmt::{self, Debug},
    sync::Arc,
};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::{objects::KindId, refusal::Refusal};

/// A validating webhook of one kind.
#[derive(Clone)]
pub(crate) struct Webhook {
    pub(crate) kind: KindId,
    pub(crate) name: String,
    pub(crate) answer: Arc<dyn Fn(&Value) -> Value + Send + Sync>,
}

impl Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Webhook {
    fn ask(&self, old: &Value, new: &Value) -> Result<(), Refusal> {
        let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
        let review = json!({"request": {
            "uid": Uuid::new_v4().to_string(), "operation": operation, "object": new, "oldObject": old,
        }});
        let answer = (self.answer)(&review);
        let response = &answer["response"];
        if response["allowed"] == true {
            return Ok(());
        }
        let status = &response["status"];
        let why = status["message"].as_str().unwrap_or("without explanation");
        let message = format!(
            "admission webhook \"{}\" denied the request: {why}",
            self.name
        );
        Err(match status["code"].as_u64() {
            Some(400) => Refusal::bad_request(message),
            _ => Refusal::new(403, "Forbidden", message),
        })
    }
}

/// Asks those of a kind about a write; `old` is null for a new object. It fails when one denies the write, with
/// the code that it gives.
pub(crate) fn ask(
    webhooks: &[Webhook],
    kind: KindId,
    old: &Value,
    new: &Value,
) -> Result<(), Refusal> {
    let mut asked = webhooks.iter().filter(|webhook| webhook.kind == kind);
    asked.try_for_each(|webhook| webhook.ask(old, new))
}
