//! What differs between two runs.

use hindsight_analysis::diff::{Category, Diff, diff};
use hindsight_run::{Outcome, View};
use serde_json::Value;

use super::series::{self, Series};
use crate::service::{Error, Service};
use hindsight_access::RequestContext;
use hindsight_access::auth::Grant;
use hindsight_filter::Order;
use hindsight_filter::model::{Record, RecordName};

/// Differences of an answer when none are asked for.
const USUAL: usize = 1_000;
/// Most differences of an answer.
const MOST: usize = 10_000;

/// Which runs are compared, and in what.
#[derive(Debug, Clone)]
pub struct DiffAsk {
    /// The run that is compared.
    pub a: RecordName,
    /// The one that it is compared with; `None` is the last success before `a`.
    pub b: Option<RecordName>,
    /// Only these; none means all.
    pub categories: Vec<Category>,
    /// Most differences; 0 means 1,000.
    pub limit: i32,
}

/// What differs between two runs.
#[derive(Debug, Clone)]
pub struct RunDiff {
    /// The record that was compared with.
    pub b: RecordName,
    /// The names of both runs, as their objects say them: of `a` and of `b`.
    pub names: [String; 2],
    /// What differs from `b`.
    pub diff: Diff,
}

impl Service {
    /// What differs between two runs. `grants` are for the parents of `a` and of `b`, if that is
    /// given. It fails if there is no such run, or none to compare with.
    pub async fn diff_runs(
        &self,
        by: &RequestContext,
        grants: (&Grant, &Grant),
        ask: DiffAsk,
    ) -> Result<RunDiff, Error> {
        let limit = super::limit(ask.limit, USUAL, MOST)?;
        let (record, object) = self.run(by, grants.0, &ask.a).await?;
        let b = match ask.b {
            Some(name) => name,
            None => self.last_success(by, &record, &object).await?,
        };
        let (other_record, other) = self.run(by, grants.1, &b).await?;
        let name = |object| View::new(object).name().unwrap_or_default().to_owned();
        let names = [name(&object), name(&other)];
        let after = self.side(by, &record, &object).await?;
        let before = self.side(by, &other_record, &other).await?;
        let engine = self.engine.with_quota(&by.quota);
        let comparing = engine.compute(move || diff(&before, &after, &ask.categories, limit));
        let diff = comparing.await?;
        Ok(RunDiff { b, names, diff })
    }

    /// The last successful run of the pipeline of `record` that started before it.
    async fn last_success(
        &self,
        by: &RequestContext,
        record: &Record,
        object: &Value,
    ) -> Result<RecordName, Error> {
        let run = View::new(object);
        let series = Series::of(record, &run).ok_or_else(|| {
            let name = &record.name;
            Error::Invalid(format!("run `{name}` names no pipeline or task; name b"))
        })?;
        let mut tests = vec![series::ended(Outcome::Success)];
        tests.extend(run.started().or_else(|| run.created()).map(series::before));
        let engine = self.engine.with_quota(&by.quota);
        let found = engine.first(series.scope(), series.with(tests), Order::newest_first());
        let found = found.await?.map(|found| found.name);
        found.ok_or_else(|| {
            Error::Missing(format!(
                "no successful run of {} started before `{}`; name b",
                series.name, record.name
            ))
        })
    }
}
