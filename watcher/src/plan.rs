//! What to do next about one run. A pure function: facts in, steps out; no I/O, no
//! clock, not `async`.
//!
//! Steps are carried out in order; the first that fails ends the list, and whatever happened
//! the plan is made again. So each step may be repeated, and any suffix of them may be lost
//! in a crash, without changing where it ends:
//!
//! * a final state is stored before anything else happens to the run;
//! * our finalizers come off only once a run's newest state is stored, or the deadline of a
//!   delete by others is over;
//! * [`Step::Delete`] appears only for a finished run whose equal copy the server has
//!   confirmed, and names the UID and version it was decided for.
//!
//! What counts as stored is what the server said it holds, compared by
//! [content](crate::content). Annotations on the object never count: a re-run made from a
//! manifest carries those of the run it was copied from.

pub(crate) mod annotations;
mod collect;
mod events;
pub(crate) mod finalizer;
mod remembered;
mod step;
mod stored;

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use hindsight_proto::names::RecordName;
use hindsight_run as run;
use hindsight_run::{Kind, Upload, UploadError, View};

pub(crate) use events::own as events_record;
pub use remembered::{
    Annotations, EventRecord, FinalizerState, Finished, Others, Presence, Remembered,
};
pub use step::{Removal, Step, Urgency};
pub use stored::{CopyEnd, ServerCopy, StoredCopy};

use crate::{
    content::{Digest, UNREADABLE},
    policy::{Policy, TEKTON},
};
use hindsight_runtime::error::report;

/// Why a run was closed that was deleted before it ended.
pub const DELETED_UNFINISHED: &str = "deleted before it finished";
/// Why a run was closed or lost whose end was not seen.
pub const VANISHED: &str = "vanished while the watch was interrupted, last seen unfinished";
/// Why a run was lost that no name could be made for.
pub const UNNAMEABLE: &str = "left the cluster and could not be stored as it was";
/// Why a finished run was lost.
pub const VANISHED_FINAL: &str = "vanished before its final state was stored";

/// How often a run is looked at that left what is watched before it ended.
const UNSELECTED_AGAIN: SignedDuration = SignedDuration::from_mins(1);

/// Decides what to do about a run.
///
/// `view` is of its newest known state, also of a run that is gone; `None` if that is not
/// known. `now` is the time.
pub fn plan(
    view: Option<&View<'_>>,
    remembered: &Remembered,
    policy: &Policy,
    now: Timestamp,
) -> Vec<Step> {
    let Some(view) = view else {
        return if remembered.presence.is_gone() {
            without_object(remembered)
        } else {
            Vec::new()
        };
    };
    if !concerns_us(view, policy) {
        return vec![Step::Forget];
    }
    let upload = match upload(view, policy) {
        Ok(upload) => upload,
        Err(error) => return unnameable(view, &error, remembered, policy, now),
    };
    let is_final = view.finish().done;
    let is_long_lived = view.known_kind().is_some_and(Kind::is_long_lived);
    let is_held = finalizer::deadline(view, policy).is_some();
    let events = events::record(view, &upload, policy).filter(|_| !is_long_lived);
    let new_events = events::missing(events.as_ref(), view, &upload, remembered, policy);
    let is_stored = remembered.copy().is_some_and(|copy| {
        copy.is_at(&upload.grouping.record) && copy.digest == Digest::of(view.object())
    });
    if remembered.presence.is_gone() {
        let is_closed = is_final || is_long_lived;
        return on_deleted(upload, is_stored, new_events, is_closed, remembered);
    }
    if !is_selected(view, policy) && !is_held {
        let store = (is_final && !is_stored).then(|| Step::Store(Box::new(upload)));
        return unselected(view, store, now);
    }
    if !is_stored && is_overdue(view, policy, now) {
        return finalizer::remove(view, Urgency::Overdue)
            .into_iter()
            .collect();
    }
    let is_worth_keeping = is_final || is_long_lived;
    let may_ask = is_worth_keeping && !is_stored && remembered.may_be_stored_already(is_long_lived);
    if may_ask
        && !is_held
        && policy.collect.is_none()
        && let Some(later) = annotations::are_of_this_state(view, &upload, events.as_ref())
            .then(|| verification(view, remembered, policy))
            .filter(|later| now < *later)
    {
        return vec![Step::Trust(later)];
    }
    // One that is stored needs no finalizer, so a start costs no writes for those that are.
    if may_ask && (!policy.annotate || annotations::are_there(view, &upload, events.as_ref())) {
        return vec![Step::Ask(Box::new(upload))];
    }
    if let Some(add) = finalizer::add(view, remembered, policy) {
        return vec![add];
    }
    if !is_final && !is_held && !policy.store_incomplete && !is_long_lived {
        return Vec::new();
    }
    // Of one that does not say that it is stored, storing is all that has to be asked.
    if may_ask && is_long_lived {
        return vec![Step::Ask(Box::new(upload))];
    }
    if is_held {
        // Events do not hold it up longer than was agreed.
        let new_events = new_events.filter(|_| !is_overdue(view, policy, now));
        return held(view, (!is_stored).then_some(upload), new_events);
    }
    let new_events = new_events.filter(|_| is_final);
    let may_annotate = policy.annotate
        && remembered.annotations == Annotations::Unwritten
        && !remembered.presence.is_delete_requested();
    let annotate = (is_final && may_annotate)
        .then(|| annotations::missing(view, &upload, events.as_ref()))
        .flatten();
    let mut steps = Vec::new();
    if !is_stored {
        steps.push(Step::Store(Box::new(upload)));
    }
    steps.extend(new_events.map(Step::StoreEvents));
    conclude(view, steps, annotate, remembered, policy, now)
}

