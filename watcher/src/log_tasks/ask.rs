//! Asking the server what it holds of the log of a run, once for each run.

use std::sync::Arc;

use tokio::task::JoinSet;
use tracing::warn;

use super::server;
use crate::{
    ledger::Uid,
    shared::Shared,
    sink::{Severity, SinkError},
};

/// So many are asked for at once.
const AT_ONCE: usize = 4;

/// Asks for runs whenever there are some; returns when the server has no logs.
pub(super) async fn ask(shared: Arc<Shared>) {
    let mut asked: JoinSet<(Uid, Result<(), SinkError>)> = JoinSet::new();
    let mut poll = tokio::time::interval(shared.config.tuning.logs_interval);
    poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut failures = 0;
    let mut is_denied = false;
    loop {
        while asked.len() < AT_ONCE
            && let Some((uid, log)) = shared.logs.next_unasked()
        {
            asked.spawn(one(Arc::clone(&shared), uid, log));
        }
        let answer = tokio::select! {
            _ = poll.tick() => continue,
            Some(answer) = asked.join_next() => answer,
        };
        let Ok((uid, answer)) = answer else { continue };
        let Err(error) = answer else {
            (failures, is_denied) = (0, false);
            continue;
        };
        if server::is_missing(&error) {
            return;
        }
        failures += 1;
        if error.severity == Severity::Denied && !std::mem::replace(&mut is_denied, true) {
            warn!(
                "what the server holds of logs may not be read, so that none are stored: {error}"
            );
        }
        shared.logs.unanswered(uid);
        tokio::time::sleep(server::wait(&shared, &error, failures)).await;
    }
}

async fn one(shared: Arc<Shared>, uid: Uid, log: Box<str>) -> (Uid, Result<(), SinkError>) {
    let answer = server::held(&shared, &log).await;
    let answer = answer.map(|containers| shared.logs.answered(&uid, containers));
    (uid, answer)
}
