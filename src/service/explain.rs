//! How lists would be answered.

use super::{Error, ListRequest, Service};
use crate::query::Explanation;
use hindsight_access::RequestContext;
use hindsight_access::auth::{Grant, Verb};
use hindsight_filter::model::{Resource, ResultPattern};

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
        request: ListRequest,
    ) -> Result<Explanation, Error> {
        let parent = grant.scope(Verb::List, resource)?.clone();
        let scope = ResultPattern { parent, id: result };
        let list = self.list(&by.quota, request, resource, scope, "Explain");
        let list = list.await?;
        Ok(self.engine.explain(list, resource).await?)
    }
}