/// What happens to a run that cannot be stored as it is.
fn unnameable(
    view: &View<'_>,
    error: &Unstorable,
    remembered: &Remembered,
    policy: &Policy,
    now: Timestamp,
) -> Vec<Step> {
    let reason = report(error);
    let refuse = Step::Refuse { reason };
    if remembered.presence.is_gone() {
        return vec![refuse, Step::Lose { reason: UNNAMEABLE }, Step::Forget];
    }
    let overdue = is_overdue(view, policy, now);
    let remove = overdue.then(|| finalizer::remove(view, Urgency::Overdue));
    remove.flatten().into_iter().chain([refuse]).collect()
}

/// What happens to a run whose delete waits for us. It leaves once it is released, so that
/// annotations would not be read. One that is deleted before it ended is not waited for: nothing goes
/// on with it any more.
fn held(view: &View<'_>, store: Option<Upload>, new_events: Option<RecordName>) -> Vec<Step> {
    let store = store.map(|upload| Step::Store(Box::new(upload)));
    let events = new_events.map(Step::StoreEvents);
    let remove = finalizer::remove(view, Urgency::Awaited);
    store.into_iter().chain(events).chain(remove).collect()
}

/// What happens to a run that is not being deleted, once `steps` have stored it: it is
/// annotated, released and collected. One that is due is deleted without annotations, which
/// would be a write for nothing.
fn conclude(
    view: &View<'_>,
    mut steps: Vec<Step>,
    annotate: Option<BTreeMap<String, String>>,
    remembered: &Remembered,
    policy: &Policy,
    now: Timestamp,
) -> Vec<Step> {
    let is_final = view.finish().done;
    let decision = collect::decide(view, remembered, policy, now);
    let is_due = decision == collect::Decision::Delete;
    let annotate = annotate.filter(|_| !is_due);
    if let Some(resource_version) = finalizer::release(view, is_final, remembered, policy) {
        steps.push(Step::RemoveFinalizers(Removal {
            resource_version,
            left: finalizer::of_others(view),
            annotations: annotate.unwrap_or_default(),
            urgency: Urgency::Idle,
        }));
        // A delete is planned on the version without the finalizer.
        if is_due {
            return steps;
        }
    } else {
        steps.extend(annotate.map(Step::Annotate));
    }
    match decision {
        collect::Decision::Keep => {}
        collect::Decision::Wait(until) => steps.push(Step::LookAgain(until)),
        collect::Decision::Delete => {
            if let (Some(uid), Some(version)) = (view.uid(), view.resource_version()) {
                steps.push(Step::Delete {
                    uid: uid.to_owned(),
                    resource_version: version.to_owned(),
                });
            }
        }
    }
    steps
}

/// What happens to a run whose labels are no longer those that are watched: no event comes for it
/// any more. It is released, and looked at until its end is stored.
fn unselected(view: &View<'_>, store: Option<Step>, now: Timestamp) -> Vec<Step> {
    if finalizer::are_ours_there(view) {
        let remove = finalizer::remove(view, Urgency::Awaited);
        return store.into_iter().chain(remove).collect();
    }
    let last = match view.finish().done {
        true => Step::Forget,
        false => Step::LookAgain(now.saturating_add(UNSELECTED_AGAIN).unwrap_or(now)),
    };
    store.into_iter().chain([last]).collect()
}

/// The cluster does not let the run go before we do.
pub(crate) fn is_held(view: &View<'_>, policy: &Policy, now: Timestamp) -> bool {
    finalizer::is_there(view, policy) && !is_overdue(view, policy, now)
}

/// A delete has waited for us as long as was agreed.
fn is_overdue(view: &View<'_>, policy: &Policy, now: Timestamp) -> bool {
    finalizer::deadline(view, policy).is_some_and(|deadline| deadline <= now)
}

