//! Which annotations a stored run should have.

use std::collections::BTreeMap;

use hindsight_proto::{
    names::RecordName,
    run::{Upload, View, keys},
};

use crate::{
    content::{Digest, EVENT_LIST, LOG},
    policy::STORED_DIGEST,
};

/// The annotations of a run whose final state is stored, or `None` if it has them.
///
/// Server-side apply takes away what its manager wrote before and does not write again.
/// Tekton Results' watcher is the same manager to the API server, so what it wrote about logs
/// and events is written again.
pub(super) fn missing(
    view: &View<'_>,
    upload: &Upload,
    events: Option<&RecordName>,
) -> Option<BTreeMap<String, String>> {
    let mut wanted = wanted(view, upload, events);
    if has(view, &wanted) {
        return None;
    }
    wanted.insert(
        STORED_DIGEST.to_owned(),
        Digest::of(view.object()).to_string(),
    );
    for key in [LOG, EVENT_LIST] {
        if let Some(value) = view.annotation(key) {
            wanted.entry(key.to_owned()).or_insert(value.to_owned());
        }
    }
    Some(wanted)
}

/// Whether the run says of itself that it is stored. It proves nothing: it may be wrong.
pub(super) fn are_there(view: &View<'_>, upload: &Upload, events: Option<&RecordName>) -> bool {
    has(view, &wanted(view, upload, events))
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

fn has(view: &View<'_>, wanted: &BTreeMap<String, String>) -> bool {
    wanted
        .iter()
        .all(|(key, value)| view.annotation(key) == Some(value))
}

fn wanted(
    view: &View<'_>,
    upload: &Upload,
    events: Option<&RecordName>,
) -> BTreeMap<String, String> {
    let record = &upload.grouping.record;
    let mut wanted = BTreeMap::from([
        (keys::RESULT.to_owned(), record.result().to_string()),
        (keys::RECORD.to_owned(), record.to_string()),
        (keys::STORED.to_owned(), "true".to_owned()),
    ]);
    if let Some(events) = events {
        wanted.insert(EVENT_LIST.to_owned(), events.to_string());
    }
    if view.is_owned() {
        wanted.insert(keys::CHILD_READY.to_owned(), "true".to_owned());
    }
    wanted
}
