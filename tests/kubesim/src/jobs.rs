//! What the server checks of a new Job. Of its template that is how pods restart; it may not be said nowhere,
//! because the default of pods does not suit Jobs.

use serde_json::Value;

use crate::{kinds::Kind, refusal::Refusal};

/// Checks a new Job. It fails with 422 for a template whose pods always restart.
pub(crate) fn check_job(kind: &Kind, job: &Value) -> Result<(), Refusal> {
    if kind.custom || kind.kind != "Job" {
        return Ok(());
    }
    let policy = &job["spec"]["template"]["spec"]["restartPolicy"];
    match policy.as_str() {
        Some("Never" | "OnFailure") => Ok(()),
        _ => {
            let name = job["metadata"]["name"].as_str().unwrap_or_default();
            let why = "Required value: valid values: \"OnFailure\", \"Never\"";
            let field = "spec.template.spec.restartPolicy";
            Err(Refusal::invalid(kind.about(name), field, why))
        }
    }
}
