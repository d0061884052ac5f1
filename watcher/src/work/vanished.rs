//! Runs that are stored unfinished and left the cluster while no watcher saw it. Nothing else would
//! ever say that they no longer run, or were deleted.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use hindsight_run::{Kind, Lifetime, json};

use crate::{
    ledger::Uid,
    presence::KindPresence,
    queue::Work,
    shared::Shared,
    sink::{Severity, SinkError, Unended},
};

/// Closes, once the cluster was listed, the runs that are stored unfinished and not in it. Returns when
/// all were looked at; ends early at `stop`, and the next start goes on.
pub(crate) async fn close_vanished(shared: Arc<Shared>, stop: CancellationToken) {
    stop.run_until_cancelled(Sweep { shared: &shared }.run())
        .await;
    // The tasks of a watcher end together.
    stop.cancelled().await;
}

struct Sweep<'s> {
    shared: &'s Shared,
}

impl Sweep<'_> {
    async fn run(&self) {
        let mut changes = self.shared.changes();
        while !self.shared.cluster.kinds.is_listed() {
            if changes.changed().await.is_err() {
                return;
            }
        }
        let mut kinds = self.shared.config.kinds.iter();
        if !kinds.any(|kind| self.is_stored_unfinished(kind)) {
            return;
        }
        let mut closed = 0;
        let mut failures = 0;
        let mut page = Some(String::new());
        while let Some(asked) = page {
            page = match self.look_at_page(&asked, &mut closed).await {
                Ok(next) => {
                    failures = 0;
                    Some(next).filter(|next| !next.is_empty())
                }
                Err(error) if matches!(error.severity, Severity::Denied | Severity::Lasting) => {
                    return refused(&error);
                }
                Err(error) => {
                    failures += 1;
                    let wait = self.shared.config.tuning.retry.after(failures);
                    tokio::time::sleep(wait.max(error.retry_after.unwrap_or_default())).await;
                    Some(asked)
                }
            };
        }
        if closed > 0 {
            info!("{closed} runs are stored unfinished and not in the cluster; closing them");
        }
    }

    /// Takes up the runs of one page; what the next one is asked for by.
    async fn look_at_page(&self, page: &str, closed: &mut u64) -> Result<String, SinkError> {
        let config = &self.shared.config;
        let only = config.namespace.as_deref();
        let parent = only.and_then(|namespace| config.policy.parent(namespace).ok());
        let sink = &self.shared.server.sink;
        let found = self.call(sink.unended(parent.as_ref(), page)).await?;
        for run in &found.runs {
            self.shared.queues.runs.room().await;
            *closed += u64::from(self.look_at(run).await?);
        }
        Ok(found.next)
    }

    async fn call<T>(
        &self,
        call: impl Future<Output = Result<T, SinkError>>,
    ) -> Result<T, SinkError> {
        let pass = self.shared.server.gate.enter().await;
        let answer = call.await;
        match &answer {
            Err(error) if error.severity == Severity::Unavailable => pass.refused(error),
            _ => pass.answered(),
        }
        answer
    }

    /// Takes up a run that no watch will show any more. Whether it is one.
    async fn look_at(&self, run: &Unended) -> Result<bool, SinkError> {
        let shared = self.shared;
        let uid = Uid::from(run.uid.as_str());
        let is_known = || shared.ledger().get(&uid).is_some();
        let Some(kind) = self.watched(run).filter(|_| !is_known()) else {
            return Ok(false);
        };
        let held = match self.call(shared.server.sink.stored(&run.record)).await {
            // It says nothing of the others.
            Err(error) if matches!(error.severity, Severity::Denied | Severity::Lasting) => {
                warn!(record = %run.record, "a run that is not in the cluster stays unfinished: {error}");
                return Ok(false);
            }
            held => held?,
        };
        let Some(object) = held.and_then(|held| json::parse(&held).ok()) else {
            return Ok(false);
        };
        let view = shared.view(&object);
        if view.uid() != Some(&run.uid) || view.finish().done || is_known() {
            return Ok(false);
        }
        // From here on it is a run as any other that a list does not have any more.
        let noted = shared
            .ledger()
            .saw(kind, &view, 0, shared.clock.now())
            .map(|(_, entry)| {
                entry.remembered.stored(&run.record, &view);
                entry.remembered.presence.set_gone(true);
            });
        if noted.is_some() {
            shared.push(&uid, Work::gone());
        }
        Ok(noted.is_some())
    }

    /// Its kind, if this watcher would have seen it in the cluster.
    fn watched(&self, run: &Unended) -> Option<&'static Kind> {
        let config = &self.shared.config;
        let mut kinds = config.kinds.iter().copied();
        let kind = kinds.find(|kind| kind.has_type(&run.data_type))?;
        let is_visible = matches!(
            self.shared.cluster.kinds.get(kind),
            Some(KindPresence::Absent | KindPresence::Listed)
        );
        let parent = config.policy.parent(&run.namespace).ok()?;
        let is_ours = parent == *run.record.result().parent();
        (is_visible && is_ours && self.is_stored_unfinished(kind)).then_some(kind)
    }

    /// Whether this watcher stores objects of a kind before they end: runs if that is wanted, and always what is there
    /// until it is deleted.
    fn is_stored_unfinished(&self, kind: &Kind) -> bool {
        match kind.lifetime() {
            Lifetime::UntilFinished => self.shared.config.policy.store_incomplete,
            Lifetime::UntilDeleted => {
                self.shared.config.policy.store_incomplete
                    || self.shared.cluster.kinds.get(kind) == Some(KindPresence::Listed)
            }
            Lifetime::Endless => false,
        }
    }
}

fn refused(error: &SinkError) {
    if error.severity == Severity::Denied {
        warn!(
            "runs that left the cluster while no watcher ran stay unfinished in the history, because \
             they may not be listed: {error}"
        );
    } else {
        debug!("the server does not list unfinished runs: {error}");
    }
}
