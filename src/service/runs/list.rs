//! Lists of runs, from columns alone.

use hindsight_filter::model::{Resource, ResultPattern};
use hindsight_filter::{parse_order, run_filter};
use hindsight_storage::RecordColumns;

use super::selected::Selected;
use crate::query::{List, Page};
use crate::service::{Error, ListRequest, Service};
use hindsight_access::RequestContext;
use hindsight_access::auth::{Grant, Verb};

const RECORDS: Resource = Resource::Records;

/// Which runs are listed.
#[derive(Debug, Clone)]
pub struct RunsAsk {
    /// What a list of records is asked for.
    pub list: ListRequest,
    /// Words or CEL that runs must match, too.
    pub query: String,
    /// Zone of the dates in `query`; empty is UTC.
    pub time_zone: String,
}

/// A page of runs.
#[derive(Debug)]
pub struct Runs {
    /// The rows and the token of the next page.
    pub page: Page<RecordColumns>,
    /// The query in CEL.
    pub query_filter: String,
}

impl Service {
    /// One page of the runs among the records of the results called `result` (`None`: of every
    /// result) under the parent that `grant` is for. It fails if a text of the request is wrong.
    pub async fn list_runs(
        &self,
        by: &RequestContext,
        grant: &Grant,
        result: Option<String>,
        ask: RunsAsk,
    ) -> Result<Runs, Error> {
        let parent = grant.scope(Verb::List, RECORDS)?.clone();
        let selected = Selected {
            selector: ask.list.selector,
            query: ask.query,
            time_zone: ask.time_zone,
            runs: run_filter(),
        };
        let (filter, query_filter) = self.selected(&by.quota, selected).await?;
        let list = List {
            scope: ResultPattern { parent, id: result },
            filter,
            order: parse_order(&ask.list.order_by, RECORDS)?,
            size: ask.list.size,
            token: ask.list.token,
            method: "ListRuns",
        };
        let page = self.engine.with_quota(&by.quota).columns(list).await?;
        Ok(Runs { page, query_filter })
    }
}
