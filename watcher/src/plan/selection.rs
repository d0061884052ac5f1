//! Which runs concern us.

use hindsight_run::{Kind, View, keys::DELEGATED};
use jiff::Timestamp;
use serde_json::Value;

use super::{annotations, events, finalizer, is_overdue, upload};
use crate::plan::remembered::{Annotations, Remembered};
use crate::policy::{Policy, TEKTON};

/// The cluster does not let the run go before we do.
pub(crate) fn is_held(view: &View<'_>, policy: &Policy, now: Timestamp) -> bool {
    finalizer::is_there(view, policy) && !is_overdue(view, policy, now)
}

/// Whether the run is Tekton's own or ours, or of a controller that the configuration names.
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
    matches!(managed_by, "" | TEKTON | DELEGATED) || policy.managed_by.contains(managed_by)
}

/// Whether there may be something to do about the run: it is ours, or a delete waits for a finalizer
/// that an earlier watcher, configured to serve more, put on it.
pub(crate) fn concerns_us(view: &View<'_>, policy: &Policy) -> bool {
    is_ours(view, policy) || finalizer::deadline(view, policy).is_some()
}

/// Whether the run goes on, so that all there may be to do is to store how far it is.
pub(crate) fn goes_on(view: &View<'_>, policy: &Policy) -> bool {
    let is_long_lived = view.known_kind().is_some_and(Kind::is_long_lived);
    !view.finish().done && !is_long_lived && finalizer::deadline(view, policy).is_none()
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
    selectors.all(|(of, labels)| Some(*of) != kind || labels.matches(|key| view.label(key)))
}
