//! Carrying out plans: the workers. They decide nothing; whatever goes wrong, they plan again.

mod ask;
mod children;
mod events;
mod finalize;
mod keep;
mod mark;
mod protect;
mod steps;
mod tell;
mod vanish;

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use hindsight_run::View;
use hindsight_run::json;

use crate::{
    cluster::{Address, ClusterError},
    ledger::{Ledger, Series, Uid},
    plan::{self, Remembered, Step, plan},
    policy::Collect,
    queue::{Done, Job, Work},
    shared::Shared,
    spool,
};

pub(crate) use keep::{keep_backlog, store_spooled};
pub(crate) use mark::{mark, retry_refused};
pub(crate) use protect::protect;

/// How often a run is planned anew in one go, before others get their turn.
const ROUNDS: usize = 8;

/// After how many failures in a row it is told of a run that the server does not take; with the
/// waits between them that is about a minute.
const PATIENCE: u32 = 8;

/// How long a run waits whose turn after a refusal never comes.
const REFUSED: Duration = Duration::from_hours(1);

/// What a state is that is older than the watch has told.
const OUTDATED: &str = "the API server answers with an older state than it has told before";

/// Works on runs until `stop`; then stores the last states of runs that are gone, which nobody
/// else has, until there are none or the time is over.
pub(crate) async fn work(shared: Arc<Shared>, stop: CancellationToken) {
    loop {
        let job = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            job = shared.queue.pop() => job,
        };
        one(&shared, job).await;
    }
    while !shared.abandon.is_cancelled()
        && let Some(job) = shared.queue.pop_gone()
    {
        if !one(&shared, job).await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Lets overdue runs go until `stop`.
pub(crate) async fn let_go(shared: Arc<Shared>, stop: CancellationToken) {
    let mut failures = 0;
    loop {
        let uid = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            uid = shared.deadlines.next(&shared) => uid,
        };
        let mut task = Task::new(&shared, uid.clone(), false, None);
        if let Err(halt) = task.let_go().await {
            failures += 1;
            let wait = match halt {
                Halt::Abandoned => return,
                Halt::Refused { error } => {
                    task.note(&error);
                    shared.config.tuning.rare_retry
                }
                Halt::Later { error, .. } | Halt::Away { error } => {
                    task.say(&error, failures, false);
                    shared.config.tuning.retry.after(failures)
                }
            };
            let wait = SignedDuration::try_from(wait).unwrap_or_default();
            let again = shared.clock.now().checked_add(wait);
            shared.deadlines.add(again.unwrap_or(Timestamp::MAX), &uid);
        } else {
            failures = 0;
        }
        shared.tick();
    }
}

/// Works on one run. Whether that came to an end.
async fn one(shared: &Shared, job: Job) -> bool {
    let mut task = Task::new(shared, job.uid.clone(), job.work.gone, job.work.object);
    let done = match task.run().await {
        Ok(again) => {
            task.settle();
            again.map_or(Done::Finished, |at| Done::Until(shared.instant(at)))
        }
        Err(halt) => task.failed(halt, job.failures).await,
    };
    let is_done = !matches!(done, Done::Failed(..));
    shared.queue.done(&job.uid, done);
    shared.tick();
    is_done
}

/// One run, while it is worked on.
struct Task<'s> {
    shared: &'s Shared,
    uid: Uid,
    gone: bool,
    bytes: Option<Vec<u8>>,
    object: Option<Value>,
    /// Why no finalizer could be put on it just now.
    unprotected: Option<String>,
    /// It is stored before anything else, as that can be done at once.
    is_stored_first: bool,
    /// The server held another state of it than was stored, and it was stored again.
    is_restored: bool,
}

