//! One pass over all results.

mod keeps;
mod moves;

use std::{collections::HashMap, num::NonZeroU32, time::Duration};

use hindsight_access::audit::Expired;
use hindsight_filter::condition::Condition;
use hindsight_filter::model::{
    ParentPattern, Record, RecordName, Resource, ResultName, ResultPattern, RunResult, Tier,
};
use hindsight_filter::{Order, Row, parse_order};
use hindsight_runtime::error::report;
use hindsight_storage::{
    Change, Error as StoreError, Hold, ListQuery, Priority, Projection, Purge, WholeVersion,
};
use jiff::Timestamp;
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::service;

use self::{keeps::Kept, moves::Buffer};
use super::{
    Error, Retention,
    policy::{self, Ended, Newest, TopRun},
    version::{Part, Run, Whole},
};

/// Results and records that are read at once.
const PAGE: NonZeroU32 = NonZeroU32::new(500).expect("500 is not 0");
/// The name of what a server holds while it is its turn. No receiver of events is called so.
const TURN: &str = "retention.pass";
/// For how long it is held at a time, and after how long it is held anew: a delete with its rest takes less than the difference.
const HELD: Duration = Duration::from_mins(5);
const RENEWED: Duration = Duration::from_mins(1);

/// How many times as long as a delete took a pass rests after it: others have the database for three quarters of
/// the time.
const REST: u32 = 3;

/// Whether results are deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// They are told, and nothing is deleted.
    Plan,
    /// They are deleted, whoever else does the same.
    Delete,
    /// They are, by the one server whose turn it is.
    Turn {
        /// The name of this server.
        holder: String,
    },
}

/// What becomes of a result that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Its records are moved to the archive.
    Archive,
    /// It is deleted.
    Delete,
}

/// A result that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    /// What becomes of it.
    pub stage: Stage,
    /// Name of the policy by which it goes.
    pub policy: String,
    /// Full name of the result.
    pub name: ResultName,
    /// The identifier that the server gave to the result.
    pub uid: String,
    /// When the last of its runs ended.
    pub ended: Timestamp,
    /// How many records it has.
    pub records: u64,
    /// Bytes of payloads as they were sent, and of logs as they are kept.
    pub bytes: u64,
}

/// What a pass came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Results that it looked at.
    pub seen: u64,
    /// Those of which runs go on, or that have none.
    pub unfinished: u64,
    /// Those that are due to be deleted.
    pub due: u64,
    /// Those that are due to be moved to the archive.
    pub archived: u64,
    /// Those that would be due, and are held.
    pub held: u64,
    /// Those that others changed, held or deleted meanwhile.
    pub lost: u64,
    /// Those that could not be read.
    pub failed: u64,
    /// Whether it came to the end.
    pub is_whole: bool,
}

pub(super) struct Pass {
    of: Retention,
    mode: Mode,
    told: mpsc::Sender<Deletion>,
    stop: CancellationToken,
    now: Timestamp,
    holds: HashMap<ResultName, Hold>,
    newest: Newest,
    totals: Totals,
    deleted: u64,
    moving: Buffer,
}

