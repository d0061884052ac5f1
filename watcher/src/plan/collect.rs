//! Whether a stored run may leave the cluster.

use jiff::Timestamp;

use hindsight_run::View;

use super::{Remembered, logs};
use crate::{
    content,
    policy::{HOLD, Policy},
};

/// What collection says about a run, provided that its state is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// It stays, until something about it changes.
    Keep,
    /// It may be deleted at this time.
    Wait(Timestamp),
    /// It may be deleted now.
    Delete,
}

/// Decides about a run whose newest state is stored, or will be before anything else happens.
///
/// A run that a PipelineRun owns never goes on its own but with its owner. A run that has
/// children goes when all of them are stored, because they go with it. The grace counts from
/// the end that the run states; of a run that states none, from when it was first seen
/// finished, which a restart can only move later. One that is not wholly in its object never goes,
/// because the rest goes with it. One of the last of its pipeline stays until
/// there are newer ones, which is when it is looked at again.
pub(super) fn decide(
    view: &View<'_>,
    remembered: &Remembered,
    policy: &Policy,
    now: Timestamp,
) -> Decision {
    let Some(collect) = &policy.collect else {
        return Decision::Keep;
    };
    let is_owned = view
        .owners()
        .any(|owner| owner.kind.eq_ignore_ascii_case("PipelineRun"))
        || (collect.check_owner && view.is_owned());
    if !view.finish().done
        || is_owned
        || remembered.presence.is_delete_requested()
        || view.deletion().is_some()
        || view.annotation(HOLD) == Some("true")
        || !collect.selector.matches(|key| view.label(key))
        || content::is_partial(view.object())
    {
        return Decision::Keep;
    }
    let terms = collect.terms(view, &remembered.others().namespace);
    if terms.never || remembered.others().newer < terms.keep_last || !terms.hold(view) {
        return Decision::Keep;
    }
    let ended = view.ended().or(remembered.finished.since()).unwrap_or(now);
    // An end beyond the calendar never comes.
    let Ok(due) = ended.checked_add(terms.grace) else {
        return Decision::Keep;
    };
    if now < due {
        return Decision::Wait(due);
    }
    match remembered.others().waits_for {
        None => match logs::hold(view, remembered, policy, now) {
            Some(until) => Decision::Wait(until),
            None => Decision::Delete,
        },
        // It is looked at again when that is over.
        Some(_) => Decision::Keep,
    }
}
