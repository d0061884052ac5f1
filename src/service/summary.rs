//! Counting and timing records: `GetRecordListSummary`.
//!
//! Every matching record counts, whatever its type, as in Tekton Results; filter by `data_type`
//! to count runs. Times are cut in UTC. Durations are given in the text form of PostgreSQL
//! intervals, which is what dashboards parse.

mod answer;
mod interval;
mod parse;

pub use answer::{Group, Value};

use super::{Error, Selector, Service};
use hindsight_access::RequestContext;
use hindsight_access::auth::{Grant, Verb};
use hindsight_filter::model::{Resource, ResultPattern};
use hindsight_storage as storage;

/// What can be asked of a group of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Number of records in the group, whatever their type or state.
    Total,
    /// First condition's reason is Succeeded or Completed.
    Succeeded,
    /// First condition's reason is Failed.
    Failed,
    /// First condition's reason is Cancelled.
    Cancelled,
    /// First condition's reason is Running, and the run has no end.
    Running,
    /// First condition has another reason, or the run left the cluster before it finished.
    Others,
    /// Mean of completion minus start.
    AvgDuration,
    /// Largest completion minus start.
    MaxDuration,
    /// Smallest completion minus start.
    MinDuration,
    /// Sum of completion minus start.
    TotalDuration,
    /// Latest start, in seconds since 1970.
    LastRuntime,
}

/// What a summary is asked for, as it comes from outside.
#[derive(Debug, Clone)]
pub struct SummaryQuery {
    /// What records must match to be counted, as texts that are not parsed yet.
    pub selector: Selector,
    /// Comma-separated measures; empty means `total`.
    pub summary: String,
    /// What makes a group; empty means one of everything.
    pub group_by: String,
    /// `<measure> asc|desc`; only with groups.
    pub order_by: String,
}

impl Service {
    /// Sums up the records of the results called `result` (`None`: of every result) under the
    /// parent that `grant` is for.
    ///
    /// # Errors
    /// If filter, measures, grouping or order are wrong, or too many rows would be read.
    pub async fn summarize_records(
        &self,
        by: &RequestContext,
        grant: &Grant,
        result: Option<String>,
        query: SummaryQuery,
    ) -> Result<Vec<Group>, Error> {
        let parent = grant.scope(Verb::List, Resource::Records)?.clone();
        let plan = parse::plan(&query)?;
        let filter = self
            .filter(&by.quota, query.selector, Resource::Records)
            .await?;
        let scope = ResultPattern { parent, id: result };
        let question = answer::question(&plan, scope, filter)?;
        let groups = self
            .engine
            .with_quota(&by.quota)
            .aggregate(question)
            .await?;
        answer::reply(plan, groups).map_err(|many| storage::Error::from(many).into())
    }
}
