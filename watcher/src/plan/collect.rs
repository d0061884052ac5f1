//! Whether a stored run may leave the cluster.

use jiff::Timestamp;

use hindsight_run::View;

use super::Remembered;
use crate::{
    content,
    policy::{HOLD, Policy},
};

/// What collection says about a run, provided that its state is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It stays, until something about it changes.
    Leave,
    /// It may go later.
    Wait(Timestamp),
    /// It may go.
    Due,
}

/// Judges a run whose newest state is stored, or will be before anything else happens.
///
/// A run that a PipelineRun owns never goes on its own but with its owner. A run that has
/// children goes when all of them are stored, because they go with it. The grace counts from
/// the end that the run states; of a run that states none, from when it was first seen
/// finished, which a restart can only move later. One that is not wholly in its object never goes,
/// because the rest goes with it. One of the last of its pipeline stays until
/// there are newer ones, which is when whoever knows the others looks at it again.
pub(super) fn verdict(
    view: &View<'_>,
    remembered: &Remembered,
    policy: &Policy,
    now: Timestamp,
) -> Verdict {
    let Some(collect) = &policy.collect else {
        return Verdict::Leave;
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
        || !collect.selector.matches(view.labels())
        || content::is_partial(view.object())
    {
        return Verdict::Leave;
    }
    let terms = collect.terms(view, &remembered.others().namespace);
    if terms.never || remembered.others().newer < terms.keep_last || !terms.hold(view) {
        return Verdict::Leave;
    }
    let ended = view.ended().or(remembered.finished.since()).unwrap_or(now);
    // An end beyond the calendar never comes.
    let Ok(due) = ended.checked_add(terms.grace) else {
        return Verdict::Leave;
    };
    if now < due {
        return Verdict::Wait(due);
    }
    match remembered.others().waits_for {
        None => Verdict::Due,
        // Who knows the others looks at it again when that is over.
        Some(_) => Verdict::Leave,
    }
}
