//! Why a run failed, since when, and what changed.

use std::sync::Arc;

use hindsight_analysis::diff::{Category, Diff, diff};
use hindsight_analysis::tree::{Node, Tree};
use hindsight_run::{Outcome, View};
use jiff::Timestamp;
use serde_json::Value;

use super::alike::Alike;
use super::failure_log::{FailureLog, FailureLogAsk, FailureSignature};
use super::gather::Succeeded;
use super::series::{self, Series};
use crate::service::{Error, Service};
use hindsight_access::RequestContext;
use hindsight_access::auth::Grant;
use hindsight_filter::Order;
use hindsight_filter::condition::Column;
use hindsight_filter::model::{Record, RecordName};

/// What a failure may come from, before what follows from it.
const TELLING: &[Category] = &[
    Category::Param,
    Category::Image,
    Category::Reference,
    Category::Environment,
    Category::Timing,
];
/// Changes of an answer when none are asked for.
const USUAL: usize = 20;
/// Most changes of an answer.
const MOST: usize = 1_000;

/// Why a run failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The run itself.
    pub run: Node,
    /// The node that failed.
    pub leaf: Node,
    /// The names from below the run to the leaf.
    pub path: String,
    /// What the failure says without what differs from run to run.
    pub signature: Option<FailureSignature>,
    /// What the run is compared with; absent if it does not say what it is made from.
    pub since: Option<Since>,
    /// The log of what failed, if there is one that the caller may read.
    pub log: Option<FailureLog>,
    /// What was not read, and why.
    pub notes: Vec<String>,
}

/// How the pipeline of a run did since it succeeded last.
#[derive(Debug, Clone)]
pub struct Since {
    /// What its runs are called.
    pub series: String,
    /// Its last success before the run.
    pub last_success: Option<RunPoint>,
    /// Its first failure after that.
    pub first_failure: Option<RunPoint>,
    /// Runs after the last success that are over.
    pub runs: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// What differs between the two.
    pub changes: Diff,
    /// Which of those that failed did so for the same cause.
    pub alike: Option<Alike>,
}

/// A run among others.
#[derive(Debug, Clone)]
pub struct RunPoint {
    /// The name of its record.
    pub record: RecordName,
    /// The name of the run.
    pub name: String,
    /// When it began.
    pub started: Option<Timestamp>,
}

/// A run that was found, and what it says.
struct Found {
    record: Record,
    object: Arc<Value>,
}

impl Found {
    fn point(&self) -> RunPoint {
        let view = View::new(&self.object);
        RunPoint {
            record: self.record.name.clone(),
            name: view.name().unwrap_or_default().to_owned(),
            started: view.started(),
        }
    }
}

impl Service {
    /// Why the run `name` failed, with its log if `log` permits that. It fails if there is no such run, or if that
    /// did not fail.
    pub async fn explain_failure(
        &self,
        by: &RequestContext,
        grant: &Grant,
        name: &RecordName,
        limit: i32,
        log: Option<FailureLogAsk<'_>>,
    ) -> Result<Failure, Error> {
        let limit = super::limit(limit, USUAL, MOST)?;
        let (record, object) = self.run(by, grant, name).await?;
        let tree = self.tree(by, &record, &object, Succeeded::Absent).await?;
        let (at, path, run, leaf) = failed(&tree, name)?;
        let logs = self.leaf_logs(&tree, at).await?;
        let may_read = log.is_some();
        let log = match log.zip(logs.as_ref()) {
            Some((ask, logs)) => self.failure_log(ask, logs).await?,
            None => None,
        };
        let mut notes = tree.notes.clone();
        let signature = self
            .failure_signature(&leaf, logs.as_ref(), may_read)
            .await?;
        let mut since = match Series::of(&record, &View::new(&object)) {
            Some(series) => {
                let mut since = self.since(by, &series, tree.began(), limit).await?;
                if let Some(signature) = &signature {
                    let run = (name, signature.key);
                    let success = since.last_success.as_ref();
                    let after = success.and_then(|success| success.started);
                    let alike = match leaf.record {
                        Some(_) => {
                            let since = (after, since.failed);
                            self.alike_by_column(by, run, &series, since).await?
                        }
                        None => self.alike(by, run, &series, after).await?,
                    };
                    since.alike = Some(alike);
                }
                Some(since)
            }
            None => None,
        };
        let alike = since.as_mut().and_then(|since| since.alike.as_mut());
        notes.extend(alike.and_then(|alike| alike.note.take()));
        Ok(Failure {
            run,
            leaf,
            path,
            signature,
            since,
            log,
            notes,
        })
    }

    /// How `series` did until `began`, when a run of it started that failed, and since then.
    async fn since(
        &self,
        by: &RequestContext,
        series: &Series,
        began: Option<Timestamp>,
        limit: usize,
    ) -> Result<Since, Error> {
        let mut tests = vec![series::ended(Outcome::Success)];
        tests.extend(began.map(series::before));
        let newest = Order::newest_first();
        let success = self.find(by, series, tests, newest).await?;
        let last = success.as_ref().map(Found::point);
        let after = last.as_ref().and_then(|last| last.started);
        let mut tests = vec![series::failed()];
        tests.extend(began.map(series::until));
        tests.extend(after.map(series::after));
        let oldest = Order::by(Column::CreateTime, false);
        let failure = self.find(by, series, tests, oldest).await?;
        let first = failure.as_ref().map(Found::point);
        let engine = self.engine.with_quota(&by.quota);
        let all = series.with(after.map(series::after).into_iter().chain([series::over()]));
        let (runs, failed) = engine
            .count(series.scope(), all, vec![series::failed()])
            .await?;
        let changes = match (success, failure) {
            (Some(success), Some(failure)) => {
                let before = self.side(by, &success.record, &success.object).await?;
                let after = self.side(by, &failure.record, &failure.object).await?;
                let comparing = engine.compute(move || diff(&before, &after, TELLING, limit));
                comparing.await?
            }
            _ => Diff::default(),
        };
        Ok(Since {
            series: series.name.clone(),
            last_success: last,
            first_failure: first,
            runs,
            failed: failed.first().copied().unwrap_or_default(),
            changes,
            alike: None,
        })
    }

    /// The first run of `series` that passes `tests`.
    async fn find(
        &self,
        by: &RequestContext,
        series: &Series,
        tests: Vec<hindsight_filter::condition::Condition>,
        order: Order,
    ) -> Result<Option<Found>, Error> {
        let engine = self.engine.with_quota(&by.quota);
        let found = engine.first(series.scope(), series.with(tests), order);
        let Some(record) = found.await? else {
            return Ok(None);
        };
        let (record, object) = self.read(by, record).await?;
        Ok(Some(Found { record, object }))
    }
}

/// Where the run of a tree failed.
fn failed(tree: &Tree, name: &RecordName) -> Result<(usize, String, Node, Node), Error> {
    let failed = tree.failed_leaf().and_then(|leaf| {
        let node = |at: usize| tree.nodes.get(at).cloned();
        Some((leaf, tree.path(leaf), node(0)?, node(leaf)?))
    });
    failed.ok_or_else(|| Error::Invalid(format!("run `{name}` did not fail")))
}
