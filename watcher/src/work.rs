//! Carrying out plans. A [`Task`] is one run while it is worked on: it is planned, the plan
//! is executed as far as the [`Lane`] of its worker goes, and whatever changes or fails, it
//! is planned again.

mod annotate;
mod children;
mod delete;
mod events;
mod execute;
mod finalize;
mod gone;
mod lane;
mod outcome;
mod report;
mod server;
mod spool;
mod vanished;
mod workers;

use std::sync::Arc;

use serde_json::Value;

use hindsight_run::View;
use hindsight_run::json;

use crate::{
    cluster::Address,
    ledger::{Ledger, Series, Uid},
    plan::{self, Remembered, Step, plan},
    policy::Collect,
    queue::Work,
    refusals::{Action, Scope},
    shared::Shared,
    spool::version,
};

use lane::Lane;

use outcome::{End, Interrupted, Next};
pub(crate) use vanished::close_vanished;
pub(crate) use workers::{
    annotate, protect, release_overdue, retry_refused, spool_backlog, store, store_spooled,
};

/// How often a run is planned anew in one go, before others get their turn.
const ROUNDS: usize = 8;

/// Why an object is not taken that is older than one that the watch has shown.
const OUTDATED: &str = "the API server answers with an older state than the watch has shown";

/// One run, while it is worked on.
struct Task<'s> {
    shared: &'s Shared,
    lane: Lane,
    uid: Uid,
    gone: bool,
    bytes: Option<Vec<u8>>,
    object: Option<Value>,
    /// What was admitted for this round already; see [`Task::admit`].
    admitted: Option<Action>,
    /// Why no finalizer could be put on it just now.
    unprotected: Option<String>,
    /// It is stored before anything else, as that can be done at once.
    is_stored_first: bool,
    /// It goes on, and how far it is was stored.
    has_stored_progress: bool,
    /// The server held another state of it than was stored, and it was stored again.
    is_restored: bool,
    /// It says of itself that it is stored as it is, and is believed for now.
    is_trusted: bool,
}

impl<'s> Task<'s> {
    fn new(shared: &'s Shared, lane: Lane, uid: Uid, work: Work) -> Self {
        Self {
            shared,
            lane,
            uid,
            gone: work.gone,
            bytes: work.object,
            object: None,
            admitted: None,
            unprotected: None,
            is_stored_first: false,
            has_stored_progress: false,
            is_restored: false,
            is_trusted: false,
        }
    }

    /// Plans and executes until there is nothing more to do in this lane.
    async fn run(&mut self) -> Result<End, Interrupted> {
        if let Some(bytes) = &self.bytes {
            self.object = json::parse(bytes).ok();
        }
        // While another watcher leads, the cluster is not asked.
        let is_gone =
            self.gone && (self.lane == Lane::Spooled || !self.is_there_after_all().await?);
        if is_gone && self.object.is_none() {
            self.load_spooled().await?;
        }
        for _ in 0..ROUNDS {
            if !self.prepare().await? {
                return Ok(End::Done(None));
            }
            let Some(remembered) = self.remembered() else {
                return Ok(End::Done(None));
            };
            let steps = self.plan(&remembered);
            match self.execute(steps, &remembered).await? {
                Next::Replan => {}
                Next::End(end) => {
                    return match self.unprotected.take() {
                        Some(error) if !self.gone => Err(Interrupted::passing(error)),
                        _ => Ok(end),
                    };
                }
            }
        }
        if self.lane == Lane::Annotate {
            self.shared.queues.annotations.push(&self.uid);
            return Ok(End::Done(None));
        }
        let verb = self.lane.verb();
        Err(Interrupted::passing(format!(
            "the object changes faster than it can be {verb}"
        )))
    }

    /// Gets what a plan is made from. Whether there is anything to plan.
    async fn prepare(&mut self) -> Result<bool, Interrupted> {
        match self.lane {
            Lane::Store => {
                let is_known = self.gone || self.object.is_some() || self.fetch().await?;
                // That a run ended is learned from the watch, which may know its last state.
                Ok(is_known || self.left_unwatched())
            }
            Lane::Protect => Ok(self.object.is_some() || self.fetch().await?),
            Lane::Release => self.fetch().await,
            Lane::Annotate => self.prepare_write().await,
            Lane::Spooled => Ok(self.object.is_some()),
        }
    }

    fn plan(&self, remembered: &Remembered) -> Vec<Step> {
        if self.lane == Lane::Annotate && !self.shared.config.policy.finalizers {
            return self.plan_annotations(remembered);
        }
        let view = self.object.as_ref().map(|object| self.shared.view(object));
        let (policy, now) = (&self.shared.config.policy, self.shared.clock.now());
        plan(view.as_ref(), remembered, policy, now)
    }

    /// Reads the object anew; whether it is there.
    async fn fetch(&mut self) -> Result<bool, Interrupted> {
        let Some(at) = self.address() else {
            return Ok(false);
        };
        self.bytes = None;
        self.object = self
            .shared
            .cluster
            .api
            .get(&at)
            .await?
            .filter(|object| View::new(object).uid() == Some(self.uid.as_str()));
        let Some(object) = &self.object else {
            return Ok(false);
        };
        let is_final = self.shared.view(object).finish().done;
        let now = self.shared.clock.now();
        if let Some(entry) = self.shared.ledger().get_mut(&self.uid) {
            if version(object) < entry.last_seen_version {
                self.object = None;
                return Err(Interrupted::passing(OUTDATED));
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
        if self.lane == Lane::Spooled {
            remembered.presence.set_gone(true);
        } else if self.lane == Lane::Store && !self.gone && self.object.is_some() {
            // Its deletion was seen after this state. The last one waits behind it.
            remembered.presence.set_gone(false);
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
        if self.shared.logs.is_open(&self.uid) {
            remembered.others.get_or_insert_default().logs_open = true;
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
            match self.shared.cluster.namespaces.ask(namespace) {
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

    /// What is done to this run, for refusals.
    fn scope(&self, action: Action) -> Scope {
        let ledger = self.shared.ledger();
        let entry = ledger.get(&self.uid);
        let is_of_server = matches!(action, Action::Store | Action::Read);
        Scope {
            action,
            kind: entry.filter(|_| !is_of_server).map_or("", |e| e.kind.kind),
            namespace: entry.map_or_else(|| "".into(), |e| Arc::clone(&e.namespace)),
        }
    }
}
