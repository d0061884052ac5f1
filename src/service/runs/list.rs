//! Lists of runs, from columns alone.

use std::sync::Arc;

use hindsight_filter::model::{Resource, ResultPattern};
use hindsight_filter::words::{self, Now};
use hindsight_filter::{CostBudget, Filter, FilterError, Selection, parse_order, run_filter};
use hindsight_storage::RecordColumns;

use crate::query::{List, Page};
use crate::service::{Error, ListRequest, Service, limits, selection::understood};
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
        let zone = limits::zone(&ask.time_zone)?;
        let time = self.clock.now();
        let query = words::read(&ask.query, &Now { time, zone })?;
        let query_filter = query.cel.clone();
        let selector = ask.list.selector;
        let language = self.language(&selector)?;
        let bytes = selector.len() + query.cel.len();
        let (asked, zone) = (ask.query, ask.time_zone);
        let read = move |budget: &mut CostBudget| {
            let filter = selector.parse(language, RECORDS, budget)?;
            let words = of_query(&query, budget)?;
            // Tokens are bound to the words, because the times that they mean go on.
            let words = words.with_text(format!("{}:{zone}:{asked}", zone.len()));
            let runs = Filter::compile(&run_filter(), RECORDS)?;
            Ok(Arc::new(Filter::all([(*filter).clone(), words, runs])))
        };
        let list = List {
            scope: ResultPattern { parent, id: result },
            filter: understood(&by.quota, read, bytes).await?,
            order: parse_order(&ask.list.order_by, RECORDS)?,
            size: ask.list.size,
            token: ask.list.token,
            method: "ListRuns",
        };
        let page = self.engine.with_quota(&by.quota).columns(list).await?;
        Ok(Runs { page, query_filter })
    }
}

/// The filter of a query; an error says why the query was taken for CEL.
fn of_query(query: &words::Query, budget: &mut CostBudget) -> Result<Filter, Error> {
    let selection = Selection {
        filter: &query.cel,
        ..Selection::default()
    };
    let filter = Filter::select_within(&selection, RECORDS, budget);
    filter.map_err(|error| match (&error, query.mark) {
        (FilterError::TooCostly { .. }, _) | (_, None) => error.into(),
        (_, Some(mark)) => {
            let mark = mark.text;
            Error::Invalid(format!("query is CEL because of its `{mark}`: {error}"))
        }
    })
}