/// When a run is verified that is trusted meanwhile: at some time after it was seen first, another
/// one for each, so that a start with many is no storm.
fn verification(view: &View<'_>, remembered: &Remembered, policy: &Policy) -> Timestamp {
    let mut hash = DefaultHasher::new();
    view.uid().hash(&mut hash);
    let within = policy.verify_within.as_secs().max(0);
    let after = i64::try_from(hash.finish() >> 1).unwrap_or_default() % (within + 1);
    let later = remembered
        .first_seen
        .checked_add(SignedDuration::from_secs(after));
    later.unwrap_or(Timestamp::MAX)
}

/// Why a run cannot be stored as it is.
#[derive(Debug, thiserror::Error)]
pub enum Unstorable {
    /// It is nested too deep.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// It is no Kubernetes object, or cannot be named.
    #[error(transparent)]
    Upload(#[from] UploadError),
}

/// What is sent for an object.
///
/// # Errors
/// If the object could not be read, is no Kubernetes object, or cannot be named.
pub fn upload(view: &View<'_>, policy: &Policy) -> Result<Upload, Unstorable> {
    if let Some(why) = view.object().get(UNREADABLE) {
        return Err(Unstorable::Unreadable(
            why.as_str().unwrap_or_default().to_owned(),
        ));
    }
    let parent = view
        .namespace()
        .map(|namespace| policy.parent(namespace))
        .transpose()
        .map_err(UploadError::from)?;
    Ok(run::upload(view, parent, &policy.summary)?)
}

/// Whether the run is Tekton's own, or of a controller that the configuration names.
pub fn is_ours(view: &View<'_>, policy: &Policy) -> bool {
    if view
        .known_kind()
        .is_none_or(|kind| kind.group != "tekton.dev")
    {
        return true;
    }
    let managed_by = view
        .object()
        .pointer("/spec/managedBy")
        .and_then(Value::as_str);
    let managed_by = managed_by.unwrap_or_default().trim();
    managed_by.is_empty() || managed_by == TEKTON || policy.managed_by.contains(managed_by)
}

/// Whether there may be something to do about the run: it is ours, or a delete waits for a finalizer
/// that an earlier watcher, configured to serve more, put on it.
pub(crate) fn concerns_us(view: &View<'_>, policy: &Policy) -> bool {
    is_ours(view, policy) || finalizer::deadline(view, policy).is_some()
}

/// Whether a stored run lacks the annotations that it should have.
pub(crate) fn lacks_annotations(view: &View<'_>, remembered: &Remembered, policy: &Policy) -> bool {
    let is_wanted = policy.annotate && remembered.annotations == Annotations::Unwritten;
    let Some(upload) = upload(view, policy).ok().filter(|_| is_wanted) else {
        return false;
    };
    let events = events::record(view, &upload, policy);
    !annotations::are_there(view, &upload, events.as_ref())
}

/// Whether the run has the labels that are watched.
pub(crate) fn is_selected(view: &View<'_>, policy: &Policy) -> bool {
    let kind = view.known_kind();
    let mut selectors = policy.selectors.iter();
    selectors.all(|(of, labels)| Some(*of) != kind || labels.matches(view.labels()))
}

/// The run is gone and this was its last state.
fn on_deleted(
    upload: Upload,
    is_stored: bool,
    new_events: Option<RecordName>,
    is_closed: bool,
    remembered: &Remembered,
) -> Vec<Step> {
    let mut steps = Vec::new();
    if !is_stored {
        steps.push(Step::Store(Box::new(upload)));
    }
    steps.extend(new_events.map(Step::StoreEvents));
    let is_closed = is_closed || remembered.copy().is_some_and(|c| c.end == CopyEnd::Closed);
    if !is_closed {
        steps.push(Step::Close {
            reason: DELETED_UNFINISHED,
        });
    }
    steps.push(Step::Forget);
    steps
}

/// The run is gone and its last state is not known.
fn without_object(remembered: &Remembered) -> Vec<Step> {
    let step = match &remembered.server {
        ServerCopy::Trusted => None,
        ServerCopy::Stored(copy) if copy.end != CopyEnd::Open || remembered.long_lived => None,
        ServerCopy::Stored(_) => Some(Step::Close { reason: VANISHED }),
        ServerCopy::Unknown | ServerCopy::Absent => Some(Step::Lose {
            reason: match remembered.finished {
                Finished::No => VANISHED,
                Finished::AtFirstSight(_) | Finished::Later(_) => VANISHED_FINAL,
            },
        }),
    };
    step.into_iter().chain([Step::Forget]).collect()
}

#[cfg(test)]
mod tests;
