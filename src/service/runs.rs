//! Questions about runs: `hindsight.v1.Runs`.

mod alike;
mod diff;
mod failure;
mod failure_log;
mod flaky;
mod gather;
mod history;
mod list;
mod reference;
mod regressions;
mod selected;
mod series;
mod suggest;
mod watch;

pub use alike::Alike;
pub use diff::{DiffAsk, RunDiff};
pub use failure::{Failure, RunPoint, Since};
pub use failure_log::{FailureLog, FailureLogAsk, FailureLogLine, FailureSignature};
pub use flaky::{FlakyPair, FlakyPipeline, FlakyPipelines};
use gather::Extent;
pub(super) use gather::Succeeded;
pub use history::{HistoryAsk, RunSeries};
pub use list::{Runs, RunsAsk};
pub use regressions::{Regression, Regressions};
pub use suggest::{SuggestAsk, Suggested, Suggestions};
pub use watch::{RunWatch, WatchAsk};

use std::sync::Arc;

use hindsight_analysis::tree::Tree;
use hindsight_run::json;
use serde_json::Value;

use super::{Error, Service};
use hindsight_access::RequestContext;
use hindsight_access::auth::{Grant, Verb};
use hindsight_filter::model::{Parent, ParentPattern, Record, RecordName, Resource};
use hindsight_kfp::content;

/// The record of a run, and the object in it.
pub type FoundRun = (Record, Arc<Value>);

impl Service {
    /// A run and everything below it, and the definition that it was made from; of TaskRuns that succeeded what columns
    /// keep if it is `brief`. A definition is sought under the parent of the run, and where `beside` is for.
    pub async fn run_tree(
        &self,
        by: &RequestContext,
        run: &FoundRun,
        beside: Option<&Grant>,
        brief: bool,
    ) -> Result<Tree, Error> {
        let succeeded = match brief {
            true => Succeeded::Brief,
            false => Succeeded::Whole,
        };
        let mut definitions = vec![run.0.name.result().parent().clone()];
        if let Some(beside) = beside
            && let ParentPattern::Exact(parent) = beside.scope(Verb::List, Resource::Records)?
        {
            definitions.push(parent.clone());
        }
        let extent = Extent::from(succeeded).with_definitions(definitions);
        self.tree(by, &run.0, &run.1, extent).await
    }

    /// The parent, beside its own, under which the definition of a run may be.
    pub fn definitions_beside(&self, run: &FoundRun) -> Option<&Parent> {
        let shared = self.definitions.as_ref();
        let shared = shared.filter(|shared| *shared != run.0.name.result().parent());
        shared.filter(|_| content::is_compiled(&run.1))
    }

    /// A record and the object in it, for callers that may list the records of its parent. It fails if there is no such run.
    pub async fn run(
        &self,
        by: &RequestContext,
        grant: &Grant,
        name: &RecordName,
    ) -> Result<FoundRun, Error> {
        grant.check(Verb::List, Resource::Records, name.result().parent())?;
        let record = self.read_record(by, name).await?;
        self.read(by, record).await
    }

    /// The object in a record.
    async fn read(&self, by: &RequestContext, record: Record) -> Result<FoundRun, Error> {
        let engine = self.engine.with_quota(&by.quota);
        let reading = engine.compute(move || {
            let data = record.data.as_ref();
            let object = data.map(|data| json::parse(&data.value));
            let object = object.and_then(Result::ok).filter(Value::is_object);
            (record, object)
        });
        match reading.await? {
            (record, Some(object)) => Ok((record, Arc::new(object))),
            (record, None) => Err(Error::Invalid(format!(
                "record `{}` holds no JSON object, so it is not a run",
                record.name
            ))),
        }
    }
}

/// How many differences are told of those that are `asked` for: `usual` for 0, at most `most`.
fn limit(asked: i32, usual: usize, most: usize) -> Result<usize, Error> {
    match usize::try_from(asked) {
        Ok(0) => Ok(usual),
        Ok(limit) if limit <= most => Ok(limit),
        _ => Err(Error::Invalid(format!(
            "limit {asked} is out of range: want 1 to {most}, or 0 for {usual}"
        ))),
    }
}