/// Why work on a run ended before its end.
#[derive(Debug)]
enum Halt {
    /// The watcher stops.
    Abandoned,
    /// It has to be tried again.
    Later {
        error: String,
        is_rare: bool,
        /// The server does not take it.
        is_refused: bool,
        /// How long the cluster wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// It is refused for this run and others, and tried again when it may work.
    Refused { error: String },
    /// The server does not answer.
    Away { error: String },
}

/// How carrying out a plan ended.
#[derive(Debug)]
enum Next {
    /// Things are no longer as they were when it was made.
    Replan,
    /// It was carried out; look again then.
    Settled(Option<Timestamp>),
}

impl Halt {
    fn passing(error: impl ToString) -> Self {
        Self::Later {
            error: error.to_string(),
            is_rare: false,
            is_refused: false,
            retry_after: None,
        }
    }
}

impl From<ClusterError> for Halt {
    fn from(error: ClusterError) -> Self {
        let is_rare = matches!(error, ClusterError::Refused { .. });
        Self::Later {
            error: error.to_string(),
            is_rare,
            is_refused: false,
            retry_after: error.retry_after(),
        }
    }
}

impl<'s> Task<'s> {
    fn new(shared: &'s Shared, uid: Uid, gone: bool, bytes: Option<Vec<u8>>) -> Self {
        Self {
            shared,
            uid,
            gone,
            bytes,
            object: None,
            unprotected: None,
            is_stored_first: false,
            is_restored: false,
        }
    }

    async fn run(&mut self) -> Result<Option<Timestamp>, Halt> {
        self.parse();
        if self.gone && !self.is_there_after_all().await? && self.object.is_none() {
            self.recall().await?;
        }
        for _ in 0..ROUNDS {
            if self.object.is_none() && !self.gone && !self.fetch().await? {
                // Its end is told by the watch, which may know its last state.
                if !self.left_unwatched() {
                    return Ok(None);
                }
            }
            let Some(remembered) = self.remembered() else {
                return Ok(None);
            };
            let steps = self.plan(&remembered);
            match self.carry_out(steps, &remembered).await? {
                Next::Replan => {}
                Next::Settled(again) => {
                    return match self.unprotected.take() {
                        Some(error) if !self.gone => Err(Halt::passing(error)),
                        _ => Ok(again),
                    };
                }
            }
        }
        Err(Halt::passing(
            "the object changes faster than it can be stored",
        ))
    }

    fn plan(&self, remembered: &Remembered) -> Vec<Step> {
        let view = self.object.as_ref().map(|object| self.shared.view(object));
        let (policy, now) = (&self.shared.config.policy, self.shared.clock.now());
        plan(view.as_ref(), remembered, policy, now)
    }

    fn parse(&mut self) {
        if let Some(bytes) = &self.bytes {
            self.object = json::parse(bytes).ok();
        }
    }

    /// Reads the object anew; whether it is there.
    async fn fetch(&mut self) -> Result<bool, Halt> {
        let Some(at) = self.address() else {
            return Ok(false);
        };
        self.bytes = None;
        self.object = self
            .shared
            .cluster
            .get(&at)
            .await?
            .filter(|object| View::new(object).uid() == Some(self.uid.as_str()));
        let Some(object) = &self.object else {
            return Ok(false);
        };
        let is_final = self.shared.view(object).finish().done;
        let now = self.shared.clock.now();
        if let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
            if spool::version(object) < entry.told {
                self.object = None;
                return Err(Halt::passing(OUTDATED));
            }
            entry.remembered.saw(is_final, false, now);
        }
        Ok(true)
    }

    /// What the plan is made from, with what is known about other runs.
    fn remembered(&self) -> Option<Remembered> {
        let mut ledger = self.shared.ledger();
        let mut remembered = ledger.get(&self.uid)?.remembered.clone();
        if self.unprotected.is_some() || self.is_stored_first {
            remembered.refuse_finalizer();
        }
        if let (Some(entry), Some(object)) = (ledger.get_mut(&self.uid), &self.object) {
            let policy = &self.shared.config.policy;
            entry.unselected = !plan::is_selected(&self.shared.view(object), policy);
        }
        if let Some(collect) = &self.shared.config.policy.collect
            && !remembered.presence.is_gone()
            && let Some(object) = &self.object
        {
            let view = self.shared.view(object);
            let pushed_out = self.compare(&mut ledger, &mut remembered, collect, &view);
            let others = remembered.others.get_or_insert_default();
            if others.waits_for.is_none() {
                others.waits_for = children::wait(self.shared, &ledger, &self.uid, &view).err();
            }
            if let Some(entry) = ledger.get_mut(&self.uid) {
                entry.waits = others.waits_for.is_some();
            }
            drop(ledger);
            if let Some(other) = pushed_out {
                self.shared.push(&other, Work::default());
            }
        }
        Some(remembered)
    }

