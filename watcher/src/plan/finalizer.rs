//! Whether a finalizer is put on a run or taken off, so that a delete by others waits until the
//! run is stored, but never longer than agreed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use hindsight_run::View;

use super::{FinalizerState, Remembered, Removal, Step, Urgency};
use crate::policy::Policy;

/// Tekton Results' watcher has one for each kind; either watcher takes off what the other put
/// on.
const TEKTON: [(&str, &str); 3] = [
    ("TaskRun", "results.tekton.dev/taskrun"),
    ("PipelineRun", "results.tekton.dev/pipelinerun"),
    ("CustomRun", "results.tekton.dev/customrun"),
];
/// For all other kinds.
const OTHERS: &str = "hindsight.dev/stored";

fn name(view: &View<'_>) -> &'static str {
    let kind = view.known_kind().filter(|kind| kind.group == "tekton.dev");
    TEKTON
        .iter()
        .find(|(named, _)| kind.is_some_and(|kind| kind.kind == *named))
        .map_or(OTHERS, |(_, finalizer)| finalizer)
}

/// Whether either watcher gives this name to a finalizer.
pub(crate) fn is_ours(finalizer: &str) -> bool {
    is_own(finalizer) || TEKTON.iter().any(|(_, ours)| *ours == finalizer)
}

/// Whether only this watcher gives this name to a finalizer.
pub(crate) fn is_own(finalizer: &str) -> bool {
    finalizer == OTHERS
}

fn all<'a>(view: &View<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    let list = view
        .object()
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

/// Whether the run has a finalizer of ours, wanted or not.
pub(crate) fn are_ours_there(view: &View<'_>) -> bool {
    all(view).any(is_ours)
}

/// Until when a finalizer of ours may hold the run; `None` if it holds nothing up.
pub(crate) fn deadline(view: &View<'_>, policy: &Policy) -> Option<Timestamp> {
    let asked = view.deletion().filter(|_| are_ours_there(view))?;
    // A deadline beyond the calendar is none, but nothing is held for ever.
    Some(
        asked
            .checked_add(policy.store_deadline)
            .unwrap_or(Timestamp::MAX),
    )
}

/// Whether there may be something to do about finalizers, so that a plan is worth making.
pub(crate) fn may_be_work(view: &View<'_>, policy: &Policy) -> bool {
    is_missing(view, policy) || deadline(view, policy).is_some()
}

/// The run has a finalizer of ours, and is to have one.
pub(super) fn is_there(view: &View<'_>, policy: &Policy) -> bool {
    policy.finalizers && are_ours_there(view)
}

/// The finalizer should be there and is not. On a run that is being deleted none can be put.
pub(crate) fn is_missing(view: &View<'_>, policy: &Policy) -> bool {
    let name = name(view);
    policy.finalizers && view.deletion().is_none() && !all(view).any(|known| known == name)
}

/// Puts the finalizer on, if that is of use: not on a run whose end was stored, even if something
/// was written on it since, because that would take two writes for each time.
pub(super) fn add(view: &View<'_>, remembered: &Remembered, policy: &Policy) -> Option<Step> {
    let may_add = remembered.finalizer == FinalizerState::Open && !remembered.is_safe();
    let is_wanted = is_missing(view, policy) && may_add;
    is_wanted.then(|| Step::AddFinalizer(name(view)))
}

/// The version at which finalizers come off a finished run that nobody deletes, once it is
/// stored: whoever deletes it later need not wait. Once only: another watcher may put its own on
/// again, and two must not write in turns for ever.
pub(super) fn release(
    view: &View<'_>,
    is_final: bool,
    remembered: &Remembered,
    policy: &Policy,
) -> Option<String> {
    let is_wanted = policy.finalizers
        && is_final
        && remembered.finalizer != FinalizerState::Released
        && view.deletion().is_none()
        && are_ours_there(view);
    view.resource_version()
        .filter(|_| is_wanted)
        .map(str::to_owned)
}

/// Takes our finalizers off, all that are there, and leaves those of others.
pub(super) fn remove(view: &View<'_>, urgency: Urgency) -> Option<Step> {
    Some(Step::RemoveFinalizers(Removal {
        resource_version: view.resource_version()?.to_owned(),
        left: of_others(view),
        annotations: BTreeMap::new(),
        urgency,
    }))
}

/// The finalizers that stay.
pub(super) fn of_others(view: &View<'_>) -> Vec<String> {
    all(view)
        .filter(|finalizer| !is_ours(finalizer))
        .map(str::to_owned)
        .collect()
}
