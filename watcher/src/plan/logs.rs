//! How long a run stays in the cluster for its logs: its pods, and what only they have, go with it.

use jiff::Timestamp;

use hindsight_run::View;

use super::{Remembered, finalizer};
use crate::policy::Policy;

/// Until when a finished run waits for its logs; `None` if it waits no more.
pub(super) fn hold(
    view: &View<'_>,
    remembered: &Remembered,
    policy: &Policy,
    now: Timestamp,
) -> Option<Timestamp> {
    if !remembered.others().logs_open || !view.finish().done {
        return None;
    }
    // A run that ended while no watcher looked still has its pods, so that its logs get their time too.
    let ended = view.ended().max(remembered.finished.since());
    until(ended.unwrap_or(now), policy).filter(|until| now < *until)
}

/// Until when a delete of others waits for the logs of a run that our finalizer holds, which is no
/// longer than it may wait for anything.
pub(super) fn hold_delete(
    view: &View<'_>,
    remembered: &Remembered,
    policy: &Policy,
    now: Timestamp,
) -> Option<Timestamp> {
    let asked = view.deletion().filter(|_| remembered.others().logs_open)?;
    let until = until(asked, policy)?.min(finalizer::deadline(view, policy)?);
    (now < until).then_some(until)
}

fn until(begin: Timestamp, policy: &Policy) -> Option<Timestamp> {
    begin.checked_add(policy.logs_deadline).ok()
}
