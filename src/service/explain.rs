//! How lists would be answered.

use super::{Ask, Error, Service};
use crate::query::{Explanation, List};
use hindsight_access::RequestContext;
use hindsight_access::auth::{Grant, Verb};
use hindsight_filter::model::{Resource, ResultPattern};
use hindsight_filter::parse_order;

impl Service {
    /// How a list of `resource` would be answered that asks for this: of records those of the
    /// results called `result` (`None`: of every result), under the parent that `grant` is for.
    ///
    /// # Errors
    /// If filter or order are wrong.
    pub async fn explain(
        &self,
        by: &RequestContext,
        grant: &Grant,
        resource: Resource,
        result: Option<String>,
        ask: Ask<'_>,
    ) -> Result<Explanation, Error> {
        let parent = grant.scope(Verb::List, resource)?.clone();
        let filter = self.filter(&by.quota, &ask.selected, resource).await?;
        let list = List {
            scope: ResultPattern { parent, id: result },
            filter: &filter,
            order: parse_order(ask.order_by, resource)?,
            size: ask.size,
            token: ask.token,
            method: "Explain",
        };
        Ok(self.engine.explain(list, resource).await?)
    }
}
