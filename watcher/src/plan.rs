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
mod gone;
mod logs;
mod remembered;
mod selection;
mod step;
mod stored;

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use jiff::{SignedDuration, Timestamp};

use hindsight_proto::names::RecordName;
use hindsight_run as run;
use hindsight_run::{Kind, Lifetime, Upload, UploadError, View};

pub(crate) use events::own as events_record;
pub use remembered::{
    Annotations, EventRecord, FinalizerState, Finished, Others, Presence, Remembered,
};
pub use step::{Removal, Step, Urgency};
pub use stored::{CopyEnd, ServerCopy, StoredCopy};

use crate::{
    content::{Digest, UNREADABLE},
    policy::Policy,
};
use gone::{on_deleted, unnameable, without_object};

pub use gone::{DELETED, DELETED_UNFINISHED, DELETED_UNSEEN, UNNAMEABLE, VANISHED, VANISHED_FINAL};
pub use selection::is_ours;
pub(crate) use selection::{concerns_us, goes_on, is_held, is_selected, lacks_annotations};

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
    let lifetime = view.known_kind().map(Kind::lifetime).unwrap_or_default();
    let is_long_lived = lifetime.is_long();
    let is_held = finalizer::deadline(view, policy).is_some();
    let is_stored = remembered.copy().is_some_and(|copy| {
        copy.is_at(&upload.grouping.record) && copy.digest == Digest::of(view.object())
    });
    let (events, news) = events::wanted(view, &upload, lifetime, remembered, policy, now);
    if remembered.presence.is_gone() {
        return on_deleted(upload, is_stored, news, (is_final, lifetime), remembered);
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
        let news = news.filter(|_| !is_overdue(view, policy, now));
        let until = logs::hold_delete(view, remembered, policy, now);
        return held(view, (!is_stored).then_some(upload), news, until);
    }
    let news = news.filter(|_| is_final || is_long_lived);
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
    let copied_again = events.filter(|_| lifetime == Lifetime::UntilDeleted);
    let next = copied_again.map(|_| events::next_copy(news.is_some(), remembered, now));
    steps.extend(news.map(Step::StoreEvents));
    steps.extend(next.map(Step::LookAgain));
    conclude(view, steps, annotate, remembered, policy, now)
}

/// What happens to a run whose delete waits for us. It leaves once it is released, so that
/// annotations would not be read. One that is deleted before it ended is not waited for: nothing goes
/// on with it any more. What its containers wrote is, `until` then.
fn held(
    view: &View<'_>,
    store: Option<Upload>,
    new_events: Option<RecordName>,
    until: Option<Timestamp>,
) -> Vec<Step> {
    let store = store.map(|upload| Step::Store(Box::new(upload)));
    let events = new_events.map(Step::StoreEvents);
    let remove = match until {
        Some(until) => Some(Step::LookAgain(until)),
        None => finalizer::remove(view, Urgency::Awaited),
    };
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
    // While logs are open it is held as one that is not stored.
    let hold = logs::hold(view, remembered, policy, now);
    let release = finalizer::release(view, is_final, remembered, policy);
    if let Some(resource_version) = release.filter(|_| hold.is_none()) {
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
        collect::Decision::Keep => steps.extend(hold.map(Step::LookAgain)),
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

#[cfg(test)]
mod tests;