    /// What collection has to know besides the run. Returns one that is no longer among the last
    /// of its pipeline because this one is.
    fn compare(
        &self,
        ledger: &mut Ledger,
        remembered: &mut Remembered,
        collect: &Collect,
        run: &View<'_>,
    ) -> Option<Uid> {
        let namespace = run.namespace().unwrap_or_default();
        let others = remembered.others.get_or_insert_default();
        if collect.namespaces {
            match self.shared.namespaces.ask(namespace) {
                Some(asked) => others.namespace = asked,
                None => others.waits_for = Some("namespaces are not known yet".to_owned()),
            }
        }
        let terms = collect.terms(run, &others.namespace);
        if terms.keep_last == 0 || !run.finish().done {
            return None;
        }
        let series = Series {
            kind: ledger.get(&self.uid)?.kind.kind,
            namespace: namespace.into(),
            pipeline: run.pipeline().unwrap_or_default().into(),
            rule: terms.rule,
        };
        let ended = run.ended().or(remembered.finished.since())?;
        let (newer, pushed_out) = ledger
            .recency()
            .place(&self.uid, series, ended, terms.keep_last);
        others.newer = newer;
        pushed_out
    }

    fn address(&self) -> Option<Address> {
        let ledger = self.shared.ledger();
        let entry = ledger.get(&self.uid)?;
        Some(Address {
            kind: entry.kind,
            namespace: entry.namespace.to_string(),
            name: entry.name.to_string(),
        })
    }

    /// All is done about the version that was looked at.
    fn settle(&self) {
        let version = self
            .object
            .as_ref()
            .and_then(|o| View::new(o).resource_version());
        if let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
            entry.error = None;
            entry.settled = version.map(Into::into);
            let is_gone = entry.remembered.presence.is_gone();
            // Its newest state is stored. That of one that is gone is removed when it is forgotten.
            if let Some(spool) = &self.shared.spool
                && !is_gone
                && !self.shared.queue.has_news(&self.uid)
            {
                spool.remove(&self.uid);
            }
        }
    }

    /// What becomes of the run after an attempt that failed, the last of so many in a row.
    async fn failed(&mut self, halt: Halt, failures: u32) -> Done {
        let failures = failures.saturating_add(1);
        let tuning = &self.shared.config.tuning;
        let (wait, keep) = match halt {
            Halt::Abandoned => (Duration::ZERO, true),
            Halt::Away { error } => {
                self.note(&error);
                // Its state is kept: it may be gone from the cluster before the server is back.
                (tuning.retry.after(failures), true)
            }
            // What waits is woken by whoever finds out that it is no longer refused.
            Halt::Refused { error } => {
                self.note(&error);
                if self.gone {
                    self.keep().await;
                }
                (REFUSED, self.gone)
            }
            Halt::Later {
                error,
                is_rare,
                is_refused,
                retry_after,
            } => {
                self.note(&error);
                self.say(&error, failures, is_rare);
                if is_rare || (is_refused && failures >= PATIENCE) {
                    self.complain(&error).await;
                }
                if self.gone && is_refused {
                    self.keep().await;
                }
                let wait = match is_rare {
                    true => tuning.rare_retry,
                    false => tuning.retry.after(failures),
                };
                (wait.max(retry_after.unwrap_or_default()), self.gone)
            }
        };
        Done::Failed(Instant::now() + wait, self.leftover(keep))
    }

    /// What the next attempt needs. A state that is not kept is read again.
    fn leftover(&mut self, keep: bool) -> Work {
        let is_kept = self.gone && self.shared.is_kept(&self.uid);
        let object = self.bytes.take().filter(|_| keep && !is_kept);
        let view = self.object.as_ref().map(|object| self.shared.view(object));
        let policy = &self.shared.config.policy;
        Work {
            object,
            gone: self.gone,
            is_final: view.as_ref().is_some_and(|view| view.finish().done),
            is_bare: view.is_some_and(|view| plan::finalizer::is_missing(&view, policy)),
        }
    }
}

impl Shared {
    /// When a time of day will be.
    pub(crate) fn instant(&self, at: Timestamp) -> Instant {
        let wait = at.duration_since(self.clock.now());
        Instant::now() + Duration::try_from(wait).unwrap_or_default()
    }
}