impl Pass {
    pub(super) fn new(
        of: Retention,
        mode: Mode,
        told: mpsc::Sender<Deletion>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            now: of.source.clock.now(),
            of,
            mode,
            told,
            stop,
            holds: HashMap::new(),
            newest: Newest::default(),
            totals: Totals::default(),
            deleted: 0,
            moving: Buffer::default(),
        }
    }

    pub(super) async fn go(mut self) -> Result<Totals, Error> {
        if !self.has_turn(HELD).await? {
            return Ok(self.totals);
        }
        let walked = match self.walks().await {
            Ok(is_whole) => Box::pin(self.end()).await.map(|()| is_whole),
            failed => failed,
        };
        // Also of one that broke off, so that another need not wait.
        let given_back = self.has_turn(Duration::ZERO).await;
        self.totals.is_whole = walked?;
        given_back?;
        Ok(self.totals)
    }

    async fn walks(&mut self) -> Result<bool, Error> {
        self.read_holds().await?;
        let policies = &self.of.rules.policies;
        let counts = policies.iter().any(policy::Policy::counts);
        Ok((!counts || self.walk(false).await?) && self.walk(true).await?)
    }

    /// Whether it is the turn of this pass, for so long from now on.
    async fn has_turn(&self, time: Duration) -> Result<bool, Error> {
        let Mode::Turn { holder } = &self.mode else {
            return Ok(true);
        };
        let maintenance = &self.of.source.maintenance;
        let place = maintenance.hold_cursor(TURN, holder, time).await?;
        Ok(place.is_some())
    }

    async fn read_holds(&mut self) -> Result<(), Error> {
        let mut after = i64::MIN;
        loop {
            let store = &self.of.source.store;
            let page = store.holds(&ParentPattern::Any, after, PAGE).await?;
            let Some((last, _)) = page.last() else {
                return Ok(());
            };
            after = *last;
            let in_force = page
                .into_iter()
                .filter(|(_, hold)| hold.is_in_force(self.now));
            self.holds
                .extend(in_force.map(|(_, hold)| (hold.result.clone(), hold)));
        }
    }

    /// Looks at all results, oldest first, to count those that ended last, or to delete; false if it
    /// stopped before the last one.
    async fn walk(&mut self, deletes: bool) -> Result<bool, Error> {
        let mut after = None;
        let mut held = Instant::now();
        loop {
            let query = ListQuery {
                after,
                limit: PAGE,
                ..query(ResultPattern {
                    parent: ParentPattern::Any,
                    id: None,
                })
            };
            let page = self.of.source.store.list_results(&query).await?;
            let Some(last) = page.last() else {
                return Ok(true);
            };
            after = Some(last.position.clone());
            for listed in page {
                if self.stop.is_cancelled() || self.told.is_closed() {
                    return Ok(false);
                }
                if held.elapsed() > RENEWED {
                    if !self.has_turn(HELD).await? {
                        return Ok(false);
                    }
                    held = Instant::now();
                }
                let looked = match deletes {
                    true => self.look(listed.item).await,
                    false => self.count(listed.item).await,
                };
                self.survive(looked)?;
            }
        }
    }

    /// What is wrong with one result does not keep others.
    fn survive(&mut self, looked: Result<(), Failed>) -> Result<(), Error> {
        match looked {
            Ok(()) => Ok(()),
            Err(Failed::One(name, why)) => {
                self.totals.failed += 1;
                self.of.metrics.failed();
                tracing::warn!(%name, why, "retention cannot judge a result, which stays");
                Ok(())
            }
            Err(Failed::All(error)) => Err(error),
        }
    }

    async fn count(&mut self, result: RunResult) -> Result<(), Failed> {
        if let Some((_, ended)) = self.ended(result).await? {
            self.newest.note(&self.of.rules.policies, &ended);
        }
        Ok(())
    }

    async fn look(&mut self, result: RunResult) -> Result<(), Failed> {
        self.totals.seen += 1;
        let Some((whole, ended)) = self.ended(result).await? else {
            self.totals.unfinished += 1;
            return Ok(());
        };
        let policies = &self.of.rules.policies;
        // It may have ended since results were counted.
        self.newest.note(policies, &ended);
        let file = self.file_of(&ended.name).await?;
        let due = policy::due(policies, &self.newest, &ended, self.now);
        let can_move = self.of.source.archive.is_some() && file.is_none();
        let moves = || policy::archivable(policies, &ended, self.now).filter(|_| can_move);
        let (stage, policy) = match (due, moves()) {
            (Some(policy), _) => (Stage::Delete, policy),
            (None, Some(policy)) => (Stage::Archive, policy),
            (None, None) => return Ok(()),
        };
        match self.kept(&whole).await? {
            Some(Kept::Held) => {
                self.totals.held += 1;
                return Ok(());
            }
            Some(Kept::Unfinished) => {
                self.totals.unfinished += 1;
                return Ok(());
            }
            None => {}
        }
        let what = Purge::Result(ended.name.clone());
        let size = self.of.source.maintenance.purgeable(&what).await;
        let deletion = Deletion {
            stage,
            policy: policies[policy].name.clone(),
            uid: whole.result.uid.clone(),
            ended: ended.at,
            records: whole.parts.len() as u64,
            bytes: size.map_err(failed)?.bytes,
            name: ended.name,
        };
        if stage == Stage::Archive {
            return Box::pin(self.gather(whole, deletion)).await;
        }
        let began = Instant::now();
        if self.mode != Mode::Plan {
            if !self.delete(&whole, file, &deletion).await? {
                self.totals.lost += 1;
                return Ok(());
            }
            self.of.metrics.deleted(&deletion.policy, deletion.bytes);
        }
        let took = began.elapsed();
        self.totals.due += 1;
        // It is closed once its receiver is gone, which ends the walk.
        self.told.send(deletion).await.unwrap_or_default();
        self.rest(took).await;
        Ok(())
    }

    /// Rests after a delete for several times as long as it took, and after each batch for the pause that the file
    /// says.
    async fn rest(&mut self, took: Duration) {
        if self.mode == Mode::Plan {
            return;
        }
        self.deleted += 1;
        let batch = u64::from(self.of.rules.batch.get());
        let pause = match self.deleted.is_multiple_of(batch) {
            true => self.of.rules.pause,
            false => Duration::ZERO,
        };
        tokio::select! {
            () = tokio::time::sleep((took * REST).max(pause)) => {}
            () = self.stop.cancelled() => {}
        }
    }

    /// The result with its records and policies, if all of its runs have ended.
    async fn ended(&self, result: RunResult) -> Result<Option<(Whole, Ended)>, Failed> {
        let whole = self.whole(result).await?;
        let Some(at) = whole.ended() else {
            return Ok(None);
        };
        let mut tops = Vec::new();
        for (name, run) in whole.tops() {
            let Some(policy) = self.policy(name, run).await? else {
                return Ok(None);
            };
            let pipeline = run.pipeline.clone();
            tops.push(TopRun { policy, pipeline });
        }
        let name = whole.result.name.clone();
        Ok(Some((whole, Ended { name, at, tops })))
    }

    async fn whole(&self, result: RunResult) -> Result<Whole, Failed> {
        let (mut parts, mut after) = (Vec::new(), None);
        loop {
            let query = ListQuery {
                after,
                ..query((&result.name).into())
            };
            let page = self.of.source.store.list_columns(&query).await;
            let page = page.map_err(failed)?;
            after = page.last().map(|last| last.position.clone());
            let is_last = page.len() < PAGE.get() as usize;
            parts.extend(page.into_iter().map(|listed| Part::of(listed.item)));
            if is_last {
                return Ok(Whole { result, parts });
            }
        }
    }

    /// The number of the policy that governs a run; none if the run is gone.
    async fn policy(&self, name: &RecordName, run: &Run) -> Result<Option<usize>, Failed> {
        let mut read: Option<Record> = None;
        for (number, policy) in self.of.rules.policies.iter().enumerate() {
            if !policy.is_about(run.outcome) {
                continue;
            }
            let Some(filter) = &policy.when else {
                return Ok(Some(number));
            };
            if read.is_none() {
                read = self.of.source.store.record(name).await.map_err(failed)?;
            }
            let Some(record) = &read else {
                return Ok(None);
            };
            let tier = match self.file_of(name.result()).await? {
                Some(_) => Tier::Cold,
                None => Tier::Hot,
            };
            let body = filter.body(record);
            let row = Row::Record {
                record,
                tier,
                body: &body,
            };
            let matches = filter.matches(&row);
            let matches = matches.map_err(|error| {
                let why = format!("`when` of policy `{}`: {error}", policy.name);
                Failed::One(name.to_string(), why)
            })?;
            if matches {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Deletes a result with everything in it, in one transaction; false if it is not as it was read.
    async fn delete(
        &self,
        whole: &Whole,
        file: Option<i64>,
        deletion: &Deletion,
    ) -> Result<bool, Failed> {
        let expiry = Expired {
            policy: deletion.policy.clone(),
            uid: deletion.uid.clone(),
            bytes: deletion.bytes,
        };
        let change = Change::ExpireResult {
            name: deletion.name.clone(),
            version: match file {
                Some(file) => WholeVersion::archived(&whole.result, file),
                None => whole.version(),
            },
            now: self.of.source.clock.now(),
        };
        let (service, by) = (&self.of.source.service, &self.of.by);
        let gone = service.expire(by, change.into(), expiry).await;
        gone.map_err(|error| match error {
            service::Error::Store(
                why @ (StoreError::TooSlow { .. }
                | StoreError::Corrupt(_)
                | StoreError::MissingObject(_)),
            ) => Failed::One(deletion.name.to_string(), report(&why)),
            error => Failed::All(error.into()),
        })
    }
}

/// Why a result was not looked at.
enum Failed {
    /// For a reason of its own: its name, and why.
    One(String, String),
    /// For a reason that others have too.
    All(Error),
}

fn failed(error: StoreError) -> Failed {
    match &error {
        StoreError::Corrupt(what) | StoreError::MissingObject(what) => {
            Failed::One(what.clone(), report(&error))
        }
        _ => Failed::All(error.into()),
    }
}

fn oldest_first() -> Order {
    parse_order("create_time asc", Resource::Results).expect("it is an order")
}

/// A page of rows without payloads.
pub(super) fn query(scope: ResultPattern) -> ListQuery {
    ListQuery {
        scope,
        condition: Condition::All,
        order: oldest_first(),
        after: None,
        limit: PAGE,
        bodies: false,
        max_bytes: None,
        projection: Projection::ALL,
        priority: Priority::Low,
    }
}
