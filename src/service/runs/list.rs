//! Lists of runs, from columns alone.

use std::{num::NonZeroU32, sync::Arc};

use hindsight_filter::model::{Resource, ResultPattern};
use hindsight_filter::{parse_order, run_filter};
use hindsight_storage::{Projection, RecordColumns};

use super::selected::Selected;
use crate::query::{Fold, List, Page};
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
    /// Up to how many runs are counted; absent, none are.
    pub count_up_to: Option<NonZeroU32>,
}

/// How many runs match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Those that were counted.
    pub runs: u32,
    /// Whether there are, or may be, more.
    pub more: bool,
}

/// Rows that are only counted.
#[derive(Debug)]
struct Counting {
    runs: u32,
    most: u32,
}

impl Fold for Counting {
    type Row = RecordColumns;

    fn add(&mut self, rows: Vec<RecordColumns>) -> bool {
        let rows = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        self.runs = self.runs.saturating_add(rows);
        self.runs <= self.most
    }

    fn bytes(&self) -> usize {
        0
    }

    fn projection(&self) -> Projection {
        Projection::of(&[])
    }
}

/// A page of runs.
#[derive(Debug)]
pub struct Runs {
    /// The rows and the token of the next page.
    pub page: Page<RecordColumns>,
    /// The query in CEL.
    pub query_filter: String,
    /// How many match, if that was asked for.
    pub count: Option<Count>,
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
        let scope = ResultPattern { parent, id: result };
        let counted = (scope.clone(), Arc::clone(&filter), ask.count_up_to);
        let list = List {
            scope,
            filter,
            order: parse_order(&ask.list.order_by, RECORDS)?,
            size: ask.list.size,
            token: ask.list.token,
            payloads: ask.list.payloads,
            method: "ListRuns",
        };
        let engine = self.engine.with_quota(&by.quota);
        let page = engine.columns(list).await?;
        let count = match counted {
            (scope, filter, Some(most)) => {
                let (runs, most) = (0, most.get());
                let counting = Counting { runs, most };
                let (counted, had_all) = engine.fold_columns(scope, filter, counting).await?;
                Some(Count {
                    runs: counted.runs.min(most),
                    more: !had_all,
                })
            }
            _ => None,
        };
        Ok(Runs {
            page,
            query_filter,
            count,
        })
    }
}
