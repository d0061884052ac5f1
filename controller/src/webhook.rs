//! The validating webhook: what the crate `workflow` says to a review.

use std::{future::ready, sync::Arc};

use hindsight_cluster::webhook::Answer;
use hindsight_run::json;
use hindsight_workflow::admission::review;

/// Path of the webhook.
pub(crate) const PATH: &str = "/validate";

/// What answers reviews.
pub(crate) fn answer() -> Answer {
    Arc::new(|body| {
        let asked = json::parse(&body).map_err(|error| error.to_string());
        let answer = asked.and_then(|asked| review(&asked));
        Box::pin(ready(answer.map(|answer| answer.to_string())))
    })
}
