//! Which runs a request means: a filter and selectors as for records, and words.

use std::sync::Arc;

use hindsight_filter::model::Resource;
use hindsight_filter::words::{self, Now};
use hindsight_filter::{CostBudget, Filter, FilterError, Selection};

use crate::service::{Error, Selector, Service, limits, selection::understood};
use hindsight_access::budget::QuotaGuard;

const RECORDS: Resource = Resource::Records;

/// What runs must match, all of it.
#[derive(Debug, Clone)]
pub(super) struct Selected {
    /// What selects records, as texts that are not parsed yet.
    pub(super) selector: Selector,
    /// Words or CEL.
    pub(super) query: String,
    /// Zone of the dates in `query`; empty is UTC.
    pub(super) time_zone: String,
    /// Which records are such runs, in CEL.
    pub(super) runs: String,
}

impl Service {
    /// The filter of these runs, and the query in CEL. It fails if a text is wrong.
    pub(super) async fn selected(
        &self,
        quota: &QuotaGuard,
        selected: Selected,
    ) -> Result<(Arc<Filter>, String), Error> {
        let zone = limits::zone(&selected.time_zone)?;
        let time = self.clock.now();
        let query = words::read(&selected.query, &Now { time, zone })?;
        let query_filter = query.cel.clone();
        let reading = self.reading(&selected.selector)?;
        let bytes = selected.selector.len() + query.cel.len();
        let read = move |budget: &mut CostBudget| {
            let filter = selected.selector.parse(&reading, RECORDS, budget)?;
            let words = of_query(&query, budget)?.with_clusters(&reading.clusters);
            // Tokens are bound to the words, because the times that they mean go on.
            let (asked, zone) = (&selected.query, &selected.time_zone);
            let words = words.with_text(format!("{}:{zone}:{asked}", zone.len()));
            let runs = Filter::compile(&selected.runs, RECORDS)?;
            Ok(Arc::new(Filter::all([(*filter).clone(), words, runs])))
        };
        Ok((understood(quota, read, bytes).await?, query_filter))
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
