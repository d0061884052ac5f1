//! Which annotations a stored run should have.

use std::collections::BTreeMap;

use hindsight_proto::names::RecordName;
use hindsight_run::{Upload, View, keys};

use super::{Annotations, EventRecord, Presence, Remembered, Step, events};
use crate::{
    content::{Digest, EVENT_LIST},
    policy::STORED_DIGEST,
};

/// The annotations of a run whose final state is stored, or `None` if it has them.
pub(super) fn missing(
    view: &View<'_>,
    upload: &Upload,
    events: Option<&RecordName>,
) -> Option<BTreeMap<String, String>> {
    if are_there(view, upload, events) {
        return None;
    }
    let digest = Digest::of(view.object());
    let record = &upload.grouping.record;
    Some(written(record, digest, view.is_owned(), events))
}

/// All that is written on a run that is stored as `record`, with `digest`. A merge patch leaves
/// what else is there, such as what Tekton Results' watcher wrote about logs.
fn written(
    record: &RecordName,
    digest: Digest,
    is_owned: bool,
    events: Option<&RecordName>,
) -> BTreeMap<String, String> {
    let mut written = wanted(record, is_owned, events);
    written.insert(STORED_DIGEST.to_owned(), digest.to_string());
    written
}

/// What is to be written on a stored run, as far as that is known without its object.
pub(crate) fn without_object(uid: &str, is_owned: bool, remembered: &Remembered) -> Option<Step> {
    let is_unwritten = remembered.annotations == Annotations::Unwritten;
    let is_wanted = is_unwritten && remembered.presence == Presence::Present;
    let copy = remembered
        .copy()
        .filter(|copy| is_wanted && copy.is_final())?;
    let record = copy.record();
    let has_events = matches!(remembered.events, EventRecord::Own | EventRecord::Until(_));
    let events = has_events.then(|| events::own(&record, uid)).flatten();
    let annotations = written(&record, copy.digest, is_owned, events.as_ref());
    Some(Step::Annotate(annotations))
}

/// Whether the run says of itself that it is stored. It proves nothing: it may be wrong.
pub(super) fn are_there(view: &View<'_>, upload: &Upload, events: Option<&RecordName>) -> bool {
    wanted(&upload.grouping.record, view.is_owned(), events)
        .iter()
        .all(|(key, value)| view.annotation(key) == Some(value))
}

/// Whether the run says of itself that it is stored exactly as it is. A copy of another run never
/// does, because its UID is part of what is compared; who forges it deceives nobody for longer than
/// until it is verified.
pub(super) fn are_of_this_state(
    view: &View<'_>,
    upload: &Upload,
    events: Option<&RecordName>,
) -> bool {
    view.annotation(STORED_DIGEST).is_some_and(|said| {
        are_there(view, upload, events) && said == Digest::of(view.object()).to_string()
    })
}

fn wanted(
    record: &RecordName,
    is_owned: bool,
    events: Option<&RecordName>,
) -> BTreeMap<String, String> {
    let mut wanted = BTreeMap::from([
        (keys::RESULT.to_owned(), record.result().to_string()),
        (keys::RECORD.to_owned(), record.to_string()),
        (keys::STORED.to_owned(), "true".to_owned()),
    ]);
    if let Some(events) = events {
        wanted.insert(EVENT_LIST.to_owned(), events.to_string());
    }
    if is_owned {
        wanted.insert(keys::CHILD_READY.to_owned(), "true".to_owned());
    }
    wanted
}
